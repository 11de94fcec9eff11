# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The reference in docs/reference/ is what the code says."""

import pytest

from docs.generate import REFERENCE, pages

PAGES = pages()


@pytest.mark.parametrize("name", list(PAGES))
def test_page_is_up_to_date(name: str) -> None:
    path = REFERENCE / name
    assert path.is_file(), f"docs/reference/{name} is missing; run `make docs` and commit it"
    assert path.read_text(encoding="utf-8") == PAGES[name], f"docs/reference/{name} is stale; run `make docs`"


def test_no_page_is_left_over() -> None:
    assert {path.name for path in REFERENCE.glob("*.md")} == set(PAGES), "run `make docs`"
