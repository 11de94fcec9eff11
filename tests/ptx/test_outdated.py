# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Outdated values of atomic loads: the litmus tests of PTX's memory model, by which `check` tries them."""

import numpy as np
import pytest
from tilefold.base.errors import Code

import tilefold
from tests.ptx.texts import STORE_LANE, kernel
from tilefold.driver.faults import Report
from tilefold.driver.gaps import GapKind

LEADS = """shr.u32 %r2, %r1, 5; and.b32 %r3, %r1, 31; setp.ne.u32 %p9, %r3, 0; @%p9 ret;
    setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r2, 1; setp.eq.u32 %p3, %r2, 2;"""
"""One thread of each warp, which %r2 numbers. x is the first word of A, y the second, results follow."""
X, Y = "[%d2]", "[%d2+4]"
ST, LD = "st.relaxed.gpu.global.u32", "ld.relaxed.gpu.global.u32"


def check(body: str, warps: int) -> Report:
    A = np.zeros(16, np.int32)
    return tilefold.load_ptx(kernel(f"{STORE_LANE}{LEADS}{body}"))["k"](A).check(1, 32 * warps)


def depends(report: Report) -> bool:
    """Whether the verdict is that the results depend on outdated values."""
    assert not report.faults
    return any(gap.kind is GapKind.ASSUMPTION and "newest value" in gap.message for gap in report.gaps)


BUFFERING = f"""@%p1 bra FIRST; {ST} {Y}, 1; FENCE {LD} %r4, {X}; st.global.u32 [%d2+8], %r4; ret;
    FIRST: {ST} {X}, 1; FENCE {LD} %r5, {Y}; st.global.u32 [%d2+12], %r5; ret;"""
MESSAGE = f"""@%p1 bra FIRST; WAIT: {LD} %r4, {Y}; setp.eq.u32 %p4, %r4, 0; @%p4 bra WAIT; FENCE
    {LD} %r5, {X}; st.global.u32 [%d2+8], %r5; ret; FIRST: {ST} {X}, 42; FENCE {ST} {Y}, 1; ret;"""
SAME = f"""@%p1 bra FIRST; {LD} %r4, {X}; {LD} %r5, {X}; setp.ge.u32 %p4, %r5, %r4;
    @%p4 st.global.u32 [%d2+8], 1; ret; FIRST: {ST} {X}, 1; {ST} {X}, 2; ret;"""


@pytest.mark.parametrize(("body", "fence", "expected"), [
    (BUFFERING, "", True), (BUFFERING, "fence.acq_rel.gpu;", True), (BUFFERING, "fence.sc.gpu;", False),
    (MESSAGE, "", True), (MESSAGE, "fence.acq_rel.gpu;", False), (SAME, "", False),
], ids=["buffering", "buffering, acq_rel", "buffering, sc", "message", "message, acq_rel", "coherence"])  # fmt: skip
def test_results_that_depend_on_outdated_values(body: str, fence: str, expected: bool) -> None:
    """Store buffering, message passing, and coherence of reads of one place."""
    assert depends(check(body.replace("FENCE", fence), 2)) == expected


READERS = f"""@%p1 bra FIRST; @%p2 bra SECOND; @%p3 bra THIRD; {LD} %r4, {X}; FENCE {LD} %r5, {Y}; bra TELL;
    THIRD: {LD} %r4, {Y}; FENCE {LD} %r5, {X}; TELL: sub.u32 %r6, %r4, %r5; mul.wide.u32 %d8, %r2, 4;
    add.u64 %d8, %d2, %d8; st.global.u32 [%d8+8], %r6; bra MEET;
    FIRST: {ST} {X}, 1; bra MEET; SECOND: {ST} {Y}, 1; MEET: bar.sync 0; @!%p1 ret;
    ld.global.v2.u32 {{%r7, %r8}}, [%d2+16]; add.u32 %r7, %r7, %r8; setp.ne.u32 %p5, %r7, 2; @%p5 ret; trap;"""


@pytest.mark.parametrize(("fence", "expected"), [("", True), ("fence.acq_rel.gpu;", True), ("fence.sc.gpu;", False)])
def test_readers_that_see_two_writes_in_another_order(fence: str, expected: bool) -> None:
    """Independent reads of independent writes: the kernel ends with a trap where each reader lacks another write."""
    faults = check(READERS.replace("FENCE", fence), 4).faults
    assert bool(faults) == expected
    assert all("finds an outdated value" in fault.note for fault in faults)


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


def test_outdated_values_let_a_swap_try_again() -> None:
    body = f"""{LD} %r4, {X}; AGAIN: add.u32 %r5, %r4, 1; atom.global.cas.b32 %r6, {X}, %r4, %r5;
        setp.ne.u32 %p4, %r6, %r4; mov.u32 %r4, %r6; @%p4 bra AGAIN; ret;"""
    assert not depends(check(body, 4))
