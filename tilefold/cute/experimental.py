# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies that know the extents of tensors by themselves, and pipelines that know their stages; tensor memory that lives
as long as the block (`cutlass.cute.experimental`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.control.control_functions import for_, if_
from tilefold.builder.control.loop_range import make_range
from tilefold.builder.instructions import arch, cluster
from tilefold.builder.instructions.tensor_core import (
    alloc_tmem,
    dealloc_tmem,
    fence_view_async_tmem_load,
    retrieve_tmem_ptr,
)
from tilefold.builder.pipelines.advancing import (
    TMAStorePipeline,
    TMAToUMMAPipeline,
    UMMAtoAsyncPipeline,
    pipeline_advance_iterator,
)
from tilefold.builder.pipelines.allocator import SmemAllocator
from tilefold.builder.pipelines.tmem_allocator import get_num_tmem_alloc_cols
from tilefold.builder.pipelines.view_copies import (
    OperationTypeEnum,
    StoreMap,
    get_cta_v_map_ab,
    get_cta_v_map_c,
    tma_load,
    tma_load_multicast,
    tma_store,
)
from tilefold.builder.scalars.dtypes import DType, Int32
from tilefold.builder.tensors import copies
from tilefold.builder.tensors.address_space import AddressSpace
from tilefold.builder.tensors.allocation import make_rmem_tensor, make_smem_tensor
from tilefold.builder.tensors.blackwell import (
    compute_epilogue_tile_shape,
    get_smem_store_op,
    get_tmem_load_op,
    make_smem_layout_epi,
)
from tilefold.builder.tensors.coordinates import as_tuple
from tilefold.builder.tensors.copies import make_tiled_copy_D
from tilefold.builder.tensors.gemm import gemm
from tilefold.builder.tensors.hopper import LayoutEnum
from tilefold.builder.tensors.layouts import make_layout, size
from tilefold.builder.tensors.pointers import make_ptr, make_tensor
from tilefold.builder.tensors.tensor_memory import make_tmem_copy
from tilefold.builder.tensors.tensors import Tensor
from tilefold.builder.tensors.tiled_mma import TiledMma, make_tiled_mma
from tilefold.builder.tensors.tuples import append_ones
from tilefold.builder.tensors.umma import Field
from tilefold.builder.tensors.views import composition, flat_divide, inside, zipped_divide
from tilefold.builder.tracing.state import current
from tilefold.layout.algebra.core import Layout
from tilefold.layout.atoms.instructions import TmemLoad

from .host.compiled import CompiledFunction
from .host.compiler import compile
from .jit import jit
from .kernel import kernel
from .public import publish

__all__ = [
    "DeviceWorkspace", "OperationTypeEnum", "QueryDeviceWorkspaceFunc", "TMAStorePipeline", "TMAToUMMAPipeline",
    "UMMAtoAsyncPipeline", "allocate", "compile", "copy", "dot", "dot_block_scaled", "epilogue_tma_store",
    "get_cta_v_map_ab", "get_cta_v_map_c", "get_mbarrier", "jit", "kernel", "mainloop_mma", "make_t2r_rmem_layout",
    "make_tmem_layout_acc", "partition", "partition_and_copy", "pipeline_advance_iterator", "tma_load",
    "tma_load_multicast", "tma_store",
]  # fmt: skip


def allocate(
    element_type: DType, space: AddressSpace, layout: object, alignment: int = 16, is2cta: bool = False
) -> Tensor:
    """A new tensor in registers, shared memory or tensor memory, of a pair of blocks with `is2cta`. All threads of the
    block allocate tensor memory, and end together, when it is free again. TilefoldError (E5002) for another memory.
    """
    if space is AddressSpace.rmem:
        return make_rmem_tensor(layout, element_type)
    if space is AddressSpace.smem:
        return SmemAllocator().allocate_tensor(element_type, layout, alignment)
    if space is AddressSpace.tmem:
        return _in_tensor_memory(element_type, layout, alignment, is2cta)
    raise TilefoldError(Code.BUILD_VALUE, f"a kernel allocates no memory in {space}", "rmem, smem or tmem")


def _in_tensor_memory(element_type: DType, layout: object, alignment: int, is_paired: bool) -> Tensor:
    columns = get_num_tmem_alloc_cols(make_tensor(make_ptr(element_type, 0, AddressSpace.tmem, alignment), layout))
    slot = make_smem_tensor(1, Int32).iterator

    def meet() -> None:
        if is_paired:
            cluster.cluster_arrive()
            cluster.cluster_wait()
        else:
            arch.sync_threads()

    def by_a_warp(action: Any) -> None:
        if_(cluster.make_warp_uniform(arch.warp_idx()) == 0, action)

    by_a_warp(lambda: alloc_tmem(columns, slot, is_paired))
    meet()
    pointer = retrieve_tmem_ptr(element_type, alignment, slot)

    def release() -> None:
        meet()
        by_a_warp(lambda: dealloc_tmem(pointer, columns, is_paired))

    current().at_end.append(release)
    return make_tensor(pointer, layout)


def get_mbarrier(token: object) -> Any:
    """The mbarrier of a stage that a producer has acquired."""
    return token


def make_tmem_layout_acc(tiled_mma: Any, mnk_tiler: Any, acc_stage: int) -> Any:
    """The layout of accumulators in tensor memory, ((MMA_M,MMA_N),RestM,RestN,STAGE)."""
    shape = tiled_mma.partition_shape_C(tuple(mnk_tiler)[:2])
    return tiled_mma.make_fragment_C((*shape, acc_stage)).layout


def make_t2r_rmem_layout(tiled_copy_t2r: Any, gmem_tiles: Any, thread: object) -> Layout:
    """The layout of a thread's registers for a tile of an epilogue, of tiles (EPI_M,EPI_N,RestM,RestN)."""
    part = tiled_copy_t2r.get_slice(thread).partition_D(gmem_tiles)
    return make_layout(part[None, None, None, 0, 0].shape)


def partition_and_copy(thr_copy: Any, src: Tensor, dst: Tensor) -> None:
    """Copies a thread's part of a tile to registers, or registers to its part of a tile. A load of tensor memory cannot
    move registers, whose part then has its elements one by one, those that the tensor has.
    """
    if src.memspace is AddressSpace.rmem and isinstance(thr_copy.tiled_copy.type.atom.atom.instruction, TmemLoad):
        part = thr_copy.partition_D(dst)
        copies.autovec_copy(src, part, inside(part))
    elif src.memspace is AddressSpace.rmem:
        copies.copy(thr_copy.tiled_copy, thr_copy.retile(src), thr_copy.partition_D(dst))
    else:
        copies.copy(thr_copy.tiled_copy, thr_copy.partition_S(src), dst)


def dot(mma_atom: object, a: Tensor, b: Tensor, c: Tensor) -> None:
    """c = a b, or c += a b as the atom's `ACCUMULATE` says, of operands (MMA,MMA_M,MMA_K) in shared memory."""
    _multiply(mma_atom, {}, a, b, c)


def dot_block_scaled(mma_atom: object, a: Tensor, sfa: Tensor, b: Tensor, sfb: Tensor, c: Tensor) -> None:
    """The same with scales of a and b in tensor memory."""
    _multiply(mma_atom, {Field.SFA: sfa, Field.SFB: sfb}, a, b, c)


def mainloop_mma(
    tiled_mma: TiledMma,
    a: Tensor,
    b: Tensor,
    acc: Tensor,
    k_tile_begin: Any,
    k_tile_end: Any,
    mma_inst_tile_k: int,
    a_pipe: TMAToUMMAPipeline,
    b_pipe: TMAToUMMAPipeline,
) -> tuple[TMAToUMMAPipeline, TMAToUMMAPipeline]:
    """acc = a b, as the sum over the tiles of K from `k_tile_begin` to `k_tile_end`, each of `mma_inst_tile_k`
    instructions. Pipelines fill the stages of a and b, (MMA,MMA_M,MMA_K,STAGE) in shared memory, and may be one; a warp
    calls it. The pipelines are returned, at the stages that follow.
    """
    atom = make_tiled_mma(tiled_mma.op)
    pipes = (a_pipe,) if a_pipe is b_pipe else (a_pipe, b_pipe)

    def tile(number: Any, *pipes: TMAToUMMAPipeline) -> Any:
        stages = [pipe.consumer_wait_and_get_stage()[1] for pipe in pipes]
        for k in range(mma_inst_tile_k):
            first, second = (
                append_ones(x[None, None, k, at], up_to_rank=3) for x, at in ((a, stages[0]), (b, stages[-1]))
            )
            atom.set(Field.ACCUMULATE, True if k else number != k_tile_begin)
            dot(atom, first, second, acc)
        for pipe in pipes:
            pipe.consumer_release_and_advance()
        return pipes[0] if len(pipes) == 1 else pipes

    end = as_tuple(for_(make_range(k_tile_begin, k_tile_end), tile, *pipes))
    return end[0], end[-1]


def epilogue_tma_store(
    cta_tile_shape: Any,
    use_2cta_instrs: bool,
    acc: Tensor,
    mD: Tensor,
    tile: tuple[Any, Any, Any],
    pipe: TMAStorePipeline,
    tma_warp_id: int,
    epilogue_op: Callable[[Any], Any] = lambda x: x,
) -> TMAStorePipeline:
    """Stores a block's tile of accumulators, (M,N) in tensor memory, through stages of shared memory to the tile
    (m,n,l) of a tensor D, after `epilogue_op` of the values. The four warps of the epilogue, whose first is a multiple
    of four, call it, and may go on when the copies have read shared memory. The pipeline is returned.
    """
    layout, dtype, thread = LayoutEnum.from_tensor(mD), mD.element_type, arch.thread_idx()[0] % 128
    gD = zipped_divide(mD, tuple(cta_tile_shape)[:2])[((None, None), tile)]
    epi_tile = compute_epilogue_tile_shape(cta_tile_shape, use_2cta_instrs, layout, dtype)
    sD = allocate(dtype, AddressSpace.smem, make_smem_layout_epi(dtype, layout, epi_tile, pipe.stages), 1024)
    load = get_tmem_load_op(cta_tile_shape, layout, dtype, acc.element_type, epi_tile, use_2cta_instrs)
    parts, tiles = flat_divide(acc, epi_tile), flat_divide(gD, epi_tile)
    t2r = make_tmem_copy(load, parts[None, None, 0, 0])
    r2s = make_tiled_copy_D(get_smem_store_op(layout, dtype, acc.element_type, t2r), t2r)
    laid = make_t2r_rmem_layout(t2r, tiles, thread)
    values, results = make_rmem_tensor(laid, acc.element_type), make_rmem_tensor(laid, dtype)
    map = StoreMap.of(sD[None, None, 0], tiles[None, None, 0, 0], epi_tile)
    stores = cluster.make_warp_uniform(arch.warp_idx()) == tma_warp_id
    if_(stores, map.write)
    for n in range(size(parts, mode=[3])):
        for m in range(size(parts, mode=[2])):
            partition_and_copy(t2r.get_slice(thread), parts[None, None, m, n], values)
            fence_view_async_tmem_load()
            results.store(epilogue_op(values.load()).to(dtype))
            pipe.acquire_sync()
            stage = sD[None, None, pipe.get_index()]
            partition_and_copy(r2s.get_slice(thread), results, stage)
            pipe.commit_sync()
            if_(stores, partial(map.store, stage, tiles[None, None, m, n]))
            pipe.release_advance()
    pipe.tail()
    return pipe


def _multiply(mma_atom: Any, scales: Mapping[Field, Tensor], a: Tensor, b: Tensor, c: Tensor) -> None:
    mma = make_tiled_mma(mma_atom.op)
    mma.accumulate = mma_atom.accumulate
    for field, tensor in scales.items():
        mma.set(field, tensor.iterator)
    gemm(mma, c, mma.make_fragment_A(a), mma.make_fragment_B(b), c)


def partition(tensor: Tensor, index: object, *, layout_tv: object, tiler: object) -> Tensor:
    """The part of thread `index` in a tensor: its values in each tile of the shape `tiler`, by a layout of threads and
    values, and the tiles: (V,(RestM,RestN,...)).
    """
    parts = composition(zipped_divide(tensor, tiler), (layout_tv, None))
    return parts[((index, None), None)]


def copy(src: Tensor, dst: Tensor, *, copy_atom: Any) -> None:
    """Copies by an atom, as `cute.copy` does, but only elements that the tensors have from which the views were made:
    a tile may reach beyond them. One execution of the atom moves all of its values or none, so these are all inside or
    all outside: a GPU asks for the first, the simulator at stage `cute` for all (E3214).
    """
    predicates: Any = None
    for view in (src, dst):
        if (part := inside(view)) is not None:
            predicates = part.load() if predicates is None else predicates & part.load()
    copies.copy(copy_atom, src, dst, predicates)


publish(__name__)


@dataclass(frozen=True)
class DeviceWorkspace:
    """The memory of the GPU that a call needs besides its arguments."""

    size_in_bytes: int


@dataclass(frozen=True)
class QueryDeviceWorkspaceFunc:
    """Says how much memory a call of a compiled function needs for the tensor maps that its kernel makes:
    `function.get_aux_func(QueryDeviceWorkspaceFunc)`. The call takes it behind its arguments, as an array of bytes.
    """

    function: CompiledFunction

    def __call__(self, *args: Any, **kwargs: Any) -> DeviceWorkspace:
        """The memory for arguments. Raises as a call of the function with them does, which it does not make."""
        return DeviceWorkspace(self.function.workspace_bytes(args, kwargs))
