# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of options that are layouts and the like: read, and refused with the characters at fault marked."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from tilefold.base.errors import Code, LayoutError, LayoutSyntaxError, TilefoldError
from tilefold.layout.algebra.core import Layout, LayoutLike, make_layout, plain_layout
from tilefold.layout.algebra.integers import Unknown
from tilefold.layout.algebra.inttuple import leaves
from tilefold.layout.text.layouts import parse_int_tuple, parse_layout

_T = TypeVar("_T")
_WIDTH = 100  # the most characters of a value that are shown


@dataclass(frozen=True, slots=True)
class OptionText:
    """The text of an option's value, as the user typed it."""

    option: str
    text: str

    def read(self, parse: Callable[[str], _T]) -> _T:
        """The value that `parse` reads from the text. OptionError for text that it refuses."""
        try:
            return parse(self.text)
        except LayoutSyntaxError as error:
            raise self.error(error, error.offset, error.end) from error
        except TilefoldError as error:
            raise self.error(error) from error

    def error(self, error: TilefoldError, start: int = 0, end: int | None = None) -> "OptionError":
        """The error with `text[start:end]` marked, by default all of it."""
        return OptionError(error, self, start, len(self.text) if end is None else end)

    def fail(self, code: Code, message: str, hint: str = "", span: tuple[int, int] | None = None) -> "OptionError":
        """A new error about the characters in `span`, by default all of them."""
        start, end = span or (0, len(self.text))
        return self.error(TilefoldError(code, message, hint), start, end)

    @contextmanager
    def blamed(self) -> Generator[None]:
        """Within it, an error that marks nothing yet marks this value."""
        try:
            yield
        except OptionError:
            raise
        except TilefoldError as error:
            raise self.error(error) from error

    def part(self, index: int) -> tuple[int, int]:
        """The start and the end of part `index` of a tuple in the text, or of the whole text if it is not a tuple."""
        begin = 0
        while begin < len(self.text) and self.text[begin] not in "([<":
            begin += 1
        depth, start, number = 0, begin + 1, 0
        for at in range(begin, len(self.text)):
            character = self.text[at]
            if character in "([<":
                depth += 1
            closes = character in ")]>"
            if depth == 1 and (closes or character in ",;"):
                if number == index:
                    return start, at
                number, start = number + 1, at + 1
            if closes:
                depth -= 1
                if depth == 0:
                    break
        return 0, len(self.text)


class OptionError(TilefoldError):
    """A value that cannot be used. The message shows the value with the part at fault marked."""

    def __init__(self, error: TilefoldError, value: OptionText, start: int, end: int) -> None:
        start = min(start, len(value.text))
        end = min(max(end, start + 1), max(len(value.text), start + 1))
        cut = max(0, start - _WIDTH // 2) if len(value.text) > _WIDTH else 0
        shown = "".join(c if c.isprintable() else " " for c in value.text[cut : cut + _WIDTH])
        marker = " " * (start - cut) + "^" * min(end - start, max(1, _WIDTH - (start - cut)))
        super().__init__(error.code, f"{value.option}: {error.message}\n  {shown}\n  {marker}", error.hint)


def static_layout(text: str) -> LayoutLike:
    """A layout; a shape alone stands for the compact layout of it, first mode fastest."""
    layout = _layout(text)
    outer = layout if isinstance(layout, Layout) else layout.outer
    subject = "the layout" if isinstance(layout, Layout) else "a swizzled layout"
    offset = () if isinstance(layout, Layout) else (layout.offset,)
    if not all(type(leaf) is int for leaf in leaves((outer.shape, outer.stride, *offset))):
        raise LayoutError(
            Code.DYNAMIC_UNSUPPORTED, f"{subject} must be static, of integers", "write a number for every '?'"
        )
    return layout


def _layout(text: str) -> LayoutLike:
    return parse_layout(text) if ":" in text else make_layout(parse_int_tuple(text))


def tensor_layout(text: str) -> LayoutLike:
    """The layout of a tensor, in which `?` stands for an integer of run time; a shape alone for the compact layout."""
    layout = _layout(text)
    return layout if isinstance(layout, Layout) else static_layout(text)


def unswizzled_layout(text: str) -> Layout:
    """A layout without a swizzle."""
    layout = static_layout(text)
    if not isinstance(layout, Layout):
        raise LayoutError(Code.COMPOSED_UNSUPPORTED, "the layouts of a tiled copy must be plain, without a swizzle")
    return layout


def has_unknowns(layout: LayoutLike) -> bool:
    """Whether integers of a layout have no value."""
    plain = plain_layout(layout)
    return any(isinstance(leaf, Unknown) for leaf in leaves((plain.shape, plain.stride)))
