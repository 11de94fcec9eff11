# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The catalogue of error codes: each is raised somewhere, and named by a test."""

import re
from functools import cache

import pytest
from tilefold.base.errors import Code

from tests.project.tree import ROOT, product_files

_CODE = re.compile(r"\b(?:Error)?Code\.([A-Z][A-Z_0-9]*)|\b(E\d{4})\b")


@cache
def _raised() -> frozenset[str]:
    """The names of the codes that the product uses."""
    return frozenset(match[1] for path in product_files() for match in _CODE.finditer(path.read_text()) if match[1])


@cache
def _tested() -> frozenset[str]:
    """The names and numbers of the codes that tests mention."""
    files = [path for suffix in ("py", "cute") for path in (ROOT / "tests").rglob(f"*.{suffix}")]
    return frozenset(match[1] or match[2] for path in files for match in _CODE.finditer(path.read_text()))


@pytest.mark.parametrize("code", Code, ids=lambda code: code.id)
def test_code(code: Code) -> None:
    assert code.name in _raised(), f"nothing raises {code.name}"
    assert {code.name, code.id} & _tested(), f"no test names {code.name} or {code.id}"
