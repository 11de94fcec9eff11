# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of layouts, copies and multiplications: their tables with colours, arranged for a page or a slide.

Large tables are shown by one period of the pattern, and captions say by how much the numbers grow. A multiplication
is arranged as textbooks do: A to the left of C, B above it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil

from ...base.errors import LayoutError
from ...base.target import WARP
from ..atoms.mma_atom import MmaAtom
from ..text.printing import lines, plain_style
from ..tiling.tiled_copy import TiledCopy, tile_shape
from ..tiling.tiled_mma import TiledMma, make_tiled_mma
from .drawings import Cell, Drawn, Table, operand_tables, tables
from .excerpt import Excerpt, Repetition, excerpt
from .scene import INK, TEXT_SIZE, Box, Dot, Label, Line, Picture, Primitive, Shape, escape_xml, text_width, wrap_text

_MAX_NOTEBOOK_CELLS = 1 << 14

# in pixels
_MARGIN = 24
_BETWEEN = 44  # tables
_GAP = 26  # for the rows or columns that are left out
_TITLE, _CAPTION, _TEXT, _EDGE = 15, 12, TEXT_SIZE, 11  # sizes of text
_LEAST_CELL = 32
_LEAST_CORNER = 240  # so wide is a corner that a title fits into
_LEAST_TITLE = 340  # so wide may a title be above a narrower table

_FAINT, _BORDER = "#6b7280", "#9ca3af"


def picture(x: Drawn) -> Picture:
    """The picture of a layout, a tiled copy, a tiled MMA, or an atom. LayoutError as `drawings.tables` says."""
    match x:
        case MmaAtom():
            return draw_mma(make_tiled_mma(x))
        case TiledMma():
            return draw_mma(x)
        case TiledCopy():
            tile = "x".join(map(str, tile_shape(x.tiler)))
            return draw_tables(tables(x), f"{x.atom.name}: {tile}, {_crew(x.threads)}")
        case _:
            return draw_tables(tables(x))


def draw_tables(tables: Sequence[Table], heading: str = "") -> Picture:
    """Tables side by side, each below its title and above its captions, and all of them below a heading."""
    grids = [_grid_of(_turn_to_row(table)) for table in tables]
    widths = [_block_width(grid) for grid in grids]
    width = max(sum(widths) + _BETWEEN * (len(grids) - 1), _LEAST_TITLE if heading else 0)
    parts: list[Primitive] = []
    top = float(_MARGIN)
    if heading:
        top = 8 + _write(parts, wrap_text(heading, _TITLE, width), _MARGIN, top, _TITLE, INK, bold=True)
    left, bottom = float(_MARGIN), top
    for grid, block_width in zip(grids, widths, strict=True):
        bottom = max(bottom, _block(parts, grid, left, top, block_width))
        left += block_width + _BETWEEN
    title = heading or "; ".join(table.title for table in tables)
    return Picture(title, width + 2 * _MARGIN, bottom + _MARGIN, tuple(parts))


def draw_mma(mma: TiledMma) -> Picture:
    """The thread and value of each element of the tiles of A, B (as K x N) and C of one tiled MMA: T over V, in square
    cells.

    LayoutError as `drawings.make_thread_value_table` says.
    """
    a, b, c = operand_tables(mma)
    b = replace(b, rows=_transpose(b.rows))
    m = excerpt([_numbers(a.rows), _numbers(c.rows)])
    n = excerpt([_numbers(_transpose(b.rows)), _numbers(_transpose(c.rows))])
    k = excerpt([_numbers(_transpose(a.rows)), _numbers(b.rows)])
    side = max(_cell_size(table)[0] for table in (a, b, c))
    size = side, side
    at, bt, ct = _Grid(a, m, k, size), _Grid(b, k, n, size), _Grid(c, m, n, size)
    extents = dict(zip("MNK", mma.tile_shape, strict=True))
    title = f"{mma.atom.name}: {'x'.join(map(str, mma.tile_shape))}, {_crew(mma.threads)}"
    captions = [*_repeats(m, "along M", (a, c)), *_repeats(n, "along N", (b, c)), *_repeats(k, "along K", (a, b))]
    captions += _warps((a, b, c))
    captions += [f"{grid.table.title}: {text}" for grid in (at, bt, ct) for text in _shared_caption(grid.table)]
    axes = zip((at, bt, ct), ("MK", "KN", "MN"), strict=True)
    names = {grid: f"{x} x {y} = {extents[x]} x {extents[y]}" for grid, (x, y) in axes}
    scale = min(2.2, max(1.0, (at.width + bt.width) / 900))  # of the words about cells, which large pictures make small
    letter, small, large = 18 * scale, _CAPTION * scale, _TITLE * scale
    widths = {grid: max(grid.width, letter * 1.2 + text_width(text, small)) for grid, text in names.items()}
    edge = max(at.edge, bt.edge)
    corner = edge + widths[at]  # the place to the left of B
    right = _MARGIN + corner + _BETWEEN + edge
    whole = right + max(widths[bt], widths[ct])
    parts: list[Primitive] = []
    beside = corner >= _LEAST_CORNER
    width = corner if beside else max(whole - _MARGIN, _LEAST_TITLE)
    end = _write(parts, wrap_text(title, large, width), _MARGIN, _MARGIN, large, INK, bold=True)
    head = _EDGE + 16 + letter  # an operand's name, and the numbers of columns
    top = _MARGIN if beside else end + 20
    below = max(top + head + bt.height + _BETWEEN / 2, end)
    for grid, x, y in ((at, _MARGIN + edge, below), (bt, right, top), (ct, right, below)):
        parts.append(Label(x, y + letter * 0.9, grid.table.title, letter, INK, "start", bold=True))
        parts.append(Label(x + letter * 1.2, y + letter * 0.9, names[grid], small, _FAINT, "start"))
        grid.draw(parts, x, y + head)
    whole = max(whole, _MARGIN + width)
    bottom = _captions(parts, captions, _MARGIN, below + head + at.height, whole - _MARGIN, small)
    return Picture(title, whole + _MARGIN, bottom + _MARGIN, tuple(parts))


@dataclass(frozen=True)
class _Grid:
    """A table as it is drawn: its rows and columns, and the width and height of its cells."""

    table: Table
    rows: Excerpt
    columns: Excerpt
    cell: tuple[float, float]

    @property
    def edge(self) -> float:
        """The width of the numbers to the left of the rows."""
        return 0 if self.table.one_mode else ceil(text_width(str(len(self.table.rows) - 1), _EDGE)) + 8

    @property
    def width(self) -> float:
        """The width of the cells together."""
        return sum(_GAP if n is None else self.cell[0] for n in self.columns.shown)

    @property
    def height(self) -> float:
        """The height of the cells together."""
        return sum(_GAP if m is None else self.cell[1] for m in self.rows.shown)

    def draw(self, parts: list[Primitive], left: float, top: float) -> None:
        """Adds the cells, their numbers at the edges, and the lines between warps."""
        width, height = self.cell
        ys = _places(self.rows, top, height)
        xs = _places(self.columns, left, width)
        for n, x in xs:
            if n is not None:
                parts.append(Label(x + width / 2, top - 6, str(n), _EDGE, _FAINT))
        for m, y in ys:
            if m is not None and not self.table.one_mode:
                parts.append(Label(left - 8, y + height / 2 + 4, str(m), _EDGE, _FAINT, "end"))
            for n, x in xs:
                if m is None or n is None:
                    _dots(parts, x + (_GAP if n is None else width) / 2, y + (_GAP if m is None else height) / 2, m, n)
                else:
                    _cell(parts, self.table.rows[m][n], x, y, width, height)
        if self.table.by_thread and _threads(self.table) > WARP:
            self._outline(parts, xs, ys)

    def _outline(self, parts: list[Primitive], xs: "_Places", ys: "_Places") -> None:
        """Heavy lines between the cells of different warps."""
        width, height = self.cell
        rows = self.table.rows
        for m, y in ys:
            for (n, _), (after, x) in pairwise(xs):
                if None not in (m, n, after) and _warp(rows[m or 0][n or 0]) != _warp(rows[m or 0][after or 0]):
                    parts.append(Line((x, y), (x, y + height), 2.5, INK))
        for n, x in xs:
            for (m, _), (after, y) in pairwise(ys):
                if None not in (m, n, after) and _warp(rows[m or 0][n or 0]) != _warp(rows[after or 0][n or 0]):
                    parts.append(Line((x, y), (x + width, y), 2.5, INK))


_Places = list[tuple[int | None, float]]


def _places(shown: Excerpt, start: float, size: float) -> _Places:
    places: _Places = []
    for line in shown.shown:
        places.append((line, start))
        start += _GAP if line is None else size
    return places


def _block_width(grid: _Grid) -> float:
    """The width of a table with its title and captions, which are broken where they are much wider than the table."""
    texts = [(grid.table.title, _TITLE), *((text, _CAPTION) for text in _about(grid))]
    return max(grid.edge + grid.width, *(min(_LEAST_TITLE, text_width(text, size)) for text, size in texts))


def _block(parts: list[Primitive], grid: _Grid, left: float, top: float, width: float) -> float:
    """Adds a table with its title and captions; where it ends."""
    top = _write(parts, wrap_text(grid.table.title, _TITLE, width), left, top, _TITLE, INK, bold=True)
    top += _EDGE + 14
    grid.draw(parts, left + grid.edge, top)
    return _captions(parts, _about(grid), left, top + grid.height, width)


def _about(grid: _Grid) -> list[str]:
    """The captions of a table."""
    across = "values" if grid.table.one_mode else "columns"
    tables = (grid.table,)
    repeats = [*_repeats(grid.rows, "rows", tables), *_repeats(grid.columns, across, tables)]
    return [*repeats, *_shared_caption(grid.table), *_warps(tables)]


def _captions(
    parts: list[Primitive], captions: Sequence[str], x: float, y: float, width: float, size: float = _CAPTION
) -> float:
    """Adds captions below `y`; where they end."""
    texts = [line for text in captions for line in wrap_text(text, size, width)]
    return _write(parts, texts, x, y + 8, size, _FAINT) if texts else y


def _write(
    parts: list[Primitive], texts: Sequence[str], x: float, y: float, size: float, colour: str, *, bold: bool = False
) -> float:
    """Adds lines of text below `y`; where they end."""
    for text in texts:
        y += size * 1.35
        parts.append(Label(x, y, text, size, colour, "start", bold))
    return y


def _cell(parts: list[Primitive], cell: Cell, x: float, y: float, width: float, height: float) -> None:
    parts.append(Box(x, y, width, height, cell.colour, _BORDER))
    texts = _texts(cell)
    first = y + height / 2 + _TEXT * 0.36 - (len(texts) - 1) * _TEXT * 0.62
    for number, text in enumerate(texts):
        parts.append(Label(x + width / 2, first + number * _TEXT * 1.24, text))
    if cell.also:
        parts.append(Shape(((x + width, y), (x + width, y + 9), (x + width - 9, y)), INK))


def _dots(parts: list[Primitive], x: float, y: float, m: int | None, n: int | None) -> None:
    """Three dots in the direction in which something is left out."""
    across, down = (0 if n is not None else 5), (0 if m is not None else 5)
    parts.extend(Dot((x + step * across, y + step * down), 1.3, _FAINT) for step in (-1, 0, 1))


def _texts(cell: Cell) -> list[str]:
    """The lines of a cell: of a thread and a value one above the other."""
    thread, separator, value = cell.text.partition("V")
    return [thread, separator + value] if separator else [cell.text]


def _grid_of(table: Table) -> _Grid:
    return _Grid(table, excerpt([_numbers(table.rows)]), excerpt([_numbers(_transpose(table.rows))]), _cell_size(table))


def _cell_size(table: Table) -> tuple[float, float]:
    texts = {text for row in table.rows for cell in row for text in _texts(cell)}
    width = max(_LEAST_CELL, ceil(max(text_width(text, _TEXT) for text in texts)) + 10)
    if table.by_thread:
        width = max(width, 2 * ceil(_TEXT * 1.24) + 8)
        return width, width
    return width, _LEAST_CELL


def _turn_to_row(table: Table) -> Table:
    """A table of one mode as a row, which fits a page better than a column."""
    if not table.one_mode:
        return table
    return replace(table, rows=_transpose(table.rows))


def _transpose(rows: Sequence[tuple[Cell, ...]]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(zip(*rows, strict=True))


def _numbers(rows: Sequence[tuple[Cell, ...]]) -> list[list[tuple[int, ...] | None]]:
    return [[cell.numbers for cell in row] for row in rows]


def _repeats(shown: Excerpt, axis: str, tables: Sequence[Table]) -> list[str]:
    """The caption of the repetitions along an axis that these tables share."""
    if None not in shown.shown:
        return []
    texts = [_repeat(repetition, tables) for repetition in reversed(shown.repetitions)]
    return [f"{axis}: {', '.join(texts) or 'nothing repeats'}"]


def _repeat(repetition: Repetition, tables: Sequence[Table]) -> str:
    steps = [_step(step, table.by_thread) for step, table in zip(repetition.steps, tables, strict=True)]
    if len(set(steps)) > 1:
        steps = [f"{step} in {table.title}" for step, table in zip(steps, tables, strict=True)]
        steps = [" and ".join(steps)]
    return f"{steps[0]} every {repetition.period}" if repetition.period > 1 else f"{steps[0]} each"


def _step(step: tuple[int, ...], by_thread: bool) -> str:
    if not any(step):
        return "the same"
    if by_thread:
        return " ".join(f"{name}{distance:+}" for name, distance in zip("TV", step, strict=True) if distance)
    return f"{step[0]:+}" if len(step) == 1 else f"+({','.join(map(str, step))})"


def _shared_caption(table: Table) -> list[str]:
    """The caption of places that several threads or values have."""
    others = {cell.also for row in table.rows for cell in row if cell.numbers is not None}
    most = 1 + max(map(len, others))
    if most == 1:
        return []
    if len(others) > 1:
        return [f"marked elements are held by up to {most} threads or values"]
    (also,) = others
    threads = [distance for distance, _ in also]
    if all(distance and distance % WARP == 0 for distance in threads):
        return [f"each element is held by {most} warps, in {_series('T', threads)}"]
    if all(threads):
        return [f"each element is held by {most} threads, {_series('T', threads)}"]
    return [f"each element is held {most} times"]


def _series(name: str, distances: Sequence[int]) -> str:
    """The numbers at these distances from the first one."""
    texts = [name, *(f"{name}{distance:+}" for distance in distances)]
    return (
        " and ".join(texts)
        if len(texts) == 2
        else ", ".join(texts if len(texts) < 5 else [*texts[:3], "...", texts[-1]])
    )


def _crew(threads: int) -> str:
    """How many threads."""
    return (
        f"{threads} threads in {threads // WARP} warps"
        if threads > WARP and threads % WARP == 0
        else f"{threads} threads"
    )


def _threads(table: Table) -> int:
    return 1 + max((cell.numbers[0] for row in table.rows for cell in row if cell.numbers), default=0)


def _warp(cell: Cell) -> int | None:
    return None if cell.numbers is None else cell.numbers[0] // WARP


def _warps(tables: Sequence[Table]) -> list[str]:
    return ["heavy lines separate warps"] if any(t.by_thread and _threads(t) > WARP for t in tables) else []


def notebook_svg(x: Drawn) -> str | None:
    """The picture of a notebook's cell; None for a layout that is not static or has too many places."""
    try:
        drawn = tables(x)
        if sum(len(t.rows) * len(t.rows[0]) for t in drawn) > _MAX_NOTEBOOK_CELLS:
            return None
        return picture(x).svg()
    except LayoutError:
        return None


def notebook_html(x: Drawn) -> str:
    """The notation of a notebook's cell and, below it, the picture if there is one."""
    text = "\n".join(lines(x, plain_style))
    return f"<pre>{escape_xml(text)}</pre>{notebook_svg(x) or ''}"
