# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of a picture, in pixels from the upper left corner, and their text in SVG.

The parts are few and plain, so that other formats are drawn from them as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, TypeAlias
from unicodedata import east_asian_width

from ...base.printable import printable

Point: TypeAlias = tuple[float, float]
Anchor: TypeAlias = Literal["start", "middle", "end"]

INK = "#1f2430"
TEXT_SIZE = 12
"""The colour and the size of most texts."""
FONT = "DejaVu Sans Mono, Menlo, Consolas, monospace"
_ADVANCE = 0.61  # of these fonts' characters, in units of the size


@dataclass(frozen=True, slots=True)
class Box:
    """A filled rectangle with a thin border."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    border: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line with square ends."""

    start: Point
    end: Point
    width: float
    colour: str


@dataclass(frozen=True, slots=True)
class Shape:
    """A filled polygon."""

    points: tuple[Point, ...]
    fill: str


@dataclass(frozen=True, slots=True)
class Dot:
    """A filled circle."""

    centre: Point
    radius: float
    fill: str


@dataclass(frozen=True, slots=True)
class Label:
    """A line of text; `y` is that of its baseline."""

    x: float
    y: float
    text: str
    size: float = TEXT_SIZE
    colour: str = INK
    anchor: Anchor = "middle"
    bold: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Parts that stand further to the right and further down."""

    right: float
    down: float
    parts: "tuple[Primitive, ...]"


Primitive: TypeAlias = Box | Line | Shape | Dot | Label | Group


@dataclass(frozen=True, slots=True)
class Picture:
    """Parts, drawn in their order on a white ground. `title` is for readers that do not see them."""

    title: str
    width: float
    height: float
    parts: tuple[Primitive, ...]

    def svg(self) -> str:
        """The picture as an SVG image, which scales with the page that shows it."""
        size = f'width="{_number(self.width)}" height="{_number(self.height)}"'
        box = f'viewBox="0 0 {_number(self.width)} {_number(self.height)}"'
        style = f'font-family="{FONT}" style="max-width:100%;height:auto"'
        text = f'font-size="{TEXT_SIZE}" text-anchor="middle" fill="{INK}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} role="img" {style} {text}>'
        title = f"<title>{escape_xml(self.title)}</title>"
        ground = f'<rect width="{_number(self.width)}" height="{_number(self.height)}" fill="#ffffff"/>'
        return "\n".join([head, title, ground, *map(_element, self.parts), "</svg>"]) + "\n"


def side_by_side(pictures: Sequence[Picture]) -> Picture:
    """Pictures as one."""
    if len(pictures) == 1:
        return pictures[0]
    parts, right = list[Primitive](), 0.0
    for picture in pictures:
        parts.append(Group(right, 0, picture.parts))
        right += picture.width
    title = "; ".join(picture.title for picture in pictures)
    return Picture(title, right, max((picture.height for picture in pictures), default=0), tuple(parts))


def text_width(text: str, size: float) -> float:
    """How wide a text of a size is, at most, in the fonts of a picture."""
    return _ADVANCE * size * sum(2 if east_asian_width(c) in "WF" else 1 for c in printable(text))


def wrap_text(text: str, size: float, width: float) -> list[str]:
    """The lines of a text that is no wider than `width`, broken after spaces and punctuation where it can be."""
    lines, line = [""], ""
    for word in _words(text):
        if line and text_width((line + word).rstrip(), size) > width:
            lines[-1], line = line.rstrip(), ""
            lines.append("")
        while text_width(word.rstrip(), size) > width and len(word) > 1:
            cut = max(1, int(width / (_ADVANCE * size)))
            lines[-1], word = word[:cut], word[cut:]
            lines.append("")
        line += word
        lines[-1] = line.rstrip()
    return lines


def escape_xml(text: str) -> str:
    """A text escaped for XML: its special characters as entities, and those that XML does not have as U+FFFD."""
    return escape("".join(c if _in_xml(ord(c)) else "\N{REPLACEMENT CHARACTER}" for c in printable(text)), quote=False)


def _in_xml(code: int) -> bool:
    """Whether XML 1.0 (section 2.2, Characters) has a character."""
    return code in (9, 10, 13) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000


def _words(text: str) -> list[str]:
    words, start = list[str](), 0
    for at, character in enumerate(text):
        if character in " ,:;":
            words.append(text[start : at + 1])
            start = at + 1
    return [*words, text[start:]]


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _element(part: Primitive) -> str:
    n = _number
    match part:
        case Box(x, y, width, height, fill, border):
            stroke = f' stroke="{border}"' if border else ""
            return f'<rect x="{n(x)}" y="{n(y)}" width="{n(width)}" height="{n(height)}" fill="{fill}"{stroke}/>'
        case Line((x1, y1), (x2, y2), width, colour):
            ends = f'x1="{n(x1)}" y1="{n(y1)}" x2="{n(x2)}" y2="{n(y2)}"'
            return f'<line {ends} stroke="{colour}" stroke-width="{n(width)}" stroke-linecap="square"/>'
        case Shape(points, fill):
            return f'<polygon points="{" ".join(f"{n(x)},{n(y)}" for x, y in points)}" fill="{fill}"/>'
        case Dot((x, y), radius, fill):
            return f'<circle cx="{n(x)}" cy="{n(y)}" r="{n(radius)}" fill="{fill}"/>'
        case Label(x, y, text, size, colour, anchor, bold):
            place = f'x="{n(x)}" y="{n(y)}"'
            place += "" if size == TEXT_SIZE else f' font-size="{n(size)}"'
            place += "" if colour == INK else f' fill="{colour}"'
            place += "" if anchor == "middle" else f' text-anchor="{anchor}"'
            place += ' font-weight="bold"' if bold else ""
            return f"<text {place}>{escape_xml(text)}</text>"
        case Group(right, down, parts):
            inner = "\n".join(map(_element, parts))
            return f'<g transform="translate({n(right)},{n(down)})">\n{inner}\n</g>'
