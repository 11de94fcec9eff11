# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scales of blocks of elements: their layouts in memory, and the parts of threads (CuTe's sm100_blockscaled_layout.hpp
and sm120_blockscaled_mma_tma.hpp).

A block of 512 bytes has the scales of 128 rows for four groups of elements along K. A layout of scales maps the
elements of the matrix, (M,K), to bytes: neighbours along K that share a scale are one byte.
"""

from dataclasses import dataclass
from typing import Any

from ...layout.algebra.core import Layout, cosize, join, make_layout
from ...layout.algebra.integers import Unknown
from ...layout.algebra.product import make_fragment_like
from ...layout.tmem.scales import (
    BLOCK,
    BLOCK_FACTORS,
    BLOCK_ROWS,
    place_scales,
    scale_block,
    scales_in_smem,
    tile_scales,
)
from ..scalars.dtypes import DType
from .allocation import make_rmem_tensor
from .coordinates import as_layout, as_tuple, tuples
from .copy_atoms import CopyAtom, make_copy_atom
from .hopper import LayoutEnum
from .nvgpu import CopyUniversalOp, StMatrix8x8x16bOp
from .tensor_base import tensor_type
from .tensors import Tensor
from .tiled_mma import ThrMma, TiledMma
from .warpgroup import OperandMajorMode


@dataclass(frozen=True, slots=True)
class BlockScaledBasicChunk:
    """The block of scales that the layouts of matrices repeat: 128 rows of four groups of `sf_vec_size` elements along
    K, or along M and N (CUTLASS, sm100_blockscaled_layout.hpp: Sm1xxBlockScaledBasicChunk).
    """

    sf_vec_size: int
    major_mode: OperandMajorMode = OperandMajorMode.K

    @property
    def layout(self) -> Layout:
        """From a row and an element along K, or from an element and a row, to a byte of the block."""
        return scale_block(self.sf_vec_size, self.major_mode.name)


def tile_atom_to_shape_SF(shape: object, sf_vec_size: int) -> Layout:
    """The layout of the scales of a matrix of shape (M,K) or (M,K,L), for A, or (N,K,...), for B: blocks, those along K
    first. Raises `LayoutError` (E0213) for a shape of another rank.
    """
    return tile_scales(sf_vec_size, as_tuple(tuples(shape)))


def sm120_make_smem_layout_sfa(
    tiled_mma: TiledMma, tile_shape_mnk: object, sf_vec_size: int, num_stages: int
) -> Layout:
    """The layout of shared memory for stages of the scales of A: (M,K,stages)."""
    m, _, k = as_tuple(tuples(tile_shape_mnk))
    return _staged(tiled_mma, m, k, sf_vec_size, num_stages)


def sm120_make_smem_layout_sfb(
    tiled_mma: TiledMma, tile_shape_mnk: object, sf_vec_size: int, num_stages: int
) -> Layout:
    """The layout of shared memory for stages of the scales of B: (N,K,stages)."""
    _, n, k = as_tuple(tuples(tile_shape_mnk))
    return _staged(tiled_mma, max(n, BLOCK_ROWS), k, sf_vec_size, num_stages)


def _staged(tiled_mma: TiledMma, rows: int, k: int, each: int, stages: int) -> Layout:
    of_atom, blocks = tiled_mma.shape_mnk[2] // each, rows // BLOCK_ROWS
    size, along_k = BLOCK * blocks, k // each // BLOCK_FACTORS
    shape = ((32, 4), blocks), ((each, of_atom), BLOCK_FACTORS // of_atom, along_k), stages
    stride = ((16, 4), BLOCK), ((0, 1), of_atom, size), size * along_k
    return Layout(shape, stride)


def partition_fragment_SFA(tensor: Tensor, thr_mma: ThrMma, thr_idx: object = None) -> Tensor:
    """Registers for a thread's part of the scales of A in a layout (M,K): ((elements of a scale, scales),MMA_M,...)."""
    return _fragment("SFA", tensor, thr_mma)


def partition_fragment_SFB(tensor: Tensor, thr_mma: ThrMma, thr_idx: object = None) -> Tensor:
    """Registers for a thread's part of the scales of B in a layout (N,K)."""
    return _fragment("SFB", tensor, thr_mma)


def _fragment(operand: str, tensor: Tensor, thr_mma: ThrMma) -> Tensor:
    tiled = thr_mma.tiled_mma.type.tiled_mma
    part, _ = tiled.partition(operand, tensor_type(tensor).layout.data, Unknown())
    return make_rmem_tensor(make_fragment_like(part), tensor.element_type)


def get_layoutSFA_TV(tiled_mma: TiledMma) -> Layout:
    """(thread, value) to a place of the tile of A, (M,K), whose scales the threads hold."""
    return tiled_mma.type.tiled_mma.layout_tv("SFA")


def get_layoutSFB_TV(tiled_mma: TiledMma) -> Layout:
    """(thread, value) to a place of the tile of B, (N,K), whose scales the threads hold."""
    return tiled_mma.type.tiled_mma.layout_tv("SFB")


def get_permutation_mnk(tile_shape_mnk: object, sf_vec_size: int, use_mxf8f6f4: bool) -> tuple[Any, Any, int]:
    """The permutation of a tiled MMA with scales: 128 rows of M, 32 columns of N in the order in which ldmatrix loads
    them, and K of the instruction.
    """
    m, n, _ = as_tuple(tuples(tile_shape_mnk))
    columns = Layout((8, 2, 2), (1, 16, 8)) if n >= 32 else make_layout((8, n // 8))
    return min(m, 128), columns, 32 if use_mxf8f6f4 else 64


def sm120_get_smem_store_op(layout_d: LayoutEnum, elem_ty_d: DType, elem_ty_acc: DType) -> CopyAtom:
    """The copy atom that moves results of warps to shared memory: two matrices of 16-bit elements (stmatrix),
    transposed if M is contiguous; for other elements, accesses as wide as layouts allow.
    """
    if elem_ty_d.bits == 16 and elem_ty_acc.bits in (16, 32):
        return make_copy_atom(StMatrix8x8x16bOp(layout_d.is_m_major_c(), 2), elem_ty_d)
    return make_copy_atom(CopyUniversalOp(), elem_ty_d)


def make_smem_layout_sf(tile_shape: object, sf_vec_size: int, num_stages: int) -> Layout:
    """The same storage as that of `make_smem_layout_sfa`, by the places of a block's tile (M,K): (M,K,stages). Raises
    `LayoutError` (E0304) for a tile that has no whole blocks of factors along K.
    """
    rows, k = as_tuple(tuples(tile_shape))
    whole = scales_in_smem(sf_vec_size, sf_vec_size * BLOCK_FACTORS, rows, k)
    (m, values), _, (_, blocks) = whole
    one = make_layout(m, make_layout(values, blocks))
    return join([*one, Layout(num_stages, cosize(one))])


def make_smem_layout_sfa(tiled_mma: TiledMma, mma_tiler_mnk: object, sf_vec_size: int, num_stages: int) -> Layout:
    """The layout of shared memory for stages of a block's scale factors of A:
    ((M,(values,factors)),RestM,RestK,stages).
    Raises `LayoutError` (E0304) for a tile that has no whole blocks of factors along K.
    """
    m, _, k = as_tuple(tuples(mma_tiler_mnk))
    return _with_stages(tiled_mma, m // tiled_mma.thr_id.size, k, sf_vec_size, num_stages)


def make_smem_layout_sfb(tiled_mma: TiledMma, mma_tiler_mnk: object, sf_vec_size: int, num_stages: int) -> Layout:
    """The same for B. Each block of a pair has all of it, in whole blocks of 128 columns."""
    _, n, k = as_tuple(tuples(mma_tiler_mnk))
    return _with_stages(tiled_mma, -(-n // BLOCK_ROWS) * BLOCK_ROWS, k, sf_vec_size, num_stages)


def _with_stages(tiled_mma: TiledMma, rows: int, k: int, vector: int, stages: int) -> Layout:
    one = scales_in_smem(vector, tiled_mma.shape_mnk[2], rows, k)
    return join([*one, Layout(stages, cosize(one))])


def make_tmem_layout_sfa(tiled_mma: TiledMma, mma_tiler_mnk: object, sf_vec_size: int, smem_layout: object) -> Layout:
    """The layout of the scale factors of A in tensor memory, for one stage of them in shared memory."""
    return place_scales(as_layout(smem_layout).shape)


def make_tmem_layout_sfb(tiled_mma: TiledMma, mma_tiler_mnk: object, sf_vec_size: int, smem_layout: object) -> Layout:
    """The layout of the scale factors of B in tensor memory, for one stage of them in shared memory."""
    two_by_two = tiled_mma.thr_id.size == 2 and tiled_mma.shape_mnk[0] == 128
    return place_scales(as_layout(smem_layout).shape, of_b=True, two_by_two=two_by_two)
