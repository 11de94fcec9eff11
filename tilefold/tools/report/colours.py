# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The colours of code: which parts of a line are names, numbers, comments, by the lexers of Pygments."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, TypeAlias, cast

from pygments import lexers
from pygments.lexer import Lexer, RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Text, Token

Span: TypeAlias = tuple[int, int, str]
"""A part of a line, from a column to another, and its class on the page."""

_CLASSES: tuple[tuple[Any, str], ...] = (
    (Comment, "co"), (String, "st"), (Number, "nu"), (Keyword.Type, "ty"), (Keyword, "kw"), (Name.Function, "fn"),
    (Name.Builtin, "fn"), (Name.Label, "fn"), (Name.Decorator, "fn"), (Name.Variable, "va"), (Operator.Word, "kw"),
)  # fmt: skip
_BY_SUFFIX = {".py": "python", ".cu": "cuda", ".ptx": "ptx"}


class MachineCodeLexer(RegexLexer):
    """Machine code as nvdisasm prints it, of which Pygments has no lexer: its `sass` is a language of style sheets."""

    name = "Machine code of NVIDIA GPUs"
    tokens = {
        "root": [
            (r"/\*[0-9a-f]+\*/", Comment),
            (r"`\([^)]*\)|^\S+:$", Name.Label),
            (r"\b(?:U?R(?:\d+|Z)|U?P(?:\d+|T)|SR_[\w.]+|B\d+)\b", Name.Variable),
            (r"-?0x[0-9a-f]+\b|-?\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b", Number),
            (r"\b[A-Z][A-Z0-9_]+(?:\.[\w:]+)*", Keyword),
            (r"\s+|.", Text),
        ]
    }  # fmt: skip


def _class_of(token: object) -> str:
    return next((name for kind, name in _CLASSES if token in kind), "")


@dataclass
class Colours:
    """The lexers of a page: `cute` for `.cute` files and the IR. Lines of one form that are equal are read once."""

    cute: Lexer | None = None
    _known: dict[tuple[str, str], tuple[Span, ...]] = field(default_factory=dict[tuple[str, str], tuple[Span, ...]])
    _lexers: dict[str, Lexer] = field(default_factory=dict[str, Lexer])

    def line(self, text: str, form: str) -> tuple[Span, ...]:
        """The parts of a line in a form: `cute`, which stands for itself, `ptx` or `sass`."""
        key = form, text
        if key not in self._known:
            self._known[key] = next(iter(self._read(text, form)), ())
        return self._known[key]

    def file(self, lines: Sequence[str], name: str) -> list[tuple[Span, ...]]:
        """The parts of each line of a file, by the suffix of its name; of a `.cute` file by default."""
        form = _BY_SUFFIX.get(PurePath(name).suffix.lower(), "cute")
        if form == "cute":
            return [self.line(line, form) for line in lines]
        found = self._read("\n".join(lines), form)
        return [*found, *[()] * (len(lines) - len(found))]

    def _lexer(self, form: str) -> Lexer | None:
        if form == "cute":
            return self.cute
        return MachineCodeLexer() if form == "sass" else cast("Any", lexers).get_lexer_by_name(form)

    def _read(self, text: str, form: str) -> list[tuple[Span, ...]]:
        if form not in self._lexers:
            made = self._lexer(form)
            if made is None:
                return []
            made.stripnl = made.ensurenl = False
            self._lexers[form] = made
        lines: list[list[Span]] = [[]]
        column = 0
        for token, value in self._lexers[form].get_tokens(text):
            name = "" if token in Token.Text else _class_of(token)
            for number, part in enumerate(value.split("\n")):
                if number:
                    lines.append([])
                    column = 0
                if name and part.strip():
                    lines[-1].append((column, column + len(part), name))
                column += len(part)
        return [_joined(line) for line in lines]


def _joined(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Neighbours of one class as one part."""
    joined: list[Span] = []
    for begin, end, name in spans:
        if joined and joined[-1][1:] == (begin, name):
            joined[-1] = (joined[-1][0], end, name)
        else:
            joined.append((begin, end, name))
    return tuple(joined)
