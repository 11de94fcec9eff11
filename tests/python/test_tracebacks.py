# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a user sees of a mistake: the call that is wrong, and no calls within tilefold."""

import sys
from collections.abc import Callable, Sequence
from subprocess import run
from traceback import extract_tb
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportArgumentType=false
# pyright: reportUnknownArgumentType=false


@cute.kernel
def written(out, n: cute.Int32, wrong: cute.Constexpr = ""):
    t, _, _ = cute.arch.thread_idx()
    if wrong == "type":
        out[0] = cute.full((2,), n, cute.Int32)
    if wrong == "bounds":
        out[t + 100] = n
    if wrong == "pass":
        cute.arch.inline_ptx("nop;", "r", out)
    out[0] = n


OUT = np.zeros(4, np.int32)
MISTAKES: Sequence[Callable[[], Any]] = (
    lambda: written(OUT, 1).launch(0, 1, device="sim"),
    lambda: written(OUT, 1).launch(1, 2000, device="sim"),
    lambda: written(OUT, 1).launch(1, 1, device="gpu"),
    lambda: written(OUT, 1).launch(1, 1, device="sim", stage="sass"),
    lambda: written(OUT, 1).launch(1, 1, device="sim", smem=-1),
    lambda: written(OUT, 2**40).launch(1, 1, device="sim"),
    lambda: written(OUT, "x").launch(1, 1, device="sim"),
    lambda: written(OUT[::-1], n=1).launch(1, 1, device="sim"),
    lambda: written(OUT, 1, "type").launch(1, 1, device="sim"),
    lambda: written(OUT, 1, wrong="bounds").launch(1, 1, device="sim"),
    lambda: written(OUT, 1, "pass").launch(1, 1, device="sim"),
    lambda: written(OUT, 1, "type").build(1),
)


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_traceback_leads_to_the_call(number: int) -> None:
    with pytest.raises(TilefoldError) as error:
        MISTAKES[number]()
    *_, called, ours = extract_tb(error.value.__traceback__)
    assert called.filename == __file__
    assert called.name == "<lambda>"
    assert ours.line == "raise shown(error) from error.__cause__"
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__


def test_development_mode_shows_everything() -> None:
    code = "import sys; from tests.python.test_tracebacks import MISTAKES; MISTAKES[8]()"
    commands = ([sys.executable, *mode, "-c", code] for mode in ([], ["-Xdev"]))
    shown = [run(command, capture_output=True, text=True, check=False).stderr for command in commands]
    assert shown[0].count("  File ") == 3
    assert shown[1].count("  File ") > 8
    assert all("error[E5002]: an element is a value or a number" in each for each in shown)
