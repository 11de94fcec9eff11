# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layouts that a text names, each drawn once."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup, escape

from tilefold.base.errors import LayoutError
from tilefold.layout.algebra.core import size
from tilefold.layout.algebra.inttuple import is_fully_static
from tilefold.layout.drawing.pictures import picture
from tilefold.layout.text.layouts import parse_layout
from tilefold.tools.report.colours import Span

MAX_CELLS = 1 << 16
"""The most cells of all pictures together."""
MAX_SIZE = 1 << 13
"""The most cells of one picture."""
_QUOTED = re.compile(r'"((?:S<[\d,-]+> o \d+ o )?\(?[\d(][\d(),]*:[\d(),]+)"')


def _coloured(text: str, spans: Sequence[Span], begin: int, end: int) -> Iterator[Markup]:
    """The parts of a line between two columns."""
    at = begin
    for first, last, name in spans:
        first, last = max(first, at), min(last, end)
        if first < last:
            yield escape(text[at:first])
            yield Markup('<i class="{}">{}</i>').format(name, text[first:last])
            at = last
    yield escape(text[at:end])


@dataclass
class Pictures:
    """Layouts by their numbers on the page."""

    drawn: list[tuple[str, Markup]] = field(default_factory=list[tuple[str, Markup]])
    _numbers: dict[str, int | None] = field(default_factory=dict[str, int | None])
    _cells: int = 0

    def mark(self, text: str, spans: Sequence[Span] = ()) -> Markup:
        """A line of text, escaped, with a mark on each layout that has a picture, and its parts in their colours."""
        parts: list[Markup] = []
        end = 0
        for match in _QUOTED.finditer(text):
            number = self._number(match[1])
            if number is not None:
                parts += _coloured(text, spans, end, match.start(1))
                parts.append(Markup('<span class="layout" tabindex="0" data-p="{}">{}</span>').format(number, match[1]))
                end = match.end(1)
        return Markup("").join([*parts, *_coloured(text, spans, end, len(text))])

    def _number(self, text: str) -> int | None:
        """The number of a layout's picture; None if it has none."""
        if text not in self._numbers:
            svg = self._svg(text)
            self._numbers[text] = None if svg is None else len(self.drawn)
            if svg is not None:
                self.drawn.append((text, Markup(svg)))  # its texts are escaped where it is drawn
        return self._numbers[text]

    def _svg(self, text: str) -> str | None:
        try:
            layout = parse_layout(text)
            if not is_fully_static(layout.shape) or size(layout) > min(MAX_SIZE, MAX_CELLS - self._cells):
                return None
            self._cells += size(layout)
            return picture(layout).svg()
        except LayoutError:
            return None
