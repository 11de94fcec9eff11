# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A lexer of Pygments for `.cute` files, by which pages and terminals colour them: `pygmentize -l cute kernel.cute`."""

from collections.abc import Sequence
from typing import Any, cast

from pygments import lexer as pygments
from pygments.token import Token, string_to_tokentype

from tilefold.tools.editing.highlighting import WORDS, Word


def _rules(words: Sequence[Word], rest: object) -> list[Any]:
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
