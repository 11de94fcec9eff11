# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runner of tests of libraries."""

import json
from pathlib import Path

import pytest

from .call import load
from .call import main as call
from .libraries import TABLE, Case, cases, run

_TESTS = """import a_library_of_tests as library
from a_library_of_tests import N
def test_it(n, word):
    print(n, word)
class TestMore:
    def test_more(self, monkeypatch, tmp_path, n):
        monkeypatch.setattr(library, "N", n)
        print(library.N, tmp_path.is_dir(), 100)
"""


def test_a_function_is_called_with_values_of_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "a_library_of_tests.py").write_text("N = 3\n")
    file = tmp_path / "tests" / "test_something.py"
    file.write_text(_TESTS)
    call(load(str(file)), "test_it", ["n=2 * N", "word='='"])
    resized = load(str(file), [("100", "8")])
    call(resized, "TestMore.test_more", ["n=N + 1"])
    assert capsys.readouterr().out == "6 =\n4 True 8\n"
    assert vars(resized)["library"].N == 3
    with pytest.raises(SystemExit, match="has no '1000'"):
        load(str(file), [("1000", "8")])


def test_a_checkout_that_is_missing_is_reported(tmp_path: Path) -> None:
    case = Case("quack", "Dao-AILab/quack", "c8ec317", "tests/test_softmax.py", "test_softmax")
    state, reason = run(case, tmp_path, 1)
    assert state == "missing"
    assert "quack-c8ec317" in reason


def test_each_case_that_does_not_run_has_a_reason() -> None:
    found = list(cases())
    assert all(case.reason for case in found if case.ends or not case.races or not case.fences)
    assert set(json.loads(TABLE.read_text())["reasons"].values()) <= {case.reason for case in found}
    assert len({(case.library, case.text, case.target) for case in found}) == len(found)
