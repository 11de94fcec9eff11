# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The text of a program: reading it, and finding lines and columns in it after parameters were substituted."""

import sys
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from ...base.errors import Code, TilefoldError

MAX_BYTES = 16 * 2**20
"""Largest program read, in bytes; the text after substitution of its parameters has the same limit in characters."""

MAX_OPERATIONS = 100_000
"""Most operations in a program's text."""


class EncodingError(TilefoldError):
    """A file that is not UTF-8 text; `place` is the `file:line:column` of the first bad byte, counted in bytes."""

    def __init__(self, path: str, data: bytes, at: int, message: str) -> None:
        super().__init__(Code.IR_ENCODING, message, "save the file as UTF-8")
        line = data.count(b"\n", 0, at) + 1
        line_start = data.rfind(b"\n", 0, at) + 1
        self.place = f"{path}:{line}:{at - line_start + 1}"


def read_text(path: str, stdin: BinaryIO | None = None) -> str:
    """The UTF-8 text of a file, or of the standard input for `-`.

    Raises TilefoldError for a file that is missing, unreadable, no file, too large, or not text.
    """
    try:
        if path == "-":
            data = standard_input(stdin).read(MAX_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise TilefoldError(Code.CLI_READ, f"{path}: no such file") from None
    except IsADirectoryError:
        raise TilefoldError(Code.CLI_READ, f"{path}: is a directory", "give one .cute file") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the name
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise TilefoldError(Code.CLI_READ, f"{path!r}: {reason}") from None
    if len(data) > MAX_BYTES:
        raise _too_large(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise EncodingError(path, data, error.start, f"byte {data[error.start]:#04x} is not UTF-8 text") from None
    if "\0" in text:
        raise EncodingError(path, data, data.index(b"\0"), "the file contains a NUL character")
    return text


def standard_input(stdin: BinaryIO | None = None) -> BinaryIO:
    """The stream, or the standard input of the process. TilefoldError (E4001) where the caller has closed it."""
    if stdin is not None:
        return stdin
    if sys.stdin is None or sys.stdin.closed:  # pyright: ignore[reportUnnecessaryComparison]
        raise TilefoldError(Code.CLI_READ, "<stdin>: the standard input is closed", "name a file")
    return sys.stdin.buffer


def check_text(name: str, text: str) -> None:
    """TilefoldError, as `read_text` raises it, for a text that no file can have: it is too large, or not UTF-8."""
    if len(text) > MAX_BYTES:
        raise _too_large(name)
    if not text.isascii():
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            raise TilefoldError(Code.IR_ENCODING, f"{name}: {text[error.start]!r} is not UTF-8 text") from None
        if size > MAX_BYTES:
            raise _too_large(name)
    if "\0" in text:
        raise TilefoldError(Code.IR_ENCODING, f"{name}: the file contains a NUL character")


def _too_large(name: str) -> TilefoldError:
    return TilefoldError(Code.IR_TOO_LARGE, f"{name}: is larger than {MAX_BYTES} bytes")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of expanded text that begins at `at`: a copy of the text at `origin`, or the text that replaced
    `${...}` there."""

    at: int
    origin: int
    substituted: bool


@dataclass(frozen=True)
class Source:
    """A program's text as written, and as it reads once its parameters are substituted."""

    name: str
    text: str
    expanded: str
    pieces: Sequence[Piece] = (Piece(0, 0, False),)

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        at = self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        return starts

    @cached_property
    def _piece_starts(self) -> list[int]:
        return [piece.at for piece in self.pieces]

    def origin(self, at: int) -> int:
        """The offset in the text as written of an offset in the expanded text."""
        piece = self.pieces[bisect_right(self._piece_starts, at) - 1]
        return piece.origin if piece.substituted else piece.origin + at - piece.at

    def position(self, origin: int) -> tuple[int, int]:
        """Line and column, both from 1, of an offset in the text as written."""
        line = bisect_right(self._starts, origin)
        return line, origin - self._starts[line - 1] + 1

    def locate(self, at: int) -> tuple[int, int]:
        """Line and column in the text as written of an offset in the expanded text."""
        return self.position(self.origin(at))

    def line(self, number: int) -> str:
        """The text of a line as written, without its end; empty for a line that does not exist."""
        if not 1 <= number <= len(self._starts):
            return ""
        start = self._starts[number - 1]
        end = self._starts[number] - 1 if number < len(self._starts) else len(self.text)
        return self.text[start:end].removesuffix("\r")

    def line_of(self, file: str, number: int) -> str:
        """The text of a line of a file that a location names: empty for another file than this."""
        return self.line(number) if file == self.name else ""

    def spelled(self, message: str) -> str:
        """A message about the program in the words of the language that it is written in."""
        return message


def plain_source(text: str, name: str) -> Source:
    """A source without parameters: it reads as it is written."""
    return Source(name, text, text)
