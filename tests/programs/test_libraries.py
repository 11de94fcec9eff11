# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runner of tests of libraries."""

from pathlib import Path

import pytest

from .call import load
from .call import main as call
from .libraries import CASES, COMMITS, Case, run


def test_a_function_is_called_with_values_of_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "a_library_of_tests.py").write_text("N = 3\n")
    file = tmp_path / "tests" / "test_something.py"
    file.write_text("from a_library_of_tests import N\ndef test_it(n, word):\n    print(n, word)\n")
    call(load(str(file)), "test_it", ["n=2 * N", "word='='"])
    assert capsys.readouterr().out == "6 =\n"


def test_a_checkout_that_is_missing_is_reported(tmp_path: Path) -> None:
    state, reason = run(Case("quack", "tests/test_softmax.py", "test_softmax"), tmp_path, 1)
    assert state == "missing"
    assert "quack-c8ec317" in reason


def test_each_case_that_does_not_run_has_a_reason() -> None:
    assert {case.library for case in CASES} == set(COMMITS)
    assert all(case.reason for case in CASES if case.ends or not case.races)
