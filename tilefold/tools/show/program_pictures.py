# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pictures of a program: its tiled copies and MMAs, its shared memory by banks, and the lanes of its accesses."""

from collections.abc import Iterator, Sequence
from html import escape

from xdsl.dialects.builtin import ModuleOp

from tilefold.base.errors import Code, LayoutError
from tilefold.base.spaces import SMEM
from tilefold.base.target import BANK_BYTES, BANKS
from tilefold.dialects.tile import AllocOp, InstructionOp, TensorType
from tilefold.dialects.tile.copy_types import TiledCopyType
from tilefold.dialects.tile.mma_types import TiledMmaType
from tilefold.driver.output import Markup, base_style
from tilefold.layout.algebra.coordinates import idx2crd
from tilefold.layout.algebra.core import make_layout, size
from tilefold.layout.algebra.inttuple import flatten_to_tuple, is_fully_static, product_each, wrap
from tilefold.layout.atoms.custom import CustomInstruction
from tilefold.layout.drawing.drawings import EMPTY, Cell, Table, instruction_tables, make_index_table
from tilefold.layout.drawing.pictures import draw_tables, picture
from tilefold.layout.drawing.scene import Group, Picture, Primitive
from tilefold.version import VERSION

MAX_ELEMENTS = 1 << 17
"""The most elements of a tensor that is drawn by banks."""


def pictures_of(module: ModuleOp, left_out: list[str]) -> Iterator[Picture]:
    """Each tiled copy, source and destination side by side; each tiled MMA with its fragments of A, B and C; and each
    tensor in shared memory by banks. One for each type, in the order of the program. `left_out` gets the tensors that
    are too large.
    """
    seen: set[object] = set()
    for op in module.walk():
        if isinstance(op, InstructionOp) and op.record not in seen and op.record.places:
            seen.add(op.record)
            yield from _drawn(op.record, left_out)
        for result in op.results:
            type, line = result.type, getattr(getattr(op.location, "line", None), "data", 0)
            if type in seen:
                continue
            seen.add(type)
            name = f"%{result.name_hint} of line {line}" if result.name_hint else f"line {line}"
            try:
                if isinstance(type, TiledCopyType):
                    yield picture(type.tiled_copy)
                elif isinstance(type, TiledMmaType):
                    yield picture(type.tiled_mma)
                elif isinstance(op, AllocOp) and isinstance(type, TensorType) and type.space.data is SMEM:
                    yield draw_tables([bank_table(name, type)])
            except LayoutError as error:
                left_out.append(f"{name}: {error.message}")


def _drawn(record: CustomInstruction, left_out: list[str]) -> Iterator[Picture]:
    """The picture of an instruction of a package: where its matrices have their elements."""
    try:
        yield draw_tables(instruction_tables(record), record.describe())
    except LayoutError as error:
        left_out.append(f"{record.name}: {error.message}")


def bank_table(name: str, type: TensorType) -> Table:
    """A tensor in shared memory as the hardware sees it: a column for each of the 32 banks, a row for each 128 bytes,
    and in a cell the coordinate of the first element of the word. Cells of one row of the tensor share a colour.
    LayoutError (E0209) for a tensor that is too large, or whose elements are packed.
    """
    layout = type.layout.data
    if type.is_packed or not is_fully_static(layout.shape) or size(layout) > MAX_ELEMENTS:
        problem = f"{type.layout.data} of {type.element_type} is not drawn by banks"
        hint = f"up to {MAX_ELEMENTS} elements of whole bytes are"
        raise LayoutError(Code.RESULT_TOO_LARGE, f"{problem}: {hint}")
    extents = [int(extent) for extent in product_each(wrap(layout.shape))]
    colours = _colours()
    words: dict[int, Cell] = {}
    for place in range(size(layout)):
        word = int(layout(place)) * type.element_bytes // BANK_BYTES
        coordinate = flatten_to_tuple(idx2crd(place, tuple(extents)))
        text = ",".join(map(str, coordinate))
        words.setdefault(word, Cell(text, (place,), colour=colours[int(coordinate[0]) % len(colours)]))
    rows = max(words) // BANKS + 1
    cells = tuple(tuple(words.get(row * BANKS + bank, EMPTY) for bank in range(BANKS)) for row in range(rows))
    return Table(f"{name}: banks across, {type.layout.data}", cells)


def _colours() -> list[str]:
    """The colours of the first 32 indices."""
    return [row[0].colour for row in make_index_table(make_layout(32)).rows]


def lane_table(title: str, offsets: Sequence[int], lanes: Sequence[int], width: int) -> Table:
    """Which lanes an access of `width` bytes at byte `offsets` serves from each bank: a column for each bank, and one
    below the other the words that are wanted of it.
    """
    banks: list[dict[int, list[int]]] = [{} for _ in range(BANKS)]
    for lane, offset in zip(lanes, offsets, strict=True):
        first = offset // BANK_BYTES
        for word in range(first, first + max(1, width // BANK_BYTES)):
            banks[word % BANKS].setdefault(word, []).append(lane)
    colours = _colours()
    columns = [[_lanes(lanes_of_word, colours) for lanes_of_word in bank.values()] for bank in banks]
    deepest = max(len(column) for column in columns)
    rows = tuple(tuple(column[row] if row < len(column) else EMPTY for column in columns) for row in range(deepest))
    return Table(title, rows)


def _lanes(lanes: Sequence[int], colours: Sequence[str]) -> Cell:
    text = str(lanes[0]) if len(lanes) == 1 else f"{lanes[0]}+{len(lanes) - 1}"
    return Cell(text, (lanes[0],), colour=colours[lanes[0] % len(colours)])


def stack(pictures: Sequence[Picture]) -> Picture:
    """Pictures as one, below each other."""
    parts, top = list[Primitive](), 0.0
    for shown in pictures:
        parts.append(Group(0, top, shown.parts))
        top += shown.height
    return Picture("; ".join(p.title for p in pictures), max(p.width for p in pictures), top, tuple(parts))


def page(title: str, pictures: Sequence[Picture], says: Sequence[str] = ()) -> Markup:
    """Pictures as an HTML page that needs no other file, below lines of text."""
    figures = "\n".join(f'<figure class="picture">{shown.svg()}</figure>' for shown in pictures)
    said = "\n".join(f"<p>{escape(line)}</p>" for line in says)
    name = escape(title.replace("\\", "/").rpartition("/")[2])
    return Markup(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name} (tilefold)</title>\n<style>{base_style()}</style></head>\n"
        f"<body>\n<header><h1>{name}</h1><p>tilefold {VERSION}</p></header>\n"
        f"<main>\n{said}\n{figures}\n</main></body></html>\n"
    )
