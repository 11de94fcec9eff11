# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Barriers that every thread reaches, and such as some do not."""

import pytest

from tests.sim.harness import SimEngine, entry, fault, launch, seeded

HALF = """
%t = gpu.thread_id x
%limit = arith.constant {limit} : index
%c = arith.cmpi ult, %t, %limit : index
scf.if %c {{
  {then}
}} else {{
  {otherwise}
}}
"""

LOOP = """
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
scf.for %i = %c0 to %c1 step %c1 {{
  {}
}}
"""


def branch(limit: int, then: str, otherwise: str = "") -> str:
    return HALF.format(limit=limit, then=then, otherwise=otherwise)


AFTER = "%x = arith.constant 20 : i32\nptx.nanosleep %x"


@pytest.mark.parametrize(
    "body",
    [branch(7, "ptx.bar.sync 0") + AFTER, branch(7, "ptx.bar.sync 0", AFTER), LOOP.format(branch(7, "ptx.bar.sync 0"))],
)
def test_in_half_a_warp(body: str) -> None:
    """The other lanes have something left to do, behind the branch, on its other side or in the next round."""
    error = fault(entry(body, "", "64"), "E3207", block=(64, 1, 1))
    assert error.thread == (7, 0, 0)
    assert "which 7 of the warp's 32 lanes do" in error.message
    assert "ptx.bar.sync at test.cute:" in error.message


def test_lanes_that_have_returned_do_not_count() -> None:
    """Of a warp, as whole warps: the others have nothing left to do."""
    for threads in (7, 40):
        result = launch(entry(branch(threads, "ptx.bar.sync 0"), "", "64"), block=(64, 1, 1))
        assert result.counters.instructions["bar.sync"].threads == threads
    red = '%true = arith.constant true\n%n = ptx.bar.red "popc" %true, 0 : i32'
    launch(entry(branch(7, red), "", "64"), block=(64, 1, 1))


def test_in_one_of_two_warps() -> None:
    """A whole warp that has returned does not count, whether it returns first or last."""
    launch(entry(branch(32, "ptx.bar.sync 0"), "", "64"), block=(64, 1, 1))
    launch(entry(branch(32, "", "ptx.bar.sync 0"), "", "64"), block=(64, 1, 1))
    text = entry(branch(32, "ptx.bar.sync 0 threads 64"), "", "64")
    message = fault(text, "E3207", block=(64, 1, 1)).message
    assert "warp 0 waits at barrier 0 forever; barrier 0, phase 0: 32 of 64 threads, warp 0 waits; warp 1" in message


@pytest.mark.parametrize("returns", [False, True])
def test_nothing_orders_what_a_returned_warp_wrote(returns: bool) -> None:
    """The other warp reads it after its barrier, at which the first one has been only where it has not returned."""
    write = "ptx.st %zero, %s align 4 : i32, !ptx.ptr<shared>"
    read = "ptx.bar.sync 0\n%v = ptx.ld %s align 4 : !ptx.ptr<shared> -> i32"
    head = "%s = ptx.smem.alloc 128 align 16\n%zero = arith.constant 0 : i32"
    one = head + "\n%t0 = gpu.thread_id x\n%c0 = arith.constant 0 : index\n%is = arith.cmpi eq, %t0, %c0 : index"
    then = f"scf.if %is {{\n{write}\n}}" + ("" if returns else "\nptx.bar.sync 0")
    text = entry(one + branch(32, then, read), "", "64")
    if returns:
        fault(text, "E3205", block=(64, 1, 1))
    else:
        launch(text, block=(64, 1, 1))


def test_warps_at_different_barriers() -> None:
    text = entry(branch(32, "ptx.bar.sync 1", "ptx.bar.sync 2"), "", "64")
    message = fault(text, "E3207", block=(64, 1, 1)).message
    assert "barrier 1, phase 0: 1 of 2 warps, warp 0 waits; barrier 2, phase 0: 1 of 2 warps, warp 1 waits" in message


def test_two_places_of_one_barrier() -> None:
    """PTX identifies a barrier by its number, so warps may reach it on different ways."""
    launch(entry(branch(32, "ptx.bar.sync 1", "ptx.bar.sync 1"), "", "64"), block=(64, 1, 1))


@pytest.mark.parametrize("seed", [None, *range(4)])
def test_in_loops_and_branches_that_all_threads_take(seed: int | None) -> None:
    body = """
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c3 = arith.constant 3 : index
        %true = arith.constant true
        scf.for %i = %c0 to %c3 step %c1 {
          scf.if %true {
            ptx.bar.sync 0
          }
        }"""
    result = launch(entry(body, "", "96"), block=(96, 1, 1), engine=SimEngine(seeded(seed)))
    assert result.counters.instructions["bar.sync"].warps == 9
    assert result.counters.instructions["bar.sync"].threads == 288


def test_a_loop_that_warps_leave_at_different_times() -> None:
    """The second warp waits again when the first one has returned."""
    body = """
        %t = gpu.thread_id x
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c32 = arith.constant 32 : index
        %w = arith.divui %t, %c32 : index
        %n = arith.addi %w, %c1 : index
        scf.for %i = %c0 to %n step %c1 {
          ptx.bar.sync 0
        }"""
    launch(entry(body, "", "64"), block=(64, 1, 1))


def test_warp_barrier_names_exactly_the_active_lanes() -> None:
    launch(entry(branch(8, "ptx.bar.warp.sync 255", "ptx.bar.warp.sync 4294967040")))
    error = fault(entry(branch(8, "ptx.bar.warp.sync -1")), "E3208")
    assert error.thread == (8, 0, 0)
    assert "names this lane, which does not execute it" in error.message
    error = fault(entry(branch(8, "ptx.bar.warp.sync 127")), "E3208")
    assert error.thread == (7, 0, 0)


def test_the_schedule_depends_on_the_seed_alone() -> None:
    body = """
        %t = gpu.thread_id x
        %i = arith.index_cast %t : index to i32
        ptx.printf "%d "(%i) : i32
        ptx.bar.sync 0
        ptx.printf "%d "(%i) : i32"""
    text = entry(body, "", "256")

    def order(seed: int | None) -> str:
        return launch(text, block=(256, 1, 1), engine=SimEngine(seeded(seed), sink=lambda _: None)).output

    in_order = " ".join(map(str, [*range(256), *range(256)])) + " "
    assert order(None) == in_order
    assert order(1) == order(1)
    assert len({order(seed) for seed in range(5)}) > 1
    assert sorted(order(1).split()) == sorted(in_order.split())


NUMBERED = """
%t = ptx.sreg "tid.x"
%five = arith.constant 5 : i32
%n = arith.shrui %t, %five : i32
"""


def test_the_number_of_a_barrier_may_be_a_value() -> None:
    launch(entry(NUMBERED + "ptx.bar.sync 1 plus %n threads 32", "", "64"), block=(64, 1, 1))
    met = "ptx.bar.arrive 1 plus %n threads 64\n%m = arith.constant 0 : i32\nptx.bar.sync 1 plus %m threads 96"
    error = fault(entry(NUMBERED + met, "", "64"), "E3207", block=(64, 1, 1))
    assert "barrier 1" in error.message


@pytest.mark.parametrize(("number", "text"), [
    ("ptx.bar.sync 15 plus %n threads 32", "the barrier is 16"),
    ("ptx.bar.sync 0 plus %t threads 32", "the barrier is 1, and 0 in the warp's first lane"),
])  # fmt: skip
def test_a_number_that_no_barrier_has(number: str, text: str) -> None:
    assert text in fault(entry(NUMBERED + number, "", "64"), "E3207", block=(64, 1, 1)).message
