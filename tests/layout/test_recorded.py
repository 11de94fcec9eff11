# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A sample of the recorded results of CuTe C++."""

from pathlib import Path

import pytest

from tests.oracle.judge import judge
from tests.oracle.record import Case, load

CASES = [case for file in sorted((Path(__file__).parent.parent / "oracle/data").glob("*.json")) for case in load(file)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_recorded_case(case: Case) -> None:
    verdict = judge(case)
    assert verdict.passed, verdict.message


def test_a_wrong_result_is_noticed() -> None:
    case = next(c for c in CASES if c.op == "coalesce" and c.outputs)
    wrong = Case(case.op, case.id, case.inputs, {"result": "(7,11):(13,17)"}, True, case.dynamic)
    assert not judge(wrong).passed
    refused = next(c for c in CASES if c.outputs is None)
    assert not judge(Case("flatten", "x", {"layout": "4:1"}, None, True, False)).passed
    assert not judge(Case("no_such_operation", "x", refused.inputs, None, True, False)).passed
