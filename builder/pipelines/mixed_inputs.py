# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of kernels that multiply narrow integers A with wide floats B: warps convert A, and scale it, between its
TMA copy and tcgen05.mma, which takes the result from tensor memory or shared memory (sm_100a).
"""

from dataclasses import dataclass
from enum import Enum
from math import gcd
from typing import Any

from ...base.errors import Code, TilefoldError
from ...layout.algebra.coalesce import filter_zeros
from ...layout.algebra.core import Layout, LayoutLike, plain_layout
from ...layout.algebra.integers import AnyTuple
from ...layout.algebra.inttuple import product
from ..scalars.dtypes import DType
from ..tensors import nvgpu
from ..tensors.allocation import make_rmem_tensor
from ..tensors.blackwell import make_smem_layout_a, make_smem_layout_b
from ..tensors.copies import TiledCopy, copy, make_cotiled_copy
from ..tensors.copy_atoms import CopyAtom, make_copy_atom
from ..tensors.hopper import LayoutEnum
from ..tensors.layouts import make_composed_layout, make_layout, make_swizzle
from ..tensors.modes import group_modes, relaid
from ..tensors.nvgpu import CtaGroup
from ..tensors.pointers import make_tensor
from ..tensors.tensor_memory import Repetition, St32x32bOp, make_tmem_copy
from ..tensors.tensors import CoordTensor, Tensor
from ..tensors.tiled_mma import TiledMma
from ..tensors.tma import TmaAtom, tma_partition
from ..tensors.umma import OperandSource
from ..tensors.views import composition, flat_divide
from ..tensors.warpgroup import OperandMajorMode
from .epilogues import (
    epilogue_smem_copy_and_partition,
    epilogue_tmem_copy_and_partition,
    transform_partitioned_tensor_layout,
)

_THREADS = 128
"""The threads that convert A, those of four warps."""
_COPY_BITS = 128
"""The bits that TMA copies and the widest accesses need along the contiguous mode."""


class TransformMode(Enum):
    """How A becomes the type of B: by a conversion, or by a conversion and a multiplication with scales."""

    ConvertOnly = "convert"
    ConvertScale = "convert and scale"


def get_transform_a_source(a_major_mode: OperandMajorMode) -> OperandSource:
    """The place of the converted A: tensor memory, whose rows are contiguous along K, or shared memory for M-major."""
    return OperandSource.TMEM if a_major_mode is OperandMajorMode.K else OperandSource.SMEM


def compute_smem_layout(
    tiled_mma: TiledMma, mma_tiler: object, a_dtype: DType, b_dtype: DType, load_stages: int, transform_stages: int
) -> tuple[LayoutLike, LayoutLike, LayoutLike]:
    """The layouts of shared memory for the stages of A, of the converted A and of B."""
    return (
        make_smem_layout_a(tiled_mma, mma_tiler, a_dtype, load_stages),
        make_smem_layout_a(tiled_mma, mma_tiler, b_dtype, transform_stages),
        make_smem_layout_b(tiled_mma, mma_tiler, b_dtype, load_stages),
    )


def get_smem_layout_scale(
    mma_tiler: tuple[int, int, int],
    use_2cta_instrs: bool,
    scale_granularity_m: int,
    scale_granularity_k: int,
    scale_major_mode: OperandMajorMode,
    a_scale_dtype: DType,
    num_stages: int,
) -> tuple[tuple[int, int], LayoutLike, LayoutLike]:
    """The scales (M,K) of a tile of A, and the layouts of shared memory for one stage and all stages of them by the
    coordinates of A: ((granularity,scales,blocks),(granularity,scales)). Elements with one scale have one address. Each
    block of a pair has the scales of its rows.
    """
    _check_major(scale_major_mode)
    m, _, k = mma_tiler
    blocks = 2 if use_2cta_instrs else 1
    rows, deep = m // scale_granularity_m, max(k // scale_granularity_k, 1)
    own = rows // blocks
    stage = make_layout(
        Layout((scale_granularity_m, own, blocks), (0, 1, 0)), Layout((k // deep, deep), (0, own if deep > 1 else 0))
    )
    staged = make_layout(*stage, Layout(num_stages, own * deep))
    return (rows, deep), _unswizzled(stage), _unswizzled(staged)


def _unswizzled(layout: Layout) -> LayoutLike:
    """The layout composed with an identity swizzle: kernels split the swizzle off each operand."""
    return make_composed_layout(make_swizzle(0, 4, 3), 0, layout)


def get_gmem_layout_scale(
    a_shape: AnyTuple, scale_granularity_m: int, scale_granularity_k: int, scale_major_mode: OperandMajorMode
) -> Layout:
    """The layout of the scales in global memory by the coordinates (M,K,L) of A:
    ((granularity,scales),(granularity,scales),L).
    """
    _check_major(scale_major_mode)
    m, k, batch = a_shape
    rows, deep = m // scale_granularity_m, k // scale_granularity_k
    shape = ((scale_granularity_m, rows), (scale_granularity_k, deep), batch)
    return make_layout(shape, stride=((0, 1), (0, rows), rows * deep))


def _check_major(major: OperandMajorMode) -> None:
    if major is not OperandMajorMode.MN:
        text = "the scales of A are contiguous along K"
        raise TilefoldError(Code.BUILD_VALUE, text, "store them with the scales of a column next to each other")


def get_tma_atom_kind(mcast: bool, use_2cta_instrs: bool, is_b: bool) -> nvgpu.CopyBulkTensorTileG2SOp:
    """The TMA copy of an operand. A pair of blocks multiplies with B as one; each block converts its own A."""
    kind = nvgpu.CopyBulkTensorTileG2SMulticastOp if mcast else nvgpu.CopyBulkTensorTileG2SOp
    return kind(CtaGroup.TWO if use_2cta_instrs and is_b else CtaGroup.ONE)


def get_copy_atom_a_transform(
    mma_dtype: DType, use_2cta_instrs: bool, transform_a_source: OperandSource, a_smem_shape: AnyTuple, a_dtype: DType
) -> CopyAtom:
    """The copy atom that stores the converted A: a row's elements of one instruction to tensor memory, or 16 bytes to
    shared memory.
    """
    if transform_a_source is OperandSource.SMEM:
        return make_copy_atom(nvgpu.CopyUniversalOp(), mma_dtype, num_bits_per_copy=_COPY_BITS)
    (_, depth), *_ = a_smem_shape
    return make_copy_atom(St32x32bOp(Repetition(product(depth) * mma_dtype.bits // 32)), mma_dtype)


def scale_tma_partition(
    tCsS: Tensor,
    tCgS: CoordTensor,
    tma_atom_s: TmaAtom,
    block_in_cluster_coord_vmnk: AnyTuple,
    scale_cta_layout: AnyTuple,
) -> tuple[Tensor, CoordTensor]:
    """The scales of a block's tiles as the instructions of their TMA copy, each scale once: ((TMA,TMA_Iter),STAGE)
    and ((TMA,TMA_Iter),M,K,L).
    """

    def once(tensor: object) -> Any:
        def filtered(whole: Any) -> Layout:
            modes = list(whole)
            return make_layout(*map(filter_zeros, modes[:3]), *modes[3:])

        return group_modes(relaid(tensor, filtered), 0, 3)

    return tma_partition(tma_atom_s, block_in_cluster_coord_vmnk[2], scale_cta_layout, once(tCsS), once(tCgS))


def transform_partition(
    transform_a_source: OperandSource,
    scale_mode: TransformMode,
    copy_atom_a_input: CopyAtom | None,
    copy_atom_a_transform: CopyAtom,
    sA_input: Tensor,
    A_transform: Tensor,
    transform_local_tidx: object,
) -> tuple[TiledCopy, TiledCopy, Tensor, Tensor]:
    """How four warps share a tile of A: the copies by which they load A and store the converted A, which give a thread
    the same elements, and a thread's parts of both, (V,RestV,MMA_M,MMA_K,STAGE).
    """
    target = A_transform
    first = target[None, None, None, 0]
    if transform_a_source is OperandSource.TMEM:
        store = make_tmem_copy(copy_atom_a_transform, first)
    else:
        values = _COPY_BITS // target.element_type.bits
        store = make_cotiled_copy(
            copy_atom_a_transform, make_layout((_THREADS, values), stride=(values, 1)), first.layout
        )
    of_thread = store.get_slice(transform_local_tidx)
    return store, store, of_thread.partition_S(sA_input), of_thread.partition_D(A_transform)


def scale_partition(
    src_copy_a: TiledCopy, tCsS: Tensor, transform_local_tidx: object, mma_dtype: DType
) -> tuple[Any, Tensor, Tensor, Tensor]:
    """A thread's part of the scales: the copy, the part of shared memory, registers for each scale once, and the same
    registers by the coordinates of the thread's part of A.
    """
    of_thread = src_copy_a.get_slice(transform_local_tidx)
    part = of_thread.partition_S(tCsS)
    whole = part[None, None, None, None, 0].layout
    once = make_rmem_tensor(filter_zeros(plain_layout(whole)).shape, mma_dtype)
    return of_thread, part, once, make_tensor(once.iterator, make_layout(whole.shape, stride=once.layout.stride))


def cvt_tensor_a(src: Tensor, mma_dtype: DType, shuffle_a: bool) -> Any:
    """The elements of A in the type of B. With `shuffle_a` those of each eight are stored in the order 0, 2, 1, 3, 4,
    6, 5, 7.
    """
    numbers = src.load().to(mma_dtype)
    if not shuffle_a:
        return numbers
    stored = make_rmem_tensor(product(src.shape), mma_dtype)
    stored.store(numbers.reshape(product(src.shape)))
    order = make_layout((2, 2, product(src.shape) // 4), stride=(2, 1, 4))
    return composition(stored, order).load().reshape(src.shape)


def is_shuffle_a(a_major: str, k: int, a_dtype: DType, b_dtype: DType, scale_granularity_k: int) -> bool:
    """Whether a kernel wants A with the elements of each eight in another order. None does: PTX converts elements in
    their own.
    """
    return False


def store_transformed_a(src: Tensor, dst: Tensor, dst_copy_a: TiledCopy) -> None:
    """Stores a thread's part of the converted A."""
    copy(dst_copy_a, src, dst)


@dataclass(frozen=True, slots=True)
class _Results:
    """A kernel as epilogues ask for it."""

    c_layout: LayoutEnum
    c_dtype: DType
    acc_dtype: DType
    cta_tile_shape_mnk: AnyTuple = None


def epilog_tmem_copy_and_partition(
    cta_tile_shape_mnk: object,
    c_layout: LayoutEnum,
    c_dtype: DType,
    acc_dtype: DType,
    tidx: object,
    tAcc: Tensor,
    gC_mnl: object,
    epi_tile: object,
    use_2cta_instrs: bool,
) -> tuple[TiledCopy, Tensor, Tensor]:
    """The load of an epilogue's tiles from tensor memory, a thread's part of the accumulators,
    (T2R,T2R_M,T2R_N,EPI_M,EPI_N,STAGE), and its registers for a tile.
    """
    results = _Results(c_layout, c_dtype, acc_dtype, cta_tile_shape_mnk)
    accumulators, target = map(transform_partitioned_tensor_layout, (tAcc, gC_mnl))
    return epilogue_tmem_copy_and_partition(results, tidx, accumulators, target, epi_tile, use_2cta_instrs)


def epilog_smem_copy_and_partition(
    c_layout: LayoutEnum,
    c_dtype: DType,
    acc_dtype: DType,
    tiled_copy_t2r: TiledCopy,
    tTR_rC: Tensor,
    tidx: object,
    sC: Tensor,
) -> tuple[TiledCopy, Tensor, Tensor]:
    """The store of an epilogue's tile to shared memory, the registers as it takes them, and a thread's part of `sC`."""
    return epilogue_smem_copy_and_partition(_Results(c_layout, c_dtype, acc_dtype), tiled_copy_t2r, tTR_rC, tidx, sC)


def epilog_gmem_copy_and_partition(
    c_dtype: DType,
    tidx: object,
    tma_atom_c: TmaAtom | None,
    tiled_copy_t2r: TiledCopy | None,
    tma_gC_mnl: CoordTensor | None,
    gC_mnl: Tensor | None,
    epi_tile: object,
    sC: Tensor | None,
) -> tuple[TmaAtom | None, Any, Any, CopyAtom | None, Any]:
    """The TMA copy of C and the parts of shared and global memory that it moves, ((TMA,TMA_Iter),EPI_M,EPI_N,M,N,L);
    and the copy atom of a thread's stores and its part of C, (T2R,T2R_M,T2R_N,EPI_M,EPI_N,M,N,L). Those without their
    copy are None.
    """
    sources = targets = atom = part = None
    if tiled_copy_t2r is not None:
        target = flat_divide(transform_partitioned_tensor_layout(gC_mnl), epi_tile)
        part = tiled_copy_t2r.get_slice(tidx).partition_D(target)
        atom = make_copy_atom(nvgpu.CopyUniversalOp(), c_dtype)
    if tma_atom_c is not None:
        tiles = flat_divide(transform_partitioned_tensor_layout(tma_gC_mnl), epi_tile)
        staged = group_modes(sC, 0, 2)
        sources, targets = tma_partition(tma_atom_c, 0, make_layout(1), staged, group_modes(tiles, 0, 2))
    return tma_atom_c, sources, targets, atom, part


def is_valid_mma_tiler_and_cluster_shape(
    mma_tiler: tuple[int, int, int], cluster_shape_mn: tuple[int, int], use_2cta_instrs: bool
) -> bool:
    """Whether one instruction has the rows and columns of a tile, K of the tile is that of several, and a cluster of at
    most 16 blocks has whole pairs.
    """
    m, n, k = mma_tiler
    blocks = 2 if use_2cta_instrs else 1
    along_m, along_n = cluster_shape_mn
    powers = all(x > 0 and x & (x - 1) == 0 for x in cluster_shape_mn)
    least = 16 * blocks
    return (
        m in (64 * blocks, 128 * blocks) and least <= n <= 256 and n % least == 0 and k > 0 and k % 16 == 0
        and powers and along_m % blocks == 0 and along_m * along_n <= 16
    )  # fmt: skip


def is_valid_scale_granularity(
    scale_granularity_m: int, scale_granularity_k: int, a_dtype: DType, k: int, mma_tiler_k: int
) -> bool:
    """Whether elements of 8 bits have no scales, and elements of 4 bits one for each row and a number of elements along
    K that whole tiles and K have.
    """
    if a_dtype.bits == 8:
        return scale_granularity_m == scale_granularity_k == 0
    return (
        scale_granularity_m == 1 and scale_granularity_k > 0
        and scale_granularity_k % mma_tiler_k == 0 and k % scale_granularity_k == 0
    )  # fmt: skip


def is_valid_tensor_alignment(
    m: int,
    n: int,
    k: int,
    a_dtype: DType,
    b_dtype: DType,
    c_dtype: DType,
    a_scale_dtype: DType,
    a_major: str,
    b_major: str,
    c_major: str,
    mma_tiler: tuple[int, int, int],
    use_2cta_instrs: bool,
    cluster_shape_mn: tuple[int, int],
    scale_granularity_m: int,
    scale_granularity_k: int,
) -> bool:
    """Whether the contiguous mode of each tensor is a multiple of 16 bytes, as TMA copies need, and so are the parts
    of a tile that the blocks of a multicast load.
    """
    tile_m, tile_n, tile_k = mma_tiler
    blocks = 2 if use_2cta_instrs else 1
    along_m, along_n = cluster_shape_mn
    a_part = tile_m // blocks // along_n if a_major == "m" else tile_k
    b_part = tile_n // (blocks * max(along_m // blocks, 1)) if b_major == "n" else tile_k
    extents = [
        (m if a_major == "m" else k, a_dtype), (n if b_major == "n" else k, b_dtype),
        (m if c_major == "m" else n, c_dtype), (a_part, a_dtype), (b_part, b_dtype),
    ]  # fmt: skip
    if scale_granularity_m and scale_granularity_k:
        extents += [(m // scale_granularity_m, a_scale_dtype)]
    return all(extent * dtype.bits % _COPY_BITS == 0 for extent, dtype in extents)


def get_divisibility(contiguous_dim_size: int, upper_bound: int = 128) -> int:
    """The largest power of two up to a bound that divides the extent of a contiguous mode."""
    return gcd(contiguous_dim_size, upper_bound)
