# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where scale factors lie: in global memory, in shared memory and in tensor memory (PTX ISA, tcgen05.mma: Scale factor
layout; CUTLASS's sm100_blockscaled_layout.hpp, CuTe's tmem_sf_frg).

Memory has blocks of 512 bytes: of 128 rows and 4 neighbouring factors along K. Row r and factor k are byte
16 * (r mod 32) + 4 * (r div 32) + k. One tcgen05.cp brings a block to 4 columns: row r to lane r mod 32 of each quarter
of the lanes, column r div 32, byte k.

A factor belongs to `vector` values along K, which share its place: strides there are 0.
"""

from typing import Any, cast

from ...base.errors import Code, LayoutError
from ..algebra.compose import composition
from ..algebra.core import Layout, make_layout
from ..algebra.integers import AnyTuple, is_static
from ..algebra.inttuple import product
from ..algebra.product import tile_to_shape, tiled_product
from .cells import COLUMNS, LANES, QUARTER, count_columns, lane_stride

BLOCK_ROWS, BLOCK_FACTORS = 128, 4
"""Rows and factors of a block."""
BLOCK = BLOCK_ROWS * BLOCK_FACTORS
"""The bytes of a block."""
FACTOR_BITS = 8
"""The bits of a factor."""
CELL_FACTORS = 4
"""The factors of a row that a cell has."""


def scale_block(vector: int, major: str = "K") -> Layout:
    """A block of factors, (rows, values along K): a factor belongs to `vector` values. The factors of an output may be
    MN-major: (values along MN, rows of K).
    """
    rows, values = ((32, 4), (16, 4)), ((vector, 4), (0, 1))
    first, second = (rows, values) if major == "K" else (values, rows)
    return Layout((first[0], second[0]), (first[1], second[1]))


def tile_scales(vector: int, shape: AnyTuple, major: str = "K") -> Layout:
    """The factors of a matrix of `shape` (MN,K) or (MN,K,L) in memory, K first (CUTLASS's tile_atom_to_shape_SFA, SFB
    and SFD). Extents may be known at run time only; the last block of each row is whole.

    Raises `LayoutError` (E0213) for a `shape` of another rank.
    """
    modes = _modes(shape)
    if len(modes) not in (2, 3):
        raise LayoutError(Code.BAD_ARGUMENT, f"factors belong to a matrix (MN,K) or to several, (MN,K,L), not {shape}")
    order = (2, 1, 3) if major == "K" else (1, 2, 3)
    result: Layout = tile_to_shape(scale_block(vector, major), shape, order[: len(modes)], round_up=True)
    return result


def scales_in_smem(vector: int, k: int, rows: int, tile_k: int) -> Layout:
    """The factors of a tile of `rows` by `tile_k` values in shared memory, for an instruction of `k` values along K:
    ((rows,(values,factors)),1,(RestK in a block, blocks)) (CUTLASS's deduce_smem_layoutSFA and SFB).

    Rows are rounded up to whole blocks, as the copy to tensor memory moves no less. Raises `LayoutError` (E0304) for a
    tile that is not a multiple of a block along K.
    """
    factors = k // vector
    if tile_k % (vector * BLOCK_FACTORS) or not factors or BLOCK_FACTORS % factors:
        raise LayoutError(
            Code.ATOM_OPERAND,
            f"{tile_k} values along K have no whole blocks of scale factors, {BLOCK_FACTORS} for {vector} values each",
            f"use a tile of a multiple of {vector * BLOCK_FACTORS} along K",
        )
    blocks = -(-rows // BLOCK_ROWS)
    along, deep = BLOCK_FACTORS // factors, tile_k // vector // BLOCK_FACTORS
    return Layout(
        ((((32, 4), blocks), (vector, factors)), 1, (along, deep)),
        ((((16, 4), BLOCK), (0, 1)), 0, (factors, blocks * BLOCK)),
    )


def place_scales(shape: object, *, of_b: bool = False, two_by_two: bool = False) -> Layout:
    """The factors in tensor memory for a part of `shape` ((MN,(values,factors)),RestMN,RestK,...), as `scales_in_smem`
    has it, in elements of 8 bits. Where a pair multiplies 128 rows, `two_by_two`, the halves of B are in different
    quarters of the lanes.

    Raises `LayoutError` (E0304) for a part that has no whole quarters, (E0213) for another profile.
    """
    modes = _modes(shape)
    tile: tuple[AnyTuple, ...] = _modes(modes[0]) if len(modes) > 2 else ()
    values: tuple[AnyTuple, ...] = _modes(tile[1]) if len(tile) == 2 else ()
    if len(values) != 2:
        raise LayoutError(
            Code.BAD_ARGUMENT, f"a part of scale factors is ((MN,(values,factors)),RestMN,RestK), not {shape}"
        )
    rows, (vector, factors) = product(tile[0]), values
    quarters = rows // QUARTER // (2 if of_b and two_by_two else 1)
    if not is_static(rows) or not quarters or rows % QUARTER:
        raise LayoutError(Code.ATOM_OPERAND, f"{rows} rows of scale factors are not a multiple of {QUARTER}")
    column = CELL_FACTORS * LANES
    if of_b and two_by_two:
        of_rows = ((QUARTER, quarters), 2, 2), ((1, column), 2 * QUARTER, QUARTER)
    else:
        of_rows = ((QUARTER, quarters), LANES // QUARTER), ((1, column), QUARTER)
    atom = Layout((of_rows[0], (vector, factors)), (of_rows[1], (0, LANES)))
    places: Layout = tiled_product(atom, make_layout(modes[1:]))
    result: Layout = composition(Layout((LANES, 32 * COLUMNS), (lane_stride(FACTOR_BITS), 1)), places)
    if count_columns(result, FACTOR_BITS) > COLUMNS:
        raise LayoutError(Code.ATOM_OPERAND, f"{shape} needs more than the {COLUMNS} columns of tensor memory")
    return result


def _modes(t: object) -> tuple[AnyTuple, ...]:
    """The modes of a tuple, one of anything else."""
    return cast("tuple[Any, ...]", t) if isinstance(t, tuple) else (t,)
