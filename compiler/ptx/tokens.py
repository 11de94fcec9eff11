# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The position of a parser in PTX text: the next token, the tokens that must follow, and errors there."""

import re
import struct
from typing import NoReturn

from ...base.errors import Code
from .lexer import Text, Token
from .syntax import TYPE_BITS, Float, Integer, Place, PtxError

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
