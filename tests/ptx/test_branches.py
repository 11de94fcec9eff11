# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Branches between blocks: lanes that take different ways, and the checks of what they do."""

import numpy as np
import pytest
from tilefold.base.errors import Code, TilefoldError
from tilefold.runtime.engine import RunResult

import tilefold
from tests.ptx.texts import STORE_LANE, kernel


def run(body: str, threads: int = 32, elements: int = 32, grid: int = 1, **options: int) -> np.ndarray:
    """The i32 that a kernel leaves in A, which begins with zeros."""
    a = np.zeros(elements, np.int32)
    launched(body, a, threads, grid, **options)
    return a


def launched(body: str, a: np.ndarray, threads: int = 32, grid: int = 1, **options: int) -> RunResult:
    """A launch of a kernel on A; options of `launch`."""
    return tilefold.load_ptx(kernel(body))["k"](a).launch(grid=grid, block=threads, **options)  # pyright: ignore


def code_of(body: str, threads: int = 32) -> str:
    """The code of the fault of a kernel."""
    with pytest.raises(TilefoldError) as error:
        run(body, threads, 64)
    return str(error.value.code)


LOOP = f"""{STORE_LANE}
    mov.u32 %r2, 0;
    mov.u32 %r3, %r1;
HEAD:
    setp.eq.s32 %p1, %r3, 0;
    @%p1 bra DONE;
    add.s32 %r2, %r2, %r3;
    add.s32 %r3, %r3, -1;
    bra HEAD;
DONE:
    st.global.u32 [%d4], %r2;
    ret;
"""


def test_lanes_leave_a_loop_at_different_times() -> None:
    lanes = np.arange(96)
    assert (run(LOOP, 96, 96) == lanes * (lanes + 1) // 2).all()


def test_registers_of_lanes_that_went_on_do_not_change_those_that_wait() -> None:
    """The value of a lane that has left is that of its last iteration, also where all lanes had one value."""
    body = f"""{STORE_LANE}
        mov.u32 %r2, 0;
        shr.u32 %r5, %r1, 4;
    HEAD:
        add.s32 %r2, %r2, 1;
        mul.lo.s32 %r4, %r2, 10;
        setp.gt.u32 %p1, %r2, %r5;
        @!%p1 bra HEAD;
        st.global.u32 [%d4], %r4;
        ret;
    """
    assert (run(body) == 10 * (np.arange(32) // 16 + 1)).all()


def test_a_jump_into_the_middle_of_a_loop() -> None:
    """A graph that no structured control flow has: two ways into one loop."""
    body = f"""{STORE_LANE}
        and.b32 %r5, %r1, 1;
        setp.eq.u32 %p1, %r5, 0;
        mov.u32 %r2, 0;
        mov.u32 %r3, 0;
        @%p1 bra B;
    A:  add.s32 %r2, %r2, 100;
    B:  add.s32 %r2, %r2, 1;
        add.s32 %r3, %r3, 1;
        setp.lt.u32 %p2, %r3, 3;
        @%p2 bra A;
        st.global.u32 [%d4], %r2;
        ret;
    """
    assert (run(body) == np.where(np.arange(32) % 2 == 0, 203, 303)).all()


def test_a_lane_waits_for_another_of_its_warp() -> None:
    body = """
        ld.param.u64 %d1, [A];
        mov.u32 %r1, %tid.x;
        setp.eq.u32 %p1, %r1, 0;
        @%p1 bra SET;
    WAIT:
        atom.global.add.u32 %r2, [%d1], 0;
        setp.eq.u32 %p2, %r2, 0;
        @%p2 bra WAIT;
        setp.ne.u32 %p3, %r1, 5;
        @%p3 ret;
        st.global.u32 [%d1+4], %r2;
        ret;
    SET:
        atom.global.exch.b32 %r3, [%d1], 7;
        ret;
    """
    assert list(run(body, elements=2)) == [7, 7]


def test_a_loop_that_waits_for_nothing_ends_the_launch() -> None:
    body = """
        ld.param.u64 %d1, [A];
    WAIT:
        atom.global.add.u32 %r2, [%d1], 0;
        setp.eq.u32 %p2, %r2, 0;
        @%p2 bra WAIT;
        ret;
    """
    assert code_of(body) == Code.SIM_STUCK
    assert code_of("L: bra L;") == Code.SIM_STUCK


def test_guarded_instructions_keep_what_they_do_not_write() -> None:
    body = f"""{STORE_LANE}
        setp.lt.u32 %p1, %r1, 10;
        mov.u32 %r2, 1;
        @%p1 mov.u32 %r2, 2;
        @!%p1 add.u32 %r2, %r2, %r1;
        @%p1 st.global.u32 [%d4], %r2;
        @!%p1 st.global.u32 [%d4], %r2;
        ret;
    """
    assert (run(body) == np.where(np.arange(32) < 10, 2, np.arange(32) + 1)).all()


def test_lanes_meet_at_a_barrier_whatever_their_way() -> None:
    """The block behind the barrier comes first in the text; no lane may execute the barrier without the others."""
    body = f"""{STORE_LANE}
        .shared .align 4 .b8 s[256];
        mov.u32 %r2, s;
        shl.b32 %r3, %r1, 2;
        add.u32 %r4, %r2, %r3;
        and.b32 %r5, %r1, 1;
        setp.eq.u32 %p1, %r5, 1;
        mov.u32 %r6, 5;
        @%p1 bra ODD;
    MEET:
        st.shared.u32 [%r4], %r6;
        bar.sync 0;
        xor.b32 %r7, %r3, 4;
        add.u32 %r8, %r2, %r7;
        ld.shared.u32 %r9, [%r8];
        st.global.u32 [%d4], %r9;
        ret;
    ODD:
        mov.u32 %r6, 9;
        bra MEET;
    """
    assert (run(body, 64, 64) == np.where(np.arange(64) % 2 == 0, 9, 5)).all()


def test_threads_that_have_returned_do_not_count_at_a_barrier() -> None:
    body = f"""{STORE_LANE}
        setp.ge.u32 %p1, %r1, 40;
        @%p1 ret;
        bar.sync 0;
        st.global.u32 [%d4], 1;
        ret;
    """
    assert (run(body, 64, 64) == (np.arange(64) < 40)).all()


def test_a_barrier_that_only_some_lanes_reach_is_a_fault() -> None:
    body = f"""{STORE_LANE}
        setp.lt.u32 %p1, %r1, 8;
        @%p1 bra HALF;
        bar.sync 0;
        bra END;
    HALF:
        bar.sync 0;
    END:
        st.global.u32 [%d4], 1;
        ret;
    """
    assert code_of(body) == Code.SIM_BARRIER


@pytest.mark.parametrize(
    ("distance", "end", "code"),
    [(1, "bar.warp.sync -1;", "E3208"), (8, "", "E3208"), (1, "", "")],
)
def test_a_shuffle_takes_the_lanes_of_its_mask_that_have_not_returned(distance: int, end: str, code: str) -> None:
    body = f"""{STORE_LANE}
        setp.lt.u32 %p1, %r1, 8;
        @%p1 bra END;
        shfl.sync.bfly.b32 %r2, %r1, {distance}, 31, -1;
        st.global.u32 [%d4], %r2;
    END:
        {end}
        ret;
    """
    if code:
        assert code_of(body) == code
    else:
        assert run(body, 32, 64)[8:32].tolist() == [lane ^ 1 for lane in range(8, 32)]


def test_a_race_is_found_across_branches() -> None:
    body = """
        .shared .align 4 .b8 s[256];
        mov.u32 %r1, %tid.x;
        mov.u32 %r2, s;
        setp.ne.u32 %p1, %r1, 0;
        @%p1 bra READ;
        st.shared.u32 [%r2], 1;
        ret;
    READ:
        setp.ne.u32 %p2, %r1, 33;
        @%p2 ret;
        ld.shared.u32 %r3, [%r2];
        ld.param.u64 %d1, [A];
        st.global.u32 [%d1], %r3;
        ret;
    """
    assert code_of(body, 64) == Code.SIM_RACE


def test_a_register_that_nothing_has_written_must_not_be_used() -> None:
    body = f"""{STORE_LANE}
        setp.lt.u32 %p1, %r1, 8;
        @%p1 bra SKIP;
        mov.u32 %r2, 1;
    SKIP:
        %s
        ret;
    """
    assert code_of(body.replace("%s", "st.global.u32 [%d4], %r2;")) == Code.SIM_UNINITIALISED
    assert not run(body.replace("%s", "and.b32 %r3, %r2, 0; st.global.u32 [%d4], %r3;")).any()


def test_an_address_keeps_its_allocation_through_a_loop() -> None:
    """The pointer goes on from iteration to iteration, and leaves its array at the end, far from any other."""
    body = """
        .shared .align 4 .b8 first[64];
        .shared .align 4 .b8 second[64];
        mov.u32 %r1, first;
        mov.u32 %r4, second;
        mov.u32 %r2, 0;
    HEAD:
        st.shared.u32 [%r1], %r2;
        add.s32 %r1, %r1, 4;
        add.s32 %r2, %r2, 1;
        setp.lt.s32 %p1, %r2, COUNT;
        @%p1 bra HEAD;
        st.shared.u32 [%r4], 1;
        ret;
    """
    run(body.replace("COUNT", "16"), 1)
    assert code_of(body.replace("COUNT", "17"), 1) == Code.SIM_OUT_OF_BOUNDS


def test_several_blocks_and_warps_at_once_and_one_after_the_other_agree() -> None:
    a = run(LOOP.replace("%tid.x", "%tid.x"), 64, 64)
    assert (run(LOOP, 64, 64, seed=3) == a).all()


APART = f"""{STORE_LANE}
    .shared .align 4 .b8 s[256];
    mov.u32 %r2, s;
    shl.b32 %r3, %r1, 2;
    add.u32 %r4, %r2, %r3;
    and.b32 %r5, %r1, 3;
    setp.eq.u32 %p1, %r5, 1;
    xor.b32 %r7, %r3, 132;
    add.u32 %r8, %r2, %r7;
    mov.u32 %r6, 5;
    @%p1 bra ODD;
    st.shared.u32 [%r4], 5;
    {{first}};
    bra MEET;
ODD:
    st.shared.u32 [%r4], 9;
    {{second}};
MEET:
    ld.shared.u32 %r9, [%r8];
    st.global.u32 [%d4], %r9;
    ret;
"""
"""Lanes of two warps that pass a barrier on ways of their own, and then read the other's memory."""


@pytest.mark.parametrize(("first", "second"), [
    ("barrier.sync 0", "barrier.cta.sync 0"),
    ("barrier.sync 3, 64", "barrier.sync 3, 64"),
    ("barrier.red.popc.u32 %r6, 0, %p1", "barrier.red.popc.u32 %r6, 0, %p1"),
])  # fmt: skip
def test_lanes_of_a_warp_may_arrive_one_by_one_at_a_barrier_without_aligned(first: str, second: str) -> None:
    """PTX ISA, barrier: a thread waits for those of its warp that have not exited; `.aligned` wants all together."""
    lanes = np.arange(64)
    body = APART.format(first=first, second=second)
    assert (run(body, 64, 64) == np.where((lanes ^ 33) % 4 == 1, 9, 5)).all()


@pytest.mark.parametrize(("first", "second", "said"), [
    ("barrier.sync.aligned 0", "barrier.sync 0", "does not reach this barrier"),
    ("barrier.sync 0", "bar.sync 0", "does not reach this barrier"),
    ("barrier.sync 1", "barrier.sync 2", "a wait at barrier 2, and not at a wait at barrier 1"),
    ("barrier.sync 1, 64", "barrier.arrive 1, 64", "an arrival at barrier 1 of 64 threads, and not at a wait"),
    ("barrier.sync 1, 64", "mov.u32 %r6, 9", "error[E32"),
])  # fmt: skip
def test_lanes_that_arrive_one_by_one_wait_at_one_barrier(first: str, second: str, said: str) -> None:
    with pytest.raises(TilefoldError) as error:
        run(APART.format(first=first, second=second), 64, 64)
    assert said in str(error.value)


def test_guarded_barriers_of_lanes_apart_count_their_votes_together() -> None:
    body = f"""{STORE_LANE}
        setp.lt.u32 %p1, %r1, 40;
        mov.u32 %r5, 0;
        @%p1 barrier.red.popc.u32 %r5, 0, %p1;
        @!%p1 barrier.red.popc.u32 %r5, 0, %p1;
        st.global.u32 [%d4], %r5;
        ret;
    """
    assert (run(body, 64, 64) == 40).all()


def test_lanes_that_arrive_apart_let_another_warp_go_on() -> None:
    """A producer whose lanes arrive on two ways, and a consumer that waits."""
    body = f"""{STORE_LANE}
        .shared .align 4 .b8 s[128];
        mov.u32 %r2, s;
        and.b32 %r6, %r1, 31;
        shl.b32 %r3, %r6, 2;
        add.u32 %r4, %r2, %r3;
        setp.lt.u32 %p1, %r1, 32;
        @!%p1 bra CONSUMER;
        st.shared.u32 [%r4], %r1;
        setp.lt.u32 %p2, %r1, 7;
        @%p2 barrier.arrive 1, 64;
        @!%p2 barrier.arrive 1, 64;
        ret;
    CONSUMER:
        barrier.sync 1, 64;
        ld.shared.u32 %r7, [%r4];
        st.global.u32 [%d4], %r7;
        ret;
    """
    assert (run(body, 64, 64)[32:] == np.arange(32)).all()


SPINNING = f"""{STORE_LANE}
    .shared .align 8 .b64 bar;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra READY;
    mbarrier.init.shared.b64 [bar], 1;
READY:
    bar.sync 0;
    @%p1 bra OTHERS;
SPIN:
    mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;
    add.s32 %r5, %r5, 1;
    st.shared.u32 [more], %r5;
    @!%p2 bra SPIN;
    bra END;
OTHERS:
    MEET
    setp.ne.u32 %p3, %r1, 1;
    @%p3 bra END;
    mbarrier.arrive.shared.b64 %d9, [bar];
END:
    ret;
"""


@pytest.mark.parametrize("meet", [
    "bar.warp.sync -2;", "bar.warp.sync 0xfffffffe;", "bar.warp.sync %r6;", "shfl.sync.idx.b32 %r7, %r1, 3, 31, -2;",
    "vote.sync.any.pred %p4, %p1, %r6;",
])  # fmt: skip
def test_lanes_that_meet_need_not_wait_for_one_that_spins(meet: str) -> None:
    """All lanes of the mask are there; the one that tests an mbarrier waits for them."""
    body = SPINNING.replace("MEET", meet).replace("{STORE_LANE}", STORE_LANE)
    head = ".shared .align 4 .b32 more; mov.u32 %r5, 0; mov.u32 %r6, -2;"
    run(f"{head}{body}", 32, 32)


def test_lanes_that_meet_wait_for_one_that_spins_if_the_mask_names_it() -> None:
    body = SPINNING.replace("MEET", "bar.warp.sync -1;")
    for counted in ("add.s32 %r5, %r5, 1;", "st.shared.u32 [more], %r5;"):
        body = body.replace(counted, "")
    assert code_of(body) in (Code.SIM_STUCK.id, Code.SIM_BARRIER.id)


PING_PONG = f"""{STORE_LANE}
    .shared .align 8 .b64 ping; .shared .align 8 .b64 pong;
    and.b32 %r2, %r1, 31; setp.ne.u32 %p1, %r1, 0; setp.ne.u32 %p2, %r2, 0; setp.ne.u32 %p3, %r2, 1;
    @!%p1 mbarrier.init.shared.b64 [ping], 1;
    @!%p1 mbarrier.init.shared.b64 [pong], 1;
    bar.sync 0; mov.u32 %r3, 0;
ROUND:
    and.b32 %r4, %r3, 1;
    @%p2 bra OTHERS;
FIRST:
    mbarrier.try_wait.parity.shared.b64 %p4, [ping], %r4;
    @!%p4 bra FIRST;
    mbarrier.arrive.shared.b64 %d9, [pong];
    bra NEXT;
OTHERS:
    @%p3 bra MEET;
    mbarrier.arrive.shared.b64 %d9, [ping];
SECOND:
    mbarrier.try_wait.parity.shared.b64 %p4, [pong], %r4;
    @!%p4 bra SECOND;
MEET:
    bar.warp.sync -2;
NEXT:
    add.u32 %r3, %r3, 1; setp.lt.u32 %p5, %r3, 4;
    @%p5 bra ROUND;
    st.global.u32 [%d4], %r3;
    ret;
"""


def test_two_lanes_alternate_while_the_others_of_their_warp_meet() -> None:
    assert (run(PING_PONG, 32, 32) == 4).all()


@pytest.mark.parametrize(
    ("behind", "code"),
    [("", None), ("st.global.u32 [%d4], %r1;", "E3207")],
    ids=["only a return", "a store"],
)
def test_lanes_that_leave_out_a_barrier(behind: str, code: str | None) -> None:
    """They may have returned before the others come to the barrier, unless something follows that all execute."""
    body = f"""{STORE_LANE} and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; @%p1 bra BEHIND; bar.sync 0;
        st.global.u32 [%d4], %r2; BEHIND: {behind} ret;"""
    if code is None:
        assert run(body, 64, 64).sum() == 32
    else:
        assert code_of(body, 64) == code


@pytest.mark.parametrize(("threads", "others"), [(64, 32), (16, 8)], ids=["a warp returns", "lanes return"])
def test_a_barrier_more_than_those_that_have_returned_is_a_remark(threads: int, others: int) -> None:
    body = f"""{STORE_LANE} bar.sync 0; st.global.u32 [%d4], %r1; setp.lt.u32 %p1, %r1, {others}; @%p1 ret;
        bar.sync 0; ret;"""
    call = tilefold.load_ptx(kernel(body))["k"](np.zeros(threads, np.int32))
    report = call.check(1, threads)
    assert report.verdict == "clean"
    text = f"waits for only some threads: {others} others of the block have met them at a barrier before, and returned"
    assert [remark.message for remark in report.remarks] == [text]
    body = body.replace("bar.sync 0; st.global.u32 [%d4], %r1;", "st.global.u32 [%d4], %r1;")
    assert not tilefold.load_ptx(kernel(body))["k"](np.zeros(threads, np.int32)).check(1, threads).remarks


def test_warps_that_reduce_meet_only_warps_that_reduce() -> None:
    body = f"""{STORE_LANE} setp.lt.u32 %p1, %r1, 32; @%p1 bra OTHER; bar.red.popc.u32 %r2, 0, %p1;
        st.global.u32 [%d4], %r2; ret; OTHER: bar.sync 0; ret;"""
    assert code_of(body, 64) == "E3207"
    alike = body.replace("bar.sync 0;", "bar.red.popc.u32 %r2, 0, %p1;")
    assert tilefold.load_ptx(kernel(alike))["k"](np.zeros(64, np.int32)).check(1, 64).verdict == "clean"


@pytest.mark.parametrize("where", ["32", "7"])
def test_different_reductions_at_a_barrier_leave_the_verdict_incomplete(where: str) -> None:
    """Of different warps, and of lanes of one warp."""
    body = f"""{STORE_LANE} setp.lt.u32 %p1, %r1, {where}; @%p1 bra OTHER; barrier.red.popc.u32 %r2, 0, %p1;
        st.global.u32 [%d4], %r2; ret; OTHER: barrier.red.or.pred %p2, 0, %p1; selp.u32 %r2, 1, 0, %p2;
        st.global.u32 [%d4], %r2; ret;"""
    report = tilefold.load_ptx(kernel(body))["k"](np.zeros(64, np.int32)).check(1, 64)
    assert report.verdict == "incomplete"
    assert "barrier 0 by or and popc" in report.gaps[0].message
    assert report.gaps[0].place is not None
