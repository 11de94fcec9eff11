# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TMA copies in Python: tensor maps of arguments, multicasts, reductions, and the mistakes with them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target
from tilefold.compiler.frontend.source import plain_source

from tests.kernels.harness import STAGES
from tilefold import cute
from tilefold.cute.nvgpu import cpasync
from tilefold.cute.runtime import make_fake_tensor
from tilefold.driver.lowering import load

SHAPE = (64, 64)
ONE = cute.make_layout(1)


def swizzled() -> Any:
    return cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout(SHAPE, stride=(64, 1)))


def barrier() -> Any:
    return cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)


@cute.kernel(cluster=(2, 1, 1))
def shared_by_two(A: cute.Tensor, B: cute.Tensor):
    _, m, _ = cute.arch.block_idx()
    rank = cute.arch.block_idx_in_cluster()
    layout, pair = swizzled(), cute.make_layout((2, 1))
    op = cpasync.CopyBulkTensorTileG2SMulticastOp()
    atom, coords = cpasync.make_tiled_tma_atom(op, A, layout, SHAPE, num_multicast=2)
    of_bytes = cute.make_composed_layout(cute.make_swizzle(3, 4, 3), 0, layout.outer)
    out, coords_B = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), B, of_bytes, SHAPE)
    s = cute.group_modes(cute.make_smem_tensor(layout, cute.Float16, 1024), 0, 2)
    full = barrier()
    mask = cpasync.create_tma_multicast_mask(pair, (rank, 0), 0)
    g = cute.group_modes(cute.local_tile(coords, SHAPE, (m, 0)), 0, 2)
    gB = cute.group_modes(cute.local_tile(coords_B, SHAPE, (m, rank)), 0, 2)
    to, source = cpasync.tma_partition(atom, rank, cute.make_layout(2), s, g)
    back, target = cpasync.tma_partition(out, 0, ONE, s, gB)
    if cute.arch.thread_idx()[0] == 0:
        cpasync.prefetch_descriptor(atom)
        cute.prefetch(atom, source)
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    if cute.arch.thread_idx()[0] == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(full, 8192)
        cute.copy(atom, source, to, tma_bar_ptr=full, mcast_mask=mask, cache_policy=0x14F0000000000000)
        cute.arch.mbarrier_wait(full, 0)
        cute.copy(out, back, target)
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0, read=True)
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


@cute.kernel
def long_rows(A: cute.Tensor, B: cute.Tensor):
    layout = cute.make_layout(1024)
    atom, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), A, layout, (1024,))
    out, to = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), B, layout, (1024,))
    s, full, (block, _, _) = cute.make_smem_tensor(layout, cute.Float32, 128), barrier(), cute.arch.block_idx()
    sA, gA = cpasync.tma_partition(atom, 0, ONE, s, cute.local_tile(coords, (1024,), (block,)))
    sB, gB = cpasync.tma_partition(out, 0, ONE, s, cute.local_tile(to, (1024,), (block,)))
    if cute.arch.thread_idx()[0] == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(full, 4096)
        cute.copy(atom, gA, sA, tma_bar_ptr=full)
        cute.arch.mbarrier_wait(full, 0)
        cute.copy(out, sB, gB)
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0, read=True)


def test_rows_longer_than_a_box() -> None:
    A, B = np.arange(1500, dtype=np.float32), np.zeros(1500, np.float32)
    long_rows(A, B).launch(2, 32, device="sim")
    assert (A == B).all()


@pytest.mark.parametrize("stage", STAGES)
def test_two_blocks_load_a_tile_for_both(stage: str) -> None:
    A = np.random.default_rng(0).random((128, 64)).astype(np.float16)
    B = np.zeros((128, 128), np.float16)
    shared_by_two(A, B).launch(grid=(2, 2), block=32, device="sim", stage=stage)
    assert np.array_equal(B, np.concatenate([A, A], axis=1))


def test_the_text_compiles_to_the_same_program() -> None:
    A, B = np.zeros((128, 64), np.float16), np.zeros((128, 128), np.float16)
    built = shared_by_two(A, B).build(32)
    text = plain_source(built.to_cute(), "kernel.cute")
    assert load(text, "sm_90").ptx(Target("sm_90"), lines=False) == built.ptx("sm_90", lines=False)
    ptx = built.ptx("sm_90a")
    assert ptx.count(".multicast::cluster.L2::cache_hint") == 1
    assert ptx.count("prefetch.tensormap") == ptx.count("cp.async.bulk.prefetch.tensor") == 1
    assert ".local" not in ptx


@cute.kernel
def summed(A: cute.Tensor, B: cute.Tensor, kind: cute.Constexpr[Any]):
    t, m = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    layout = cute.make_layout((8, 32), stride=(32, 1))
    op = cpasync.CopyReduceBulkTensorTileS2GOp(kind)
    atom, coords = cpasync.make_tiled_tma_atom(op, B, layout, (8, 32))
    s = cute.make_smem_tensor(layout, A.element_type)
    for row in cute.range_constexpr(8):
        s[row, t] = A[m * 8 + row, t]
    cute.arch.fence_proxy("async")
    cute.arch.sync_threads()
    parts = cpasync.tma_partition(atom, 0, ONE, cute.group_modes(s, 0, 2), cute.group_modes(coords, 0, 2))
    if t == 0:
        cute.copy(atom, *parts)
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0)


def test_blocks_add_to_one_tile() -> None:
    A, B = np.random.default_rng(0).integers(0, 9, (32, 32)).astype(np.int32), np.zeros((8, 32), np.int32)
    summed(A, B, cute.ReductionOp.ADD).launch(grid=4, block=32, device="sim")
    assert np.array_equal(B, A.reshape(4, 8, 32).sum(axis=0))


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("kind", "dtype"), [
    (cute.ReductionOp.MAX, np.uint32), (cute.ReductionOp.MIN, np.uint32), (cute.ReductionOp.MAX, np.int32),
    (cute.ReductionOp.MIN, np.uint64), (cute.ReductionOp.MAX, np.int64),
])  # fmt: skip
def test_blocks_compare_with_one_tile(kind: Any, dtype: Any, stage: str) -> None:
    """Of integers with a sign and without, from both halves of their range."""
    bits, rng = np.iinfo(dtype), np.random.default_rng(0)
    A, B = (np.array(rng.integers(bits.min, bits.max, (rows, 32), dtype), dtype) for rows in (16, 8))
    several = np.concatenate([A.reshape(2, 8, 32), B[None]])
    summed(A, B, kind).launch(grid=2, block=32, device="sim", stage=stage)
    assert np.array_equal(B, several.max(axis=0) if kind is cute.ReductionOp.MAX else several.min(axis=0))


@cute.kernel
def rounded(A: cute.Tensor, B: cute.Tensor):
    layout, t = cute.make_layout((8, 32), stride=(32, 1)), cute.arch.thread_idx()[0]
    op, internal = cpasync.CopyBulkTensorTileG2SOp(), cute.TFloat32
    atom, coords = cpasync.make_tiled_tma_atom(op, A, layout, (8, 32), internal_type=internal)
    s, full = cute.make_smem_tensor(layout, cute.Float32, 128), barrier()
    to, source = cpasync.tma_partition(atom, 0, ONE, cute.group_modes(s, 0, 2), cute.group_modes(coords, 0, 2))
    if t == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(full, 1024)
        cute.copy(atom, source, to, tma_bar_ptr=full)
    cute.arch.sync_threads()
    cute.arch.mbarrier_wait(full, 0)
    for row in cute.range_constexpr(8):
        B[row, t] = s[row, t]


@pytest.mark.parametrize("stage", STAGES)
def test_loads_as_tf32_round(stage: str) -> None:
    A, B = np.random.default_rng(0).random((8, 32)).astype(np.float32), np.zeros((8, 32), np.float32)
    rounded(A, B).launch(grid=1, block=32, device="sim", stage=stage)
    assert not (B.view(np.uint32) & 0x1FFF).any()
    np.testing.assert_allclose(B, A, rtol=2**-11)
    assert (B != A).any()


def test_extents_and_strides_at_run_time() -> None:
    A = np.random.default_rng(0).random((128, 200)).astype(np.float16)[:, :64]
    B = np.zeros((128, 128), np.float16)
    shared_by_two(cute.dynamic(A, divisibility=64), B).launch(grid=(2, 2), block=32, device="sim")
    assert np.array_equal(B, np.concatenate([A, A], axis=1))


def _made(A: Any, **changes: Any) -> Any:
    given: dict[str, Any] = {
        "op": cpasync.CopyBulkTensorTileG2SOp(),
        "smem_layout": swizzled(),
        "cta_tiler": SHAPE,
        **changes,
    }
    return cpasync.make_tiled_tma_atom(gmem_tensor=A, **given)


def _parts(A: Any) -> Any:
    atom, coords = _made(A)
    s = cute.group_modes(cute.make_smem_tensor(swizzled(), cute.Float16, 1024), 0, 2)
    g = cute.group_modes(cute.local_tile(coords, SHAPE, (0, 0)), 0, 2)
    return atom, *cpasync.tma_partition(atom, 0, ONE, s, g)


def _no_barrier(A: Any) -> None:
    atom, s, g = _parts(A)
    cute.copy(atom, g, s)


def _wrong_barrier(A: Any) -> None:
    atom, s, g = _parts(A)
    cute.copy(atom, g, s, tma_bar_ptr=3)


def _predicates(A: Any) -> None:
    atom, s, g = _parts(A)
    cute.copy(atom, g, s, cute.make_rmem_tensor((1,), cute.Boolean), tma_bar_ptr=barrier())


def _barrier_of_another_copy(A: Any) -> None:
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float16)
    cute.copy(atom, A, A, tma_bar_ptr=barrier())


def _align(A: Any) -> None:
    atom, coords = _made(A)
    s = cute.group_modes(cute.make_smem_tensor(swizzled(), cute.Float16, 128), 0, 2)
    g = cute.group_modes(cute.local_tile(coords, SHAPE, (0, 0)), 0, 2)
    s, g = cpasync.tma_partition(atom, 0, ONE, s, g)
    cute.copy(atom, g, s, tma_bar_ptr=barrier())


def _block(A: Any) -> None:
    _made(cute.local_tile(A, SHAPE, (cute.arch.block_idx()[0], 0)))


MISTAKES: list[tuple[Callable[[Any], Any], str, str]] = [
    (lambda A: _made(A, op=cute.nvgpu.CopyUniversalOp()), "E5002", "expected a TMA copy"),
    (lambda A: _made(A, cta_tiler=(32, 64)), "E0323", "differ in size"),
    (lambda A: _made(A, num_multicast=2), "E0323", "does not load tiles for 2 blocks"),
    (lambda A: _made(A, smem_layout=cute.make_layout(SHAPE)), "E0322", "elements apart"),
    (lambda A: _made(A, num_multicast=cute.arch.thread_idx()[0]), "E5003", "tiles are static"),
    (lambda A: cute.prefetch(None, A), "E5002", "expected the atom of a TMA copy"),  # pyright: ignore[reportArgumentType]
    (lambda A: cpasync.create_tma_multicast_mask(cute.make_layout((4, 8)), (0, 7), 0), "E0323", "rank 31"),
    (_no_barrier, "E0324", "has no mbarrier"),
    (_wrong_barrier, "E5002", "expected the address of an element, got int"),
    (_predicates, "E5002", "a TMA copy has no predicates"),
    (_barrier_of_another_copy, "E5002", "only a TMA copy has an mbarrier"),
    (_align, "E0312", "aligned to 1024 bytes"),
]


@pytest.mark.parametrize(("mistake", "code", "said"), MISTAKES, ids=[f"{code} {said}" for _, code, said in MISTAKES])
def test_mistakes(mistake: Callable[[Any], Any], code: str, said: str) -> None:
    @cute.kernel
    def wrong(A: cute.Tensor):
        mistake(A)

    with pytest.raises(TilefoldError, match=said) as caught:
        wrong(np.zeros((128, 128), np.float16)).build(32)
    assert caught.value.code == code
    assert caught.value.hint or code in ("E0323", "E0312")


def test_a_map_of_a_tile_of_the_block_is_refused() -> None:
    @cute.kernel
    def wrong(A: cute.Tensor):
        _block(A)
        cpasync.prefetch_descriptor(_made(cute.local_tile(A, SHAPE, (cute.arch.block_idx()[0], 0)))[0])

    with pytest.raises(TilefoldError, match="depends on values of the kernel") as caught:
        wrong(np.zeros((128, 128), np.float16)).build(32).ptx("sm_90")
    assert caught.value.code == "E0322"


def test_a_map_of_a_tile_of_the_thread_is_refused_before_it_is_lowered() -> None:
    @cute.kernel
    def wrong(A: cute.Tensor):
        cpasync.prefetch_descriptor(_made(cute.local_tile(A, SHAPE, (cute.arch.thread_idx()[0], 0)))[0])

    with pytest.raises(TilefoldError, match="differs between threads") as caught:
        wrong(np.zeros((128, 128), np.float16)).launch(grid=1, block=2, device="sim", stage="cute")
    assert caught.value.code == "E0322"


def test_no_smallest_of_small_integers() -> None:
    A = np.zeros((32, 32), np.uint8)
    with pytest.raises(TilefoldError, match="does not combine elements of type i8") as caught:
        summed(A, np.zeros((8, 32), np.uint8), cute.ReductionOp.MIN).build(32)
    assert caught.value.code == "E0304"


def test_a_launch_refuses_a_tensor_without_a_map() -> None:
    A, B = np.zeros((128, 68), np.float16), np.zeros((128, 128), np.float16)
    with pytest.raises(TilefoldError, match="a stride of 136 bytes") as caught:
        shared_by_two(cute.dynamic(A[:, :64], divisibility=64), B).launch(grid=(2, 2), block=32, device="sim")
    assert caught.value.code == "E0322"
    behind = np.zeros(128 * 64 + 4, np.float16)[4:].reshape(128, 64)
    with pytest.raises(TilefoldError, match="it begins at the address") as caught:
        shared_by_two(behind, B).launch(grid=(2, 2), block=32, device="sim")
    assert caught.value.code == "E0322"


def test_a_map_of_a_tensor_whose_contiguous_stride_only_calls_know() -> None:
    @cute.kernel
    def prefetch(atom: Any) -> None:
        cpasync.prefetch_descriptor(atom)

    @cute.jit
    def host(A: cute.Tensor) -> None:
        tile = cute.make_layout((8, 32), stride=(32, 1))
        atom, _ = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), A, tile, (8, 32))
        prefetch(atom).launch(grid=1, block=32)

    shape = cute.sym_int(), cute.sym_int()
    strides = cute.sym_int(divisibility=4), cute.sym_int()
    compiled: Any = cute.compile(host, make_fake_tensor(cute.Float32, shape, strides, assumed_align=16))
    compiled(np.zeros((16, 64), np.float32))
    with pytest.raises(TilefoldError, match="neighbours in its tile are"):
        compiled(np.zeros((16, 64), np.float32, order="F"))


@cute.kernel
def in_parts(A: cute.Tensor, B: cute.Tensor):
    """Loads the halves of the map's tile one by one, the second one first, as other tiles of shared memory are."""
    t, _, _ = cute.arch.thread_idx()
    swizzle, stages = cute.make_swizzle(3, 3, 3), cute.make_layout((64, 64, 2), stride=(64, 1, 4096))
    whole = cute.make_composed_layout(swizzle, 0, cute.make_layout((64, (64, 2)), stride=(64, (1, 4096))))
    atom, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), A, whole, (64, 128))
    sA = cute.make_smem_tensor(cute.make_composed_layout(swizzle, 0, stages), cute.Float16, 1024)
    gA = cute.local_tile(coords, SHAPE, (0, None))
    tAsA, tAgA = cpasync.tma_partition(atom, 0, ONE, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2))
    bar = cute.make_smem_tensor(1, cute.Int64).iterator
    if t == 0:
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    if t == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(bar, 2 * 64 * 64 * 2)
        for k in cute.range_constexpr(2):
            cute.copy(atom, tAgA[None, k], tAsA[None, 1 - k], tma_bar_ptr=bar)
    cute.arch.mbarrier_wait(bar, 0)
    for k in cute.range(64):
        B[t, k], B[t, 64 + k] = sA[t, k, 1], sA[t, k, 0]


def test_tiles_are_parts_of_the_tile_of_a_map() -> None:
    A = np.arange(64 * 128, dtype=np.float16).reshape(64, 128)
    for stage in STAGES:
        B = np.zeros_like(A)
        in_parts(A, B).launch(grid=1, block=64, device="sim", stage=stage)
        assert np.array_equal(A, B)


@cute.kernel
def pipelined(A: cute.Tensor, B: cute.Tensor, bytes: cute.Constexpr[int]):
    """Warp 0 loads the tiles of a row of tiles through two stages, the other warps add them up."""
    t, m = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    stages = cute.make_layout((64, 64, 2), stride=(64, 1, 4096))
    staged = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, stages)
    atom, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), A, swizzled(), SHAPE)
    sA = cute.make_smem_tensor(staged, cute.Float16, 1024)
    gA = cute.local_tile(coords, SHAPE, (m, None))
    tAsA, tAgA = cpasync.tma_partition(atom, 0, ONE, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2))
    group = cute.pipeline.CooperativeGroup
    agent = cute.pipeline.Agent.Thread
    bars = cute.make_smem_tensor(4, cute.Int64)
    pipe = cute.pipeline.PipelineTmaAsync.create(
        num_stages=2, producer_group=group(agent), consumer_group=group(agent, 2), tx_count=bytes,
        barrier_storage=bars.iterator,
    )  # fmt: skip
    producer, consumer = pipe.make_participants()
    if cute.arch.warp_idx() == 0:
        for k in cute.range(cute.size(tAgA, 1)):
            stage = producer.acquire_and_advance()
            with cute.arch.elect_one():
                cute.copy(atom, tAgA[None, k], tAsA[None, stage.index], tma_bar_ptr=stage.barrier)
            stage.commit()
        producer.tail()
    else:
        row, total = t - 32, cute.Float32(0)
        for _ in cute.range(cute.size(tAgA, 1)):
            stage = consumer.wait_and_advance()
            for k in cute.range(64):
                total += sA[row, k, stage.index].to(cute.Float32)
            stage.release()
        B[m * 64 + row] = total


def test_a_pipeline_of_tma_copies() -> None:
    A, B = np.random.default_rng(0).integers(0, 9, (128, 320)).astype(np.float16), np.zeros(128, np.float32)
    for stage in STAGES:
        B[:] = 0
        pipelined(A, B, 8192).launch(grid=2, block=96, device="sim", stage=stage)
        assert np.array_equal(B, A.sum(axis=1, dtype=np.float32))


def test_a_pipeline_expects_the_bytes_of_its_tma_copies() -> None:
    with pytest.raises(TilefoldError, match="have 8192 bytes, but the pipeline expects 4096") as caught:
        pipelined(np.zeros((64, 64), np.float16), np.zeros(64, np.float32), 4096).build(96)
    assert caught.value.code == "E5011"


@pytest.mark.parametrize("stage", STAGES)
def test_rows_that_copies_cannot_store_are_refused(stage: str) -> None:
    """At the launch, which names the argument; from shared memory to 60 of 64 columns."""

    @cute.kernel
    def stored(B: cute.Tensor):
        layout, t = cute.make_layout((8, 64), stride=(64, 1)), cute.arch.thread_idx()[0]
        atom, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), B, layout, (8, 64))
        s = cute.make_smem_tensor(layout, cute.Float16, 128)
        for row in cute.range_constexpr(8):
            s[row, t] = cute.Float16(1)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        g = cute.group_modes(cute.local_tile(coords, (8, 64), (0, 0)), 0, 2)
        part, target = cpasync.tma_partition(atom, 0, ONE, cute.group_modes(s, 0, 2), g)
        if t == 0:
            cute.copy(atom, part, target)
            cute.arch.cp_async_bulk_commit_group()
            cute.arch.cp_async_bulk_wait_group(0, read=True)

    B = np.zeros((8, 64), np.float16)
    stored(B[:, :56]).launch(grid=1, block=64, device="sim", stage=stage)
    assert (B[:, :56] == 1).all()
    assert not B[:, 56:].any()
    with pytest.raises(TilefoldError, match="rows have 120 bytes; GPUs write multiples of 16") as caught:
        stored(B[:, :60]).launch(grid=1, block=64, device="sim", stage=stage)
    assert caught.value.code == "E0322"
