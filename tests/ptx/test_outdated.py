# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Outdated values of atomic loads: the litmus tests of PTX's memory model, by which `check` tries them."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import Code
from tilefold.runtime.sim.ordering.outdated import FORGOTTEN
from tilefold.runtime.sim.ordering.releases import Releases

import tilefold
from tests.ptx.litmus import Litmus, table
from tests.ptx.texts import STORE_LANE, kernel
from tilefold.driver.faults import Report

LEADS = """shr.u32 %r2, %r1, 5; and.b32 %r3, %r1, 31; setp.ne.u32 %p9, %r3, 0; @%p9 ret;
    setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r2, 1; setp.eq.u32 %p3, %r2, 2;"""
"""One thread of each warp, which %r2 numbers. x is the first word of A, y the second, results follow."""
X, Y = "[%d2]", "[%d2+4]"
ST, LD = "st.relaxed.gpu.global.u32", "ld.relaxed.gpu.global.u32"


def check(body: str, warps: int) -> Report:
    A = np.zeros(16, np.int32)
    return tilefold.load_ptx(kernel(f"{STORE_LANE}{LEADS}{body}"))["k"](A).check(1, 32 * warps)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("litmus", tuple(table()), ids=lambda litmus: litmus.name)
def test_litmus(litmus: Litmus) -> None:
    """The verdict is that of PTX's memory model."""
    assert litmus.verdict() == litmus.expected


ENTER = f"""@%p1 bra FIRST; {ST} {Y}, 1; FENCE {LD} %r4, {X}; bra ASK; FIRST: {ST} {X}, 1; FENCE {LD} %r4, {Y}; ASK:
    setp.ne.u32 %p4, %r4, 0; @%p4 ret; ld.global.u32 %r5, [%d2+8]; add.u32 %r5, %r5, 1; st.global.u32 [%d2+8], %r5;
    ret;"""


def test_two_threads_that_enter_because_of_outdated_values_race() -> None:
    report = check(ENTER.replace("FENCE", ""), 2)
    assert {fault.code for fault in report.faults} == {Code.SIM_RACE}
    assert all("finds an outdated value" in fault.note for fault in report.faults)
    assert "argument A (64 bytes)" in report.faults[0].note
    report = check(ENTER.replace("FENCE", "fence.sc.gpu;"), 2)
    assert not report.faults
    assert not report.gaps


SWAP = f"""{LD} %r4, {X}; AGAIN: add.u32 %r5, %r4, 1; atom.global.cas.b32 %r6, {X}, %r4, %r5;
    setp.ne.u32 %p4, %r6, %r4; mov.u32 %r4, %r6; @%p4 bra AGAIN; ret;"""


def test_outdated_values_let_a_swap_try_again() -> None:
    report = check(SWAP, 4)
    assert not report.faults
    assert not report.gaps


def test_swaps_that_find_outdated_values_do_not_make_places_keep_more_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A swap that fails behind an outdated version writes again what it has found: it counts as a load."""
    writes = 0
    write = Releases.write

    def count(self: Releases, *arguments: Any, **named: Any) -> None:
        nonlocal writes
        writes += 1
        write(self, *arguments, **named)

    monkeypatch.setattr(Releases, "write", count)
    monkeypatch.setattr("tilefold.runtime.sim.outdated_values._SEEDS", range(1))
    report = tilefold.load_ptx(kernel(STORE_LANE + SWAP))["k"](np.zeros(16, np.int32)).check(1, 64)
    assert report.verdict == "clean"
    assert writes < 2_500  # of 2,144 accesses


MANY = f"""@%p1 bra STORE; @!%p2 ret; {LD} %r5, {X}; st.global.u32 [%d2+8], %r5; ret;
    STORE: mov.u32 %r4, 0; AGAIN: add.u32 %r4, %r4, 1; {ST} {X}, %r4; setp.lt.u32 %p3, %r4, COUNT; @%p3 bra AGAIN;
    ret;"""


def test_a_load_that_may_find_a_forgotten_value_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilefold.runtime.sim.ordering.outdated._MOST", 12)
    assert check(MANY.replace("COUNT", "11"), 2).verdict == "clean"  # and the first value
    report = check(MANY.replace("COUNT", "12"), 2)
    assert report.verdict == "incomplete"
    assert [gap.message for gap in report.gaps] == [FORGOTTEN]
    assert report.gaps[0].place is not None
    reader = MANY.replace("COUNT", "40").replace(f"@!%p2 ret; {LD}", f"@!%p2 ret; bar.sync 1, 64; {LD}")
    assert check(reader.replace("@%p3 bra AGAIN;", "@%p3 bra AGAIN; bar.sync 1, 64;"), 2).verdict == "clean"


def test_a_swap_that_may_fail_by_a_forgotten_value_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilefold.runtime.sim.ordering.outdated._MOST", 12)
    body = MANY.replace("COUNT", "40").replace(ST + " " + X + ", %r4", f"red.global.add.u32 {X}, 1")
    swap = body.replace(f"{LD} %r5, {X}", f"atom.global.cas.b32 %r5, {X}, 50, 60")
    assert [gap.message for gap in check(swap, 2).gaps] == [FORGOTTEN]
    addition = body.replace(f"{LD} %r5, {X}", f"atom.global.add.u32 %r5, {X}, 1")
    assert not check(addition, 2).gaps


QUEUE = f"""{STORE_LANE}setp.ne.u32 %p1, %r1, 0; @%p1 ret; AGAIN: atom.global.add.u32 %r4, {X}, 1;
    setp.ge.u32 %p2, %r4, 4; @%p2 ret; ld.global.u32 %r5, [%d2+8]; add.u32 %r5, %r5, 1; st.global.u32 [%d2+8], %r5;
    bra AGAIN;"""


def test_blocks_that_share_work_race_though_the_first_could_do_all_of_it() -> None:
    """One after the other, the first block takes all tickets, so that no other block does any work."""
    fault, *_ = tilefold.load_ptx(kernel(QUEUE))["k"](np.zeros(16, np.int32)).check(4, 32).faults
    assert fault.code is Code.SIM_RACE
    assert fault.note == "it shows where several blocks run at the same time"
    counts = QUEUE.replace("ld.global.u32 %r5, [%d2+8]; add.u32 %r5, %r5, 1; st.global.u32 [%d2+8], %r5;",
                           "red.global.add.u32 [%d2+8], 1;")  # fmt: skip
    assert tilefold.load_ptx(kernel(counts))["k"](np.zeros(16, np.int32)).check(4, 32).verdict == "clean"


COUNTS = f"""{STORE_LANE}atom.global.add.u32 %r4, {X}, 1; {LD} %r5, {Y}; add.u32 %r4, %r4, %r5;
    red.global.add.u32 {Y}, %r4; ret;"""


def test_many_accesses_are_kept() -> None:
    """960 accesses, each of which may find an outdated value."""
    assert not tilefold.load_ptx(kernel(COUNTS))["k"](np.zeros(16, np.int32)).check(1, 320).gaps


def test_accesses_beyond_those_kept_are_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilefold.runtime.sim.ordering.communication._MOST", 100)
    kernel_of_all = tilefold.load_ptx(kernel(COUNTS))["k"](np.zeros(16, np.int32))
    assert [gap.message for gap in kernel_of_all.check(1, 64).gaps] == [
        "the check assumes that atomic accesses after the first 100 find the newest values"
    ]
    assert not kernel_of_all.check(1, 32).gaps
