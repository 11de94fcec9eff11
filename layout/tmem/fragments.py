# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where tcgen05.mma has accumulators and the operand A in tensor memory (PTX ISA, Data path layouts A to G; CuTe's
mma_traits_sm100_frag.hpp, tmem_frg).

A block's part of a matrix is ((M,N),RestM,RestN,...), in which the atom's tile is first. Its lanes and columns:

    blocks  M of the block   rows                                               layout of the PTX ISA
    1       128              row m in lane m                                    D
    1       64               16 rows in each quarter of the lanes               F
    2       128              row m in lane m                                    A
    2       64               as 1 x 64, the second half of N in lanes from 64   B
    2       32               the quarters of N in the quarters of the lanes     -
    1, .ws  64, 32           the same halves and quarters of N                  E, G

Layout C is that of a pair's sparse multiplications of M = 128, whose lanes are those of F.
"""

from enum import Enum
from typing import Any, cast

from ...base.element_types import BY_PTX
from ...base.errors import Code, LayoutError
from ..algebra.compose import composition
from ..algebra.core import Layout, make_layout
from ..algebra.integers import AnyTuple
from ..algebra.inttuple import product, transform_leaves
from ..algebra.product import tiled_product
from ..atoms.contract import Named
from ..atoms.instructions import Umma
from ..atoms.mma_atom import MmaAtom
from .cells import CAPACITY, CELL, COLUMNS, LANES, QUARTER, count_columns, lane_stride
from .scales import BLOCK_ROWS, place_scales


class Placement(Enum):
    """How tiles that leave lanes free share columns."""

    INTERLEAVED = "interleaved"
    """The next tile takes the other half of each quarter of the lanes."""
    APART = "non-interleaved"
    """The next tile takes other columns; so lanes of A and of the accumulator agree."""
    DUPLICATED = "duplicated"
    """Each half of the lanes has all of the matrix."""


def place_matrix(shape: object, blocks: int, value_bits: int, cell_bits: int = CELL,
                 placement: Placement = Placement.INTERLEAVED) -> Layout:  # fmt: skip
    """The layout in tensor memory of a part of a matrix of `shape` ((M,N),RestM,RestN,...), for multiplications by one
    block or by a pair, in elements of `value_bits` bits, each of which takes `cell_bits`.

    Raises `LayoutError` (E0304) where the instruction does not place such a tile, or tensor memory is too small.
    """
    m, n = _tile_of(shape)
    rows = _ROWS.get((blocks, m, placement))
    if rows is None:
        raise LayoutError(
            Code.ATOM_OPERAND,
            f"tcgen05.mma of {blocks} block{'s' if blocks > 1 else ''} has no {placement.value} tile of {m} rows",
            "a block has 64 or 128 rows, each block of a pair 32, 64 or 128",
        )
    tile, step = rows
    return _place(shape, tile(n), step, value_bits, cell_bits)


def place_stationary(shape: object, value_bits: int, cell_bits: int = CELL) -> Layout:
    """The same for accumulators of tcgen05.mma.ws (CuTe's tmem_frg_ws)."""
    m, n = _tile_of(shape)
    if m not in _STATIONARY or n not in (64, 128, 256):
        raise LayoutError(
            Code.ATOM_OPERAND,
            f"tcgen05.mma.ws has no tile of {m} rows and {n} columns",
            "it has 32, 64 or 128 rows and 64, 128 or 256 columns",
        )
    return _place(shape, _STATIONARY[m](n), 1, value_bits, cell_bits)


def place_operand(atom: MmaAtom, operand: str, shape: object) -> Layout:
    """The layout in tensor memory of a block's part of an operand of tcgen05.mma, "A" or "C", of `shape`
    ((M,N),RestM,RestN,...): the accumulator takes a cell for each element, A has its elements packed.

    Raises `LayoutError` as `place_matrix` does.
    """
    bits = stored_bits(atom, operand)
    facts = atom.instruction
    assert isinstance(facts, Umma)
    a_in_cells = atom.operand("A").named is Named.CELL
    if operand == "A":
        return place_matrix(shape, atom.threads, bits, bits, Placement.DUPLICATED if atom.threads > 1 else _APART)
    if facts.is_stationary:
        return place_stationary(shape, bits)
    if facts.is_sparse and atom.threads > 1 and atom.shape[0] == 128:  # layout C of the PTX ISA
        return place_matrix(shape, 1, bits)
    apart = a_in_cells and atom.threads == 1
    return place_matrix(shape, atom.threads, bits, placement=_APART if apart else Placement.INTERLEAVED)


def place_factors(atom: MmaAtom, operand: str) -> list[Layout]:
    """Where tcgen05.mma can have the scale factors of one execution, of operand "A" or "B": of its rows, or of whole
    blocks of 128, as copies from shared memory bring them.
    """
    m, n, _ = atom.shape
    rows, products = n if operand == "B" else m // atom.threads, atom.products
    counts = [count for count in {rows, -(-rows // BLOCK_ROWS) * BLOCK_ROWS} if count % QUARTER == 0]
    halved = atom.threads == 2 and m == 128
    values = (products.scaled, products.factors)
    return [
        place_scales(((count, values), 1, 1), of_b=operand == "B", two_by_two=halved)[0] for count in sorted(counts)
    ]


def stored_bits(atom: MmaAtom, operand: str) -> int:
    """The bits that an element of an operand of tcgen05.mma takes in memory: elements of 4 and 6 bits take a byte where
    they are mixed with others.
    """
    facts, element = atom.instruction, BY_PTX[atom.operand(operand).element]
    in_bytes = isinstance(facts, Umma) and facts.kind in ("f8f6f4", "mxf8f6f4") and operand in "AB"
    return 8 if in_bytes else element.bits


def _tile_of(shape: object) -> tuple[int, int]:
    """M and N of the tile of an atom."""
    first = cast("Any", shape)[0] if isinstance(shape, tuple) else shape
    if not isinstance(first, tuple) or len(cast("tuple[Any, ...]", first)) != 2:
        raise LayoutError(
            Code.RANK_MISMATCH, f"a part of a matrix in tensor memory is ((M,N),RestM,RestN,...), not {shape}"
        )
    m, n = cast("tuple[Any, Any]", first)
    return product(m), product(n)


def _place(shape: AnyTuple, tile: Layout, step: int, value_bits: int, cell_bits: int) -> Layout:
    """Tiles beside each other, along lanes first; lane 1 is 1 and column 1 is 128 until the end."""
    if product(shape) * cell_bits > CAPACITY:
        raise _too_large(shape)
    beside = make_layout(shape[1:])
    repeats = Layout(beside.shape, transform_leaves(lambda d: d * step, beside.stride))
    places: Layout = tiled_product(tile, repeats)
    cells = Layout((LANES, 32 * COLUMNS), (lane_stride(value_bits), cell_bits // value_bits))
    result: Layout = composition(cells, places)
    if count_columns(result, value_bits) > COLUMNS:
        raise _too_large(shape)
    return result


def _too_large(shape: object) -> LayoutError:
    return LayoutError(
        Code.ATOM_OPERAND,
        f"{shape} needs more than the {COLUMNS} columns of tensor memory",
        "use fewer stages or smaller tiles",
    )


def _rows(n: int) -> Layout:
    return Layout((LANES, n), (1, LANES))


def _halves_of_quarters(n: int) -> Layout:
    return Layout(((16, 4), n), ((1, QUARTER), LANES))


def _two_halves(n: int) -> Layout:
    return Layout((64, (n // 2, 2)), (1, (LANES, 64)))


def _four_quarters(n: int) -> Layout:
    return Layout((QUARTER, (n // 4, 4)), (1, (LANES, QUARTER)))


_ROWS = {
    (1, 64, Placement.INTERLEAVED): (_halves_of_quarters, 1),
    (1, 64, Placement.APART): (_halves_of_quarters, 2),
    (1, 128, Placement.INTERLEAVED): (_rows, 1),
    (1, 128, Placement.APART): (_rows, 1),
    (2, 32, Placement.INTERLEAVED): (_four_quarters, 1),
    (2, 64, Placement.INTERLEAVED): (_two_halves, 1),
    (2, 64, Placement.DUPLICATED): (_rows, 1),
    (2, 128, Placement.INTERLEAVED): (_rows, 1),
    (2, 128, Placement.DUPLICATED): (_rows, 1),
}
"""The tile of a block, by the blocks that multiply, the rows of one and the placement: lanes and columns, and how many
tiles of lanes the next one is away.
"""
_APART = Placement.APART
_STATIONARY = {32: _four_quarters, 64: _two_halves, 128: _rows}
