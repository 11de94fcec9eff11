# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A bounded run of the fuzz test; `make fuzz` runs a long one."""

import pytest

from tests.layout_command.fuzz import main, run


@pytest.mark.parametrize("seed", range(4))
def test_random_and_broken_expressions_are_evaluated_or_refused(seed: int) -> None:
    assert run(seed, 1000) == []


def test_the_long_run_reports(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "20", "--seed", "7"]) == 0
    assert capsys.readouterr().out == "20 texts, seed 7: 0 failed\n"
