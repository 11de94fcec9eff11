# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts, copies and multiplications as tables, and tables as text for a terminal.

A table of a layout shows the index of each coordinate, as CuTe's print_layout does; one of a tiled copy or MMA
shows which thread and which of its values has each place of the tile, as CuTe's print_latex does. Instructions that
packages define have a table for each matrix.
"""

from collections.abc import Callable, Collection, Sequence
from colorsys import hls_to_rgb
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from ...base.errors import Code, LayoutError
from ...base.spaces import LANE_SHIFT, Bytes, Cells
from ...base.target import WARP
from ..algebra.compose import composition
from ..algebra.coordinates import crd2idx_in_shape
from ..algebra.core import ComposedLayout, Layout, LayoutLike, coshape, cosize, make_layout, plain_layout, size
from ..algebra.integers import Tree
from ..algebra.inttuple import flatten_to_tuple, is_fully_static, product, product_each, wrap
from ..algebra.inverse import right_inverse
from ..atoms.contract import Operand
from ..atoms.copy_atom import CopyAtom
from ..atoms.custom import CustomInstruction, Given
from ..atoms.mma_atom import MmaAtom
from ..text.layouts import to_text
from ..tiling.tiled_copy import TiledCopy, tile_shape
from ..tiling.tiled_mma import TiledMma, make_tiled_mma

Drawn: TypeAlias = "LayoutLike | TiledCopy | CopyAtom | TiledMma | MmaAtom"
"""The values that have tables and a picture."""

MAX_CELLS = 1 << 16
"""The most cells that are drawn."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of a table: its text, and the numbers in it, an index, a coordinate, or a thread and a value.

    A place without a thread is empty and white. `also` says how much greater the numbers of the further threads and
    values at this place are. `colour` is #rrggbb: that of the thread, or of the index.
    """

    text: str
    numbers: tuple[int, ...] | None = None
    also: tuple[tuple[int, int], ...] = ()
    colour: str = "#ffffff"


EMPTY = Cell("")


@dataclass(frozen=True, slots=True)
class Table:
    """A titled grid of cells; row m and column n are the coordinate (m,n).

    `by_thread` says that cells are those of a thread and a value. A layout of one mode is a single column, which a
    picture may turn around.
    """

    title: str
    rows: tuple[tuple[Cell, ...], ...]
    by_thread: bool = False
    one_mode: bool = False


def _colour(number: int) -> str:
    """A light colour for a number: eight hues, and for those beyond eight another lightness each, up to four."""
    return _rgb(number % 8 / 8, number // 8)


def _colour_in_warp(thread: int, warps: int) -> str:
    """A light colour for a thread of several warps: a hue for each of eight warps, its lanes near it."""
    warp, lane = divmod(thread, WARP)
    hues = min(warps, 8)
    return _rgb((warp % hues + (lane % 8 - 3.5) / 12) / hues, lane // 8)


def _rgb(hue: float, step: int) -> str:
    """A hue in turns, in one of four lightnesses."""
    parts = hls_to_rgb(hue % 1, (0.87, 0.80, 0.91, 0.84)[step % 4], 0.7)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def make_index_table(layout: LayoutLike) -> Table:
    """The index of each coordinate of a static layout: a row for each of mode 0, the further modes across.

    Cells of one index share a colour. LayoutError if the layout is not static (E0207) or too large to draw
    (E0209).
    """
    rows, columns = _grid(layout.shape, str(layout))
    _check_static(layout)

    def cell(place: int) -> Cell:
        index = layout(place)
        numbers = flatten_to_tuple(index)
        return Cell(to_text(index), numbers, colour=_colour(numbers[0] if numbers else 0))

    cells = tuple(tuple(cell(m + rows * n) for n in range(columns)) for m in range(rows))
    return Table(str(layout), cells, one_mode=len(wrap(layout.shape)) == 1)


def tables(x: Drawn) -> tuple[Table, ...]:
    """Every table of a layout, or of a copy or a multiplication. LayoutError as the table's own function says."""
    match x:
        case TiledCopy():
            return thread_value_tables(x)
        case CopyAtom():
            return make_atom_tables(x)
        case TiledMma():
            return operand_tables(x)
        case MmaAtom():
            return operand_tables(make_tiled_mma(x))
        case _:
            return (make_index_table(x),)


def make_atom_tables(atom: CopyAtom) -> tuple[Table, Table]:
    """The threads that read and write each value that a copy atom moves: a row for the values that a thread reads.

    LayoutError as `make_thread_value_table` says.
    """
    values = atom.src[1].size
    places = make_layout((cosize(atom.ref) // values, values), (values, 1))
    shape = places.shape
    to_tile = right_inverse(places)
    return (
        make_thread_value_table(f"{atom.name}: source", composition(to_tile, atom.src), shape),
        make_thread_value_table(f"{atom.name}: destination", composition(to_tile, atom.dst), shape),
    )


def thread_value_tables(copy: TiledCopy) -> tuple[Table, Table]:
    """The threads that read and write each place of the tile. LayoutError as `make_thread_value_table` says."""
    shape = tile_shape(copy.tiler)
    return (
        make_thread_value_table("source", copy.get_layoutS_TV(), shape),
        make_thread_value_table("destination", copy.get_layoutD_TV(), shape),
    )


def operand_tables(mma: TiledMma) -> tuple[Table, Table, Table]:
    """The threads and values of the tiles of A (M,K), B (N,K) and C (M,N). LayoutError as `make_thread_value_table`
    says.
    """
    m, n, k = mma.tile_shape
    a, b, c = ("A", (m, k)), ("B", (n, k)), ("C", (m, n))
    return _operand(mma, *a), _operand(mma, *b), _operand(mma, *c)


def _operand(mma: TiledMma, operand: str, shape: tuple[int, int]) -> Table:
    layout, number = mma.layout_tv(operand), mma.thr_layout_vmnk
    threads = sorted({number(i) for i in range(mma.threads)})
    if layout[1].size * len(threads) > MAX_CELLS:  # such as shared memory, all of which each thread of a warpgroup has
        threads = list({layout(thread, 0): thread for thread in reversed(threads)}.values())
    return make_thread_value_table(operand, layout, shape, threads)


def make_thread_value_table(
    title: str, layout_tv: Layout, shape: Any = None, taking_part: Collection[int] | None = None
) -> Table:
    """The thread and value of each place of a tile of `shape`, where `layout_tv` maps (thread, value) to a place.

    `T3V1` is value 1 of thread 3; of threads that share a place the first is shown, and a place without a thread
    is empty. Places are integers, or coordinates where the strides are bases. Without a shape the tile is as large
    as the places ask for: a column, for integers. `taking_part` are the threads that count, by default all.
    LayoutError unless the layout has two modes (E0202), is static (E0207), not too large to draw (E0209), and stays in
    the tile (E0213).
    """
    if len(layout_tv) != 2:
        raise LayoutError(
            Code.RANK_MISMATCH, f"{layout_tv} has {len(layout_tv)} modes", "a thread-value layout has two"
        )
    _check_static(layout_tv)
    shape = coshape(layout_tv) if shape is None else shape
    rows, columns = _grid(shape, f"the tile {shape}")
    threads, values = range(layout_tv[0].size) if taking_part is None else sorted(taking_part), layout_tv[1].size
    _check_size(values * len(threads))
    holders: dict[int, list[tuple[int, int]]] = {}
    for value in range(values):
        for thread in threads:
            place = crd2idx_in_shape(layout_tv(thread, value), shape)
            if not 0 <= place < rows * columns:
                raise LayoutError(
                    Code.BAD_ARGUMENT,
                    f"value {value} of thread {thread} has place {place}, outside the tile of {rows * columns} places",
                )
            holders.setdefault(place, []).append((thread, value))
    warps = -(-layout_tv[0].size // WARP)
    colour = _colour if warps == 1 else partial(_colour_in_warp, warps=warps)
    by_place = {place: _holder_cell(held, colour) for place, held in holders.items()}
    cells = tuple(tuple(by_place.get(m + rows * n, EMPTY) for n in range(columns)) for m in range(rows))
    return Table(title, cells, by_thread=True, one_mode=len(wrap(shape)) == 1)


def _holder_cell(holders: Sequence[tuple[int, int]], colour: Callable[[int], str]) -> Cell:
    """The cell of a place that these threads and values have, the first before the others."""
    thread, value = holders[0]
    also = tuple((t - thread, v - value) for t, v in holders[1:])
    return Cell(f"T{thread}V{value}", (thread, value), also, colour(thread))


def _check_static(layout: LayoutLike) -> None:
    plain = plain_layout(layout)
    parts = [plain.shape, plain.stride]
    if isinstance(layout, ComposedLayout):
        parts.append(layout.offset)
        if isinstance(layout.inner, Layout):
            parts += [layout.inner.shape, layout.inner.stride]
    if not all(map(is_fully_static, parts)):
        raise LayoutError(Code.DYNAMIC_UNSUPPORTED, f"{layout} is not static, so it has no table", "give every integer")


def _grid(shape: Tree, subject: str) -> tuple[int, int]:
    """Rows and columns of a table for `shape`."""
    if not is_fully_static(shape):
        raise LayoutError(Code.DYNAMIC_UNSUPPORTED, f"{subject} is not static, so it has no table", "give every extent")
    sizes = product_each(wrap(shape)) or (1,)
    rows, columns = sizes[0], product(sizes[1:])
    _check_size(rows * columns)
    return rows, columns


def _check_size(cells: int) -> None:
    if cells > MAX_CELLS:
        raise LayoutError(
            Code.RESULT_TOO_LARGE, f"a table of {cells} cells is too large; at most {MAX_CELLS} are drawn"
        )


def make_text_table(table: Table, *, colour: bool = False) -> str:
    """The table in characters, with coordinates at the edges, ending in a newline.

    With `colour`, cells have the colours of the SVG, by the escape sequences of terminals (ISO 8613-6).
    """
    columns = len(table.rows[0])
    width = max(len(str(columns - 1)), *(len(cell.text) for row in table.rows for cell in row))
    edge = len(str(len(table.rows) - 1))
    rule = " " * (edge + 1) + "+" + ("-" * (width + 2) + "+") * columns
    lines = [
        table.title,
        " " * (edge + 2) + " ".join(f"{n:>{width + 1}} " for n in range(columns)).rstrip(),
        rule,
    ]
    for m, row in enumerate(table.rows):
        cells = [_paint(cell, f" {cell.text:>{width}} ") if colour else f" {cell.text:>{width}} " for cell in row]
        lines += [f"{m:>{edge}} |" + "|".join(cells) + "|", rule]
    return "\n".join(lines) + "\n"


def _paint(cell: Cell, text: str) -> str:
    if cell.numbers is None:
        return text
    red, green, blue = (int(cell.colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"\x1b[30;48;2;{red};{green};{blue}m{text}\x1b[0m"


def instruction_tables(record: CustomInstruction) -> tuple[Table, ...]:
    """A table for each matrix. LayoutError (E0209) for one that is too large to draw."""
    return tuple([_table(record, o) for o in record.operands if record.given(o) is Given.MATRIX])


def _table(record: CustomInstruction, operand: Operand) -> Table:
    title, place = f"{operand.role.value} in {operand.spaces[0]}", record.places.get(operand.role)
    if place is None:
        return make_thread_value_table(f"{title}: elements", operand.layout)
    match operand.spaces[0].form:
        case Bytes():
            return make_thread_value_table(f"{title}: elements", operand.layout, place.shape)
        case Cells():
            return _cell_table(f"{title}: lanes down, columns across", operand.layout, place)


def _cell_table(title: str, holders: Layout, place: Layout) -> Table:
    """The cells of a matrix, each with the thread and the value that has it."""
    whose = make_thread_value_table(title, holders, size(place)).rows
    cells = {divmod(place(i), 1 << LANE_SHIFT): whose[i][0] for i in range(size(place))}
    lanes, columns = (1 + max(cell[mode] for cell in cells) for mode in (0, 1))
    rows = tuple([tuple([cells.get((lane, column), EMPTY) for column in range(columns)]) for lane in range(lanes)])
    return Table(title, rows)
