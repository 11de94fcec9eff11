# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The words of a `.cute` file, as editors and pages colour them: one table for Pygments and TextMate grammars;
and the lexer for Pygments.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from pygments import lexer as pygments
from pygments.token import Token, string_to_tokentype

from tilefold.compiler.pipeline import DIALECTS


@dataclass(frozen=True, slots=True)
class Word:
    """A kind of word: a regular expression that Python and Oniguruma read alike, its Pygments token and its TextMate
    scope. Those `within` a kind are looked for only in its text.
    """

    pattern: str
    token: str
    scope: str
    within: "Sequence[Word]" = ()


_REST = r"(?:[\w.-]|\$(?!\{))*"
NAME = rf"(?:[A-Za-z_.]|\$(?!\{{)){_REST}"
"""The name of a value, symbol, alias or block, after its first character; a value may have a number instead."""

_USE = Word(r"\$\{[^}\n]*\}?", "Name.Variable.Magic", "variable.parameter")
_PARAM = Word(r"(?<=param)[ \t]+[A-Za-z_]\w*", "Name.Variable.Magic", "variable.parameter")
_DIRECTIVE_WORD = Word(r"(?<=//)[ \t]*(?:param|assert|if|elif|else|end)\b", "Keyword", "keyword.control.directive")

WORDS: Sequence[Word] = (
    Word(
        r"//[ \t]*(?:param|assert|if|elif|else|end)(?![\w-])[^\n]*",
        "Comment.Preproc",
        "meta.preprocessor",
        (_DIRECTIVE_WORD, _PARAM, _USE, Word(r"\"[^\"\n]*\"?|'[^'\n]*'?", "String", "string.quoted")),
    ),
    Word(r"//[^\n]*", "Comment.Single", "comment.line.double-slash"),
    Word(r'"(?:[^"\\\n]|\\.)*"?', "String", "string.quoted.double", (_USE,)),
    _USE,
    Word(rf"%(?:{NAME}|\d+)(?:#\d+)?", "Name.Variable", "variable.other"),
    Word(rf'@(?:{NAME}|"[^"\n]*")', "Name.Function", "entity.name.function"),
    Word(rf"![A-Za-z_]{_REST}", "Name.Class", "entity.name.type"),
    Word(rf"#[A-Za-z_]{_REST}", "Name.Constant", "variable.other.constant"),
    Word(rf"\^(?:{NAME}|\d+)", "Name.Label", "entity.name.label"),
    Word(rf"\b(?:builtin|{'|'.join(DIALECTS)})\.[a-z_]\w*(?:\.\w+)*", "Keyword", "support.function"),
    Word(r"\b(?:index|[su]?i\d+|b?f\d+\w*|tf32)\b", "Keyword.Type", "storage.type"),
    Word(
        r"\b(?:affine_map|attributes|cluster|dense|else|false|from|gmem|iter_args|loc|min_blocks|module|rmem|smem|step"
        r"|threads|to|true|unit)\b",
        "Keyword.Reserved",
        "keyword.other",
    ),
    Word(r"0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?", "Number", "constant.numeric"),
    Word(r"->|[-=:,<>()\[\]{}?*%]", "Punctuation", "punctuation"),
)
"""The kinds of words; where several fit, the first one does."""


def grammar() -> str:
    """The TextMate grammar of `.cute` files as JSON text, which VS Code and others read."""
    made = {
        "name": "tilefold",
        "scopeName": "source.cute",
        "fileTypes": ["cute"],
        "patterns": [_pattern(word) for word in WORDS],
    }
    return json.dumps(made, indent=2) + "\n"


def _pattern(word: Word) -> dict[str, object]:
    pattern: dict[str, object] = {"match": word.pattern, "name": f"{word.scope}.cute"}
    if word.within:
        pattern["captures"] = {"0": {"patterns": [_pattern(inner) for inner in word.within]}}
    return pattern


def _rules(words: Sequence[Word], rest: object) -> list[object]:
    rules = [(word.pattern, _action(word)) for word in words]
    return [*rules, (r"(?s:.)", rest)]


def _action(word: Word) -> Any:
    token = string_to_tokentype(word.token)
    return _inner(word, token) if word.within else token


def _inner(word: Word, token: object) -> Any:
    """How the text of a word is coloured that has others within it."""
    lexer = type("WithinLexer", (pygments.RegexLexer,), {"tokens": {"root": _rules(word.within, token)}})
    return cast("Any", pygments).using(lexer)


class CuteLexer(pygments.RegexLexer):
    """Colours `.cute` files."""

    name = "tilefold"
    url = "https://mlir.llvm.org"
    aliases = ("cute", "tilefold")
    filenames = ("*.cute",)
    tokens = {"root": _rules(WORDS, Token.Text)}
