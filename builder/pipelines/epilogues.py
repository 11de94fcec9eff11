# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How four warps bring a tile of results from tensor memory to global memory: through shared memory and TMA copies,
or directly (CUTLASS, epilogue/collective/sm100_epilogue_tma_warpspecialized.hpp; sm_100a).

The object `gemm` of a program describes its kernel: `cta_tile_shape_mnk`, `use_2cta_instrs`, `c_layout`, `c_dtype`
and `acc_dtype`; with TMA copies also `epilogue_warp_id`, `epilog_sync_bar_id` and `num_c_stage`.
"""

from collections.abc import Callable
from typing import Any

from ...base.errors import Code, TilefoldError
from ...base.target import WARP
from ...layout.algebra.coalesce import coalesce
from ...layout.algebra.core import ComposedLayout, Layout, make_layout
from ...layout.algebra.integers import AnyTuple
from ...layout.algebra.inttuple import rank
from ..control.control_functions import if_
from ..instructions import arch
from ..instructions.math import where
from ..instructions.tensor_core import fence_view_async_tmem_load
from ..instructions.warp import elect_one
from ..scalars.dtypes import Boolean
from ..scalars.operators import Operand
from ..tensors.allocation import basic_copy_if, make_rmem_tensor
from ..tensors.blackwell import get_smem_store_op, get_tmem_load_op
from ..tensors.copies import TiledCopy, copy, make_tiled_copy_D
from ..tensors.copy_atoms import make_copy_atom
from ..tensors.layouts import size
from ..tensors.modes import group_modes, relaid
from ..tensors.nvgpu import CopyUniversalOp
from ..tensors.tensor_memory import make_tmem_copy
from ..tensors.tensors import CoordTensor, Tensor
from ..tensors.tma import TmaAtom, tma_partition
from ..tensors.views import elem_less, flat_divide
from .barriers import NamedBarrier
from .participants import PipelineState
from .pipelines import PipelineTmaStore
from .tensor_core_pipelines import PipelineUmmaAsync

_SUBTILES = 5
"""The mode of a partitioned tensor that counts stages or tiles, after (T2R,T2R_M,T2R_N,EPI_M,EPI_N)."""


def transform_partitioned_tensor_layout(tensor: object) -> Any:
    """A part of an MMA, ((ATOM_M,ATOM_N),MMA_M,MMA_N,...), as a matrix of rows and columns: ((ATOM_M,MMA_M),
    (ATOM_N,MMA_N),...). A tensor, or a layout. Raises TilefoldError (E0201) for one that is not such a part.
    """

    def matrix(layout: Layout | ComposedLayout) -> Any:
        if isinstance(layout, ComposedLayout):
            return ComposedLayout(layout.inner, layout.offset, matrix(layout.outer))
        modes = list(layout)
        if len(modes) < 3 or rank(modes[0].shape) != 2:
            text = f"{layout.shape} is not a partition ((M,N),rest of M,rest of N,...) of an MMA"
            raise TilefoldError(Code.PROFILE_MISMATCH, text, "partition a matrix by get_slice(v).partition_C")
        (rows, columns), more_rows, more_columns, *rest = modes
        return make_layout(coalesce(make_layout(rows, more_rows)), coalesce(make_layout(columns, more_columns)), *rest)

    return relaid(tensor, matrix)


def epilogue_tmem_copy_and_partition(
    gemm: Any, tidx: object, tAcc: Tensor, gC_mnl: Tensor | CoordTensor, epi_tile: AnyTuple, use_2cta_instrs: bool
) -> tuple[TiledCopy, Tensor, Tensor]:
    """The load of an epilogue's tiles from tensor memory, a thread's part of the accumulators,
    (T2R,T2R_M,T2R_N,EPI_M,EPI_N,STAGE), and its registers for a tile. `tAcc` (M,N,STAGE) and `gC_mnl` (M,N,...) are
    the result of `transform_partitioned_tensor_layout`.
    """
    atom = get_tmem_load_op(
        gemm.cta_tile_shape_mnk, gemm.c_layout, gemm.c_dtype, gemm.acc_dtype, epi_tile, use_2cta_instrs
    )
    accumulators = flat_divide(tAcc, epi_tile)
    load = make_tmem_copy(atom, accumulators[None, None, 0, 0, 0])
    of_thread = load.get_slice(tidx)
    target: Any = of_thread.partition_D(flat_divide(gC_mnl, epi_tile))
    registers = make_rmem_tensor(_first(target).shape, gemm.acc_dtype)
    return load, of_thread.partition_S(accumulators), registers


def epilogue_smem_copy_and_partition(
    gemm: Any, tiled_copy_t2r: TiledCopy, tTR_rC: Tensor, tidx: object, sC: Tensor
) -> tuple[TiledCopy, Tensor, Tensor]:
    """The store of an epilogue's tile to shared memory, a thread's registers as it takes them, and its part of the
    stages `sC`.
    """
    atom = get_smem_store_op(gemm.c_layout, gemm.c_dtype, gemm.acc_dtype, tiled_copy_t2r)
    store = make_tiled_copy_D(atom, tiled_copy_t2r)
    return store, store.retile(tTR_rC), store.get_slice(tidx).partition_D(sC)


def epilogue_tma_store(
    gemm: Any,
    epi_tidx: Operand,
    warp_idx: Operand,
    tma_atom_c: TmaAtom,
    tCtAcc_base: Tensor,
    sC: Tensor,
    tCgC: CoordTensor,
    epi_tile: AnyTuple,
    num_tiles_executed: Operand,
    epilogue_op: Callable[[Any], object],
    mma_tile_coord_mnl: tuple[object, object, object],
    acc_consumer_state: PipelineState,
    acc_pipeline: PipelineUmmaAsync,
    c_pipeline: PipelineTmaStore,
) -> PipelineState:
    """Waits for a tile's accumulator and stores the tile, `epilogue_op` of its elements in the type of C: the first
    warp copies the stages of shared memory `sC` to the tensor of `tma_atom_c`. Releases the accumulator, advances the
    state and returns it. `num_tiles_executed` are the block's tiles before, which decides the next stage.
    """
    target = transform_partitioned_tensor_layout(tCgC)
    load, accumulators, registers = epilogue_tmem_copy_and_partition(
        gemm, epi_tidx, transform_partitioned_tensor_layout(tCtAcc_base), target, epi_tile, gemm.use_2cta_instrs
    )
    converted = make_rmem_tensor(registers.shape, gemm.c_dtype)
    store, stored, staged = epilogue_smem_copy_and_partition(gemm, load, converted, epi_tidx, sC)
    tiles = flat_divide(target, epi_tile)
    sources, targets = tma_partition(tma_atom_c, 0, make_layout(1), group_modes(sC, 0, 2), group_modes(tiles, 0, 2))
    parts = group_modes(targets[None, None, None, *mma_tile_coord_mnl], 1, 3)
    barrier = NamedBarrier(gemm.epilog_sync_bar_id, WARP * len(gemm.epilogue_warp_id))

    acc_pipeline.consumer_wait(acc_consumer_state)
    loaded = _of_stage(accumulators, acc_consumer_state.index)
    count = size(loaded, 3)
    for subtile in range(count):
        copy(load, loaded[None, None, None, subtile], registers)
        stored.store(epilogue_op(store.retile(registers).load().to(gemm.c_dtype)))
        stage = (num_tiles_executed * count + subtile) % gemm.num_c_stage
        copy(store, stored, staged[None, None, None, stage])
        arch.fence_proxy("async.shared", "cta")
        barrier.arrive_and_wait()

        def send(part: int = subtile, stage: object = stage) -> None:
            copy(tma_atom_c, sources[None, stage], parts[None, part])
            c_pipeline.producer_commit()
            c_pipeline.producer_acquire()

        if_(warp_idx == gemm.epilogue_warp_id[0], send)
        barrier.arrive_and_wait()
    _release(acc_pipeline, acc_consumer_state)
    return acc_consumer_state


def epilogue(
    gemm: Any,
    epi_tidx: Operand,
    tCtAcc_base: Tensor,
    tCgC: Tensor,
    epi_tile: AnyTuple,
    epilogue_op: Callable[[Any], object],
    mma_tile_coord_mnl: tuple[object, object, object],
    acc_consumer_state: PipelineState,
    acc_pipeline: PipelineUmmaAsync,
    tCcC_base: CoordTensor | None = None,
    mC_mnl: Tensor | None = None,
    overlapping_accum: bool = False,
) -> PipelineState:
    """Waits for a tile's accumulator and stores the tile, `epilogue_op` of its elements in the type of C, from
    registers to global memory. Releases the accumulator, advances the state and returns it.

    With the coordinates `tCcC_base` of C's parts, only elements within `mC_mnl` are stored. With `overlapping_accum`
    two accumulators share columns: the state has one stage, its phase is the accumulator's number, the tiles of the
    first one are stored in reverse order, and both are released as soon as the shared columns are loaded, after
    `gemm.iter_acc_early_release_in_epilogue` further tiles.
    """
    target = transform_partitioned_tensor_layout(tCgC)
    load, accumulators, registers = epilogue_tmem_copy_and_partition(
        gemm, epi_tidx, transform_partitioned_tensor_layout(tCtAcc_base), target, epi_tile, gemm.use_2cta_instrs
    )

    def part_of(tensor: object) -> Any:
        part = load.get_slice(epi_tidx).partition_D(flat_divide(tensor, epi_tile))
        return _of_stage(part, *mma_tile_coord_mnl)

    results = part_of(target)
    coords = None if tCcC_base is None else part_of(transform_partitioned_tensor_layout(tCcC_base))
    converted = make_rmem_tensor(registers.shape, gemm.c_dtype)
    atom = make_copy_atom(CopyUniversalOp(), gemm.c_dtype)

    acc_pipeline.consumer_wait(acc_consumer_state)
    number = acc_consumer_state.phase if overlapping_accum else acc_consumer_state.index
    loaded = _of_stage(accumulators, number)
    count = size(loaded, 3)
    for turn in range(count):
        subtile = where(number == 0, count - 1 - turn, turn) if overlapping_accum else turn
        copy(load, loaded[None, None, None, subtile], registers)
        if overlapping_accum and turn == gemm.iter_acc_early_release_in_epilogue:
            _release(acc_pipeline, acc_consumer_state)
        converted.store(epilogue_op(registers.load().to(gemm.c_dtype)))
        if coords is None or mC_mnl is None:
            copy(atom, converted, results[None, None, None, subtile])
            continue
        places = coords[None, None, None, subtile]
        inside = make_rmem_tensor(converted.shape, Boolean)
        for element in range(size(inside)):
            inside[element] = elem_less(places[element], mC_mnl.shape)
        basic_copy_if(inside, converted, results[None, None, None, subtile])
    if not overlapping_accum:
        _release(acc_pipeline, acc_consumer_state)
    return acc_consumer_state


def _first(partitioned: Any) -> Any:
    """A thread's part of the first of an epilogue's tiles."""
    return partitioned[(None, None, None, *[0] * (partitioned.rank - 3))]


def _of_stage(partitioned: Any, *stage: Operand) -> Any:
    """A thread's part of the epilogue's tiles of one stage or tile of a block, with one mode for all of them."""
    return group_modes(partitioned[(*[None] * _SUBTILES, *stage)], 3, _SUBTILES)


def _release(pipeline: PipelineUmmaAsync, state: PipelineState) -> None:
    """One thread of each warp gives the accumulator back, after the warp's loads."""
    fence_view_async_tmem_load()
    if_(elect_one(), lambda: pipeline.consumer_release(state))
    state.advance()
