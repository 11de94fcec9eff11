# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures as PNG images, drawn by Pillow, which is the extra `tilefold[png]`.

Its own font is taken, so that an image is the same on every machine, also where no fonts are installed.
"""

from collections.abc import Sequence
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING

from tilefold.base.errors import Code, TilefoldError
from tilefold.layout.drawing.scene import Box, Dot, Group, Label, Line, Picture, Primitive, Shape

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

_SCALE = 2
"""Pixels of the image for each of the picture, so that a slide shows it sharply."""
_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}
"""Pillow's names of them, all at the baseline (Pillow, Text anchors)."""


def draw_png(picture: Picture) -> bytes:
    """The picture as a PNG image. TilefoldError (E4004) where Pillow is not installed."""
    try:
        from PIL import Image, ImageDraw
    except ImportError:
        hint = "pip install 'tilefold[png]', or write SVG: --svg instead of --png"
        raise TilefoldError(Code.PACKAGE_MISSING, "PNG images need the package 'pillow'", hint) from None
    image = Image.new("RGB", (round(picture.width * _SCALE), round(picture.height * _SCALE)), "#ffffff")
    _draw(ImageDraw.Draw(image), picture.parts, 0, 0)
    buffer = BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


@cache
def _font(size: float) -> "FreeTypeFont":
    from PIL import ImageFont

    font = ImageFont.load_default(size)
    assert not isinstance(font, ImageFont.ImageFont), "a size asks for one that scales"
    return font


def _draw(image: "ImageDraw", parts: Sequence[Primitive], right: float, down: float) -> None:
    """Draws parts that far to the right and down."""

    def at(x: float, y: float) -> tuple[float, float]:
        return (x + right) * _SCALE, (y + down) * _SCALE

    for part in parts:
        match part:
            case Box(x, y, width, height, fill, border):
                image.rectangle([at(x, y), at(x + width, y + height)], fill, border or None, _SCALE if border else 0)
            case Line(start, end, width, colour):
                image.line([at(*start), at(*end)], colour, round(width * _SCALE))
            case Shape(points, fill):
                image.polygon([at(*point) for point in points], fill)
            case Dot((x, y), radius, fill):
                image.ellipse([at(x - radius, y - radius), at(x + radius, y + radius)], fill)
            case Label(x, y, text, size, colour, anchor, bold):
                font, (left, base) = _font(size * _SCALE), at(x, y)
                for shift in (0, 1) if bold else (0,):  # the font has no bold face
                    image.text((left + shift, base), text, colour, font, _ANCHORS[anchor])
            case Group(further, below, inner):
                _draw(image, inner, right + further, down + below)
