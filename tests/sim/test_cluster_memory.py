# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared memory of a cluster: accesses of peers, the cluster barrier, and mistakes with their cures."""

import numpy as np
import pytest
from tilefold.runtime.sim.faults import SimulationError
from tilefold.runtime.sim.launch import Completion
from tilefold.runtime.sim.memory.journal import Journal

from tests.sim.harness import SimEngine, entry, fault, launch, seeded

POINTERS = "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16"
SETUP = """
%t = ptx.sreg "tid.x"
%rank = ptx.sreg "cluster_ctarank"
%block = ptx.sreg "ctaid.x"
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%two = arith.constant 2 : i32
%four = arith.constant 4 : i32
%threads = arith.constant 64 : i32
%bytes = arith.constant 256 : i32
%peer = arith.xori %rank, %one : i32
%o = arith.muli %t, %four : i32
%b.0 = arith.muli %block, %threads : i32
%number = arith.addi %b.0, %t : i32
%b.1 = arith.muli %number, %four : i32
%out = ptx.ptr_add %B, %b.1 : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
%s = ptx.smem.addr 0
%bar = ptx.smem.addr 2048
%mine = ptx.ptr_add %s, %o : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
%theirs = ptx.mapa %mine, %peer
%their_bar = ptx.mapa %bar, %peer
%is_first = arith.cmpi eq, %t, %zero : i32
%in_block_0 = arith.cmpi eq, %rank, %zero : i32
"""
"""Two blocks of 64 threads, each with a word of its own and the one of its number in the peer."""

ARRIVE, WAIT = "ptx.barrier.cluster.arrive aligned\n", "ptx.barrier.cluster.wait aligned\n"
SYNC = ARRIVE + WAIT
PUT = "ptx.st %number, %mine align 4 : i32, !ptx.ptr<shared>\n"
GET = "%v = ptx.ld %theirs align 4 : !ptx.ptr<shared_cluster> -> i32\nptx.st %v, %out align 4 : i32, !ptx.ptr<global>\n"
SEND = "ptx.st %number, %theirs align 4 : i32, !ptx.ptr<shared_cluster>\n"
EXCHANGED = [*range(64, 128), *range(64)]


def text_of(body: str) -> str:
    return entry(SETUP + body, POINTERS, "64", shared=4096).replace("threads(64)", "threads(64) cluster(2)")


def run(
    body: str, seed: int | None = None, completion: Completion = Completion.LATE, journal: Journal | None = None
) -> list[int]:
    """What a kernel of two blocks leaves in B."""
    b = np.zeros(128, np.int32)
    engine = SimEngine(seeded(seed), completion=completion, journal=journal)
    launch(text_of(body), (2, 1, 1), (64, 1, 1), engine, A=np.zeros(1, np.int32), B=b)
    return b.tolist()


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_blocks_exchange_by_shared_memory(seed: int | None) -> None:
    assert run(PUT + SYNC + GET + SYNC, seed) == EXCHANGED


INIT = "scf.if %is_first {\nptx.mbarrier.init %bar, %one\n}\n"
FENCED = INIT.replace("}", "ptx.fence.mbarrier_init\n}")
REMOTE = "scf.if %is_first {\nptx.mbarrier.arrive %their_bar\n}\n"
RELAXED = ARRIVE.replace("arrive", "arrive relaxed")
AWAIT = 'ptx.mbarrier.wait %bar, %zero scope "cluster"\n'
FIRST_OF = "scf.if %is_first {\nBODY}\n"

MISTAKES = {
    "no barrier before the access": (
        SEND + SYNC,
        "E3218",
        "accesses the shared memory of block (1,0,0), which may not have begun",
        (SEND, SYNC + SEND),
    ),
    "no barrier between writes": (
        SYNC + PUT + SEND + SYNC,
        "E3205",
        "race: writes shared 0x800 (byte 0 of the block's shared memory (4096 bytes)) in the block of rank 1, which "
        "thread (0,0,0) of block (0,0,0) wrote",
        (SYNC + PUT, PUT + SYNC),
    ),
    "a relaxed arrival orders no data": (
        PUT + RELAXED + WAIT + GET + SYNC,
        "E3205",
        "race: reads shared",
        ("arrive relaxed", "arrive"),
    ),
    "the init of an mbarrier without its fence": (
        INIT + "ptx.bar.sync 0\n" + RELAXED + WAIT + REMOTE + AWAIT,
        "E3219",
        "uses the mbarrier at 0x1000 (byte 2048 of the block's shared memory (4096 bytes)) in the block of rank 1",
        (INIT, FENCED),
    ),
    "exit while a peer may arrive": (
        FENCED + SYNC + REMOTE,
        "E3220",
        "block (1,0,0), thread (0,0,0): accesses the shared memory of block (0,0,0), which",
        (REMOTE, REMOTE + AWAIT),
    ),
    "a wait without an arrival": (WAIT, "E3221", "waits at the cluster barrier without having arrived", (WAIT, SYNC)),
    "an aligned barrier for some lanes": (
        FIRST_OF.replace("BODY", ARRIVE) + WAIT,
        "E3221",
        "thread (1,0,0): the thread does not reach this aligned barrier, which 1 of the warp's 32 lanes do",
        (FIRST_OF.replace("BODY", ARRIVE), ARRIVE),
    ),
    "a rank that the cluster lacks": (
        SYNC + "%q = ptx.mapa %mine, %two\n%v = ptx.ld %q align 4 : !ptx.ptr<shared_cluster> -> i32\n",
        "E3202",
        "accesses the shared memory of rank 2; the cluster has 2 blocks",
        ("%mine, %two", "%mine, %rank"),
    ),
}
"""A kernel, its error, part of what that says, and the change that cures it."""
CURED_BUT_UNWRITTEN = "a rank that the cluster lacks"


def refused(body: str, code: str, seed: int | None = None) -> SimulationError:
    arrays = {"A": np.zeros(1, np.int32), "B": np.zeros(128, np.int32)}
    return fault(text_of(body), code, grid=(2, 1, 1), block=(64, 1, 1), engine=SimEngine(seeded(seed)), **arrays)


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake: str, seed: int | None) -> None:
    body, code, said, (wrong, right) = MISTAKES[mistake]
    error = refused(body, code, seed)
    assert seed is not None or said in str(error)
    assert wrong in body
    if mistake != CURED_BUT_UNWRITTEN:
        run(body.replace(wrong, right, 1), seed)
    else:
        run(PUT + body.replace(wrong, right, 1), seed)


LATE = [Completion.LATE, Completion.EARLY, Completion.RANDOM]
EXPECT = FENCED.replace("}", "ptx.mbarrier.arrive.expect_tx %bar, %bytes\n}")
STORE = "ptx.st.async %number, %theirs, %their_bar : i32\n"
READ = "%v = ptx.ld %mine align 4 : !ptx.ptr<shared> -> i32\nptx.st %v, %out align 4 : i32, !ptx.ptr<global>\n"


@pytest.mark.parametrize("completion", LATE)
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_asynchronous_stores(seed: int | None, completion: Completion) -> None:
    assert run(EXPECT + SYNC + STORE + AWAIT + READ, seed, completion) == EXCHANGED


@pytest.mark.parametrize("scope", ["cta", "cluster", None])
def test_the_scope_of_a_wait_for_asynchronous_stores(scope: str | None) -> None:
    """PTX orders the bytes before a wait at scope cluster; one without a scope is a remark, since kernels wait so."""
    wait = AWAIT.replace(' scope "cluster"', "" if scope is None else f' scope "{scope}"')
    journal = Journal()
    if scope == "cta":
        with pytest.raises(SimulationError) as error:
            run(EXPECT + SYNC + STORE + wait + READ)
        assert error.value.code == "E3205"
        return
    assert run(EXPECT + SYNC + STORE + wait + READ, journal=journal) == EXCHANGED
    remarks = [text for code, text in journal.remarks.values() if code.id == "E3205"]
    assert len(remarks) == (scope is None)
    assert all("at scope cta" in text for text in remarks)


@pytest.mark.parametrize("completion", LATE)
@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("add", 5 + sum(range(64))), ("max", 63), ("umin", 0), ("or", 63), ("inc", 1), ("dec", 59), ("xor", 5),
        ("min", 0), ("and", 0), ("umax", 63),
    ],
)  # fmt: skip
def test_asynchronous_reductions(kind: str, result: int, completion: Completion) -> None:
    """All threads of a block change one word of the peer, in their order, which holds 5 at first."""
    value = {"inc": "%five", "dec": "%threads"}.get(kind, "%t")
    body = (
        "%five = arith.constant 5 : i32\nscf.if %is_first {\nptx.st %five, %s align 4 : i32, !ptx.ptr<shared>\n}\n"
        + EXPECT
        + f'%q = ptx.mapa %s, %peer\n{SYNC}ptx.red.async "{kind}" {value}, %q, %their_bar : i32\n{AWAIT}'
        + READ.replace("%mine", "%s")
    )
    expected = {"inc": (5 + 64) % 6, "dec": (5 - 64) % 65}.get(kind, result)
    assert set(run(body, completion=completion)) == {expected}


ASYNC_MISTAKES = {
    "read before the bytes are counted": (EXPECT + SYNC + STORE + SYNC + READ + AWAIT, "E3206", "is still writing it"),
    "a sum is read before it is counted": (
        PUT + EXPECT + SYNC + 'ptx.red.async "add" %number, %theirs, %their_bar : i32\n' + SYNC + READ + AWAIT,
        "E3205",
        "which a bulk copy wrote",
    ),
    "an mbarrier of another block than the bytes": (
        EXPECT + SYNC + "%own = ptx.mapa %bar, %rank\n" + STORE.replace("%their_bar", "%own") + AWAIT,
        "E3215",
        "the mbarrier is not in the block of the bytes that it counts",
    ),
    "bytes of which nobody knows the peer": (EXPECT + STORE + AWAIT, "E3218", "which may not have begun"),
    "bytes that nobody waits for": (EXPECT + SYNC + STORE + SYNC, "E3217", "may still write its shared memory"),
    "a thread that does not come to the cluster barrier": (
        FENCED + SYNC + "scf.if %in_block_0 {\n" + AWAIT + "}\n" + SYNC,
        "E3207",
        "the cluster barrier, phase 1: 64 of 128 threads, warps 0, 1 of block (1,0,0) wait",
    ),
}


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize("mistake", ASYNC_MISTAKES)
def test_mistakes_with_mbarriers_of_peers(mistake: str, seed: int | None) -> None:
    body, code, said = ASYNC_MISTAKES[mistake]
    error = refused(body, code, seed)
    assert seed is not None or said in str(error)


def test_a_remote_arrival_hands_on_knowledge() -> None:
    body = FENCED.replace("%one", "%threads") + SYNC + SEND + "ptx.mbarrier.arrive %their_bar\n" + AWAIT + READ
    assert run(body) == EXCHANGED
    early = body.replace(SEND + "ptx.mbarrier.arrive %their_bar\n", "ptx.mbarrier.arrive %their_bar\n" + SEND)
    refused(early, "E3205")


def test_a_cluster_barrier_hands_on_a_fence_of_proxies() -> None:
    """A thread of the peer has the bytes copied that another block has written, behind a fence of either side."""
    expect = INIT.replace("}", "ptx.fence.mbarrier_init\n}") + PUT
    store = "scf.if %is_first {\n%c = ptx.ptr_add %B, %o.b : !ptx.ptr<global>, i32 -> !ptx.ptr<global>\n"
    store += "ptx.cp.async.bulk.store %c, %s, %bytes\nptx.cp.async.bulk.commit_group\n"
    store += "ptx.cp.async.bulk.wait_group 0 read\n}\n"
    place = "%o.b = arith.muli %block, %bytes : i32\n"
    send = SYNC + SEND + "FENCE" + SYNC
    assert run(place + expect + send.replace("FENCE", "ptx.fence.proxy.async\n") + store) == EXCHANGED
    assert run(place + expect + send.replace("FENCE", "") + "ptx.fence.proxy.async\n" + store) == EXCHANGED
    refused(place + expect + send.replace("FENCE", "") + store, "E3216")


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("init", [INIT + SYNC, FENCED + SYNC, FENCED + RELAXED + WAIT])
def test_a_released_arrival_or_the_fence_makes_an_mbarrier_known(init: str, seed: int | None) -> None:
    """Peers arrive there, and let it count the bytes of their `st.async`."""
    run(init + REMOTE + AWAIT, seed)
    expects = FIRST_OF.replace("BODY", "ptx.mbarrier.arrive.expect_tx %bar, %bytes\n")
    rest = "ptx.st.async %number, %theirs, %their_bar : i32\n" + AWAIT
    read = "%w = ptx.ld %mine align 4 : !ptx.ptr<shared> -> i32\nptx.st %w, %out align 4 : i32, !ptx.ptr<global>\n"
    assert run(init + expects + rest + read + SYNC, seed) == EXCHANGED
    if init == INIT + SYNC:
        unknown = init.replace(SYNC, RELAXED + WAIT) + expects + rest + read + SYNC
        assert "let it arrive there without relaxed" in str(refused(unknown, "E3219", seed))


def test_copies_to_peers_need_a_fence_of_the_initialisation() -> None:
    """A bulk copy counts its bytes by the async proxy; its mistakes without a fence are those below."""
    unfenced = SENT.replace("ptx.fence.mbarrier_init\n", "")
    assert "without relaxed" not in str(refused(unfenced, "E3219"))
    assert (
        run(unfenced.replace("ptx.fence.proxy.async\n", "").replace(SYNC, "ptx.fence.proxy.async\n" + SYNC, 1))
        == EXCHANGED
    )


def test_readers_of_two_blocks_are_told_apart() -> None:
    """Thread 0 of each block reads a word of block 0 and arrives; other threads, which have not read, do not."""
    body = (
        "scf.if %is_first {\nptx.st %one, %s align 4 : i32, !ptx.ptr<shared>\nptx.mbarrier.init %bar, %two\n"
        "ptx.fence.mbarrier_init\n}\n"
        + SYNC
        + "%q = ptx.mapa %s, %zero\n%q_bar = ptx.mapa %bar, %zero\nscf.if %is_first {\n"
        "%v = ptx.ld %q align 4 : !ptx.ptr<shared_cluster> -> i32\nptx.mbarrier.arrive %q_bar\n"
        "scf.if %in_block_0 {\n" + AWAIT + "ptx.st %two, %s align 4 : i32, !ptx.ptr<shared>\n}\n}\n"
    )
    run(body)
    alone = "scf.if %in_block_0 {\nptx.mbarrier.arrive %q_bar\n}\n"
    wrong = body.replace("ptx.mbarrier.arrive %q_bar\n", alone).replace("%bar, %two", "%bar, %one")
    assert "race: " in refused(wrong, "E3205").message


SENT = (
    "%there = ptx.smem.addr 1024\n%at = ptx.ptr_add %there, %o : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>\n"
    "%to = ptx.mapa %there, %peer\n" + PUT + "ptx.fence.proxy.async\n" + EXPECT + SYNC
    + FIRST_OF.replace("BODY", "ptx.cp.async.bulk.send %to, %s, %bytes, %their_bar\n") + AWAIT
    + "%v = ptx.ld %at align 4 : !ptx.ptr<shared> -> i32\nptx.st %v, %out align 4 : i32, !ptx.ptr<global>\n" + SYNC
)  # fmt: skip
"""Each block sends its words to the peer, whose mbarrier counts them."""


@pytest.mark.parametrize("completion", Completion)
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_blocks_send_bytes_to_each_other(seed: int | None, completion: Completion) -> None:
    assert run(SENT, seed, completion) == EXCHANGED


@pytest.mark.parametrize(("wrong", "right", "code", "said"), [
    ("expect_tx %bar, %bytes", "expect_tx %bar, %half", "E3207", "has 128 bytes more than it expects"),
    ("ptx.fence.proxy.async\n", "", "E3216", "fence.proxy.async between them is missing"),
    (AWAIT, "", "E3204", "which is unwritten"),
    (EXPECT + SYNC, EXPECT + "ptx.bar.sync 0\n", "E3218", "which may not have begun"),
    ("%bytes, %their_bar", "%bytes, %own_bar", "E3215", "not in the block of the bytes that it counts"),
    ("%to, %s, %bytes", "%far, %s, %bytes", "E3202", "the cluster has 2 blocks"),
    ("ptx.fence.mbarrier_init\n", "", "E3219", "its initialisation lacks a fence"),
])  # fmt: skip
def test_mistakes_with_bytes_that_are_sent(wrong: str, right: str, code: str, said: str) -> None:
    head = "%half = arith.constant 128 : i32\n%own_bar = ptx.mapa %bar, %rank\n%far = ptx.mapa %s, %two\n"
    assert run(head + SENT) == EXCHANGED
    assert SENT.count(wrong) == 1
    assert said in str(refused(head + SENT.replace(wrong, right), code))


def test_the_source_of_bytes_that_are_sent_is_kept() -> None:
    late = SENT.replace(AWAIT, "ptx.bar.sync 0\n" + PUT.replace("%number", "%zero") + AWAIT)
    assert "is still reading it" in str(refused(late, "E3206"))


def test_arrivals_of_the_scope_of_a_block_order_no_data_of_others() -> None:
    """What a thread wrote before is not visible to a waiter in another block; what it read may be overwritten there."""
    weak = REMOTE.replace("%their_bar\n", '%their_bar scope "cta"\n')
    put_there = "%there = ptx.mapa %mine, %peer\nptx.st %number, %there align 4 : i32, !ptx.ptr<shared_cluster>\n"
    rest = (
        AWAIT + "%w = ptx.ld %mine align 4 : !ptx.ptr<shared> -> i32\nptx.st %w, %out align 4 : i32, !ptx.ptr<global>\n"
    )
    data = PUT + FENCED + SYNC + put_there + "ptx.bar.sync 0\n"
    assert run(data + REMOTE + rest + SYNC) == EXCHANGED
    assert "race: reads shared" in str(refused(data + weak + rest + SYNC, "E3205"))
    reads = PUT + FENCED + SYNC + GET + "ptx.bar.sync 0\n"
    overwrites = AWAIT + "ptx.st %zero, %mine align 4 : i32, !ptx.ptr<shared>\n"
    assert run(reads + weak + overwrites) == EXCHANGED
    assert "race: writes shared" in str(refused(reads + overwrites.replace(AWAIT, ""), "E3205"))
