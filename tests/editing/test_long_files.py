# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names in files that nobody writes: the time that they take grows as their number, on one line too."""

from collections.abc import Callable

import pytest
from lsprotocol import types as lsp
from pygls.workspace import PositionCodec, TextDocument

from tests.work import growth
from tilefold.tools.editing.completion import MAX_WORDS, completions
from tilefold.tools.editing.document import MAX_DEPTH, Document
from tilefold.tools.editing.server import Places

COUNT, FEW = 32_000, 4_000
TEXTS: dict[str, Callable[[int], str]] = {
    "operands": lambda count: "%a : i32, " * count,
    "results": lambda count: "%a, " * count + "%a = f",
    "braces": lambda count: "{ %a = " * count,
    "parentheses": lambda count: "(%a : " * count,
    "symbols": lambda count: "\n".join(f"!A{n} = i32" for n in range(count)),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.sampled(2)
def test_names_take_time_as_their_number(name: str) -> None:
    def read(count: int) -> None:
        document = Document("long.cute", TEXTS[name](count))
        found = document.occurrences
        assert len(found) >= count
        assert max(len(one.scope) for one in found) <= MAX_DEPTH
        assert found[-1] in document.uses(found[-1])

    assert growth(read, FEW, COUNT) < 3


def test_words_that_are_offered_are_the_nearest() -> None:
    text = TEXTS["symbols"](COUNT) + "\n%m = tile.tiled_mma #m : !"
    words = completions(Document("long.cute", text), len(text))
    assert len(words) == MAX_WORDS
    assert words[0].text == f"!A{COUNT - 1}"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8", "utf-32"])
@pytest.mark.sampled(1)
def test_places_on_a_line_of_any_letters_take_time_as_their_number(encoding: str) -> None:
    line = '%a, "\U0001f600 \u00e9", '
    codec = PositionCodec(encoding)
    texts = {
        count: TextDocument("file:///k.cute", f"%b\n{line * count}%a = f", position_codec=codec)
        for count in (FEW, COUNT)
    }
    names = {count: Document("k.cute", text.source).occurrences for count, text in texts.items()}
    ranges = list[lsp.Range]()

    def place(count: int) -> None:
        places = Places(texts[count])
        ranges[:] = map(places.of, names[count])

    assert growth(place, FEW, COUNT) < 3
    units = codec.client_num_units
    for number in (1, 2, 3, COUNT // 2, COUNT):
        assert ranges[number].start == lsp.Position(1, (number - 1) * units(line))
        assert ranges[number].end == lsp.Position(1, (number - 1) * units(line) + 2)
