# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names in files that nobody writes: the time that they take grows as their number, on one line too."""

import pytest
from lsprotocol import types as lsp
from pygls.workspace import PositionCodec, TextDocument

from tests.durations import processor_seconds
from tilefold.editing.completion import MAX_WORDS, completions
from tilefold.editing.document import MAX_DEPTH, Document
from tilefold.editing.server import Places

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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_places_on_a_line_of_any_letters_take_time_as_their_number(encoding: str) -> None:
    line = '%a, "\U0001f600 \u00e9", '
    text = TextDocument("file:///k.cute", f"%b\n{line * COUNT}%a = f", position_codec=PositionCodec(encoding))
    names = Document("k.cute", text.source).occurrences
    ranges = list[lsp.Range]()

    def place() -> None:
        places = Places(text)
        ranges[:] = map(places.of, names)

    assert processor_seconds(place) < 5
    units = text.position_codec.client_num_units
    for number in (1, 2, 3, COUNT // 2, COUNT):
        assert ranges[number].start == lsp.Position(1, (number - 1) * units(line))
        assert ranges[number].end == lsp.Position(1, (number - 1) * units(line) + 2)
