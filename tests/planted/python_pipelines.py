# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in Python with a planted fault each, in their asynchronous copies and products. A line that a report must
name ends in `# !`.
"""

from collections.abc import Callable
from typing import Any

from tests.planted.python_kernels import protocol
from tilefold import cute
from tilefold.cute import pipeline
from tilefold.cute.nvgpu import cpasync, warp, warpgroup
from tilefold.cute.utils import LayoutEnum, hopper_helpers

Switch = cute.Constexpr[bool]
ONE = pipeline.CooperativeGroup(pipeline.Agent.Thread)
BOX = 8 * 32 * 4


def boxes(a: cute.Tensor) -> tuple[Any, Any, Any, Any]:
    """The load of boxes of 8 rows, two stages, and their parts by instructions."""
    layout = cute.make_layout((8, 32), stride=(32, 1))
    load, all_a = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, layout, (8, 32))
    s = cute.make_smem_tensor(cute.make_layout((8, 32, 2), stride=(32, 1, 256)), cute.Float32, 128)
    g = cute.local_tile(all_a, (8, 32), (None, 0))
    to, source = cpasync.tma_partition(
        load, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2)
    )
    return load, s, to, source


@cute.jit
def sum_of_boxes(a: cute.Tensor, b: cute.Tensor, release: Callable[[Any, bool], None]) -> None:
    """One warp loads boxes, another adds up their columns; `release` gives a stage back, before and after the reads."""
    t = cute.arch.thread_idx()[0]
    load, s, to, source = boxes(a)
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=2, producer_group=ONE, consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 1),
        tx_count=BOX,
    )  # fmt: skip
    producer, consumer = pipe.make_participants()
    if cute.arch.warp_idx() == 0:
        for k in cute.range(4):
            stage = producer.acquire_and_advance()  # !
            with cute.arch.elect_one():
                cute.copy(load, source[None, k], to[None, stage.index], tma_bar_ptr=stage.barrier)  # !
            stage.commit()
    else:
        total = cute.Float32(0)
        for _ in cute.range(4):
            stage = consumer.wait_and_advance()
            release(stage, False)
            for row in cute.range(8):
                total += s[row, t - 32, stage.index]  # !
            release(stage, True)
        b[0, t - 32] = total


@protocol("a consumer that never releases", "E3207", shape=(32, 32))
@cute.kernel
def unreleased(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    sum_of_boxes(a, b, lambda stage, behind: stage.release() if right and behind else None)


@protocol("a release before the reads", "E3205", shape=(32, 32))
@cute.kernel
def early(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    sum_of_boxes(a, b, lambda stage, behind: stage.release() if behind == right else None)


@protocol("the parity of the round, not of the ring", "E3206", shape=(32, 32))
@cute.kernel
def parity(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    t = cute.arch.thread_idx()[0]
    load, s, to, source = boxes(a)
    full, empty = (cute.make_smem_tensor((2,), cute.Int64, 8) for _ in range(2))
    if t == 0:
        for k in cute.range_constexpr(2):
            cute.arch.mbarrier_init(full.ptr(k), 1)
            cute.arch.mbarrier_init(empty.ptr(k), 32)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    if cute.arch.warp_idx() == 0:
        for k in cute.range(4):
            cute.arch.mbarrier_wait(empty.ptr(k % 2), (k // 2) % 2 ^ 1)
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(full.ptr(k % 2), BOX)
                cute.copy(load, source[None, k], to[None, k % 2], tma_bar_ptr=full.ptr(k % 2))  # !
    else:
        total = cute.Float32(0)
        for k in cute.range(4):
            cute.arch.mbarrier_wait(full.ptr(k % 2), (k // 2) % 2 if right else k % 2)
            for row in cute.range(8):
                total += s[row, t - 32, k % 2]  # !
            cute.arch.mbarrier_arrive(empty.ptr(k % 2))
        b[0, t - 32] = total


@cute.jit
def scaled_boxes(a: cute.Tensor, b: cute.Tensor, *, fenced: bool, read: bool, committed: bool) -> None:
    """A warp scales boxes of 8 rows in one buffer, of which a thread stores them by TMA."""
    t = cute.arch.thread_idx()[0]
    layout = cute.make_layout((8, 32), stride=(32, 1))
    store, all_b = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), b, layout, (8, 32))
    s = cute.make_smem_tensor(layout, cute.Float32, 128)
    for m in cute.range(4):
        for row in cute.range_constexpr(8):
            s[row, t] = a[m * 8 + row, t] * 2.0  # !
        if fenced:
            cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        tile = cute.group_modes(cute.local_tile(all_b, (8, 32), (m, 0)), 0, 2)
        back, target = cpasync.tma_partition(store, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), tile)
        if t == 0:
            cute.copy(store, back, target)  # !
            if committed:
                cute.arch.cp_async_bulk_commit_group()
            if read:
                cute.arch.cp_async_bulk_wait_group(0, read=True)
        cute.arch.sync_threads()


@protocol("a buffer filled again while TMA reads it", "E3206", shape=(32, 32), block=32)
@cute.kernel
def refilled(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    scaled_boxes(a, b, fenced=True, read=right, committed=True)


@protocol("rows scaled for TMA without a fence", "E3216", shape=(32, 32), block=32)
@cute.kernel
def unfenced(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    scaled_boxes(a, b, fenced=right, read=True, committed=True)


@protocol("a wait for a group that nobody commits", "E3206", shape=(32, 32), block=32)
@cute.kernel
def uncommitted(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    scaled_boxes(a, b, fenced=True, read=True, committed=right)


@protocol("stores by stmatrix, and no fence before TMA reads them", "E3216", shape=(16, 32), block=32, types="hh")
@cute.kernel
def stmatrix(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    t = cute.arch.thread_idx()[0]
    layout = cute.make_layout((16, 32), stride=(32, 1))
    s = cute.make_smem_tensor(layout, cute.Float16, 128)
    store, all_b = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), b, layout, (16, 32))
    r = cute.make_rmem_tensor(cute.make_layout(8), cute.Float16)
    r.fill(1.0)
    atom = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), cute.Float16)
    for half in cute.range_constexpr(2):
        row = cute.local_tile(s, (1, 8), (t % 16, 2 * half + t // 16))
        cute.copy(atom, r, cute.make_tensor(row.iterator, cute.make_layout(8)))  # !
    if right:
        cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    tile = cute.group_modes(cute.local_tile(all_b, (16, 32), (0, 0)), 0, 2)
    back, target = cpasync.tma_partition(store, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), tile)
    if t == 0:
        cute.copy(store, back, target)  # !
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0, read=True)


@protocol("rows of ldmatrix beyond the tile", "E3202", shape=(16, 16), block=32, types="hh")
@cute.kernel
def ldmatrix(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    t = cute.arch.thread_idx()[0]
    s = cute.make_smem_tensor(cute.make_layout((16, 16), stride=(16, 1)), cute.Float16, 128)
    for k in cute.range_constexpr(8):
        s[k * 2 + t // 16, t % 16] = a[k * 2 + t // 16, t % 16]
    cute.arch.sync_warp()
    r = cute.make_rmem_tensor(cute.make_layout(8), cute.Float16)
    atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cute.Float16)
    row = cute.local_tile(s, (1, 8), (t % 16, t // 16) if right else (t, 0))  # !
    cute.copy(atom, cute.make_tensor(row.iterator, cute.make_layout(8)), r)  # !
    for k in cute.range_constexpr(8):
        b[t // 2, t % 2 * 8 + k] = r[k]


@cute.jit
def copy_rows(a: cute.Tensor, b: cute.Tensor, *, left: int, meets: bool) -> None:
    """Rows by cp.async, two ahead in a ring of three, of which other threads read."""
    t = cute.arch.thread_idx()[0]
    s = cute.make_smem_tensor(cute.make_layout((3, 64), stride=(64, 1)), cute.Float32, 128)
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=32)
    for k in cute.range_constexpr(2):
        cute.copy(atom, cute.local_tile(a, (1, 1), (k, t)), cute.local_tile(s, (1, 1), (k, t)))
        cute.arch.cp_async_commit_group()
    for k in cute.range(8):
        cute.arch.cp_async_wait_group(left)
        if meets:
            cute.arch.sync_threads()
        b[k, t] = s[k % 3, 63 - t]  # !
        if k + 2 < 8:
            cute.copy(atom, cute.local_tile(a, (1, 1), (k + 2, t)), cute.local_tile(s, (1, 1), ((k + 2) % 3, t)))
        cute.arch.cp_async_commit_group()


@protocol("a wait for one group of cp.async too few", "E3206", shape=(8, 64))
@cute.kernel
def groups(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    copy_rows(a, b, left=1 if right else 2, meets=True)


@protocol("no barrier behind the wait for cp.async", "E3205", shape=(8, 64))
@cute.kernel
def unmet(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    copy_rows(a, b, left=1, meets=right)


@cute.jit
def multiply(
    a: cute.Tensor, b: cute.Tensor, *, proxy: bool = True, fence: bool = True, commit: bool = True, adds: bool = False,
    left: int = 0, rounds: int = 1,
) -> None:  # fmt: skip
    """A product of a tile by itself, which the threads write to shared memory, once or twice."""
    t = cute.arch.thread_idx()[0]
    layout = hopper_helpers.make_smem_layout_a(LayoutEnum.ROW_MAJOR, (64, 64, 64), cute.Float16, 1)
    s = cute.make_smem_tensor(layout, cute.Float16, 1024)
    major = warpgroup.OperandMajorMode.K
    mma = hopper_helpers.make_trivial_tiled_mma(
        cute.Float16, cute.Float16, major, major, cute.Float32, (1, 1, 1), (64, 64)
    )
    thr = mma.get_slice(t)
    rA, rB = mma.make_fragment_A(thr.partition_A(s)), mma.make_fragment_B(thr.partition_B(s))
    gD = thr.partition_C(b)
    acc = mma.make_fragment_C(gD)
    if not adds:
        acc.fill(1.0)  # !
    for _ in cute.range_constexpr(rounds):
        for k in cute.range(32):
            s[k * 2 + t // 64, t % 64, 0] = a[k * 2 + t // 64, t % 64]  # !
        if proxy:
            cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        if fence:
            warpgroup.fence()
        mma.set(warpgroup.Field.ACCUMULATE, True)
        for step in cute.range_constexpr(cute.size(rA, 2)):
            cute.gemm(mma, acc, rA[None, None, step, 0], rB[None, None, step, 0], acc)  # !
        if commit:
            warpgroup.commit_group()
        warpgroup.wait_group(left)
        cute.arch.sync_threads()
    if left:
        warpgroup.wait_group(0)
    cute.autovec_copy(acc, gD)  # !


PRODUCT: Any = {"shape": (64, 64), "block": 128, "types": "hf"}


@protocol("an operand of a product written without a proxy fence", "E3216", **PRODUCT)
@cute.kernel
def operand(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    multiply(a, b, proxy=right)


@protocol("sums set before a product, and no fence", "E3225", **PRODUCT)
@cute.kernel
def accumulator(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    multiply(a, b, fence=right)


@protocol("sums stored while the product writes them", "E3206", **PRODUCT)
@cute.kernel
def sums(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    multiply(a, b, commit=right)


@protocol("a product adds to sums that nobody has set", "E3204", **PRODUCT)
@cute.kernel
def unset(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    multiply(a, b, adds=not right)


@protocol("an operand written again while the product reads it", "E3206", **PRODUCT)
@cute.kernel
def again(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    multiply(a, b, left=0 if right else 1, rounds=2)
