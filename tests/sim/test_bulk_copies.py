# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bulk copies: their bytes, when they complete, what they order, and the mistakes with them, each with its cure."""

import re

import numpy as np
import pytest
from tilefold.base.errors import Code
from tilefold.runtime.options import SimOptions
from tilefold.runtime.sim.faults import SimulationError
from tilefold.runtime.sim.launch import Completion
from tilefold.runtime.sim.memory.journal import Journal

from tests.sim.harness import SimEngine, entry, fault, launch, launch_on, seeded, unwritten

POINTERS = "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16"
SETUP = """
%t = gpu.thread_id x
%c0 = arith.constant 0 : index
%c4 = arith.constant 4 : index
%c32 = arith.constant 32 : index
%even = arith.constant 0 : i32
%odd = arith.constant 1 : i32
%none = arith.constant 0 : i32
%half = arith.constant 128 : i32
%bytes = arith.constant 256 : i32
%more = arith.constant 512 : i32
%some = arith.constant 24 : i32
%eight = arith.constant 8 : i32
%huge = arith.constant 1048576 : i32
%minus = arith.constant -16 : i32
%arrivals = arith.constant 1 : i32
%bar = ptx.smem.addr 2048
%s = ptx.smem.addr 0
%s8 = ptx.smem.addr 8
%s128 = ptx.smem.addr 128
%leads = arith.cmpi eq, %t, %c0 : index
%second = arith.cmpi eq, %t, %c32 : index
%o = arith.muli %t, %c4 : index
%mine = ptx.ptr_add %s, %o : !ptx.ptr<shared>, index -> !ptx.ptr<shared>
%a = ptx.ptr_add %A, %o : !ptx.ptr<global>, index -> !ptx.ptr<global>
%b = ptx.ptr_add %B, %o : !ptx.ptr<global>, index -> !ptx.ptr<global>
%x = arith.constant 7.0 : f32
"""
"""Threads t of two warps, each with 4 of 256 bytes."""

MAKE = "ptx.mbarrier.init %bar, %arrivals\nptx.fence.mbarrier_init\n"
INIT = f"scf.if %leads {{\n{MAKE}}}\nptx.bar.sync 0\n"
EXPECT = "ptx.mbarrier.arrive.expect_tx %bar, %bytes\n"
LOAD = "ptx.cp.async.bulk.load %s, %A, %bytes, %bar\n"
WAIT = "ptx.mbarrier.wait %bar, %even\n"
USE = "%v = ptx.ld %mine align 4 : !ptx.ptr<shared> -> f32\nptx.st %v, %b align 4 : f32, !ptx.ptr<global>\n"
FENCE = "ptx.fence.proxy.async\n"
SHARED_FENCE, GLOBAL_FENCE = ('ptx.fence.proxy.async of "shared"\n', 'ptx.fence.proxy.async of "global"\n')
SYNC = "ptx.bar.sync 0\n"
FILL = "%w = ptx.ld %a align 4 : !ptx.ptr<global> -> f32\nptx.st %w, %mine align 4 : f32, !ptx.ptr<shared>\n"
STORE = "ptx.cp.async.bulk.store %B, %s, %bytes\n"
COMMIT = "ptx.cp.async.bulk.commit_group\n"
WAIT_READ = "ptx.cp.async.bulk.wait_group 0 read\n"
WAIT_GROUP = "ptx.cp.async.bulk.wait_group 0\n"


def one(*lines: str, leads: str = "%leads") -> str:
    """Lines that one thread executes."""
    return f"scf.if {leads} {{\n{''.join(lines)}}}\n"


def text_of(body: str) -> str:
    return entry(SETUP + body, POINTERS, "64", shared=4096)


def run(
    body: str, seed: int | None = None, completion: Completion = Completion.LATE, journal: Journal | None = None
) -> None:
    """Runs a kernel that copies A to B."""
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    engine = SimEngine(seeded(seed), completion=completion, journal=journal)
    launch(text_of(body), block=(64, 1, 1), engine=engine, A=a, B=unwritten(b))
    np.testing.assert_array_equal(b, np.arange(64))


def remarks(body: str, completion: Completion = Completion.LATE) -> list[tuple[Code, str]]:
    """The remarks on a kernel that copies A to B."""
    journal = Journal()
    run(body, completion=completion, journal=journal)
    return list(journal.remarks.values())


def refused(
    body: str, codes: str | set[str], completion: Completion = Completion.LATE, seed: int | None = None
) -> SimulationError:
    """The error that a kernel raises, of this code or one of these."""
    args = {"A": np.zeros(64, np.float32), "B": np.zeros(64, np.float32)}
    engine = SimEngine(seeded(seed), completion=completion)
    with pytest.raises(SimulationError) as caught:
        launch_on(text_of(body), args, block=(64, 1, 1), engine=engine)
    assert caught.value.code in ({codes} if isinstance(codes, str) else codes), str(caught.value)
    return caught.value


LOADED = INIT + one(EXPECT, LOAD) + WAIT + USE
STORED = FILL + FENCE + SYNC + one(STORE, COMMIT, WAIT_READ)


@pytest.mark.parametrize("completion", Completion)
@pytest.mark.parametrize("seed", [None, *range(3)])
@pytest.mark.parametrize("body", [
    LOADED,
    INIT + one(LOAD, EXPECT) + WAIT + USE,
    INIT + one(EXPECT, LOAD.replace("%bytes", "%half"),
               LOAD.replace("%bytes", "%half").replace("%s", "%s128").replace("%A", "%A2")) + WAIT + USE,
    INIT + one(EXPECT, LOAD.replace("%bytes", "%none"), LOAD) + WAIT + USE,
    STORED,
    FILL + SYNC + one(FENCE, STORE, COMMIT, WAIT_READ),
    FILL + FENCE + SYNC + one(STORE, COMMIT, WAIT_GROUP),
    INIT + one(EXPECT, LOAD, WAIT, STORE, COMMIT, WAIT_READ),
], ids=["load", "late expect_tx", "two copies", "no bytes", "store", "reader fences", "all", "both"])  # fmt: skip
def test_copies(body: str, seed: int | None, completion: Completion) -> None:
    second = "%A2 = ptx.ptr_add %A, %half : !ptx.ptr<global>, i32 -> !ptx.ptr<global>\n"
    run(second + body, seed, completion)


UNFENCED = INIT.replace("ptx.fence.mbarrier_init\n", "")


@pytest.mark.parametrize("completion", Completion)
@pytest.mark.parametrize("cured", [
    INIT, UNFENCED.replace("}", SHARED_FENCE + "}"), UNFENCED + FENCE,
], ids=["by the maker", "between the proxies", "behind the barrier"])  # fmt: skip
def test_copies_see_mbarriers_that_are_fenced(cured: str, completion: Completion) -> None:
    """A barrier of the block suffices; without a fence between the proxies the copy has a remark."""
    rest = one(EXPECT, LOAD) + WAIT + USE
    ((code, said),) = remarks(UNFENCED + rest, completion)
    assert code is Code.SIM_MBARRIER_FENCE
    assert "uses the mbarrier at 0x1000 (byte 2048 of the block's shared memory (4096 bytes))" in said
    assert "lacks a fence between the proxies" in said
    assert not remarks(cured + rest, completion)


def test_a_store_that_only_its_own_thread_fences_is_a_remark() -> None:
    rest = one(STORE, COMMIT, WAIT_READ)
    ((code, said),) = remarks(FILL + SYNC + one(FENCE) + rest)
    assert code is Code.SIM_PROXY
    assert "which thread (1,0,0) wrote by the generic one; that thread executes no fence.proxy.async" in said
    for fenced in (FILL + FENCE + SYNC, FILL + SHARED_FENCE + SYNC + one(FENCE), FILL + SYNC + FENCE + SYNC):
        assert not remarks(fenced + rest)
    assert len(remarks(FENCE + FILL + GLOBAL_FENCE + SYNC + one(FENCE) + rest)) == 1


def test_a_fence_of_another_thread_or_memory_is_none_of_the_mbarrier() -> None:
    rest = one(EXPECT, LOAD) + WAIT + USE
    early = UNFENCED.replace("ptx.mbarrier.init", "ptx.fence.mbarrier_init\nptx.mbarrier.init")
    other = UNFENCED.replace("ptx.bar", one("ptx.fence.mbarrier_init\n", leads="%second") + "ptx.bar")
    for unfenced in (other, UNFENCED.replace("}", GLOBAL_FENCE + "}"), early):
        assert len(remarks(unfenced + rest)) == 1


def test_copies_of_two_stages_whose_memory_is_used_again() -> None:
    """The same bytes of shared memory are loaded, stored, and loaded again, from the memory stored to."""
    ring = INIT + one(EXPECT, LOAD) + WAIT + SYNC + one(
        "ptx.cp.async.bulk.store %B, %s, %bytes\n", COMMIT, WAIT_GROUP,
        EXPECT, LOAD.replace("%A", "%B"),
    ) + WAIT.replace("even", "odd")  # fmt: skip
    run(ring + USE)
    early = ring.replace(WAIT_GROUP, WAIT_READ)
    assert "is still writing it" in str(refused(early, "E3206"))


# Each mistake: the kernel with it, the code, words of the message, and the cure: a text instead of another.
MISTAKES = {
    "no expect_tx": (
        INIT + one("ptx.mbarrier.arrive %bar\n", LOAD) + WAIT + USE, "E3206", "is still writing it",
        ("ptx.mbarrier.arrive %bar\n", EXPECT),
    ),
    "too few bytes expected": (
        INIT + one(EXPECT.replace("%bytes", "%half"), LOAD) + WAIT + USE, "E3207",
        "has 128 bytes more than it expects", ("expect_tx %bar, %half", "expect_tx %bar, %bytes"),
    ),
    "too many bytes expected": (
        INIT + one(EXPECT.replace("%bytes", "%more"), LOAD) + WAIT + USE, "E3207", "lacks 256 bytes",
        ("expect_tx %bar, %more", "expect_tx %bar, %bytes"),
    ),
    "wrong parity": (
        INIT + one(EXPECT, LOAD) + WAIT.replace("even", "odd") + USE, "E3206", "is still writing it",
        ("%odd", "%even"),
    ),
    "no wait": (INIT + one(EXPECT, LOAD) + USE, "E3206", "is still writing it", (USE, WAIT + USE)),
    "no proxy fence": (
        FILL + SYNC + one(STORE, COMMIT, WAIT_READ), "E3216", "by the async proxy, which thread (0,0,0) wrote",
        (SYNC, FENCE + SYNC),
    ),
    "a proxy fence of global memory": (
        FILL + GLOBAL_FENCE + SYNC + one(STORE, COMMIT, WAIT_READ), "E3216", "which thread (0,0,0) wrote",
        (GLOBAL_FENCE, SHARED_FENCE),
    ),
    "a proxy fence of shared memory": (
        "ptx.st %x, %a align 4 : f32, !ptx.ptr<global>\nptx.st %w0, %a align 4 : f32, !ptx.ptr<global>\n"
        + SHARED_FENCE + INIT + one(EXPECT, LOAD) + WAIT + USE, "E3216", "reads global", (SHARED_FENCE, GLOBAL_FENCE),
    ),
    "a fence of another thread's writes only": (
        FILL + one(FENCE) + SYNC + one(STORE, COMMIT, WAIT_READ), "E3216", "which thread (1,0,0) wrote",
        (one(FENCE) + SYNC, SYNC + one(FENCE)),
    ),
    "no barrier": (
        FILL + FENCE + one(STORE, COMMIT, WAIT_READ), "E3205", "which thread (1,0,0) wrote", (FENCE, FENCE + SYNC),
    ),
    "a load of what threads wrote": (
        "ptx.st %x, %a align 4 : f32, !ptx.ptr<global>\nptx.st %w0, %a align 4 : f32, !ptx.ptr<global>\n"
        + INIT + one(EXPECT, LOAD) + WAIT + USE, "E3216", "reads global", (INIT, FENCE + INIT),
    ),
    "source overwritten early": (
        FILL + FENCE + SYNC + one(STORE, COMMIT) + "ptx.st %x, %mine align 4 : f32, !ptx.ptr<shared>\n"
        + one(WAIT_READ), "E3206", "by the async proxy of thread (0,0,0) is still reading it",
        (COMMIT + "}\n", COMMIT + WAIT_READ + "}\n" + SYNC),
    ),
    "source overwritten without a barrier": (
        FILL + FENCE + SYNC + one(STORE, COMMIT, WAIT_READ)
        + one("ptx.st %x, %s align 4 : f32, !ptx.ptr<shared>\n", leads="%second"),
        "E3205", "which thread (0,0,0) read", (WAIT_READ + "}\n", WAIT_READ + "}\n" + SYNC),
    ),
    "exit before the source is read": (
        FILL + FENCE + SYNC + one(STORE, COMMIT), "E3217", "ends while its bulk copy may still read",
        (COMMIT, COMMIT + WAIT_READ),
    ),
    "not committed": (
        FILL + FENCE + SYNC + one(STORE, WAIT_READ), "E3217", "ends while its bulk copy may still read",
        (STORE, STORE + COMMIT),
    ),
    "exit before bytes come": (
        INIT + one(EXPECT, LOAD) + FILL.replace("%mine", "%b").replace("<shared>", "<global>"), "E3217",
        "the block ends while the copy may still write", (one(EXPECT, LOAD), one(EXPECT, LOAD) + WAIT),
    ),
    "misaligned address": (
        INIT + one(EXPECT, LOAD.replace("%s", "%s8")) + WAIT + USE, "E3203", "is not a multiple of 16 bytes",
        ("%s8", "%s"),
    ),
    "size not a multiple of 16": (
        INIT + one(EXPECT, LOAD.replace("%bytes", "%some")) + WAIT + USE, "E3203",
        "24 bytes, which is not a multiple of 16", ("%A, %some", "%A, %bytes"),
    ),
    "beyond the tensor": (
        INIT + one(EXPECT, LOAD.replace("%bytes", "%more")) + WAIT + USE, "E3202", "reads 16 bytes of global memory",
        ("%A, %more", "%A, %bytes"),
    ),
    "a negative size": (
        FILL + FENCE + SYNC + one(STORE.replace("%bytes", "%minus"), COMMIT, WAIT_READ), "E3202",
        "reads 16 bytes of shared memory", ("%s, %minus", "%s, %bytes"),
    ),
    "more than an mbarrier counts": (
        INIT + one(EXPECT, LOAD.replace("%bytes", "%huge")) + WAIT + USE, "E3215",
        "copies 1048576 bytes, but the mbarrier at 0x", ("%A, %huge", "%A, %bytes"),
    ),
    "not an mbarrier": (
        one(MAKE, EXPECT, LOAD.replace("%bar", "%s128")) + SYNC + WAIT + USE,
        "E3215", "no mbarrier", ("%bytes, %s128", "%bytes, %bar"),
    ),
    "two copies to the same bytes": (
        INIT + one(EXPECT, LOAD, LOAD) + WAIT + USE, "E3206", "is still writing it", (LOAD + LOAD, LOAD),
    ),
    "all lanes copy": (
        INIT + one(EXPECT) + LOAD + WAIT + USE, "E3206", "is still writing it", (one(EXPECT) + LOAD, one(EXPECT, LOAD)),
    ),
    "undefined bytes": (
        FENCE + SYNC + one(STORE, COMMIT, WAIT_READ), "E3204", "undefined bytes", (FENCE, FILL + FENCE),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake: str) -> None:
    body, code, said, (wrong, right) = MISTAKES[mistake]
    defined = "%w0 = ptx.ld %a align 4 : !ptx.ptr<global> -> f32\n" if "%w0" in body else ""
    error = refused(defined + body, code)
    assert said in str(error)
    assert re.match(r".*test\.cute:\d+:1", str(error))
    assert body.count(wrong) == 1
    run(defined + body.replace(wrong, right))


@pytest.mark.parametrize(("completion", "codes"), [
    (Completion.LATE, {"E3206"}), (Completion.EARLY, {"E3205"}), (Completion.RANDOM, {"E3205", "E3206"}),
])  # fmt: skip
def test_no_time_of_completion_spares_the_wait(completion: Completion, codes: set[str]) -> None:
    body = INIT + one(EXPECT, LOAD) + SYNC + USE
    assert {refused(body, codes, completion, seed).code for seed in range(8)} == codes


def test_a_write_to_what_a_load_reads() -> None:
    write = "ptx.st %even, %A align 4 : i32, !ptx.ptr<global>\n}\n"
    body = (INIT + one(EXPECT, LOAD)).removesuffix("}\n") + write + WAIT + USE
    assert "is still reading it" in str(refused(body, "E3206"))
    assert "which a bulk copy read" in str(refused(body, "E3205", Completion.EARLY))
    run(body.replace(write, WAIT + write))


SIGNAL = "ptx.st.release %arrivals, %flag : i32, !ptx.ptr<shared>\n"
LOOK = """
scf.while () : () -> () {
  %seen = ptx.ld.acquire %flag : !ptx.ptr<shared> -> i32
  %again = arith.cmpi eq, %seen, %none : i32
  scf.condition(%again)
} do {
  scf.yield
}
"""


@pytest.mark.parametrize("hand_on", [
    ("", SYNC, "", "", ""),
    (one("ptx.mbarrier.init %bar, %arrivals\n"), "", "ptx.bar.warp.sync -1\n" + one(
        "ptx.mbarrier.arrive %bar\n"), "ptx.mbarrier.wait %bar, %even\n", SYNC),
    (one("ptx.st %none, %flag align 4 : i32, !ptx.ptr<shared>\n"), "", "ptx.bar.warp.sync -1\n" + one(SIGNAL), LOOK,
     SYNC),
], ids=["barrier", "mbarrier", "release"])  # fmt: skip
def test_every_order_hands_on_the_fence(hand_on: tuple[str, str, str, str, str]) -> None:
    """Warp 0 writes 128 bytes; a thread of warp 1 copies them. The fence is on either side, or is missing."""
    first, meet, signal, look, before = hand_on
    head = "%flag = ptx.smem.addr 3072\n%first = arith.cmpi ult, %t, %c32 : index\n" + first + before
    fill = f"scf.if %first {{\n{FILL}"
    ways = (FENCE, "", None), ("", FENCE, None), (SHARED_FENCE, "", None), (GLOBAL_FENCE, SHARED_FENCE, None)
    for ours, theirs, code in (*ways, ("", "", "E3216"), (GLOBAL_FENCE, "", "E3216")):
        copy = STORE.replace("%bytes", "%half") + COMMIT + WAIT_READ
        body = head + fill + ours + signal + "}\n" + meet + one(look, theirs, copy, leads="%second")
        if code:
            refused(body, code)
        else:
            a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
            launch(text_of(body), block=(64, 1, 1), A=a, B=b)
            np.testing.assert_array_equal(b, np.where(np.arange(64) < 32, a, 0))


@pytest.mark.parametrize(("fence", "code"), [(FENCE, None), ("", "E3216")])
def test_a_block_copies_what_an_earlier_one_has_released(fence: str, code: str | None) -> None:
    """Blocks of one warp: block 0 writes global memory and releases a flag, block 1 waits for it and copies."""
    body = (
        SETUP
        + f"""
        %flag = ptx.ptr_add %B, %bytes : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
        %block = gpu.block_id x
        %writes = arith.cmpi eq, %block, %c0 : index
        scf.if %writes {{
          ptx.st %x, %a align 4 : f32, !ptx.ptr<global>
          {fence}
          ptx.bar.warp.sync -1
          {one("ptx.st.release %arrivals, %flag : i32, !ptx.ptr<global>" + chr(10))}
        }} else {{
          {LOOK.replace("<shared>", "<global>")}
          {one(MAKE)}
          ptx.bar.warp.sync -1
          {one(EXPECT.replace("%bytes", "%half"), LOAD.replace("%bytes", "%half"))}
          {WAIT}
          {USE}
        }}"""
    )
    text = entry(body, POINTERS, "32", shared=4096)
    a, b = np.zeros(64, np.float32), np.zeros(68, np.float32)
    if code:
        fault(text, code, grid=(2, 1, 1), A=a, B=b)
    else:
        launch(text, grid=(2, 1, 1), A=a, B=b)
        assert (b[:32] == 7).all()


@pytest.mark.parametrize(("wait", "code"), [(WAIT_GROUP, None), (WAIT_READ, "E3206")])
def test_the_thread_reads_what_it_has_stored(wait: str, code: str | None) -> None:
    look = "%v = ptx.ld %B align 4 : !ptx.ptr<global> -> f32\nptx.st %v, %B align 4 : f32, !ptx.ptr<global>\n"
    body = FILL + FENCE + SYNC + one(STORE, COMMIT, wait, look)
    if code is None:
        run(body)
    else:
        refused(body, code)


@pytest.mark.parametrize(("kind", "dtype"), [
    ("add.f32", "float32"), ("add.f16", "float16"), ("max.f16", "float16"), ("add.u32", "uint32"), ("min.s32", "int32"),
    ("min.u32", "uint32"), ("and.b32", "uint32"), ("xor.b64", "uint64"), ("add.f64", "float64"), ("max.s64", "int64"),
])  # fmt: skip
def test_reductions(kind: str, dtype: str) -> None:
    """Two copies of 128 bytes each in one group, and a third one in the next."""
    functions = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "xor": np.bitwise_xor}
    one_copy = f'ptx.cp.reduce.async.bulk "{kind}" %B, %s, %half\n'
    body = FILL + FENCE + SYNC + one(one_copy, one_copy, COMMIT, one_copy, COMMIT, WAIT_READ)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-50, 50, 256 // np.dtype(dtype).itemsize).astype(dtype) for _ in range(2))
    expected = b.copy()
    for _ in range(3):
        half = expected[: len(b) // 2]
        half[:] = functions[kind.partition(".")[0]](half, a[: len(b) // 2])
    launch(text_of(body), block=(64, 1, 1), A=a, B=b)
    np.testing.assert_array_equal(b, expected)


def test_without_a_search_for_races_a_thread_may_end_while_its_copy_reads() -> None:
    a = {"A": np.arange(64, dtype=np.float32), "B": np.zeros(64, np.float32)}
    launch_on(
        text_of(FILL + FENCE + SYNC + one(STORE, COMMIT)),
        a,
        block=(64, 1, 1),
        engine=SimEngine(SimOptions(races=False)),
    )
    assert np.array_equal(a["B"], a["A"])


REDUCE = 'ptx.cp.reduce.async.bulk "add.f32" %B, %s, %bytes\n'


def test_mistakes_with_reductions() -> None:
    right = FILL + FENCE + SYNC + one(REDUCE, COMMIT, WAIT_READ)
    zeros = {"A": np.ones(64, np.float32), "B": np.zeros(64, np.float32)}
    launch_on(text_of(right), zeros, block=(64, 1, 1))
    assert (zeros["B"] == 1).all()
    assert "fence.proxy.async between them is missing" in str(refused(right.replace(FENCE, ""), "E3216"))
    assert "ends while its bulk copy may still read" in str(refused(right.replace(COMMIT, ""), "E3217"))
    read = "%v = ptx.ld %B align 4 : !ptx.ptr<global> -> f32\nptx.st %v, %B align 4 : f32, !ptx.ptr<global>\n"
    early = right.replace(WAIT_READ, WAIT_READ + read)
    assert "is still writing it" in str(refused(early, "E3206"))
    launch_on(text_of(early.replace(WAIT_READ, WAIT_GROUP)), zeros, block=(64, 1, 1))
    other = REDUCE.replace("add.f32", "min.s32")
    assert "is still writing it" in str(refused(right.replace(COMMIT, other + COMMIT), "E3206"))
    fault(text_of(right), "E3204", block=(64, 1, 1), A=zeros["A"], B=unwritten(np.zeros(64, np.float32)))


def test_groups_are_waited_for_in_their_order() -> None:
    """The second group may be in flight when the first has been read."""
    first = STORE.replace("%bytes", "%half")
    second = first.replace("%s", "%s128").replace("%B", "%B2")
    head = "%B2 = ptx.ptr_add %B, %half : !ptx.ptr<global>, i32 -> !ptx.ptr<global>\n" + FILL + FENCE + SYNC
    wait = WAIT_READ.replace("0", "1")
    for place, code in (("%s", None), ("%s128", "E3206")):
        write = f"ptx.st %x, {place} align 4 : f32, !ptx.ptr<shared>\n"
        body = head + one(first, COMMIT, second, COMMIT, wait, write, WAIT_READ)
        if code is None:
            run(body)
        else:
            refused(body, code)


def test_what_threads_read_may_be_overwritten_without_a_fence() -> None:
    run(FILL + INIT + "%r = ptx.ld %mine align 4 : !ptx.ptr<shared> -> f32\n" + SYNC + one(FENCE, EXPECT, LOAD) + WAIT
        + USE)  # fmt: skip


def test_counters() -> None:
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    body = INIT + one(EXPECT, "ptx.cp.async.bulk.prefetch %A, %bytes\n", LOAD, WAIT, STORE, COMMIT, WAIT_READ)
    counters = launch(text_of(body), block=(64, 1, 1), A=a, B=unwritten(b)).counters
    bulk = [entry for entry in counters.accesses if entry.kind == "bulk"]
    assert [(e.space, e.requests, e.width * e.threads, e.transactions, e.minimum) for e in bulk] == [
        ("global", 1, 256, 8, 8), ("global", 1, 256, 8, 8), ("shared", 1, 256, 2, 2),
        ("shared", 1, 256, 2, 2), ("global", 1, 256, 8, 8),
    ]  # fmt: skip
    load = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    assert counters.instructions[load].threads == 1
