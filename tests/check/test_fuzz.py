# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fills and checks are evaluated or refused in words of tilefold's own: a short run of `tests.check.fuzz`."""

import pytest

from tests.check.fuzz import main, run
from tests.words import foreign


@pytest.mark.parametrize("seed", range(4))
def test_fills_and_checks_are_evaluated_or_refused(seed: int) -> None:
    assert not run(seed, 1500)


def test_what_goes_wrong_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr("tests.check.fuzz.check", broken)
    assert main(["--count", "20", "--seed", "0"]) == 1
    assert "planted" in capsys.readouterr().out


@pytest.mark.parametrize("message", [
    "list index out of range", "'NoneType' object has no attribute 'x'", "too many positional arguments",
    "operands could not be broadcast together with shapes (2,) (3,)",
])  # fmt: skip
def test_foreign_words_are_found(message: str) -> None:
    assert foreign(message)
