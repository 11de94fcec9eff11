# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks on several processes against those of one: the same results, counters and faults, and no process is left."""

import os
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.runtime import settings
from tilefold.runtime.options import SimOptions
from tilefold.runtime.sim import processes
from tilefold.runtime.sim.faults import SimulationError
from tilefold.runtime.sim.launch import OutOfStepError
from tilefold.runtime.sim.memory.journal import Journal
from tilefold.runtime.sim.processes import Clusters, can_share, share_out
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.sim.harness import entry, launch

BLOCKS = 256
"""Of one warp each: four clusters of blocks in step."""


@pytest.fixture(autouse=True)
def shares(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of processes that were asked for; copies are allowed beside the idle threads of a test runner."""
    asked: list[int] = []

    def counted(clusters: Clusters, count: int, *rest: Any) -> None:
        asked.append(count)
        share_out(clusters, count, *rest)

    monkeypatch.setattr(processes, "can_share", lambda: True)
    monkeypatch.setattr(processes, "share_out", counted)
    return asked


def kernel(index: str) -> str:
    """Each thread adds 1 to its element of A, and stores the sum in B at %to, which `index` computes."""
    return entry(
        f"""
      %t = gpu.thread_id x
      %b = gpu.block_id x
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c32 = arith.constant 32 : index
      %last = arith.constant {BLOCKS - 1} : index
      %one = arith.constant 1 : i32
      %first = arith.muli %b, %c32 : index
      %g = arith.addi %first, %t : index
      %from = arith.muli %g, %c4 : index
      %p = ptx.ptr_add %A, %from : !ptx.ptr<global>, index -> !ptx.ptr<global>
      %v = ptx.ld %p align 4 : !ptx.ptr<global> -> i32
      %sum = arith.addi %v, %one : i32
      {index}
      %o = arith.muli %to, %c4 : index
      %q = ptx.ptr_add %B, %o : !ptx.ptr<global>, index -> !ptx.ptr<global>
      ptx.st %sum, %q align 4 : i32, !ptx.ptr<global>""",
        "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16",
    )


APART = "ptx.bar.sync 1 threads 32"
"""A barrier of some warps, which do not run in step then."""
OWN = "%to = arith.addi %g, %c1 : index\n%one.more = arith.subi %to, %c1 : index"
RACES = {
    "two blocks write the same": "%half = arith.remui %g, %c32 : index\n%to = arith.addi %half, %c1 : index",
    "beyond the end": "%far = arith.muli %b, %c32 : index\n%to = arith.addi %g, %far : index",
}


def run(count: int, index: str, **options: Any) -> tuple[Any, Any, str]:
    a, b = np.arange(32 * BLOCKS, dtype=np.int32), np.zeros(32 * BLOCKS + 1, np.int32)
    engine = SimEngine(SimOptions(processes=count, **options), sink=lambda _: None)
    ran = launch(kernel(index), (BLOCKS, 1, 1), engine=engine, A=a, B=b)
    return ran.counters, b.tolist(), ran.output


def children() -> set[str]:
    """The processes that this one has started, those of other tests among them."""
    return {pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


@pytest.fixture(autouse=True)
def no_child_is_left() -> Generator[None, None, None]:
    """A test leaves no process, not even one that has ended and is not waited for."""
    before = children()
    yield
    assert children() <= before


@pytest.mark.parametrize("order", ["", APART])
def test_results_and_counters_are_those_of_one_process(order: str, shares: list[int]) -> None:
    alone, shared = run(1, order + "\n" + OWN), run(3, order + "\n" + OWN)
    assert shares == [3]
    assert shared == alone
    assert alone[1] == [0, *range(1, 32 * BLOCKS + 1)]


@pytest.mark.parametrize("order", ["", APART])
@pytest.mark.parametrize("name", RACES)
def test_faults_are_those_of_one_process(name: str, order: str, shares: list[int]) -> None:
    messages: list[str] = []
    for count in (1, 4):
        with pytest.raises(SimulationError) as caught:
            run(count, order + "\n" + RACES[name])
        messages.append(str(caught.value))
    assert 4 in shares
    assert messages[0] == messages[1]


def test_text_of_a_block_of_another_process_is_not_lost(shares: list[int]) -> None:
    late = '%is.last = arith.cmpi eq, %b, %last : index\nscf.if %is.last {\nptx.printf "%d "(%v) : i32\n}'
    body = f"{APART}\n{OWN}\n{late}"
    alone, shared = run(1, body), run(3, body)
    assert shares == [3]
    assert shared == alone
    assert alone[2].split() == [str(32 * (BLOCKS - 1) + lane) for lane in range(32)]


def test_remarks_are_those_of_one_process(shares: list[int]) -> None:
    """Each block's threads write one element of B, 0 of A and 1."""
    one = f"{APART}\n%to = arith.addi %b, %c1 : index"
    text = kernel(one).replace("ptx.st %sum", "ptx.st %one")
    found: list[dict[Any, Any]] = []
    for count in (1, 3):
        a, b, journal = np.zeros(32 * BLOCKS, np.int32), np.zeros(BLOCKS + 1, np.int32), Journal()
        launch(text, (BLOCKS, 1, 1), engine=SimEngine(SimOptions(processes=count), journal=journal), A=a, B=b)
        found.append(journal.remarks)
    assert shares == [3]
    assert found[0] == found[1]
    assert found[0]


@pytest.mark.parametrize("options", [{"seed": 1}, {"resident": 2}, {"races": False}])
def test_launches_that_one_process_runs(options: dict[str, Any], shares: list[int]) -> None:
    run(3, f"{APART}\n{OWN}", **options)
    assert not shares


def test_blocks_that_may_wait_for_each_other_are_not_shared_out(shares: list[int]) -> None:
    run(3, f'ptx.red "add" %A, %one : !ptx.ptr<global>, i32\n{OWN}'.replace("%A", "%B"))
    assert not shares


def test_what_one_process_reads_and_another_writes(shares: list[int]) -> None:
    """The blocks write A, where the last ones read: one process finds the race, so the others must."""
    text = kernel(OWN).replace("ptx.ptr_add %B", "ptx.ptr_add %A")
    messages: list[str] = []
    for count in (1, 4):
        a, b = np.arange(32 * BLOCKS + 1, dtype=np.int32), np.zeros(1, np.int32)
        with pytest.raises(SimulationError) as caught:
            launch(text, (BLOCKS, 1, 1), engine=SimEngine(SimOptions(processes=count)), A=a, B=b)
        messages.append(str(caught.value))
        assert caught.value.code == "E3205"
    assert messages[0] == messages[1]


class NoLedger:
    """A ledger of nothing."""

    launch = SimpleNamespace(progress=None)

    def begin(self) -> None:
        """Nothing begins."""

    def share(self) -> None:
        """Nothing was done."""


def _children() -> set[str]:
    """The processes that this one has started and not waited for, by /proc; other tests leave some, such as servers of
    pools.
    """
    found: set[str] = set()
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):  # it has ended
            if f"\nPPid:\t{os.getpid()}\n" in status.read_text():
                found.add(status.parent.name)
    return found


def test_an_interrupt_ends_the_other_processes() -> None:
    parent = os.getpid()

    def work(part: Clusters) -> None:
        if os.getpid() == parent:
            raise KeyboardInterrupt
        time.sleep(10**6)  # the test ends only where these processes are ended

    ledger, before = NoLedger(), _children()
    with pytest.raises(KeyboardInterrupt):
        share_out([(0, 1), (1, 1), (2, 1)], 3, work, ledger)  # pyright: ignore[reportArgumentType]
    assert _children() <= before


def test_a_process_that_fails() -> None:
    parent = os.getpid()

    def work(part: Clusters) -> None:
        if os.getpid() != parent:
            raise ValueError

    with pytest.raises(OutOfStepError):
        share_out([(0, 1), (1, 1)], 2, work, NoLedger())  # pyright: ignore[reportArgumentType]


def test_no_copies_beside_other_threads() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert not can_share()
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("text", ["0", "-1", "many", "2.5", "9999999999"])
def test_numbers_of_processes(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.SIM_PROCESSES, text)
    with pytest.raises(TilefoldError, match="is not a number from 1 to 1024"):
        print(SimEngine().processes)
    monkeypatch.setenv(settings.SIM_PROCESSES, "2")
    assert SimEngine().processes == 2
    assert SimEngine(SimOptions(processes=3)).processes == 3
    with pytest.raises(TilefoldError, match="processes is 0"):
        SimOptions(processes=0)
