# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Faults of public kernels are found, at the lines that their fixes change; the fixed kernels are clean."""

import re

import pytest

from tests.found.cases import PAGE, Found, found, table
from tests.planted.judging import judged

CASES = tuple(found())
_NEAR = 5
"""Lines between those that a report names and the fix, of a loop that may lie on either side."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kernel.title)
def test_a_fault_is_found_at_its_fix_and_the_fixed_kernel_is_clean(case: Found) -> None:
    for outcome in judged(case.kernel):
        assert not outcome.problem, f"{outcome.kind}: {outcome.problem}\n{outcome.report}"
        if outcome.kind == "found":
            named = [int(line) for line in re.findall(r"(?:\.cute:|\"line\": )(\d+)", outcome.report)]
            assert any(min(named) - _NEAR <= line <= max(named) + _NEAR for line in case.kernel.changes), outcome.report


def test_the_page_lists_each() -> None:
    assert table() in PAGE.read_text(), "run python -m tests.found --write"


def test_reports_are_told_once() -> None:
    texts = [case.fault for case in CASES]
    assert len(set(texts)) == len(texts) >= 40
