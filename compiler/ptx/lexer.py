# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX text as tokens (PTX ISA, Syntax)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...base.errors import Code
from .syntax import Place, PtxError

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
