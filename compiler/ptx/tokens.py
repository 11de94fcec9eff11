# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The position of a parser in PTX text: the next token, the tokens that must follow, and errors there.

The tokens are those of the PTX ISA, Syntax.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from ...base.errors import Code
from .syntax import TYPE_BITS, Float, Integer, Place, PtxError

MAX_CHARACTERS = 64 * 2**20
"""The longest text that is read."""

_TOKEN = re.compile(
    r"""(?P<space>(?:\s|//[^\n]*|/\*.*?\*/)+)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<float>0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b|\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
    |(?P<integer>(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?\b)
    |(?P<word>[%$A-Za-z_][\w$]*(?:(?:\.|::)[\w$]+)*)
    |(?P<directive>\.[A-Za-z_]\w*(?:::\w+)*)
    |(?P<mark><<|>>|<=|>=|==|!=|&&|\|\||[@!|,;:(){}\[\]<>=+\-*/&^~?%])""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its kind (`word`, `directive`, `integer`, `float`, `string`, `mark`, or `end`), text and offset."""

    kind: str
    text: str
    at: int


class Text:
    """A text whose offsets have places. PtxError (E1008) if it is too long."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        if len(text) > MAX_CHARACTERS:
            raise PtxError(
                Code.PTX_SYNTAX, f"the text has more than {MAX_CHARACTERS} characters", Place(1, 1), "", file
            )
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def place(self, at: int) -> Place:
        """The line and column of an offset."""
        from bisect import bisect_right

        line = bisect_right(self._starts, at)
        return Place(line, at - self._starts[line - 1] + 1)

    def tokens(self) -> Iterator[Token]:
        """The tokens, with an `end` behind the last. PtxError (E1008) at a character that begins none."""
        at, text, match = 0, self.text, _TOKEN.match
        while at < len(text):
            found = match(text, at)
            if found is None:
                raise PtxError(Code.PTX_SYNTAX, f"unexpected character {text[at]!r}", self.place(at), "", self.file)
            kind = found.lastgroup or ""
            if kind != "space":
                yield Token(kind, found[0], at)
            at = found.end()
        yield Token("end", "", len(text))


MAX_DIGITS = 80
"""The longest integer: 64 bits in binary, with prefix and suffix."""


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


class Tokens:
    """A cursor over the tokens of a text."""

    def __init__(self, text: Text) -> None:
        self._text, self._rest = text, text.tokens()
        self.token = next(self._rest)

    def place(self) -> Place:
        """The offset of the next token."""
        return self._text.place(self.token.at)

    def text_from(self, at: int) -> str:
        """The text from an offset up to the next token, without comments."""
        return _COMMENT.sub(" ", self._text.text[at : self.token.at])

    def fail(self, message: str, code: Code = Code.PTX_SYNTAX, hint: str = "", place: Place | None = None) -> NoReturn:
        """Raises a PtxError at the next token, or at a place."""
        raise PtxError(code, message, place or self.place(), hint, self._text.file)

    def advance(self) -> Token:
        """Takes the next token. PtxError (E1008) at the end of the text."""
        token = self.token
        if token.kind == "end":
            self.fail("unexpected end of the text")
        self.token = next(self._rest)
        return token

    def accept(self, text: str) -> bool:
        """Takes the next token if it is this one."""
        if self.token.text != text or self.token.kind == "string":
            return False
        self.advance()
        return True

    def expect(self, text: str) -> None:
        """Takes a token that must come next."""
        if not self.accept(text):
            self.fail(f"expected '{text}', got '{self.token.text[:40]}'")

    def word(self, wanted: str) -> str:
        """Takes a name."""
        if self.token.kind != "word":
            self.fail(f"expected {wanted}, got '{self.token.text[:40]}'")
        return self.advance().text

    def integer(self) -> int:
        """Takes an integer, maybe with a sign."""
        sign = -1 if self.accept("-") else 1
        if self.token.kind != "integer" or len(self.token.text) > MAX_DIGITS:
            self.fail(f"expected an integer, got '{self.token.text[:40]}'")
        return sign * integer_of(self.advance().text)

    def number(self, sign: int = 1) -> Integer | Float:
        """Takes a constant, maybe with a sign, behind one that has been read."""
        while self.token.text in ("-", "+"):
            sign *= -1 if self.advance().text == "-" else 1
        if self.token.kind == "float":
            text = self.advance().text
            bits = 32 if text[:2] in ("0f", "0F") else 64
            return Float(sign * float_of(text), bits)
        return Integer(sign * self.integer())

    def skip_statement(self) -> None:
        """Takes everything up to a semicolon."""
        while self.advance().text != ";":
            pass

    @staticmethod
    def is_type(word: str) -> bool:
        """Whether a word without its dot is a type of PTX."""
        return word in TYPE_BITS

    @staticmethod
    def type_bytes(type: str) -> int:
        """The bytes of a type in memory."""
        return max(TYPE_BITS[type] // 8, 1)


def integer_of(text: str) -> int:
    """The value of an integer constant."""
    digits = text.removesuffix("U")
    if digits[:2].lower() in ("0x", "0b"):
        return int(digits, 0)
    return int(digits, 8) if len(digits) > 1 and digits[0] == "0" and set(digits) <= set("01234567") else int(digits)


def float_of(text: str) -> float:
    """The value of a floating-point constant."""
    if text[:2].lower() == "0f":
        return struct.unpack("<f", int(text[2:], 16).to_bytes(4, "little"))[0]
    if text[:2].lower() == "0d":
        return struct.unpack("<d", int(text[2:], 16).to_bytes(8, "little"))[0]
    return float(text)
