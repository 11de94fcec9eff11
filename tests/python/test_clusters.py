# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.arch` for clusters of blocks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute

DEVICES = ["cute", "instr", pytest.param("cuda", marks=pytest.mark.gpu)]


def run(call: Any, grid: Any, device: str) -> None:
    """Launches a kernel of 32 threads at a stage of the simulator, or on a GPU."""
    where = ("cuda", None) if device == "cuda" else ("sim", device)
    call.launch(grid, 32, device=where[0], stage=where[1])


@cute.kernel(cluster=(2, 2))
def places(Out: cute.Tensor):
    x, y, _ = cute.arch.block_idx()
    t, _, _ = cute.arch.thread_idx()
    row = Out[x, y, None]
    if t == 0:
        i, j, _ = cute.arch.block_in_cluster_idx()
        width, height, _ = cute.arch.block_in_cluster_dim()
        m, n, _ = cute.arch.cluster_idx()
        wide, high, depth = cute.arch.cluster_dim()
        values = (i, j, width, height, m, n, wide, high, depth)
        for k, value in enumerate(values):
            row[k] = cute.Int32(value)
        row[9], row[10] = cute.arch.block_idx_in_cluster(), cute.arch.cluster_size()


@pytest.mark.parametrize("device", DEVICES)
def test_where_a_block_is(device: str) -> None:
    out = np.zeros((4, 6, 11), np.int32)
    run(places(out), (4, 6), device)
    expected = [
        [[x % 2, y % 2, 2, 2, x // 2, y // 2, 2, 3, 1, x % 2 + 2 * (y % 2), 4] for y in range(6)] for x in range(4)
    ]
    assert out.tolist() == expected


@cute.kernel(cluster=2)
def exchange(Out: cute.Tensor):
    """Each block gets the numbers of the other's threads, by asynchronous stores, and their sum."""
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    rank = cute.arch.block_idx_in_cluster()
    received = cute.make_smem_tensor(32, cute.Float32)
    total = cute.make_smem_tensor(1, cute.Int32)
    bars = cute.make_smem_tensor(2, cute.Int64)
    if t == 0:
        total[0] = 0
        cute.arch.mbarrier_init(bars.ptr(0), 1)
        cute.arch.mbarrier_init(bars.ptr(1), 32)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(bars.ptr(0), 256)
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    peer = rank ^ 1
    bar = cute.arch.mapa(bars.ptr(0), peer)
    cute.arch.store_async(cute.arch.mapa(received.ptr(t), peer), 100.0 * block + t, bar)
    cute.arch.red_async("add", cute.arch.mapa(total.ptr(), peer), cute.Int32(t), bar)
    cute.arch.mbarrier_wait(bars.ptr(0), 0, scope="cluster")
    Out[block, t] = received[t] + cute.Float32(total[0])
    cute.arch.mbarrier_arrive(bars.ptr(1), peer)
    cute.arch.mbarrier_wait(bars.ptr(1), 0, scope="cluster")  # so that no block ends too early


@pytest.mark.parametrize("device", DEVICES)
def test_blocks_send_each_other_values(device: str) -> None:
    out = np.zeros((4, 32), np.float32)
    run(exchange(out), 4, device)
    assert out.tolist() == [[100 * (block ^ 1) + t + 496 for t in range(32)] for block in range(4)]


@cute.kernel(cluster=2)
def sent_by_an_atom(Out: cute.Tensor, bits: cute.Constexpr):
    """Each thread of a block gets four numbers of the other's by the stores of a copy atom."""
    t, _, _ = cute.arch.thread_idx()
    rank = cute.arch.block_idx_in_cluster()
    received = cute.make_smem_tensor(cute.make_layout((32, 4), stride=(4, 1)), cute.Float32, 16)
    bar = cute.make_smem_tensor(1, cute.Int64)
    if t == 0:
        cute.arch.mbarrier_init(bar.ptr(0), 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(bar.ptr(0), 512)
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    own = cute.make_rmem_tensor(4, cute.Float32)
    for i in cute.range_constexpr(4):
        own[i] = 100.0 * rank + t + 0.25 * i
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyDsmemStoreOp(), cute.Float32, bits)
    row: cute.Tensor = received[t, None]
    place = cute.make_tensor(cute.arch.mapa(row.iterator, rank ^ 1), cute.make_layout(4))
    cute.copy(atom, own, place, mbar_ptr=cute.arch.mapa(bar.iterator, rank ^ 1))
    cute.arch.mbarrier_wait(bar.ptr(0), 0, scope="cluster")
    Out[rank, t, None].store(received[t, None].load())


@pytest.mark.parametrize("bits", [None, 128])
@pytest.mark.parametrize("device", DEVICES)
def test_stores_of_a_copy_atom_to_a_peer(device: str, bits: int | None) -> None:
    out = np.zeros((2, 32, 4), np.float32)
    run(sent_by_an_atom(out, bits), 2, device)
    assert (out == 100 * np.array([[[1]], [[0]]]) + np.arange(32)[:, None] + 0.25 * np.arange(4)).all()
    text = sent_by_an_atom.ptx("sm_90")
    assert text.count("st.async.") == (4 if bits is None else 1)


@pytest.mark.parametrize("device", DEVICES)
def test_addresses_in_peers(device: str) -> None:
    """Atomic operations on a counter of block 0, which all read at the end; elections; uniform values."""

    @cute.kernel(cluster=4)
    def count(Out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        block, _, _ = cute.arch.block_idx()
        counter = cute.make_smem_tensor(1, cute.Int32)
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        if t == 0:
            counter[0] = 0
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        first = cute.arch.mapa(counter.ptr(), 0)
        with cute.arch.elect_one():
            cute.arch.atomic_add(first, 10 + rank, scope="cluster")
        cute.arch.cluster_arrive(aligned=False)
        cute.arch.cluster_wait(aligned=False)
        Out[block, t] = cute.arch.load_acquire(first, scope="cluster")
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

    out = np.zeros((8, 32), np.int32)
    run(count(out), 8, device)
    assert (out == 46).all()


@pytest.mark.parametrize("device", DEVICES)
def test_tensors_of_peers(device: str) -> None:
    """Each block reads its peer's tile, and writes its own number there."""

    @cute.kernel(cluster=2)
    def swap(A: cute.Tensor, B: cute.Tensor, Who: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        block, _, _ = cute.arch.block_idx()
        layout = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, cute.make_layout((32, 32), stride=(32, 1)))
        tile = cute.make_smem_tensor(layout, cute.Float16)
        who = cute.make_smem_tensor(32, cute.Int32)
        tile[t, None] = A[block, t, None]
        rank, _, _ = cute.arch.block_in_cluster_idx()
        peer = cute.arch.mapa(tile, rank ^ 1)
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        B[block, t, None] = peer[None, t]
        cute.arch.mapa(who, rank ^ 1)[t] = cute.Int32(block)
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        Who[block, t] = who[t]

    a = np.arange(4 * 32 * 32).astype(np.float16).reshape(4, 32, 32)
    b, who = np.zeros_like(a), np.zeros((4, 32), np.int32)
    run(swap(a, b, who), 4, device)
    assert np.array_equal(b, a[[1, 0, 3, 2]].transpose(0, 2, 1))
    assert who[:, 0].tolist() == [1, 0, 3, 2]


def test_a_relaxed_arrival_at_the_beginning() -> None:
    @cute.kernel(cluster=2)
    def begin(Out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        bar = cute.make_smem_tensor(1, cute.Int64)
        if t == 0:
            cute.arch.mbarrier_init(bar.ptr(0), 32)
            cute.arch.mbarrier_init_fence()
        cute.arch.cluster_arrive_relaxed()
        cute.arch.cluster_wait()
        cute.arch.mbarrier_arrive(bar.ptr(0), cute.arch.block_idx_in_cluster() ^ 1)
        while not cute.arch.mbarrier_try_wait(bar.ptr(0), 0, scope="cluster"):
            cute.arch.nanosleep(20)
        Out[t] = cute.Int32(cute.arch.mbarrier_test_wait(bar.ptr(0), 0))

    out = np.zeros(32, np.int32)
    begin(out).launch(2, 32, device="sim", races=False)
    assert out.all()


WRONG: list[tuple[Callable[[Any, Any], object], str]] = [
    (lambda bar, peer: cute.arch.mbarrier_wait(peer, 0), "wait on mbarriers of its own block only"),
    (lambda bar, peer: cute.arch.mbarrier_init(peer, 1), "wait on mbarriers of its own block only"),
    (lambda bar, peer: cute.arch.mbarrier_arrive(peer, 1), "wait on mbarriers of its own block only"),
    (lambda bar, peer: cute.arch.store_async(bar, 1, peer), "not in the shared memory of a block of the cluster"),
    (lambda bar, peer: cute.arch.red_async("add", peer, 1, bar), "not in the shared memory of a block"),
    (lambda bar, peer: cute.arch.store_async(bar.ssa, 1, peer), "expected the address of an element"),
]
"""Calls with an mbarrier and its address in a peer."""


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_addresses_that_an_instruction_does_not_take(call: Any, message: str) -> None:
    @cute.kernel
    def wrong(Out: cute.Tensor):
        bar = cute.make_smem_tensor(1, cute.Int64)
        call(bar.ptr(0), cute.arch.mapa(bar.ptr(0), 0))

    with pytest.raises(TilefoldError, match=message) as caught:
        wrong(np.zeros(1, np.float32)).build(32)
    assert caught.value.code == "E5002"
    assert caught.value.hint
