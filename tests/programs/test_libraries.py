# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runner of tests of libraries."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from .call import load
from .call import main as call
from .libraries import TABLE, Case, cases, copy_changed, run

_TESTS = """import logging
import a_library_of_tests as library
from a_library_of_tests import N
def test_it(n, word):
    print(n, word)
class TestMore:
    def test_more(self, monkeypatch, tmp_path, caplog, n):
        monkeypatch.setattr(library, "N", n)
        logging.getLogger("half").warning("of it")
        print(library.N, tmp_path.is_dir(), caplog.text)
"""


def test_a_function_is_called_with_values_of_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "a_library_of_tests.py").write_text("N = 3\n")
    file = tmp_path / "tests" / "test_something.py"
    file.write_text(_TESTS)
    call(load(str(file)), "test_it", ["n=2 * N", "word='='"])
    module = load(str(file))
    call(module, "TestMore.test_more", ["n=N + 1"])
    assert capsys.readouterr().out == "6 =\n4 True of it\n\n"
    assert vars(module)["library"].N == 3


def test_sizes_and_fixes_stand_in_a_copy_of_the_checkout(tmp_path: Path) -> None:
    checkout = tmp_path / "small-1"
    (checkout / "tests").mkdir(parents=True)
    (checkout / "half.py").write_text("n // 3")
    (checkout / "tests" / "test_half.py").write_text("half(100) == 4")
    fixes = (("half.py", "// 3", "// 2"), ("", "== 4", "== 4.0"))
    case = Case("small", "some/small", "1", "tests/test_half.py", "test_half", sizes=(("100", "8"),), fixes=fixes)
    copy_changed(case, checkout, tmp_path / "copy")
    assert (tmp_path / "copy" / "half.py").read_text() == "n // 2"
    assert (tmp_path / "copy" / "tests" / "test_half.py").read_text() == "half(8) == 4.0"
    with pytest.raises(ValueError, match=r"half.py has no '1000'"):
        copy_changed(replace(case, sizes=(("half.py", "1000", "8"),)), checkout, tmp_path / "another")


def test_a_checkout_that_is_missing_is_reported(tmp_path: Path) -> None:
    case = Case("quack", "Dao-AILab/quack", "c8ec317", "tests/test_softmax.py", "test_softmax")
    state, reason = run(case, tmp_path, 1)
    assert state == "missing"
    assert "quack-c8ec317" in reason


def test_each_case_that_does_not_run_has_a_reason() -> None:
    found = list(cases())
    assert all(case.reason for case in found if case.ends or case.fixes or not case.races or not case.fences)
    said = "\n".join(case.reason for case in found)
    assert not [reason for reason in json.loads(TABLE.read_text())["reasons"].values() if reason not in said]
    assert len({case.text for case in found}) == len(found)
