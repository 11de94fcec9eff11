# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Limits, seeds, outputs without values, stages and Ctrl-C of simulations in Python, as of those of files."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tests.alarms import interrupt_at
from tilefold import cute
from tilefold.driver.lowering import EXECUTABLE_STAGES


@cute.kernel
def counted(X: cute.Tensor, Y: cute.Tensor, until: cute.Int32):
    """Y = X + the sum of the numbers below `until`, of even threads."""
    t, _, _ = cute.arch.thread_idx()
    n, total = cute.Int32(0), cute.Int32(0)
    while n < until:
        total = total + n
        n = n + 1
    if t % 2 == 0:
        Y[t] = X[t] + total


@cute.kernel
def read_first(X: cute.Tensor, Y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    Y[t] = X[t] + Y[t]


@cute.kernel
def first_come(X: cute.Tensor):
    """The number of the warp that comes first."""
    t, _, _ = cute.arch.thread_idx()
    if t % 32 == 0:
        cute.arch.atomic_cas(X.ptr(0), 0, t // 32 + 1)


def call(until: int = 3) -> Any:
    return counted(np.arange(32, dtype=np.int32), np.zeros(32, np.int32), until)


@pytest.mark.parametrize("stage", EXECUTABLE_STAGES)
def test_a_limit_of_steps_ends_each_kind_of_run(stage: str) -> None:
    with pytest.raises(TilefoldError) as caught:
        call(1 << 30).launch(grid=1, block=32, device="sim", stage=stage, max_steps=5000)
    assert caught.value.code == "E3210"
    assert "allow more by launch(..., max_steps=...)" in str(caught.value)
    report = call(1 << 30).check(grid=1, block=32, stages=[stage], max_steps=5000)
    assert (report.verdict, [str(gap.code) for gap in report.gaps]) == ("incomplete", ["E3210"])
    call().launch(grid=1, block=32, device="sim", stage=stage, max_steps=5000)


def test_a_limit_of_memory() -> None:
    assert [str(f.code) for f in call().check(grid=1, block=32, outputs=[], max_memory=1).faults] == []
    large = read_first(np.zeros(1 << 20, np.float32), np.zeros(1 << 20, np.float32))
    report = large.check(grid=1, block=32, max_memory=1)
    assert (report.verdict, {str(gap.code) for gap in report.gaps}) == ("incomplete", {"E3211"})


def test_outputs_without_values() -> None:
    report = call().check(grid=1, block=32, outputs=["Y"], stages=EXECUTABLE_STAGES)
    assert [(str(fault.code), fault.stages) for fault in report.faults] == [("E3230", EXECUTABLE_STAGES)]
    assert "leaves 16 of 32 elements unwritten" in str(report)
    x, y = np.ones(32, np.float32), np.ones(32, np.float32)
    assert read_first(x, y).check(grid=1, block=32).passed
    report = read_first(x, y).check(grid=1, block=32, outputs=["Y"], stages=EXECUTABLE_STAGES)
    assert [(str(fault.code), fault.stages) for fault in report.faults] == [("E3204", EXECUTABLE_STAGES)]
    assert (y == 1).all()


def test_seeds_choose_the_order_of_warps() -> None:
    firsts: set[int] = set()
    for seed in range(8):
        x = np.zeros(1, np.int32)
        first_come(x).launch(grid=1, block=128, device="sim", seed=seed)
        again = np.zeros(1, np.int32)
        first_come(again).launch(grid=1, block=128, device="sim", seed=seed)
        assert x[0] == again[0]
        firsts.add(int(x[0]))
    assert len(firsts) > 1


@pytest.mark.parametrize("stage", ["cute", "instr"])
@pytest.mark.parametrize("run", ["launch", "check", "bisect"])
def test_ctrl_c_says_where_the_simulation_was(run: str, stage: str) -> None:
    pending = call(1 << 30)
    pending.build(32).ir(stage)
    options: dict[str, Any] = {"launch": {"device": "sim", "stage": stage}, "check": {"stages": [stage]}}.get(run, {})
    with pytest.raises(KeyboardInterrupt) as caught, interrupt_at(20_000, "/runtime/sim/"):
        getattr(pending, run)(grid=1, block=32, **options)
    (note,) = caught.value.__notes__
    assert note.startswith("simulator: block (0,0,0), warp 0 was in ")
    assert "test_budgets.py:" in note
    assert note.endswith(" steps")
