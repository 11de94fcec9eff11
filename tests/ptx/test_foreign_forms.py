# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forms that other compilers and headers of CUDA write: addresses that meet, barriers of any count, printf, locks."""

import numpy as np
import pytest
from tilefold.base.errors import Code, TilefoldError

import tilefold
from tests.ptx.texts import HEAD, STORE_LANE, kernel


def run(body: str, *, variables: str = "", threads: int = 32, elements: int = 32, grid: int = 1) -> list[int]:
    A = np.zeros(elements, np.int32)
    text = kernel(f"{STORE_LANE}{body}").replace(HEAD, f"{HEAD}{variables}\n")
    tilefold.load_ptx(text)["k"](A).launch(grid, threads)
    return A.tolist()


TABLES = ".global .align 4 .b8 one[4] = {1, 0, 0, 0}; .global .align 4 .b8 two[4] = {2, 0, 0, 0};"
LOAD = "ld.global.u32 %r9, [%d8]; st.global.u32 [%d4], %r9;"


@pytest.mark.parametrize("choose", [
    "mov.u64 %d8, one; @%p1 bra END; mov.u64 %d8, two; END:",
    "@%p1 bra THEN; mov.u64 %d8, two; bra END; THEN: mov.u64 %d8, one; END:",
    "mov.u64 %d8, two; @%p1 mov.u64 %d8, one;",
    "mov.u64 %d8, 5; mov.u64 %d8, two; @!%p1 bra END; cvta.global.u64 %d9, %d8; mov.u64 %d8, one; END:",
])  # fmt: skip
def test_addresses_of_variables_meet(choose: str) -> None:
    assert run(f"setp.lt.u32 %p1, %r1, 3; {choose} {LOAD}", variables=TABLES) == [1] * 3 + [2] * 29


def test_barriers_whose_numbers_only_the_run_knows() -> None:
    """Two pairs of warps, each with a barrier of its own."""
    body = """.shared .align 4 .b8 s[512]; mov.u32 %r9, s; mad.lo.u32 %r3, %r1, 4, %r9; st.shared.u32 [%r3], %r1;
        shr.u32 %r4, %r1, 6; add.u32 %r4, %r4, 1; mov.u32 %r5, %ntid.x; shr.u32 %r5, %r5, 1;
        bar.sync %r4, %r5; xor.b32 %r6, %r1, 32; mad.lo.u32 %r6, %r6, 4, %r9; ld.shared.u32 %r7, [%r6];
        setp.lt.u32 %p1, %r1, 64; barrier.cta.red.popc.aligned.u32 %r8, %r4, %r5, %p1; add.u32 %r7, %r7, %r8;
        st.global.u32 [%d4], %r7;"""
    expected = [(t ^ 32) + (64 if t < 64 else 0) for t in range(128)]
    assert run(body, threads=128, elements=128) == expected
    with pytest.raises(TilefoldError) as caught:
        run(body.replace("shr.u32 %r5, %r5, 1;", "shr.u32 %r5, %r5, 3;"), threads=128, elements=128)
    assert caught.value.code is Code.SIM_BARRIER
    assert "16 threads meet at the barrier" in caught.value.message


def test_a_thread_leaves_the_phases_of_an_mbarrier() -> None:
    body = """.shared .align 8 .b8 s[8]; mov.u32 %r9, s; setp.ne.u32 %p1, %r1, 0;
        @!%p1 mbarrier.init.shared.b64 [%r9], 64; bar.sync 0; setp.lt.u32 %p2, %r1, 32;
        @%p2 mbarrier.arrive_drop.shared.b64 _, [%r9]; @!%p2 mbarrier.arrive.shared.b64 _, [%r9]; @%p2 ret;
        ONE: mbarrier.test_wait.parity.shared.b64 %p3, [%r9], 0; @!%p3 bra ONE;
        mbarrier.arrive.shared.b64 %d9, [%r9];
        TWO: mbarrier.test_wait.shared.b64 %p3, [%r9], %d9; @!%p3 bra TWO;
        st.global.u32 [%d4], 7;"""
    assert run(body, threads=64, elements=64) == [0] * 32 + [7] * 32


def test_a_thread_drops_as_many_arrivals_as_a_register_says() -> None:
    """Lane n of the first warp drops n + 1 arrivals of 32 + 528, and the next phase lacks them."""
    body = """.shared .align 8 .b8 s[8]; mov.u32 %r9, s; setp.ne.u32 %p1, %r1, 0; add.u32 %r8, %r1, 1;
        @!%p1 mbarrier.init.shared.b64 [%r9], 560; bar.sync 0; setp.lt.u32 %p2, %r1, 32;
        @%p2 mbarrier.arrive_drop.shared.b64 %d9, [%r9], %r8; @%p2 mbarrier.pending_count.b64 %r2, %d9;
        @%p2 st.global.u32 [%d4], %r2; @%p2 ret; mbarrier.arrive.shared.b64 _, [%r9];
        ONE: mbarrier.test_wait.parity.shared.b64 %p3, [%r9], 0; @!%p3 bra ONE;
        mbarrier.arrive.shared.b64 %d9, [%r9];
        TWO: mbarrier.test_wait.shared.b64 %p3, [%r9], %d9; @!%p3 bra TWO;
        st.global.u32 [%d4], 7;"""
    found = run(body, threads=64, elements=64)
    assert found[:32] == [560 - n * (n + 1) // 2 for n in range(32)]
    assert found[32:] == [7] * 32
    with pytest.raises(TilefoldError) as caught:
        run(body.replace("add.u32 %r8, %r1, 1", "add.u32 %r8, %r1, 2"), threads=64, elements=64)
    assert caught.value.code is Code.SIM_MBARRIER


def test_lanes_of_a_warp_take_a_lock_in_turn() -> None:
    body = """mov.u64 %d8, lock;
        AGAIN: atom.global.cas.b32 %r3, [%d8], 0, 1; setp.ne.s32 %p2, %r3, 0; @%p2 bra BEHIND;
        membar.gl; ld.volatile.global.u32 %r4, [%d2]; add.s32 %r5, %r4, 1; st.volatile.global.u32 [%d2], %r5;
        membar.gl; atom.global.exch.b32 %r6, [%d8], 0;
        BEHIND: setp.ne.s32 %p3, %r3, 0; @%p3 bra AGAIN;"""
    assert run(body, variables=".global .align 4 .u32 lock;", elements=1, grid=2) == [64]


PRINTED = """.local .align 8 .b8 buffer[40]; .param .b64 format; .param .b64 values; .param .b32 printed;
    setp.ne.u32 %p1, %r1, 3; @%p1 ret;
    st.local.u32 [buffer], %r1; mov.u64 %d8, word; cvta.global.u64 %d8, %d8; st.local.u64 [buffer+8], %d8;
    mov.f64 %g1, 0d3FF8000000000000; st.local.f64 [buffer+16], %g1; mov.u64 %d9, -7; st.local.u64 [buffer+24], %d9;
    mov.u64 %d10, form; cvta.global.u64 %d10, %d10; mov.u64 %d11, buffer; cvta.local.u64 %d11, %d11;
    st.param.b64 [format], %d10; st.param.b64 [values], %d11;
    call.uni (printed), vprintf, (format, values); ld.param.b32 %r5, [printed]; st.global.u32 [%d4], %r5;"""


def _bytes(name: str, text: str) -> str:
    content = text.encode() + b"\0"
    return f".global .align 1 .b8 {name}[{len(content)}] = {{{', '.join(map(str, content))}}};"


def test_printf_has_widths_and_strings(capsys: pytest.CaptureFixture[str]) -> None:
    variables = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);" + _bytes("word", "50%")
    variables += _bytes("form", "%4d|%-5s|%.2f|%ld%%\n")
    assert run(PRINTED, variables=variables)[3] == 4
    assert "   3|50%  |1.50|-7%" in capsys.readouterr().out
    with pytest.raises(TilefoldError, match="unknown conversion '%n"):
        run(PRINTED, variables=variables.replace(_bytes("form", "%4d|%-5s|%.2f|%ld%%\n"), _bytes("form", "%n")))


def test_words_in_another_order_and_special_registers() -> None:
    add = """mov.f32 %f1, 1.0; mov.f32 %f2, 2.0; atom.global.v2.f32.add {%f4, %f5}, [%d2], {%f1, %f2};
        fence.proxy.alias; ret;"""
    assert run(add, elements=2) == [0x42000000, 0x42800000]
    read = """mov.u64 %d5, %gridid; cvt.u32.u64 %r5, %d5; mov.u32 %r6, %envreg4; add.u32 %r5, %r5, %r6;
        mad.hi.sat.s32 %r5, 0x70000000, 0x7fffffff, 0x7fffffff; st.global.u32 [%d4], %r5;"""
    assert run(read) == [2**31 - 1] * 32


def test_a_copy_of_threads_that_ignore_their_source() -> None:
    body = """.shared .align 16 .b8 s[128]; mov.u32 %r9, s; mad.lo.u32 %r9, %r1, 4, %r9; st.global.u32 [%d4], %r1;
        setp.lt.u32 %p1, %r1, 5; cp.async.ca.shared.global [%r9], [%d4], 4, %p1; cp.async.wait_all;
        ld.shared.u32 %r5, [%r9]; st.global.u32 [%d4], %r5;"""
    assert run(body) == [0] * 5 + list(range(5, 32))


def test_discarded_bytes_are_undefined() -> None:
    body = "setp.ne.u32 %p1, %r1, 0; @%p1 bra NEXT; discard.global.L2 [%d2], 128; NEXT: bar.sync 0;"
    assert run(f"{body} st.global.u32 [%d4], %r1;") == list(range(32))
    with pytest.raises(TilefoldError) as caught:
        run(f"{body} ld.global.u32 %r5, [%d4]; st.global.u32 [%d4], %r5;")
    assert caught.value.code is Code.SIM_UNINITIALISED
    with pytest.raises(TilefoldError) as caught:
        run(body.replace("[%d2]", "[%d2+128]"))
    assert caught.value.code is Code.SIM_OUT_OF_BOUNDS


def test_words_behind_the_type_and_breakpoints() -> None:
    body = "mov.b32 %r2, 0xFFFD0005; {min.s16x2.relu %r3, %r2, 0x00070003;} st.global.u32 [%d4], %r3;"
    assert run(body) == [3] * 32
    with pytest.raises(TilefoldError, match="brkpt"):
        run("brkpt;")


def test_a_size_of_a_bulk_copy_comes_from_memory() -> None:
    text = """.shared .align 16 .b8 s[128]; .shared .align 8 .b8 bar[8]; .local .align 4 .b8 size[4];
        mov.u32 %r9, s; mov.u32 %r8, bar; setp.ne.u32 %p1, %r1, 0; @%p1 bra WAIT;
        mbarrier.init.shared.b64 [%r8], 1; fence.mbarrier_init.release.cluster; st.local.u32 [size], 128;
        ld.local.u32 %r7, [size]; mbarrier.arrive.expect_tx.shared.b64 _, [%r8], %r7;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9], [%d2], %r7, [%r8];
        WAIT: bar.sync 0;
        AGAIN: mbarrier.try_wait.parity.shared.b64 %p2, [%r8], 0; @!%p2 bra AGAIN;
        mad.lo.u32 %r3, %r1, 4, %r9; ld.shared.u32 %r4, [%r3]; add.u32 %r4, %r4, 5; st.global.u32 [%d4], %r4;"""
    A = np.arange(32, dtype=np.int32)
    tilefold.load_ptx(kernel(f"{STORE_LANE}{text}").replace("sm_80", "sm_90"))["k"](A).launch(1, 32)
    assert A.tolist() == list(range(5, 37))


@pytest.mark.parametrize(("release", "acquire", "code"), [
    ("release", "acquire", None), ("acquire", "acquire", Code.SIM_RACE), ("release", "release", Code.SIM_RACE),
])  # fmt: skip
def test_fences_that_only_release_or_only_acquire(release: str, acquire: str, code: Code | None) -> None:
    """Block 0 tells block 1 that its word is written."""
    body = f"""setp.ne.u32 %p1, %r1, 0; @%p1 ret; mov.u32 %r2, %ctaid.x; setp.ne.u32 %p2, %r2, 0; @%p2 bra READ;
        st.global.u32 [%d2], 5; fence.{release}.gpu; st.relaxed.gpu.global.u32 [%d2+4], 1; ret;
        READ: ld.relaxed.gpu.global.u32 %r3, [%d2+4]; setp.eq.u32 %p3, %r3, 0; @%p3 bra READ;
        fence.{acquire}.gpu; ld.global.u32 %r4, [%d2]; st.global.u32 [%d2+8], %r4;"""
    if code is None:
        assert run(body, elements=3, grid=2)[2] == 5
        return
    with pytest.raises(TilefoldError) as caught:
        run(body, elements=3, grid=2)
    assert caught.value.code is code


GUESS = """ld.global.u32 %r2, [%d2];
    AGAIN: add.u32 %r3, %r2, %r1; atom.global.cas.b32 %r4, [%d2], %r2, %r3;
    setp.ne.u32 %p1, %r4, %r2; mov.u32 %r2, %r4; @%p1 bra AGAIN; ret;"""


def test_a_load_that_guesses_the_value_of_a_swap_is_no_race() -> None:
    assert run(GUESS, threads=64, elements=1) == [63 * 32]
    assert run(GUESS.replace("add.u32 %r3", "add.u16x2 %r3"), threads=64, elements=1) == [63 * 32]
    assert run(GUESS.replace("add.u32", "setp.gt.u32 %p2, %r2, 0; add.u32"), threads=64, elements=1) == [63 * 32]


OWN = "st.global.u32 [%d4+4], {}; ret;"


@pytest.mark.parametrize(
    "use", [OWN.format("%r3"), OWN.format("%r5"), "mov.u32 %r6, %r5; bra OUT; OUT:" + OWN.format("%r6")]
)
def test_a_guess_may_have_any_use_behind_the_swap_that_succeeds(use: str) -> None:
    """`%r5` is the value that the swap has compared with, `%r3` the one that it has written."""
    text = GUESS.replace("AGAIN:", "AGAIN: mov.u32 %r5, %r2;").replace("ret;", use)
    found = run(text, threads=64, elements=66)
    assert found[0] == 63 * 32
    sums = np.cumsum(np.arange(64))
    assert sorted(found[1:65]) == sorted(sums if "%r3" in use else [0, *sums[:-1]])


def test_a_guess_may_have_any_use_where_a_loop_ends_with_success() -> None:
    text = """ld.global.u32 %r2, [%d2];
        AGAIN: add.u32 %r3, %r2, %r1; atom.global.cas.b32 %r4, [%d2], %r2, %r3;
        setp.eq.u32 %p1, %r4, %r2; @%p1 st.global.u32 [%d4+4], %r2; @%p1 ret; mov.u32 %r2, %r4; bra AGAIN;"""
    assert sorted(run(text, threads=64, elements=66)[1:65]) == sorted([0, *np.cumsum(np.arange(64))[:-1]])


BYTE = """add.u64 %d3, %d2, 4; and.b32 %r2, %r1, 3; cvt.u64.u32 %d4, %r2; add.u64 %d3, %d3, %d4;
    cvt.u32.u64 %r3, %d3; and.b32 %r3, %r3, 3; shl.b32 %r3, %r3, 3; and.b64 %d3, %d3, -4; ld.u32 %r4, [%d3];
    AGAIN: mov.u32 %r5, %r4; shl.b32 %r6, 1, %r3; add.u32 %r7, %r5, %r6;
    atom.cas.b32 %r4, [%d3], %r5, %r7; setp.ne.u32 %p1, %r4, %r5; @%p1 bra AGAIN; ret;"""


def test_a_swap_of_the_word_around_a_byte_keeps_the_array_of_its_address() -> None:
    """64 threads add 1 to four bytes of the second of three words."""
    assert run(BYTE, threads=64, elements=3)[1] == 0x10101010
    with pytest.raises(TilefoldError, match="0 bytes past the end of argument") as caught:
        run(BYTE, threads=64, elements=1)
    assert caught.value.code is Code.SIM_OUT_OF_BOUNDS
    with pytest.raises(TilefoldError) as caught:
        run(BYTE.replace("@%p1 bra AGAIN;", ""), threads=64, elements=3)
    assert caught.value.code is Code.SIM_RACE


@pytest.mark.parametrize(("old", "new"), [
    ("AGAIN:", "mov.u32 %r5, %r2; AGAIN: add.u32 %r3, %r2, %r1; atom.global.cas.b32 %r4, [%d2], %r2, %r3;"
     "setp.ne.u32 %p1, %r4, %r2; mov.u32 %r2, %r4; @%p1 bra AGAIN; st.global.u32 [%d4+4], %r5; ret;"),
    ("AGAIN:", "st.global.u32 [%d4+4], %r2; AGAIN:"),
    ("AGAIN:", "setp.eq.u32 %p2, %r2, 7; @%p2 ret; AGAIN:"),
    ("AGAIN:", "atom.global.cas.b32 %r4, [%d2], 0, %r2; AGAIN:"),
    ("AGAIN:", "atom.global.cas.b32 %r4, [%d2+4], 0, 1; setp.eq.u32 %p2, %r4, %r2; @%p2 ret; AGAIN:"),
    ("@%p1 bra AGAIN;", ""),
    (GUESS, "mov.u32 %r5, 2; MORE: ld.global.u32 %r2, [%d2]; add.u32 %r3, %r2, 1;"
     "atom.global.cas.b32 %r4, [%d2], %r2, %r3; setp.ne.u32 %p1, %r4, %r2; @%p1 bra NEXT; st.global.u32 [%d4+4], 1;"
     "NEXT: sub.u32 %r5, %r5, 1; setp.ne.u32 %p1, %r5, 0; @%p1 bra MORE;"),
    ("setp.ne.u32 %p1, %r4, %r2;", "setp.lt.u32 %p1, %r2, %r4;"),
    ("setp.ne.u32 %p1, %r4, %r2;", "setp.lt.u32 %p1, %r4, 9;"),
    ("ld.global.u32 %r2, [%d2];", "ld.global.u16 %h1, [%d2]; cvt.u32.u16 %r2, %h1;"),
])  # fmt: skip
def test_a_load_is_no_guess(old: str, new: str) -> None:
    """The value has another effect, a swap does not compare with it, or no loop tries again when the swap fails."""
    with pytest.raises(TilefoldError) as caught:
        run(GUESS.replace(old, new, 1), threads=64, elements=66)
    assert caught.value.code is Code.SIM_RACE


QUIT = """.shared .align 8 .b8 m[8]; .shared .align 4 .b8 c[4]; mov.u32 %r9, m; mov.u32 %r8, c;
    setp.ne.u32 %p1, %r1, 0; @%p1 bra MADE; mbarrier.init.shared.b64 [%r9], 64; st.shared.u32 [%r8], 64; MADE:
    bar.sync 0; mbarrier.arrive.shared.b64 %d8, [%r9];
    mov.u32 %r2, -1; match.any.sync.b32 %r3, %r8, %r2; and.b32 %r4, %r1, 31; setp.ne.u32 %p2, %r4, 0; @%p2 ret;
    fence.sc.cta; atom.shared.add.acquire.cta.u32 %r5, [%r8], -32;
    setp.ne.u32 %p3, %r5, 32; @%p3 ret; mbarrier.inval.shared.b64 [%r9]; st.global.u32 [%d2], 7;"""


def test_the_last_warp_that_counts_ends_an_mbarrier() -> None:
    """As pipelines of libcu++ do when the last thread leaves them: one lane counts for those that it has met."""
    assert run(QUIT, threads=64)[0] == 7


@pytest.mark.parametrize(("old", "new"), [
    ("match.any.sync.b32 %r3, %r8, %r2;", ""),
    ("fence.sc.cta;", ""),
    ("acquire.cta", "relaxed.cta"),
    ("setp.ne.u32 %p3, %r5, 32;", "setp.ne.u32 %p3, %r5, 64;"),
])  # fmt: skip
def test_an_mbarrier_ends_while_others_use_it(old: str, new: str) -> None:
    with pytest.raises(TilefoldError) as caught:
        run(QUIT.replace(old, new), threads=64)
    assert caught.value.code in (Code.SIM_RACE, Code.SIM_MBARRIER)


def test_the_state_of_an_arrival_has_the_pending_count() -> None:
    """Of 40 arrivals the first thread drops 4, which the next phase lacks, and the others are one each."""
    body = """.shared .align 8 .b8 s[8]; mov.u32 %r9, s; setp.eq.u32 %p1, %r1, 0;
        @%p1 mbarrier.init.shared.b64 [%r9], 35; bar.warp.sync -1;
        @!%p1 bra OTHERS; mbarrier.arrive_drop.shared.b64 %d9, [%r9], 4; mbarrier.pending_count.b64 %r2, %d9;
        st.global.u32 [%d4], %r2; OTHERS: bar.warp.sync -1; @%p1 ret;
        mbarrier.arrive.shared.b64 %d9, [%r9]; mbarrier.pending_count.b64 %r2, %d9; st.global.u32 [%d4], %r2;"""
    assert run(body) == list(range(35, 34, -1)) + list(range(31, 0, -1))


def test_fences_of_shared_memory_order_it() -> None:
    body = """fence.release.sync_restrict::shared::cta.cluster; fence.acquire.sync_restrict::shared::cluster.cluster;
        fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;
        fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster; st.global.u32 [%d4], 1;"""
    text = kernel(f"{STORE_LANE}{body}").replace("8.0", "8.6").replace("sm_80", "sm_90a")
    tilefold.load_ptx(text)["k"](A := np.zeros(32, np.int32)).launch(1, 32)
    assert A.all()


def test_the_reciprocal_root_of_f64_has_all_digits() -> None:
    body = """add.u32 %r2, %r1, 2; cvt.rn.f64.u32 %g1, %r2; rsqrt.approx.f64 %g2, %g1;
        mul.f64 %g2, %g2, 0d41D0000000000000; cvt.rzi.s32.f64 %r3, %g2; st.global.u32 [%d4], %r3;"""
    assert run(body) == [int(2.0**30 / np.sqrt(n)) for n in range(2, 34)]
