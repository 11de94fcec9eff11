# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Damaged programs are accepted or refused, never a crash: a short run of `tests.cli.fuzz`."""

import pytest

from tests.cli.fuzz import fault, main, programs, run


@pytest.mark.parametrize("seed", range(4))
def test_damaged_programs_are_accepted_or_refused(seed: int) -> None:
    assert run(60, seed, programs()) == 0


def test_a_wrong_treatment_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr("tests.cli.fuzz.expand", broken)
    assert "planted" in (fault("gpu.module @m {}") or "")
    assert main(["--count", "2"]) == 1
    assert "2 damaged programs, 2 treated wrongly" in capsys.readouterr().out
