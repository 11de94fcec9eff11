# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts, tiled copies and tiled MMAs as tables: text for a terminal, SVG for a page.

A table of a layout shows the index of each coordinate, as CuTe's print_layout does; one of a tiled copy or MMA
shows which thread and which of its values has each place of the tile, as CuTe's print_latex does.
"""

from collections.abc import Sequence
from colorsys import hls_to_rgb
from dataclasses import dataclass
from html import escape
from typing import Any

from .coordinates import crd2idx_in_shape
from .core import ComposedLayout, Layout, LayoutLike, coshape, plain_layout
from .errors import Code, LayoutError
from .inttuple import is_fully_static, product, product_each, wrap
from .printing import lines, plain_style
from .text import to_text
from .tiled_copy import TiledCopy, tile_shape
from .tiled_mma import TiledMma

MAX_CELLS = 1 << 14
"""The most cells that are drawn."""
_MAX_NOTEBOOK_CELLS = 1 << 12

_CELL_WIDTH, _CELL_HEIGHT, _MARGIN = 44, 28, 34  # in pixels


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of a table: its text, and a number that picks its colour (that of its thread, or its index)."""

    text: str
    colour: int

    @property
    def hue(self) -> int:
        """The colour's angle in degrees: by the golden angle, neighbours differ."""
        return self.colour * 137 % 360


@dataclass(frozen=True, slots=True)
class Table:
    """A titled grid of cells; row m and column n are the coordinate (m,n)."""

    title: str
    rows: tuple[tuple[Cell, ...], ...]


def index_table(layout: LayoutLike) -> Table:
    """The index of each coordinate of a static layout: a row for each of mode 0, the further modes across.

    Cells of one index share a colour. LayoutError where the layout is not static (E0207) or too large to draw
    (E0209).
    """
    rows, columns = _grid(layout.shape, str(layout))
    _check_static(layout)

    def cell(place: int) -> Cell:
        index = layout(place)
        return Cell(to_text(index), index if type(index) is int else place)

    return Table(str(layout), tuple(tuple(cell(m + rows * n) for n in range(columns)) for m in range(rows)))


def tables(x: "LayoutLike | TiledCopy | TiledMma") -> tuple[Table, ...]:
    """Every table of a layout, a tiled copy or a tiled MMA. LayoutError as the table's own function says."""
    if isinstance(x, TiledCopy):
        return thread_value_tables(x)
    return operand_tables(x) if isinstance(x, TiledMma) else (index_table(x),)


def thread_value_tables(copy: TiledCopy) -> tuple[Table, Table]:
    """Who reads each place of the tile, and who writes it. LayoutError as `thread_value_table` says."""
    shape = tile_shape(copy.tiler)
    return (
        thread_value_table("source", copy.get_layoutS_TV(), shape),
        thread_value_table("destination", copy.get_layoutD_TV(), shape),
    )


def operand_tables(mma: TiledMma) -> tuple[Table, Table, Table]:
    """Who has each element of the tiles of A (M,K), B (N,K) and C (M,N). LayoutError as `thread_value_table` says."""
    m, n, k = mma.tile_shape
    a, b, c = ("A", (m, k)), ("B", (n, k)), ("C", (m, n))
    return _operand(mma, *a), _operand(mma, *b), _operand(mma, *c)


def _operand(mma: TiledMma, operand: str, shape: tuple[int, int]) -> Table:
    return thread_value_table(operand, mma.layout_tv(operand), shape)


def thread_value_table(title: str, layout_tv: Layout, shape: Any = None) -> Table:
    """Who has each place of a tile of `shape`, where `layout_tv` maps (thread, value) to a place.

    `T3V1` is value 1 of thread 3; of threads that share a place the first is shown, and a place that nobody has
    is empty. Places are integers, or coordinates where the strides are bases. Without a shape the tile is as large
    as the places ask for: a column, for integers. LayoutError unless the layout has two modes (E0202), is static
    (E0207), not too large to draw (E0209), and stays in the tile (E0213).
    """
    if len(layout_tv) != 2:
        raise LayoutError(
            Code.RANK_MISMATCH, f"{layout_tv} has {len(layout_tv)} modes", "a thread-value layout has two"
        )
    _check_static(layout_tv)
    shape = coshape(layout_tv) if shape is None else shape
    rows, columns = _grid(shape, f"the tile {shape}")
    threads, values = layout_tv[0].size, layout_tv[1].size
    _check_size(values * threads)
    cells: dict[int, Cell] = {}
    for value in range(values):
        for thread in range(threads):
            place = crd2idx_in_shape(layout_tv(thread, value), shape)
            if not 0 <= place < rows * columns:
                raise LayoutError(
                    Code.BAD_ARGUMENT,
                    f"value {value} of thread {thread} has place {place}, outside the tile of {rows * columns} places",
                )
            cells.setdefault(place, Cell(f"T{thread}V{value}", thread))
    return Table(title, tuple(tuple(cells.get(m + rows * n, Cell("", 0)) for n in range(columns)) for m in range(rows)))


def _check_static(layout: LayoutLike) -> None:
    plain = plain_layout(layout)
    parts: list[Any] = [plain.shape, plain.stride]
    if isinstance(layout, ComposedLayout):
        parts.append(layout.offset)
        if isinstance(layout.outer, Layout):
            parts += [layout.outer.shape, layout.outer.stride]
    if not all(map(is_fully_static, parts)):
        raise LayoutError(Code.DYNAMIC_UNSUPPORTED, f"{layout} is not static, so it has no table", "give every integer")


def _grid(shape: Any, what: str) -> tuple[int, int]:
    """Rows and columns of a table for `shape`."""
    if not is_fully_static(shape):
        raise LayoutError(Code.DYNAMIC_UNSUPPORTED, f"{what} is not static, so it has no table", "give every extent")
    sizes = product_each(wrap(shape)) or (1,)
    rows, columns = sizes[0], product(sizes[1:])
    _check_size(rows * columns)
    return rows, columns


def _check_size(cells: int) -> None:
    if cells > MAX_CELLS:
        raise LayoutError(
            Code.RESULT_TOO_LARGE, f"a table of {cells} cells is too large; at most {MAX_CELLS} are drawn"
        )


def text_table(table: Table, *, colour: bool = False) -> str:
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
        cells = [_painted(cell, f" {cell.text:>{width}} ") if colour else f" {cell.text:>{width}} " for cell in row]
        lines += [f"{m:>{edge}} |" + "|".join(cells) + "|", rule]
    return "\n".join(lines) + "\n"


def _painted(cell: Cell, text: str) -> str:
    if not cell.text:
        return text
    red, green, blue = (round(255 * part) for part in hls_to_rgb(cell.hue / 360, 0.85, 0.7))
    return f"\x1b[30;48;2;{red};{green};{blue}m{text}\x1b[0m"


def svg_tables(tables: Sequence[Table]) -> str:
    """The tables side by side as an SVG image; cells of one thread, or one index, share a colour."""
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
            fill = f"hsl({cell.hue},70%,85%)" if cell.text else "white"
            box = f'x="{x}" y="{y}" width="{_CELL_WIDTH}" height="{_CELL_HEIGHT}"'
            parts.append(f'<rect {box} fill="{fill}" stroke="black"/>')
            parts.append(f'<text x="{x + _CELL_WIDTH // 2}" y="{y + 18}">{_escaped(cell.text)}</text>')
    return parts


def _escaped(text: str) -> str:
    return escape(text, quote=False)


def notebook_svg(x: "LayoutLike | TiledCopy | TiledMma") -> str | None:
    """The picture of a notebook's cell; None for what is not static or has too many places to be looked at."""
    try:
        found = tables(x)
    except LayoutError:
        return None
    return svg_tables(found) if sum(len(t.rows) * len(t.rows[0]) for t in found) <= _MAX_NOTEBOOK_CELLS else None


def notebook_html(x: "LayoutLike | TiledCopy | TiledMma") -> str:
    """The notation of a notebook's cell and, below it, the picture if there is one."""
    text = "\n".join(lines(x, plain_style))
    return f"<pre>{_escaped(text)}</pre>{notebook_svg(x) or ''}"
