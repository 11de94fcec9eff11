# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The colours of words: every character of an example belongs to a word, in Pygments and in the grammar of editors."""

import json
import re
from pathlib import Path

import pytest
from pygments.lexers import find_lexer_class_for_filename
from pygments.token import Comment, Keyword, Name, String, Text

from docs.generate import GRAMMAR
from tests.kernels.harness import EXAMPLES
from tilefold.tools.editing.highlighting import CuteLexer, grammar


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_word_of_an_example_is_known(path: Path) -> None:
    text = path.read_text()
    found = list(CuteLexer().get_tokens(text))
    assert "".join(word for _, word in found) == text
    unknown = {word for kind, word in found if kind is Text and word.strip()}
    allowed = {"attributes", "type", "func", "into", "using"}
    assert not {word for word in unknown if not re.fullmatch(r"[\w.;/+|&]", word)} - allowed


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("%x#1", [(Name.Variable, "%x#1")]),
        ('@"a b"', [(Name.Function, '@"a b"')]),
        ("tile.copy", [(Keyword, "tile.copy")]),
        ("// param N = 3", [(Keyword, " param"), (Name.Variable.Magic, " N")]),
        ("// parameters follow", [(Comment.Single, "// parameters follow")]),
        ('"(${N},1)"', [(String, '"'), (Name.Variable.Magic, "${N}")]),
    ],
)
def test_words(text: str, kinds: list[tuple[object, str]]) -> None:
    found = [*CuteLexer().get_tokens(text)]
    assert all(kind in found for kind in kinds[1:]), found
    assert kinds[0] in found or kinds[0][1] in "".join(word for kind, word in found if kind is kinds[0][0])


def test_pygments_knows_the_suffix() -> None:
    assert find_lexer_class_for_filename("kernel.cute") is CuteLexer


def test_grammar_of_editors_is_up_to_date() -> None:
    assert GRAMMAR.read_text() == grammar(), "run `make docs`"
    assert {"comment.line.double-slash.cute", "variable.other.cute"} <= {
        pattern["name"] for pattern in json.loads(grammar())["patterns"]
    }
