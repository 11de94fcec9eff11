# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts and tiled copies as tables: text for a terminal, SVG for a page.

A table of a layout shows the index of each coordinate, as CuTe's print_layout does; one of a tiled copy shows
which thread and which of its values has each place of the tile, as CuTe's print_latex does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..layout.core import Layout, LayoutLike
from ..layout.errors import Code, LayoutError
from ..layout.inttuple import product_each, wrap
from ..layout.text import to_text
from ..layout.tiled_copy import TiledCopy, tile_shape

MAX_CELLS = 1 << 14
"""The most cells that are drawn."""

_CELL_WIDTH, _CELL_HEIGHT, _MARGIN = 44, 28, 34  # in pixels


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of a table: its text, and a number that picks its colour (that of its thread)."""

    text: str
    colour: int


@dataclass(frozen=True, slots=True)
class Table:
    """A titled grid of cells; row m and column n are the coordinate (m,n)."""

    title: str
    rows: tuple[tuple[Cell, ...], ...]


def index_table(layout: LayoutLike) -> Table:
    """The index of each coordinate of a static layout: a row for each of mode 0, the further modes across.

    LayoutError where the layout is not static (E0207) or too large to draw (E0209).
    """
    sizes = _sizes(layout.shape, str(layout))
    rows, columns = sizes[0], _count(sizes[1:])
    _check_size(rows * columns)
    return Table(
        str(layout),
        tuple(tuple(Cell(to_text(layout(m + rows * n)), m + rows * n) for n in range(columns)) for m in range(rows)),
    )


def thread_value_tables(copy: TiledCopy) -> tuple[Table, Table]:
    """Who reads each place of the tile, and who writes it: `T3V1` is value 1 of thread 3.

    Of threads that share a place the first is shown; a place that nobody has is empty. LayoutError (E0209) for
    a tile that is too large to draw.
    """
    return (
        _thread_value_table("source", copy, copy.get_layoutS_TV()),
        _thread_value_table("destination", copy, copy.get_layoutD_TV()),
    )


def _thread_value_table(title: str, copy: TiledCopy, layout_tv: Layout) -> Table:
    shape = tile_shape(copy.tiler)
    sizes = _sizes(shape, f"the tile {shape}")
    rows, columns = sizes[0], _count(sizes[1:])
    _check_size(rows * columns)
    cells: dict[int, Cell] = {}
    for value in range(layout_tv[1].size):
        for thread in range(layout_tv[0].size):
            cells.setdefault(layout_tv(thread, value), Cell(f"T{thread}V{value}", thread))
    return Table(title, tuple(tuple(cells.get(m + rows * n, Cell("", 0)) for n in range(columns)) for m in range(rows)))


def _sizes(shape: Any, what: str) -> tuple[int, ...]:
    sizes = product_each(wrap(shape))
    if not all(type(s) is int for s in sizes):
        raise LayoutError(Code.DYNAMIC_UNSUPPORTED, f"{what} is not static, so it has no table", "give every extent")
    return sizes


def _count(sizes: Sequence[int]) -> int:
    count = 1
    for s in sizes:
        count *= s
    return count


def _check_size(cells: int) -> None:
    if cells > MAX_CELLS:
        raise LayoutError(
            Code.RESULT_TOO_LARGE, f"a table of {cells} cells is too large; at most {MAX_CELLS} are drawn"
        )


def text_table(table: Table) -> str:
    """The table in characters, with coordinates at the edges, ending in a newline."""
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
        lines += [f"{m:>{edge}} |" + "|".join(f" {cell.text:>{width}} " for cell in row) + "|", rule]
    return "\n".join(lines) + "\n"


def svg_tables(tables: Sequence[Table]) -> str:
    """The tables side by side as an SVG image; cells of one thread share a colour."""
    parts: list[str] = []
    left, height = _MARGIN, 0
    for table in tables:
        parts += _svg_table(table, left)
        left += len(table.rows[0]) * _CELL_WIDTH + 2 * _MARGIN
        height = max(height, len(table.rows) * _CELL_HEIGHT)
    extent = f'width="{left}" height="{height + 3 * _MARGIN}"'
    font = 'font-family="monospace" font-size="11" text-anchor="middle"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {extent} {font}>'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"]) + "\n"


def _svg_table(table: Table, left: int) -> list[str]:
    top = 2 * _MARGIN
    parts = [f'<text x="{left}" y="{_MARGIN}" text-anchor="start" font-size="14">{_escaped(table.title)}</text>']
    for n in range(len(table.rows[0])):
        parts.append(f'<text x="{left + n * _CELL_WIDTH + _CELL_WIDTH // 2}" y="{top - 6}">{n}</text>')
    for m, row in enumerate(table.rows):
        y = top + m * _CELL_HEIGHT
        parts.append(f'<text x="{left - 12}" y="{y + 18}">{m}</text>')
        for n, cell in enumerate(row):
            x = left + n * _CELL_WIDTH
            hue = cell.colour * 137 % 360  # by the golden angle, neighbours differ
            box = f'x="{x}" y="{y}" width="{_CELL_WIDTH}" height="{_CELL_HEIGHT}"'
            parts.append(f'<rect {box} fill="hsl({hue},70%,85%)" stroke="black"/>')
            parts.append(f'<text x="{x + _CELL_WIDTH // 2}" y="{y + 18}">{_escaped(cell.text)}</text>')
    return parts


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
