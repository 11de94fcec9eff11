# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How an error of the layout algebra becomes an error of the IR: at a place in the text, or on an operation.

The `TilefoldError` stays reachable as the `__cause__` of the exception raised here, so that a diagnostic can show its
stable code and its hint.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from xdsl.ir import Attribute
from xdsl.parser import AttrParser
from xdsl.utils.exceptions import ParseError, VerifyException

from ..base.errors import TilefoldError

T = TypeVar("T", bound=Attribute)


def raise_at(parser: AttrParser, error: TilefoldError, start: int, end: int) -> NoReturn:
    """Raises a ParseError at characters `start` to `end` of the parsed text, caused by `error`."""
    try:
        parser.raise_error(error.message, start, end)
    except ParseError as parse_error:
        raise parse_error from error


def parse_kind(parser: AttrParser, kind: type[T], expected: str) -> T:
    """Parses an attribute of a kind; a ParseError says what is `expected` where something else stands."""
    at = parser.pos
    attribute = parser.parse_optional_attribute()
    if not isinstance(attribute, kind):
        parser.raise_error(f"expected {expected}", at, parser.pos)
    return attribute


def refuse(error: TilefoldError) -> NoReturn:
    """Raises a VerifyException for the operation that is being verified, caused by `error`."""
    raise VerifyException(error.message) from error


@contextmanager
def refusing() -> Generator[None, None, None]:
    """Within it, a TilefoldError refuses the operation or attribute that is being verified."""
    try:
        yield
    except TilefoldError as error:
        refuse(error)
