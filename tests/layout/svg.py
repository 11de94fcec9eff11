# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading SVG images in tests: boxes, texts, and what stands in which cell."""

from dataclasses import dataclass
from xml.etree import ElementTree

_NAMESPACE = "{http://www.w3.org/2000/svg}"
_ADVANCE = 0.602  # of a character of DejaVu Sans Mono, the widest of the fonts that pictures name, in units of its size
_ASCENT, _DESCENT = 0.76, 0.24  # of letters and brackets


@dataclass(frozen=True)
class Rectangle:
    """What an element covers, and the text of one."""

    left: float
    top: float
    right: float
    bottom: float
    text: str = ""

    def overlaps(self, other: "Rectangle") -> bool:
        """Whether the two have an area in common."""
        across = self.left < other.right - 0.02 and other.left < self.right - 0.02
        return across and self.top < other.bottom - 0.02 and other.top < self.bottom - 0.02

    def holds(self, other: "Rectangle") -> bool:
        """Whether the other one is within this one."""
        across = self.left <= other.left + 0.02 and other.right <= self.right + 0.02
        return across and self.top <= other.top + 0.02 and other.bottom <= self.bottom + 0.02


@dataclass(frozen=True)
class Image:
    """An image without groups: its size, the boxes of its cells, and its texts."""

    view: Rectangle
    boxes: list[Rectangle]
    texts: list[Rectangle]


def read(svg: str) -> Image:
    """The image of this text."""
    root = ElementTree.fromstring(svg)
    left, top, right, bottom = map(float, root.attrib["viewBox"].split())
    boxes = [_box(each) for each in root.iter(f"{_NAMESPACE}rect")]
    texts = [_text(each) for each in root.iter(f"{_NAMESPACE}text")]
    return Image(Rectangle(left, top, right, bottom), boxes[1:], texts)


def cells(svg: str) -> list[str]:
    """The texts of an image's cells; of those with a thread and a value, both as one."""
    found: list[str] = []
    for each in ElementTree.fromstring(svg).iter(f"{_NAMESPACE}text"):
        text = each.text or ""
        if each.get("font-size", "12") != "12" or each.get("text-anchor", "middle") != "middle":
            continue  # a title, a caption, or the number of a row or column
        if text.startswith("V"):
            found[-1] += text
        else:
            found.append(text)
    return found


def _box(element: ElementTree.Element) -> Rectangle:
    x, y, width, height = (float(element.get(name, "0")) for name in ("x", "y", "width", "height"))
    return Rectangle(x, y, x + width, y + height)


def _text(element: ElementTree.Element) -> Rectangle:
    x, y, size = (float(element.get(name, "12")) for name in ("x", "y", "font-size"))
    text = element.text or ""
    width = len(text) * size * _ADVANCE
    left = x - width * {"start": 0, "middle": 0.5, "end": 1}[element.get("text-anchor", "middle")]
    return Rectangle(left, y - _ASCENT * size, left + width, y + _DESCENT * size, text)
