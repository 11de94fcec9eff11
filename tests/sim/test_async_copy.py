# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cp.async: its bytes are undefined until the issuing thread has waited for their group."""

import re

import numpy as np
import pytest

from tests.sim.harness import entry, fault, launch, unwritten

ARGS = "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16"
SETUP = """
%t = gpu.thread_id x
%c1 = arith.constant 1 : index
%c16 = arith.constant 16 : index
%u = arith.xori %t, %c1 : index
%o = arith.muli %t, %c16 : index
%ou = arith.muli %u, %c16 : index
%s0 = ptx.smem.addr 0
%s1 = ptx.smem.addr 512
%a = ptx.ptr_add %A, %o : !ptx.ptr<global>, index -> !ptx.ptr<global>
%b = ptx.ptr_add %B, %o : !ptx.ptr<global>, index -> !ptx.ptr<global>
%mine = ptx.ptr_add %s0, %o : !ptx.ptr<shared>, index -> !ptx.ptr<shared>
%other = ptx.ptr_add %s0, %ou : !ptx.ptr<shared>, index -> !ptx.ptr<shared>
%second = ptx.ptr_add %s1, %o : !ptx.ptr<shared>, index -> !ptx.ptr<shared>
"""
COPY = 'ptx.cp.async "cg" 16 %mine, %a\n'
COPY2 = 'ptx.cp.async "cg" 16 %second, %a\n'
COMMIT = "ptx.cp.async.commit_group\n"
BARRIER = "ptx.bar.sync 0\n"


def wait(groups: int) -> str:
    return f"ptx.cp.async.wait_group {groups}\n"


def use(pointer: str = "mine") -> str:
    return f"""%v = ptx.ld %{pointer} align 16 : !ptx.ptr<shared> -> vector<4xf32>
ptx.st %v, %b align 16 : vector<4xf32>, !ptx.ptr<global>
"""


FINE = {
    "waited for its group": COPY + COMMIT + wait(0) + use(),
    "wait_all needs no commit": COPY + "ptx.cp.async.wait_all\n" + use(),
    "another thread's, after a barrier": COPY + COMMIT + wait(0) + BARRIER + use("other"),
    "the first of two groups": COPY + COMMIT + COPY2 + COMMIT + wait(1) + use(),
    "both of two groups": COPY + COMMIT + COPY2 + COMMIT + wait(0) + use("second"),
    "an empty group counts": COPY + COMMIT + COMMIT + wait(1) + use(),
    "written again after the wait": COPY + COMMIT + wait(0) + COPY + COMMIT + wait(0) + use(),
}
IN_FLIGHT = {
    "not waited for": COPY + COMMIT + use(),
    "not committed": COPY + wait(0) + use(),
    "a barrier is no wait": COPY + COMMIT + BARRIER + use(),
    "the second of two groups": COPY + COMMIT + COPY2 + COMMIT + wait(1) + use("second"),
    "committed with the next group": COPY + COPY2 + COMMIT + wait(1) + use(),
    "another thread's, not waited for": COPY + COMMIT + BARRIER + use("other"),
    "copied to twice": COPY + COPY + COMMIT + wait(0) + use(),
}


@pytest.mark.parametrize("name", FINE)
def test_defined_after_the_wait(name: str) -> None:
    a, b = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    launch(entry(SETUP + FINE[name], ARGS, shared=1024), A=a, B=unwritten(b))
    lane = np.arange(32) ^ (1 if "another" in name else 0)
    assert (b.reshape(32, 4) == a.reshape(32, 4)[lane]).all()


@pytest.mark.parametrize("name", IN_FLIGHT)
def test_in_flight(name: str) -> None:
    a, b = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    error = fault(entry(SETUP + IN_FLIGHT[name], ARGS, shared=1024), "E3206", A=a, B=unwritten(b))
    assert re.search(r"while ptx.cp.async at test.cute:\d+:1 of thread \(\d+,0,0\) is still writing it", error.message)
    assert "wait for its group" in error.hint


def test_storing_to_bytes_in_flight() -> None:
    body = COPY + "%v = arith.constant dense<0.0> : vector<4xf32>\n"
    body += "ptx.st %v, %mine align 16 : vector<4xf32>, !ptx.ptr<shared>\n"
    fault(
        entry(SETUP + body, ARGS, shared=1024),
        "E3206",
        A=np.zeros(128, np.float32),
        B=np.zeros(128, np.float32),
    )


def test_another_threads_without_a_barrier_races() -> None:
    text = entry(SETUP + COPY + COMMIT + wait(0) + use("other"), ARGS, shared=1024)
    fault(text, "E3205", A=np.zeros(128, np.float32), B=np.zeros(128, np.float32))


def test_overwriting_what_another_thread_reads_races() -> None:
    body = COPY + COMMIT + wait(0) + BARRIER + use("other") + COPY
    fault(
        entry(SETUP + body, ARGS, shared=1024),
        "E3205",
        A=np.zeros(128, np.float32),
        B=np.zeros(128, np.float32),
    )
    body = COPY + COMMIT + wait(0) + BARRIER + use("other") + BARRIER + COPY
    launch(entry(SETUP + body, ARGS, shared=1024), A=np.zeros(128, np.float32), B=np.zeros(128, np.float32))


def test_the_source_stays_until_the_copy_is_complete() -> None:
    value = "%z = arith.constant dense<-1.0> : vector<4xf32>\n"
    store = "ptx.st %z, %a align 16 : vector<4xf32>, !ptx.ptr<global>\n"
    early, late = (value + COPY + COMMIT + part + use() for part in (store + wait(0), wait(0) + store))
    a, b = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    error = fault(entry(SETUP + early, ARGS, shared=1024), "E3206", A=a, B=unwritten(b))
    assert "while ptx.cp.async at test.cute:18:1 of thread (0,0,0) is still reading it" in error.message
    launch(entry(SETUP + late, ARGS, shared=1024), A=a, B=unwritten(b))
    assert (b == np.arange(128)).all()
    assert (a == -1).all()


def test_lanes_have_their_own_groups() -> None:
    """Lanes below 8 commit one group more, so that waiting for all but one leaves the others' copies in
    flight.
    """
    body = COPY + COMMIT
    body += "%c8 = arith.constant 8 : index\n%low = arith.cmpi ult, %t, %c8 : index\n"
    body += "scf.if %low {\n" + COMMIT + "}\n" + wait(1)
    guarded = "scf.if %low {\n" + use() + "}\n"
    a, b = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    launch(entry(SETUP + body + guarded, ARGS, shared=1024), A=a, B=unwritten(b))
    assert (b[:32] == a[:32]).all()
    error = fault(entry(SETUP + body + use(), ARGS, shared=1024), "E3206", A=a, B=unwritten(np.zeros_like(b)))
    assert error.thread == (8, 0, 0)


@pytest.mark.parametrize("size", [4, 8, 16])
def test_sizes(size: int) -> None:
    body = SETUP.replace("constant 16", f"constant {size}") + COPY.replace('"cg" 16', f'"ca" {size}') + COMMIT + wait(0)
    type = {4: "i32", 8: "vector<2xi32>", 16: "vector<4xi32>"}[size]
    body += f"%v = ptx.ld %mine align {size} : !ptx.ptr<shared> -> {type}\n"
    body += f"ptx.st %v, %b align {size} : {type}, !ptx.ptr<global>\n"
    a, b = np.arange(128, dtype=np.int32), np.zeros(128, np.int32)
    result = launch(entry(body, ARGS, shared=1024), A=a, B=unwritten(b))
    assert (b[: 8 * size] == a[: 8 * size]).all()
    assert not b[8 * size :].any()
    assert result.counters.instructions["cp.async.ca.shared.global"].threads == 32
    assert {access.width for access in result.counters.accesses} == {size}


SIZED = (
    SETUP
    + """%n = arith.index_cast %t : index to i32
%eight = arith.constant 8 : i32
%size = arith.subi %n, %eight : i32
%zero = arith.constant 0 : i32
%low = arith.maxsi %size, %zero : i32
%last = arith.constant 24 : i32
%inside = arith.cmpi ult, %n, %last : i32
%few = arith.select %inside, %low, %zero : i32
"""
)
"""Lane t is to read t - 8 bytes, at least 0; none from lane 24 on."""


def test_bytes_beyond_the_size_are_zero_and_not_read() -> None:
    body = 'ptx.cp.async "cg" 16 %mine, %a size %few\n' + COMMIT + wait(0) + use()
    a, b = np.arange(1, 385, dtype=np.uint16).astype(np.uint8), np.full(512, 255, np.uint8)
    result = launch(entry(SIZED + body, ARGS, shared=1024), A=a, B=unwritten(b))  # A ends where lane 24 would begin
    rows = b.reshape(32, 16)
    for lane in range(32):
        count = max(lane - 8, 0) if lane < 24 else 0
        assert (rows[lane, :count] == a[16 * lane : 16 * lane + count]).all()
        assert not rows[lane, count:].any()
    assert result.counters.instructions["cp.async.cg.shared.global"].warps == 1


def test_a_size_beyond_the_bytes() -> None:
    body = 'ptx.cp.async "cg" 16 %mine, %a size %n\n' + COMMIT + wait(0) + use()
    given = {name: np.zeros(512, np.uint8) for name in "AB"}
    error = fault(entry(SIZED + body, ARGS, shared=1024), "E3209", **given)
    assert "cp.async of 16 bytes has a source size of 17" in error.message
    assert error.thread == (17, 0, 0)
