# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in Python with a planted fault each, in the order of blocks and warps: turns, flags, peers, barriers. A line
that a report must name ends in `# !`.
"""

from tests.planted.python_kernels import protocol
from tilefold import cute

Switch = cute.Constexpr[bool]


@protocol("a peer that ends while its memory is read", "E3220", shape=(128,), grid=2)
@cute.kernel(cluster=(2, 1, 1))
def ends(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    t, j = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    s = cute.make_smem_tensor(cute.make_layout(64), cute.Float32)
    s[t] = a[j * 64 + t]
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    theirs = cute.make_tensor(cute.arch.map_dsmem_ptr(s.iterator, j ^ 1), cute.make_layout(64))
    b[j * 64 + t] = theirs[63 - t]  # !
    if right:
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()


@protocol("a store to a peer that may not have begun", "E3218", shape=(128,), grid=2)
@cute.kernel(cluster=(2, 1, 1))
def begins(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    t, j = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    s = cute.make_smem_tensor(cute.make_layout(64), cute.Float32)
    if right:
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
    theirs = cute.make_tensor(cute.arch.map_dsmem_ptr(s.iterator, j ^ 1), cute.make_layout(64))
    theirs[63 - t] = a[j * 64 + t]  # !
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    b[j * 64 + t] = s[t]


@protocol("a relaxed arrival at a cluster barrier behind a store", "E3205", shape=(128,), grid=2)
@cute.kernel(cluster=(2, 1, 1))
def relaxed(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    t, j = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    s = cute.make_smem_tensor(cute.make_layout(64), cute.Float32)
    s[t] = a[j * 64 + t]  # !
    if right:
        cute.arch.cluster_arrive()
    else:
        cute.arch.cluster_arrive_relaxed()
    cute.arch.cluster_wait()
    theirs = cute.make_tensor(cute.arch.map_dsmem_ptr(s.iterator, j ^ 1), cute.make_layout(64))
    b[j * 64 + t] = theirs[63 - t]  # !
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


@protocol("half of the bytes that peers store are expected", "E3206", shape=(128,), grid=2)
@cute.kernel(cluster=(2, 1, 1))
def dsmem(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    t, j = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    s = cute.make_smem_tensor(cute.make_layout(64), cute.Float32)
    bar = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    if t == 0:
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(bar, 256 if right else 128)
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    cute.arch.store_async_dsmem(s.iterator + t, a[j * 64 + t], bar, j ^ 1)  # !
    cute.arch.mbarrier_wait(bar, 0, scope="cluster")
    b[j * 64 + t] = s[63 - t]  # !
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


@cute.jit
def add_in_turn(a: cute.Tensor, b: cute.Tensor, meets: bool, order: str) -> None:
    """Blocks add to the first 64 elements of b one after the other; the next element counts those that are done."""
    t, j = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    flag = cute.recast_ptr(b.iterator + 64, dtype=cute.Int32)
    if t == 0:
        while cute.arch.load(flag, sem="acquire", scope="gpu") != j:
            pass
    cute.arch.sync_threads()
    b[t] = b[t] + a[j * 64 + t]  # !
    if meets:
        cute.arch.sync_threads()
    if t == 0:
        cute.arch.store(flag, j + 1, sem=order, scope="gpu")


@protocol("split-K: a semaphore is released before the other warps have stored", "E3205", shape=(256,), grid=4)
@cute.kernel
def semaphore(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    add_in_turn(a, b, right, "release")


@protocol("split-K: a semaphore whose release is relaxed", "E3205", shape=(256,), grid=4)
@cute.kernel
def semaphore_relaxed(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    add_in_turn(a, b, True, "release" if right else "relaxed")


@protocol("split-K: the last block sums without acquiring", "E3205", shape=(256,), grid=4)
@cute.kernel
def last(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    t, j = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    is_last = cute.make_smem_tensor(cute.make_layout(1), cute.Int32)
    part = cute.make_tensor(a.iterator, cute.make_layout((4, 64), stride=(64, 1)))
    part[j, t] = part[j, t] + 1.0  # !
    cute.arch.sync_threads()
    if t == 0:
        count = cute.recast_ptr(b.iterator + 64, dtype=cute.Int32)
        is_last[0] = cute.arch.atomic_add(count, 1, sem="acq_rel" if right else "release", scope="gpu")
    cute.arch.sync_threads()
    if is_last[0] == 3:
        total = cute.Float32(0)
        for k in cute.range(4):
            total += part[k, t]  # !
        b[t] = total


@protocol("stream-K: a part is published before all threads have stored it", "E3205", shape=(192,), grid=2)
@cute.kernel
def stream_k(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    t, j = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    flag = cute.recast_ptr(b.iterator + 128, dtype=cute.Int32)
    if j == 0:
        b[64 + t] = a[64 + t] * 2.0  # !
        if right:
            cute.arch.sync_threads()
        if t == 0:
            cute.arch.fence_acq_rel_gpu()
            cute.arch.store(flag, 1, sem="relaxed", scope="gpu")
    else:
        if t == 0:
            while cute.arch.load(flag, sem="acquire", scope="gpu") == 0:
                pass
        cute.arch.sync_threads()
        b[t] = a[t] + b[64 + t]  # !


@protocol("blocks count with the scope of a block", "E3205", grid=4)
@cute.kernel
def scope(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    at = cute.recast_ptr(b.iterator, dtype=cute.Int32)
    cute.arch.atomic_add(at, 1, sem="relaxed", scope="gpu" if right else "cta")  # !


@protocol("two pairs of warps at one named barrier", "E3207", shape=(128,), block=128)
@cute.kernel
def named(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    t = cute.arch.thread_idx()[0]
    s = cute.make_smem_tensor(cute.make_layout(128), cute.Float32)
    s[t] = a[t]
    group = cute.arch.make_warp_uniform(t // 64)
    cute.arch.barrier(barrier_id=1 + group if right else 1, number_of_threads=64)  # !
    b[t] = s[t ^ 63]


@protocol("a barrier of 96 threads for 64", "E3207", shape=(128,), block=128)
@cute.kernel
def count(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    t = cute.arch.thread_idx()[0]
    s = cute.make_smem_tensor(cute.make_layout(128), cute.Float32)
    s[t] = a[t]
    b[t] = a[t]
    if t < 64:
        cute.arch.barrier(barrier_id=1, number_of_threads=64 if right else 96)  # !
        b[t] = s[63 - t]


@protocol("a shuffle by half of the lanes that names all", "E3208")
@cute.kernel
def shuffle(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    t = cute.arch.thread_idx()[0]
    x = a[t]
    b[t] = x
    if t % 32 < 16:
        b[t] = cute.arch.shuffle_sync_bfly(x, 8, 0xFFFF if right else -1)  # !


@protocol("an mbarrier that others use before it is initialised", "E3215")
@cute.kernel
def initialised(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    t = cute.arch.thread_idx()[0]
    s = cute.make_smem_tensor(cute.make_layout(64), cute.Float32)
    bar = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    if t == 32:
        cute.arch.mbarrier_init(bar, 64)
    if right:
        cute.arch.sync_threads()
    s[t] = a[t]
    cute.arch.mbarrier_arrive(bar)  # !
    cute.arch.mbarrier_wait(bar, 0)
    b[t] = s[63 - t]


@protocol("one lane arrives before the others have stored", "E3205")
@cute.kernel
def elected(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    t = cute.arch.thread_idx()[0]
    s = cute.make_smem_tensor(cute.make_layout(64), cute.Float32)
    bar = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    if t == 0:
        cute.arch.mbarrier_init(bar, 2)
    cute.arch.sync_threads()
    s[t] = a[t]  # !
    if right:
        cute.arch.sync_warp()
    with cute.arch.elect_one():
        cute.arch.mbarrier_arrive(bar)
    cute.arch.mbarrier_wait(bar, 0)
    b[t] = s[63 - t]  # !


@protocol("one warp of a warpgroup keeps its registers", "E3208", shape=(256,), block=256)
@cute.kernel
def registers(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    t = cute.arch.thread_idx()[0]
    warp = cute.arch.warp_idx()
    if warp < 4:
        if right or warp < 3:
            cute.arch.setmaxregister_decrease(40)  # !
        b[t] = a[t]
    else:
        cute.arch.setmaxregister_increase(160)
        b[t] = a[t] * 2.0


@protocol("a histogram whose bins no one clears", "E3204")
@cute.kernel
def bins(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    t = cute.arch.thread_idx()[0]
    h = cute.make_smem_tensor(cute.make_layout(64), cute.Int32)
    if right:
        h[t] = 0
        cute.arch.sync_threads()
    cute.arch.atomic_add(h.iterator + a[t].to(cute.Int32) % 8, 1)  # !
    cute.arch.sync_threads()
    b[t] = h[t % 8].to(cute.Float32)  # !


@protocol("a scan in one buffer", "E3205")
@cute.kernel
def scan(a: cute.Tensor, b: cute.Tensor, right: Switch) -> None:
    t = cute.arch.thread_idx()[0]
    s = cute.make_smem_tensor(cute.make_layout(64), cute.Float32)
    s[t] = a[t]
    cute.arch.sync_threads()
    d = 1
    while d < 64:
        x = s[t]
        if t >= d:
            x += s[t - d]  # !
        if right:
            cute.arch.sync_threads()
        s[t] = x  # !
        cute.arch.sync_threads()
        d *= 2
    b[t] = s[t]
