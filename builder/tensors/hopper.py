# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Choices for kernels with matrix instructions of warpgroups: layouts of shared memory by tile and contiguous mode."""

from collections.abc import Sequence
from enum import Enum
from math import gcd
from typing import Any

from ...base.errors import Code, TilefoldError
from ...layout import tile_to_shape
from ...layout.algebra.core import Layout, LayoutLike, flat_modes, plain_layout
from ...layout.atoms.wgmma_smem import find_widest_mode
from ..scalars.dtypes import DType, as_dtype
from .coordinates import as_tuple, tuples
from .copy_atoms import CopyAtom, make_copy_atom
from .nvgpu import CopyUniversalOp, StMatrix8x8x16bOp
from .tensor_base import tensor_type
from .tensors import Tensor
from .tiled_mma import TiledMma, make_tiled_mma
from .warpgroup import (
    MmaF8Op,
    MmaF16BF16Op,
    MmaI8Op,
    MmaTF32Op,
    OperandMajorMode,
    OperandSource,
    SmemLayoutAtomKind,
    make_smem_layout_atom,
)


class LayoutEnum(Enum):
    """The contiguous mode of a matrix: the second (ROW_MAJOR), or the first."""

    ROW_MAJOR = "row"
    COL_MAJOR = "col"

    @staticmethod
    def from_tensor(tensor: Any) -> "LayoutEnum":
        """The major of a tensor of two modes or more, or of an array of the host as launches take it. Raises
        TilefoldError (E5002) where neither mode is contiguous.
        """
        held: Any = getattr(tensor, "layout", None)
        is_array = isinstance(held, Layout) and not isinstance(tensor, Tensor)
        layout: Layout = held if is_array else plain_layout(tensor_type(tensor).layout.data)
        for mode, name in zip(list(layout), (LayoutEnum.COL_MAJOR, LayoutEnum.ROW_MAJOR), strict=False):
            if any(type(step) is int and step == 1 for _, step in flat_modes(mode)):
                return name
        raise TilefoldError(Code.BUILD_VALUE, f"neither mode of the matrix {layout} is contiguous")

    def sm90_mma_major_mode(self) -> OperandMajorMode:
        """The major mode of an operand A (M,K) or B (N,K)."""
        return OperandMajorMode.K if self is LayoutEnum.ROW_MAJOR else OperandMajorMode.MN

    mma_major_mode = sm90_mma_major_mode

    def is_k_major_a(self) -> bool:
        """Whether K of A (M,K) is contiguous."""
        return self is LayoutEnum.ROW_MAJOR

    def is_k_major_b(self) -> bool:
        """Whether K of B (N,K) is contiguous."""
        return self is LayoutEnum.ROW_MAJOR

    def is_m_major_a(self) -> bool:
        """Whether A is contiguous along M."""
        return self is LayoutEnum.COL_MAJOR

    def is_n_major_b(self) -> bool:
        """Whether B is contiguous along N."""
        return self is LayoutEnum.COL_MAJOR

    def is_n_major_c(self) -> bool:
        """Whether N of C (M,N) is contiguous."""
        return self is LayoutEnum.ROW_MAJOR

    def is_m_major_c(self) -> bool:
        """Whether M of C (M,N) is contiguous."""
        return self is LayoutEnum.COL_MAJOR


def get_smem_layout_atom(layout: LayoutEnum, element_type: object, major_mode_size: int) -> SmemLayoutAtomKind:
    """The layout atom of the widest swizzle whose row divides the extent of the contiguous mode. Raises `LayoutError`
    (E0213) for an extent that is not a multiple of 16 bytes.
    """
    major = "K" if layout is LayoutEnum.ROW_MAJOR else "MN"
    return SmemLayoutAtomKind(f"{major}_{find_widest_mode(major_mode_size, as_dtype(element_type).bits)}")


def make_smem_layout_a(a_layout: LayoutEnum, mma_tiler_mnk: object, a_dtype: object, num_stages: int) -> LayoutLike:
    """The layout of shared memory for stages of A: (M,K,stages), in the order of `a_layout`."""
    m, _, k = as_tuple(tuples(mma_tiler_mnk))
    return add_stages(a_layout, (m, k), a_dtype, num_stages)


def make_smem_layout_b(b_layout: LayoutEnum, mma_tiler_mnk: object, b_dtype: object, num_stages: int) -> LayoutLike:
    """The layout of shared memory for stages of B: (N,K,stages), in the order of `b_layout`."""
    _, n, k = as_tuple(tuples(mma_tiler_mnk))
    return add_stages(b_layout, (n, k), b_dtype, num_stages)


def make_smem_layout_epi(
    epi_dtype: object,
    epi_layout: LayoutEnum,
    epi_tile: object,
    epi_stage: int,
    smem_trg_shape: object = None,
    smem_order: Sequence[int] | None = None,
) -> LayoutLike:
    """The layout of shared memory for stages of a tile of C: (M,N,stages), in the order of `epi_layout`.
    `smem_trg_shape` is another shape that begins with the tile's, and `smem_order` ranks its modes, 0 for the fastest.
    """
    m, n = as_tuple(tuples(epi_tile))
    shape = None if smem_trg_shape is None else as_tuple(tuples(smem_trg_shape))
    return add_stages(epi_layout, (m, n), epi_dtype, epi_stage, shape, smem_order)


def add_stages(
    layout: LayoutEnum,
    tile: tuple[int, int],
    dtype: Any,
    stages: int,
    shape: Any = None,
    order: Sequence[int] | None = None,
) -> LayoutLike:
    """Stages of a tile. The contiguous mode is the fastest: with it last, an MN-major tile would have eight times the
    boxes of TMA copies.
    """
    rows = layout is LayoutEnum.ROW_MAJOR
    kind = get_smem_layout_atom(layout, dtype, tile[1 if rows else 0])
    whole = (*tile, stages) if shape is None else shape
    by_default = (0, 1) if rows else (1, 0)
    order = (*by_default, *range(2, len(whole))) if order is None else tuple(order)
    return tile_to_shape(make_smem_layout_atom(kind, dtype), whole, order)


def make_trivial_tiled_mma(
    a_dtype: DType,
    b_dtype: DType,
    a_leading_mode: OperandMajorMode,
    b_leading_mode: OperandMajorMode,
    acc_dtype: DType,
    atom_layout_mnk: tuple[int, int, int],
    tiler_mn: tuple[int, int],
    a_source: OperandSource = OperandSource.SMEM,
) -> TiledMma:
    """The tiled MMA of warpgroups for element types; its instruction multiplies tiles of `tiler_mn`, with M = 64.

    Raises TilefoldError (E0302, E0304) where there is no such instruction.
    """
    bits = a_dtype.bits
    shape = (*tiler_mn, 256 // bits)
    rest = (shape, a_source, a_leading_mode, b_leading_mode)
    if bits == 16:
        if a_dtype != b_dtype:
            raise TilefoldError(Code.MMA_OPERAND, f"wgmma does not multiply {a_dtype} with {b_dtype}")
        return make_tiled_mma(MmaF16BF16Op(a_dtype, acc_dtype, *rest), atom_layout_mnk)
    if bits == 32:
        return make_tiled_mma(MmaTF32Op(acc_dtype, *rest), atom_layout_mnk)
    op = MmaI8Op if a_dtype.kind == "int" else MmaF8Op
    return make_tiled_mma(op(a_dtype, b_dtype, acc_dtype, *rest), atom_layout_mnk)


def sm90_get_smem_store_op(layout_d: LayoutEnum, elem_ty_d: DType, elem_ty_acc: DType) -> CopyAtom:
    """The copy atom that moves results of warpgroups to shared memory: matrices of 16-bit elements (stmatrix),
    transposed if M is contiguous; for other elements, accesses as wide as layouts allow.
    """
    if elem_ty_d.bits == 16 and elem_ty_acc.bits in (16, 32):
        return make_copy_atom(StMatrix8x8x16bOp(layout_d.is_m_major_c(), 4), elem_ty_d)
    return make_copy_atom(CopyUniversalOp(), elem_ty_d)


def compute_tile_shape_or_override(
    tile_shape_mnk: object, element_type: object, is_cooperative: bool = False, epi_tile_override: Any = None
) -> tuple[int, int]:
    """The part of a tile of C that an epilogue handles at a time: `epi_tile_override`, or 64 rows (128 for cooperating
    warpgroups) and 32 columns (64 for 8-bit elements if each warpgroup has its own tile)
    (cutlass/epilogue/collective/builders/sm90_builder.inl).
    """
    if epi_tile_override is not None:
        return epi_tile_override
    m, n, _ = as_tuple(tuples(tile_shape_mnk))
    columns = 64 if as_dtype(element_type).bits == 8 and not is_cooperative else 32
    return min(128 if is_cooperative else 64, m), gcd(min(columns, n), n)
