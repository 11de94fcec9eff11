# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names in files that nobody writes: the time that they take grows as their number, on one line too."""

import pytest

from tests.durations import processor_seconds
from tilefold.editing.completion import MAX_WORDS, completions
from tilefold.editing.document import MAX_DEPTH, Document

COUNT = 30_000
TEXTS = {
    "operands": "%a : i32, " * COUNT,
    "results": "%a, " * COUNT + "%a = f",
    "braces": "{ %a = " * COUNT,
    "parentheses": "(%a : " * COUNT,
    "symbols": "\n".join(f"!A{n} = i32" for n in range(COUNT)),
}


@pytest.mark.parametrize("name", TEXTS)
def test_names_take_time_as_their_number(name: str) -> None:
    def read() -> None:
        document = Document("long.cute", TEXTS[name])
        found = document.occurrences
        assert len(found) >= COUNT
        assert max(len(one.scope) for one in found) <= MAX_DEPTH
        assert found[-1] in document.uses(found[-1])

    assert processor_seconds(read) < 5


def test_words_that_are_offered_are_the_nearest() -> None:
    text = TEXTS["symbols"] + "\n%m = tile.tiled_mma #m : !"
    words = completions(Document("long.cute", text), len(text))
    assert len(words) == MAX_WORDS
    assert words[0].text == f"!A{COUNT - 1}"
