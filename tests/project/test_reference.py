# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reference in docs/reference/ and the picture of the folders are those of the code."""

import pytest

from docs.folders import ARCHITECTURE, picture
from docs.generate import REFERENCE, pages

PAGES = pages()


@pytest.mark.parametrize("name", list(PAGES))
def test_page_is_up_to_date(name: str) -> None:
    path = REFERENCE / name
    assert path.is_file(), f"docs/reference/{name} is missing; run `make docs` and commit it"
    assert path.read_text(encoding="utf-8") == PAGES[name], f"docs/reference/{name} is stale; run `make docs`"


def test_no_page_is_left_over() -> None:
    assert {path.name for path in REFERENCE.glob("*.md")} == set(PAGES), "run `make docs`"


def test_picture_of_the_folders_is_up_to_date() -> None:
    stale = "docs/pictures/architecture.svg is stale; run `make docs`"
    assert ARCHITECTURE.read_text(encoding="utf-8") == picture().svg(), stale
