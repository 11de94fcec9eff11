# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mbarriers: phases and their parity, arrivals of threads and copies, what they order, and who waits forever."""

from pathlib import Path

import numpy as np
import pytest
from tilefold.runtime.sim.launch import Completion

from tests.sim.harness import SimEngine, entry, fault, launch, seeded, unwritten
from tilefold.commands.cli import main

POINTERS = "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16"
SETUP = """
%t = gpu.thread_id x
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c4 = arith.constant 4 : index
%c16 = arith.constant 16 : index
%c32 = arith.constant 32 : index
%c63 = arith.constant 63 : index
%even = arith.constant 0 : i32
%odd = arith.constant 1 : i32
%n = arith.constant 64 : i32
%bar = ptx.smem.addr 2048
%s = ptx.smem.addr 0
%leads = arith.cmpi eq, %t, %c0 : index
%first = arith.cmpi ult, %t, %c32 : index
%o = arith.muli %t, %c16 : index
%u = arith.subi %c63, %t : index
%ou = arith.muli %u, %c16 : index
%mine = ptx.ptr_add %s, %o : !ptx.ptr<shared>, index -> !ptx.ptr<shared>
%other = ptx.ptr_add %s, %ou : !ptx.ptr<shared>, index -> !ptx.ptr<shared>
%a = ptx.ptr_add %A, %o : !ptx.ptr<global>, index -> !ptx.ptr<global>
%b = ptx.ptr_add %B, %o : !ptx.ptr<global>, index -> !ptx.ptr<global>
"""
"""Threads t of two warps; %other is what thread 63 - t, of the other warp, has as %mine."""
INIT = "scf.if %leads {\nptx.mbarrier.init %bar, %n\n}\nptx.bar.sync 0\n"
COPY = 'ptx.cp.async "cg" 16 %mine, %a\n'
COPIES_ARRIVE = "ptx.cp.async.mbarrier.arrive noinc %bar\n"
ARRIVE = "ptx.mbarrier.arrive %bar\n"
WAIT = "ptx.mbarrier.wait %bar, %even\n"
WAIT_ODD = "ptx.mbarrier.wait %bar, %odd\n"
STORE = "%x = ptx.ld %a align 4 : !ptx.ptr<global> -> f32\nptx.st %x, %mine align 4 : f32, !ptx.ptr<shared>\n"


def use(pointer: str = "other") -> str:
    return f"%v = ptx.ld %{pointer} align 4 : !ptx.ptr<shared> -> f32\nptx.st %v, %b align 4 : f32, !ptx.ptr<global>\n"


def text_of(body: str) -> str:
    return entry(SETUP + body, POINTERS, "64", shared=4096)


def run(body: str, seed: int | None = None, completion: Completion = Completion.LATE) -> np.ndarray:
    """What the threads find: the number of the thread that wrote it."""
    a, b = np.repeat(np.arange(64, dtype=np.float32), 4), np.zeros(256, np.float32)
    engine = SimEngine(seeded(seed), completion=completion)
    launch(text_of(body), block=(64, 1, 1), engine=engine, A=a, B=unwritten(b))
    return b[::4]


def refused(body: str, code: str, seed: int | None = None) -> str:
    args = {"A": np.zeros(256, np.float32), "B": np.zeros(256, np.float32)}
    return str(fault(text_of(body), code, block=(64, 1, 1), engine=SimEngine(seeded(seed)), **args))


TESTED = """
%false = arith.constant false
scf.while () : () -> () {
  %done = ptx.mbarrier.TEST
  %no = arith.cmpi eq, %done, %false : i1
  scf.condition(%no)
} do {
  scf.yield
}
"""


@pytest.mark.parametrize("seed", [None, *range(3)])
@pytest.mark.parametrize("wait", [WAIT, *(
    TESTED.replace("TEST", f"{test} %bar, %even") for test in ("test_wait", "try_wait")
)], ids=["wait", "test_wait", "try_wait"])  # fmt: skip
def test_what_happened_before_arrivals_is_seen_after_a_wait(wait: str, seed: int | None) -> None:
    assert (run(INIT + STORE + ARRIVE + wait + use(), seed) == 63 - np.arange(64)).all()


STATE = """%state = ptx.mbarrier.arrive.state %bar
%false = arith.constant false
scf.while () : () -> () {
  %done = ptx.mbarrier.try_wait.state %bar, %state
  %no = arith.cmpi eq, %done, %false : i1
  scf.condition(%no)
} do {
  scf.yield
}
"""


@pytest.mark.parametrize("seed", [None, *range(3)])
def test_the_state_of_an_arrival_names_its_phase(seed: int | None) -> None:
    assert (run(INIT + STORE + STATE + use(), seed) == 63 - np.arange(64)).all()
    assert (run(INIT + ARRIVE + WAIT + STORE + STATE + use(), seed) == 63 - np.arange(64)).all()


@pytest.mark.parametrize("completion", Completion)
@pytest.mark.parametrize("seed", [None, *range(3)])
def test_copies_arrive_when_they_are_complete(seed: int | None, completion: Completion) -> None:
    assert (run(INIT + COPY + COPIES_ARRIVE + WAIT + use(), seed, completion) == 63 - np.arange(64)).all()
    tested = TESTED.replace("TEST", "try_wait %bar, %even")
    assert (run(INIT + COPY + COPIES_ARRIVE + tested + use(), seed, completion) == 63 - np.arange(64)).all()


@pytest.mark.parametrize(("completion", "possible"), [
    (Completion.LATE, {1.0}), (Completion.EARLY, {1.0}), (Completion.RANDOM, {0.0, 1.0}),
])  # fmt: skip
def test_one_look_may_come_before_copies_are_complete(completion: Completion, possible: set[float]) -> None:
    """Each warp looks once, at a phase for which its own copies suffice."""
    body = INIT.replace("%n", "%half") + "scf.if %first {\n" + COPY + COPIES_ARRIVE
    body += """%done = ptx.mbarrier.test_wait %bar, %even
        %seen = arith.uitofp %done : i1 to f32
        ptx.st %seen, %b align 4 : f32, !ptx.ptr<global>
        }"""
    half = "%half = arith.constant 32 : i32\n"
    assert {float(run(half + body, seed, completion)[0]) for seed in range(12)} == possible


@pytest.mark.parametrize(("completion", "code"), [(Completion.LATE, "E3206"), (Completion.EARLY, "E3205")])
def test_no_time_of_completion_spares_the_wait(completion: Completion, code: str) -> None:
    args = {"A": np.zeros(256, np.float32), "B": np.zeros(256, np.float32)}
    body = text_of(INIT + COPY + COPIES_ARRIVE + use("mine"))
    fault(body, code, block=(64, 1, 1), engine=SimEngine(completion=completion), **args)


def test_copies_that_the_phase_needs_in_addition() -> None:
    body = INIT + COPY + "ptx.cp.async.mbarrier.arrive %bar\n" + ARRIVE + WAIT + use()
    assert (run(body) == 63 - np.arange(64)).all()


def test_copies_that_were_waited_for_by_group_too() -> None:
    body = COPY + COPIES_ARRIVE + "ptx.cp.async.commit_group\nptx.cp.async.wait_group 0\n"
    assert (run(INIT + body + use("mine")) == np.arange(64)).all()
    assert (run(INIT + body + WAIT + use()) == 63 - np.arange(64)).all()


PHASES = """
scf.for %i = %c0 to %c4 step %c1 {
  %i32 = arith.index_cast %i : index to i32
  %parity = arith.andi %i32, %odd : i32
  ptx.cp.async "cg" 16 %mine, %a
  ptx.cp.async.mbarrier.arrive noinc %bar
  ptx.mbarrier.wait %bar, %parity
  %v = ptx.ld %other align 4 : !ptx.ptr<shared> -> f32
  ptx.st %v, %b align 4 : f32, !ptx.ptr<global>
  AGAIN
}
"""


def test_phases_follow_each_other() -> None:
    empty = "%empty = ptx.smem.addr 2056\nscf.if %leads {\nptx.mbarrier.init %empty, %n\n}\n"
    emptied = "ptx.mbarrier.arrive %empty\nptx.mbarrier.wait %empty, %parity"
    for seed in (None, 0, 1):
        body = empty + INIT + PHASES.replace("AGAIN", emptied)
        assert (run(body, seed) == 63 - np.arange(64)).all()
    assert "race: " in refused(INIT + PHASES.replace("AGAIN", ""), "E3205")


OUTRUN = """
scf.if %first {
  ptx.mbarrier.wait %bar, %even
  BETWEEN
  ptx.mbarrier.wait %bar, %odd
  THEN
} else {
  ptx.mbarrier.arrive %bar
  ptx.nanosleep %odd
  HELD
  ptx.mbarrier.arrive %bar
  MORE
}
"""
"""The first warp waits for two phases, for which the second one arrives."""


def outrun(between: str = "", held: str = "", then: str = "", more: str = "") -> str:
    names = {"BETWEEN": between, "HELD": held, "THEN": then, "MORE": more}
    body = "%half = arith.constant 32 : i32\n" + INIT.replace("%n", "%half") + OUTRUN
    for name, text in names.items():
        body = body.replace(name, text)
    return body


def test_a_phase_that_another_order_outruns() -> None:
    """The second warp sleeps, so that the first one sees both phases. Nothing says that it will."""
    said = "waits for phase 0 of the mbarrier, and nothing keeps phase 1 from being complete before it looks"
    assert said in refused(outrun(), "E3232")
    assert said in refused(outrun(then="ptx.mbarrier.arrive %bar"), "E3232"), "phase 2 needs the waiter"
    empty = "%empty = ptx.smem.addr 2056\nscf.if %leads {\nptx.mbarrier.init %empty, %half\n}\nptx.bar.sync 0"
    handed = outrun("ptx.mbarrier.arrive %empty", "ptx.mbarrier.wait %empty, %even")
    for seed in (None, 0, 1):
        run(handed.replace("ptx.bar.sync 0", empty, 1), seed)
        run(outrun("ptx.bar.sync 1", "ptx.bar.sync 1"), seed)


def test_a_phase_of_the_same_parity_ends_a_wait_as_well() -> None:
    """The second warp arrives for a third phase, whatever the first one does."""
    arrive = "ptx.mbarrier.arrive %bar\n"
    body = outrun(more=arrive).replace("ptx.mbarrier.wait %bar, %odd\n", "")
    run(body)


@pytest.mark.parametrize("seed", [None, *range(3)])
def test_one_lane_arrives_for_its_warp(seed: int | None) -> None:
    """Two warps have read bytes, one after the other; both arrivals are known to who writes them."""
    each = "%l = arith.remui %t, %c32 : index\n%one = arith.cmpi eq, %l, %c0 : index\n%two = arith.constant 2 : i32\n"
    body = each + INIT.replace("%n", "%two") + "%v = ptx.ld %s align 4 : !ptx.ptr<shared> -> f32\n"
    body = "scf.if %leads {\nptx.st %odd, %s align 4 : i32, !ptx.ptr<shared>\n}\nptx.bar.sync 0\n" + body
    arrive = "scf.if %one {\nptx.mbarrier.arrive %bar\n}\n"
    write = "scf.if %leads {\n" + WAIT + "ptx.st %even, %s align 4 : i32, !ptx.ptr<shared>\n}\n"
    run(body + "ptx.bar.warp.sync -1\n" + arrive + write, seed)
    assert "race: writes" in refused(body + arrive + write, "E3205", seed)


@pytest.mark.parametrize(("body", "code", "said"), [
    (INIT + COPY + COPIES_ARRIVE + use("mine"), "E3206", "while ptx.cp.async at test.cute:29:1 of thread (0,0,0)"),
    (
        INIT + COPY + COPIES_ARRIVE + "scf.if %leads {\n" + WAIT + "}\nptx.nanosleep %odd\n"
        "scf.if %first {\n} else {\n" + use("mine") + "}", "E3205",
        "which an asynchronous copy of thread (32,0,0) wrote",
    ),
    (INIT + STORE + WAIT_ODD + use(), "E3205", "race: reads"),
    (INIT + COPIES_ARRIVE + STORE + WAIT + use(), "E3205", "race: reads"),
    (INIT + ARRIVE + STORE + WAIT + use(), "E3205", "race: reads"),
    (INIT.replace("ptx.bar.sync 0\n", "") + ARRIVE, "E3205", "race: uses the mbarrier at shared "),
    (INIT + ARRIVE + "scf.if %leads {\nptx.mbarrier.inval %bar\n}", "E3205", "race: ends the mbarrier at"),
], ids=["not waited for", "by another", "the phase before", "copies only", "after", "init", "inval"])  # fmt: skip
def test_what_is_not_ordered(body: str, code: str, said: str) -> None:
    assert said in refused(body, code)


ENDED = "ptx.bar.sync 0\nscf.if %leads {\nptx.mbarrier.inval %bar\n}\nptx.bar.sync 0\n"


@pytest.mark.parametrize(("body", "said"), [
    (ARRIVE, "there is no mbarrier at 0x1000 (byte 2048 of the block's shared memory (4096 bytes))"),
    (INIT + ARRIVE + ENDED + WAIT, "there is no mbarrier at 0x1000"),
    (INIT + INIT, "writes 0x1000 (byte 2048 of the block's shared memory (4096 bytes)), which belongs to an mbarrier"),
    (INIT + "%v = ptx.ld %bar align 4 : !ptx.ptr<shared> -> f32\n", "reads 0x1000"),
    (INIT.replace("%n", "%even"), "the mbarrier would need 0 arrivals, where 1 to 1048575 are possible"),
    (INIT + "ptx.mbarrier.arrive %bar count %more\n", "phase 0 receives 65 arrivals, where 1 to 64 are possible"),
    (INIT.replace("%n", "%most") + "ptx.cp.async.mbarrier.arrive %bar\n", "the phase would need 1048607 arrivals"),
    (INIT + "ptx.mbarrier.wait %bar, %more\n", "the parity of a phase is 0 or 1, not 65"),
], ids=["none", "ended", "twice", "read", "of none", "too many", "too many copies", "parity"])  # fmt: skip
def test_use_that_is_not_defined(body: str, said: str) -> None:
    numbers = "%more = arith.constant 65 : i32\n%most = arith.constant 1048575 : i32\n"
    assert said in refused(numbers + body, "E3215")


def test_bytes_of_an_mbarrier_can_be_used_again_once_it_has_ended() -> None:
    again = INIT + STORE + ARRIVE + WAIT + use()
    assert (run(INIT + ARRIVE + WAIT + ENDED + again) == 63 - np.arange(64)).all()


BAR = "the mbarrier at 0x1000 (byte 2048 of the block's shared memory (4096 bytes))"


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize(("body", "said"), [
    (INIT + "scf.if %first {\n" + ARRIVE + WAIT + "}", f"warp 0 waits at {BAR} forever; {BAR}, phase 0: 32 of 64 "
     "arrivals, the last by thread (31,0,0), warp 0 waits; warp 1 has ended"),
    (INIT + ARRIVE + WAIT + WAIT_ODD, f"{BAR}, phase 1: 0 of 64 arrivals, warps 0, 1 wait"),
    (INIT + COPY + "scf.if %first {\n" + COPIES_ARRIVE + WAIT + "}", "32 of 64 arrivals, the last by a copy of thread"),
    (INIT + "scf.if %first {\n" + WAIT + "} else {\nptx.bar.sync 0\n}",
     f"; barrier 0, phase 1: 1 of 2 warps, warp 1 waits; {BAR}, phase 0: 0 of 64 arrivals, warp 0 waits"),
], ids=["half", "the next phase", "copies", "at different barriers"])  # fmt: skip
def test_waiting_for_ever(body: str, said: str, seed: int | None) -> None:
    message = refused(body, "E3207", seed)
    assert "ptx.mbarrier.wait at test.cute:" in message
    assert said in message


def test_the_hint_is_about_an_mbarrier_that_shows_what_is_missing() -> None:
    """Warp 0 waits where nobody has arrived, since warp 1 waits at one that lacks half its arrivals."""
    elsewhere = "%next = ptx.smem.addr 2056\nscf.if %leads {\nptx.mbarrier.init %next, %n\n}\n" + INIT
    there = "ptx.mbarrier.arrive %next\nptx.mbarrier.wait %next, %even\n"
    message = refused(elsewhere + "scf.if %first {\n" + WAIT + "} else {\n" + there + "}", "E3207", None)
    assert "hint: the mbarrier at 0x1008" in message
    assert "too few arrivals: 32 of 64 came in phase 0" in message
    assert "flipped" not in message


def test_an_access_that_is_not_aligned() -> None:
    assert "is not a multiple of the 8 bytes" in refused(
        INIT.replace("%bar", "%mis").replace("scf.if", "%mis = ptx.smem.addr 2052\nscf.if", 1), "E3203"
    )


BYTES = "%bytes = arith.constant 128 : i32\n%less = arith.constant 64 : i32\n%far = arith.constant 1048575 : i32\n"
EXPECT = "ptx.mbarrier.arrive.expect_tx %bar, %bytes\n"
MOVED = "ptx.mbarrier.complete_tx %bar, %bytes\n"


@pytest.mark.parametrize("body", [
    STORE + EXPECT + MOVED,
    STORE + MOVED + EXPECT,  # bytes may come before they are expected
    STORE + "ptx.mbarrier.expect_tx %bar, %less\nptx.mbarrier.expect_tx %bar, %less\n" + MOVED + ARRIVE,
], ids=["expected", "early", "in parts"])  # fmt: skip
def test_phase_is_complete_when_its_bytes_have_come(body: str) -> None:
    assert (run(BYTES + INIT + body + WAIT + use()) == 63 - np.arange(64)).all()


def test_arrivals_alone_do_not_complete_a_phase_that_expects_bytes() -> None:
    text = refused(BYTES + INIT + EXPECT + "scf.if %leads {\n" + MOVED + "}\n" + WAIT, "E3207")
    assert f"{BAR}, phase 0: 64 of 64 arrivals, lacks {63 * 128} bytes" in text


def test_bytes_that_nothing_expects_keep_a_phase_from_ending() -> None:
    text = refused(BYTES + INIT + MOVED + ARRIVE + WAIT, "E3207")
    assert f"phase 0: 64 of 64 arrivals, has {64 * 128} bytes more than it expects" in text


def test_transaction_counts_have_a_limit() -> None:
    text = refused(BYTES + INIT + "ptx.mbarrier.expect_tx %bar, %far\n", "E3215")
    assert "phase 0 expects 2097150 bytes, where -1048575 to 1048575 are possible" in text


@pytest.mark.parametrize("stage", ["cute", "instr"])
def test_messages_name_mbarriers_as_elements_of_named_memory(
    stage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "k.cute").write_text("""\
gpu.module @kernels {
  ptx.entry @k() threads(32) {
    %full = ptx.smem.alloc 16 align 8
    %n8 = arith.constant 8 : i32
    %n1 = arith.constant 1 : i32
    %n0 = arith.constant 0 : i32
    %second = ptx.ptr_add %full, %n8 : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %leads = arith.cmpi eq, %t, %c0 : index
    scf.if %leads {
      ptx.mbarrier.init %second, %n1
    }
    ptx.bar.sync 0
    ptx.mbarrier.wait %second, %n0
    ptx.ret
  }
}
run.launch @kernels::@k grid(1) {
}
""")
    assert main(["run", str(tmp_path / "k.cute"), "--device", "sim", "--stage", stage]) == 1
    assert "warp 0 waits at the mbarrier %full[1] forever" in capsys.readouterr().err


def test_an_arrival_before_the_bytes_of_the_phase_have_come() -> None:
    """A producer that does not wait for its stage fills it again at once."""
    one = "scf.if %leads {\nptx.mbarrier.init %bar, %odd\nptx.mbarrier.arrive.expect_tx %bar, %n\n"
    text = text_of(f"{one}ptx.mbarrier.arrive.expect_tx %bar, %n\n}}\n")
    a = np.zeros(256, np.float32)
    error = fault(text, "E3215", block=(64, 1, 1), A=a, B=a.copy())
    assert "phase 0 has all its arrivals and lacks 128 bytes" in str(error)
    assert "waits for the mbarrier at which the consumers release the stage" in str(error)
