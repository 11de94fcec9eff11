# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipelines between producers and consumers: their results, what loops carry of them, and the mistakes with them."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.compiler.frontend.diagnostics import ProgramError

from tilefold import cute
from tilefold.cute import pipeline

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

TILE, COUNT = 64, 9
"""Elements of a stage, and how often a stage is filled."""
THREAD = pipeline.Agent.Thread
PRODUCER, CONSUMER = pipeline.PipelineUserType.Producer, pipeline.PipelineUserType.Consumer


def group(size: int = 1) -> pipeline.CooperativeGroup:
    return pipeline.CooperativeGroup(THREAD, size)


def tiles() -> tuple[Any, Any]:
    """(64,9) in memory tile by tile, and where twice of it goes."""
    source = np.arange(TILE * COUNT, dtype=np.float32).reshape(COUNT, TILE)
    return source.T, np.full((COUNT, TILE), np.nan, np.float32).T


def check(kernel: Any, *constants: Any, block: int = 96) -> None:
    """A kernel doubles its tiles, in every order of warps."""
    for seed in range(4):
        A, B = tiles()
        kernel(A, B, *constants).launch(1, block, device="sim", seed=seed)
        np.testing.assert_array_equal(B, 2 * A)


@cute.kernel
def by_bulk_copies(A, B, stages: cute.Constexpr, bytes: cute.Constexpr = 4 * TILE, warps: cute.Constexpr = 2):
    """Warp 0 loads, warps 1 and 2 read."""
    t, _, _ = cute.arch.thread_idx()
    sA = cute.make_smem_tensor((TILE, stages), cute.Float32)
    bars = cute.make_smem_tensor(2 * stages, cute.Int64)
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=stages,
        producer_group=group(),
        consumer_group=group(warps),
        tx_count=bytes,
        barrier_storage=bars.iterator,
    )
    if cute.arch.warp_idx() == 0:
        state = pipeline.make_pipeline_state(PRODUCER, stages)
        for _ in cute.range(A.shape[1]):
            pipe.producer_acquire(state)
            bar = pipe.producer_get_barrier(state)
            with cute.arch.elect_one():
                cute.arch.cp_async_bulk_load(sA.ptr(0, state.index), A.ptr(0, state.count), 4 * TILE, bar)
            pipe.producer_commit(state)
            state.advance()
        pipe.producer_tail(state)
    else:
        state = pipeline.make_pipeline_state(CONSUMER, stages)
        for i in cute.range(A.shape[1]):
            pipe.consumer_wait(state)
            B[t - 32, i] = sA[t - 32, state.index] * 2.0
            pipe.consumer_release(state)
            state.advance()


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.sampled(2)
def test_bulk_copies(stages: int) -> None:
    check(by_bulk_copies, stages)


def test_loops_stay_loops_and_carry_the_state() -> None:
    A, B = tiles()
    text = by_bulk_copies(A, B, 4).build(96).ir()
    assert text.count("scf.for") == 2
    assert text.count("-> (i32, i32, i32") == 2  # stage, phase and count, of the producer and of the consumer
    assert "arith.divui" not in text.split("scf.for", 1)[1], "the stage wraps by a comparison"


@cute.kernel
def by_threads(A, B, stages: cute.Constexpr):
    """Threads of warp 0 store what warps 1 and 2 read; sides have states of their own, and tokens say what is ready."""
    t, _, _ = cute.arch.thread_idx()
    sA = cute.make_smem_tensor((TILE, stages), cute.Float32)
    pipe = pipeline.PipelineAsync.create(num_stages=stages, producer_group=group(32), consumer_group=group(64))
    producer, consumer = pipe.make_participants()
    if t < 32:
        for i in cute.range(A.shape[1]):
            stage = producer.acquire_and_advance(producer.try_acquire())
            sA[t, stage.index] = A[t, stage.count]
            sA[t + 32, stage.index] = A[t + 32, i]
            stage.commit()
        producer.tail()
    else:
        token, releaser = consumer.try_wait(), consumer.clone()
        for i in cute.range(A.shape[1]):
            stage = consumer.wait_and_advance(token)
            B[t - 32, i] = sA[t - 32, stage.index] * 2.0
            releaser.release()
            releaser.advance()
            token = cute.Boolean(1)
            if i + 1 < A.shape[1]:
                token = consumer.try_wait()


@pytest.mark.parametrize("stages", [1, 2, 5])
def test_threads(stages: int) -> None:
    check(by_threads, stages)


@cute.kernel
def by_cp_async(A, B, stages: cute.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    sA = cute.make_smem_tensor((TILE, stages), cute.Float32)
    pipe = pipeline.PipelineCpAsync.create(num_stages=stages, producer_group=group(64), consumer_group=group(32))
    producer, consumer = pipe.make_producer(), pipe.make_consumer()
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=32)
    part = cute.make_tiled_copy_tv(atom, cute.make_layout(64), cute.make_layout(1)).get_slice(t)
    if t < 64:
        for i in cute.range(A.shape[1]):
            producer.acquire()
            stage = producer.state.index
            cute.copy(part, part.partition_S(A[None, i]), part.partition_D(sA[None, stage]))
            producer.commit()
            producer.advance()
        producer.tail()
    else:
        for i in cute.range(A.shape[1]):
            stage = consumer.wait()
            for half in cute.range(2, unroll_full=True):
                at = t - 64 + 32 * half
                B[at, i] = sA[at, stage.index] * 2.0
            consumer.release()
            consumer.advance()


@pytest.mark.parametrize("stages", [1, 3])
def test_cp_async(stages: int) -> None:
    check(by_cp_async, stages)


@cute.kernel
def by_stores(A, B, stages: cute.Constexpr):
    """All threads fill a stage, and one copies it to global memory while the next is filled."""
    t, _, _ = cute.arch.thread_idx()
    sB = cute.make_smem_tensor((TILE, stages), cute.Float32)
    stores = pipeline.PipelineTmaStore.create(num_stages=stages, producer_group=group(TILE))
    met = pipeline.NamedBarrier(barrier_id=1, num_threads=TILE)
    state = pipeline.make_pipeline_state(PRODUCER, stages)
    for i in cute.range(A.shape[1]):
        sB[t, state.index] = A[t, i] * 2.0
        cute.arch.fence_proxy("async")
        met.arrive_and_wait()
        if t == 0:
            cute.arch.cp_async_bulk_store(B.ptr(0, i), sB.ptr(0, state.index), 4 * TILE)
            stores.producer_commit()
            stores.producer_acquire()
        met.arrive_and_wait()
        state.advance()
    if t == 0:
        stores.producer_tail()


@pytest.mark.parametrize("stages", [1, 2, 4])
def test_stores(stages: int) -> None:
    check(by_stores, stages, block=TILE)


@cute.kernel
def at_a_chosen_barrier(A):
    """Pairs of warps meet at a barrier whose number a branch chooses."""
    t, _, _ = cute.arch.thread_idx()
    pair = t // 64
    met = pipeline.NamedBarrier.create(1, 64)
    s = cute.make_smem_tensor(128, cute.Int32)
    s[t] = t
    if pair == 1:
        met = pipeline.NamedBarrier(met.barrier_id + pair, 64)
    met.arrive_and_wait()
    A[t] = s[t ^ 63]


def test_a_barrier_that_a_branch_chooses() -> None:
    a = np.zeros(128, np.int32)
    at_a_chosen_barrier(a).launch(grid=1, block=128, device="sim")
    assert a.tolist() == [t ^ 63 for t in range(128)]


def test_groups_take_turns() -> None:
    @cute.kernel
    def kernel(out):
        t, _, _ = cute.arch.thread_idx()
        turn = pipeline.PipelineOrder.create(depth=1, length=3, group_id=t // 32, producer_group=group(32))
        place = cute.make_smem_tensor(1, cute.Int32)
        if t == 0:
            place[0] = 0
        pipeline.sync()
        for _ in cute.range(4):
            turn.wait()
            if t % 32 == 0:
                out[place[0]] = t // 32
                place[0] = place[0] + 1
            turn.arrive()

    for seed in range(4):
        out = np.full(12, -1, np.int32)
        kernel(out).launch(1, 96, device="sim", seed=seed)
        assert out.tolist() == [0, 1, 2] * 4


def test_groups_take_turns_in_two_kinds_of_work() -> None:
    """Group 0 does its second work while group 1 does its first: two arrivals lie between those of one thread."""

    @cute.kernel
    def kernel(out):
        t, _, _ = cute.arch.thread_idx()
        work = pipeline.PipelineOrder.create(depth=2, length=2, group_id=t // 32, producer_group=group(32))
        pipeline.sync()
        for _ in cute.range(3):
            for kind in cute.range_constexpr(2):
                work.wait()
                out[kind, t % 32] = out[kind, t % 32] * 10 + t // 32 + 1
                work.arrive()

    for seed in range(4):
        out = np.zeros((2, 32), np.int32)
        kernel(out).launch(1, 64, device="sim", seed=seed)
        assert (out == 121212).all()


def test_numbered_barriers() -> None:
    @cute.kernel
    def kernel(out):
        t, _, _ = cute.arch.thread_idx()
        shared = cute.make_smem_tensor(64, cute.Int32)
        if t < 32:
            shared[t] = t
            pipeline.arrive(2, 64)
        else:
            pipeline.arrive_and_wait(2, 64)
            out[t - 32] = shared[63 - t]
        pipeline.agent_sync(pipeline.Agent.ThreadBlock)

    for seed in range(4):
        out = np.full(32, -1, np.int32)
        kernel(out).launch(1, 64, device="sim", seed=seed)
        assert out.tolist() == list(range(31, -1, -1))


def test_states_are_numbers_where_python_knows_them() -> None:
    state = pipeline.make_pipeline_state(PRODUCER, 3)
    places: list[tuple[int, int, int]] = []
    for _ in range(7):
        places.append((state.index, state.phase, state.count))
        state.advance()
    assert places == [(0, 1, 0), (1, 1, 1), (2, 1, 2), (0, 0, 3), (1, 0, 4), (2, 0, 5), (0, 1, 6)]
    other = state.clone()
    state.reset_count()
    assert (state.index, state.phase, state.count) == (1, 1, 0)
    assert (other.index, other.phase, other.count) == (1, 1, 7)
    assert repr(pipeline.make_pipeline_state(CONSUMER, 2)) == "PipelineState(stages=2, count=0, index=0, phase=0)"


def test_a_side_counts_from_0_again() -> None:
    @cute.kernel
    def kernel(out):
        warps = pipeline.CooperativeGroup(pipeline.Agent.Warp, 1)
        pipe = pipeline.PipelineAsync.create(num_stages=2, producer_group=warps, consumer_group=warps)
        for side in pipe.make_participants():
            for _ in range(3):
                side.advance()
            side.reset()
            out[side.state.phase] = side.state.index + 10 * side.state.count

    out = np.full(2, -1, np.int32)
    kernel(out).launch(1, 1, device="sim")
    assert out.tolist() == [1, 1], "the stage and its parity stay"


def test_a_loop_and_a_path_may_replace_a_state() -> None:
    @cute.kernel
    def kernel(out):
        t, _, _ = cute.arch.thread_idx()
        state = pipeline.make_pipeline_state(CONSUMER, 3)
        before = state.clone()
        for _ in cute.range(t):
            before = state.clone()
            state.advance()
        if t > 4:
            before = state.clone()
        before.advance()
        out[t, 0] = state.index + 10 * state.count
        out[t, 1] = before.index + 10 * before.count

    out = np.zeros((7, 2), np.int32)
    kernel(out).launch(1, 7, device="sim")
    held = [t + 1 if t > 4 else max(t, 1) for t in range(7)]
    assert out.tolist() == [[t % 3 + 10 * t, h % 3 + 10 * h] for t, h in enumerate(held)]


def test_a_state_that_one_path_advances() -> None:
    @cute.kernel
    def kernel(out):
        t, _, _ = cute.arch.thread_idx()
        state = pipeline.make_pipeline_state(CONSUMER, 2)
        for _ in cute.range(t):
            if t % 2 == 1:
                state.advance()
        out[t] = state.index + 10 * state.phase + 100 * state.count

    out = np.zeros(8, np.int32)
    kernel(out).launch(1, 8, device="sim")
    assert out.tolist() == [0, 101, 0, 311, 0, 501, 0, 711]


def refusal(function: Any, *args: Any, **options: Any) -> TilefoldError:
    """The error (E5011) of a kernel that calls a function."""

    @cute.kernel
    def kernel(out):
        function(*args, **options)

    with pytest.raises(ProgramError) as info:
        kernel(np.zeros(1, np.float32)).build(64)
    assert info.value.diagnostics[0].code == "E5011"
    return info.value


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: group(0), "a group of 0 arrivals"),
        (lambda: pipeline.CooperativeGroup(pipeline.Agent.ThreadBlock), "a group cannot have agents of the kind"),
        (lambda: pipeline.make_pipeline_state(PRODUCER, 0).advance(), "a pipeline cannot have 0 stages"),
        (lambda: pipeline.PipelineTmaStore.create(num_stages=0, producer_group=group()), "cannot have 0 stages"),
        (lambda: [pipeline.NamedBarrier(1, threads) for threads in (0, 48)], "48 threads meet at a barrier"),
        (lambda: pipeline.NamedBarrier(1, 0).arrive(), "0 threads meet at a barrier"),
        (lambda: pipeline.agent_sync(THREAD), "a barrier of a single thread has nothing to wait for"),
        (
            lambda: pipeline.PipelineAsync.create(num_stages=2, producer_group=group(65), consumer_group=group(32)),
            "the producer group has 65 threads, but the block has only 64",
        ),
        (
            lambda: pipeline.PipelineTmaAsync.create(
                num_stages=2, producer_group=group(), consumer_group=group(64), tx_count=16
            ).consumer_release(pipeline.make_pipeline_state(CONSUMER, 2)),
            "the consumer group has 64 arrivals, but the block has only 2 warps",
        ),
        (
            lambda: pipeline.PipelineTmaAsync.create(
                num_stages=2, producer_group=group(65), consumer_group=group(), tx_count=16
            ).producer_acquire(pipeline.make_pipeline_state(PRODUCER, 2)),
            "the producer group has 65 arrivals, but the block has only 2 warps",
        ),
        (
            lambda: pipeline.PipelineTmaAsync.create(
                num_stages=2, producer_group=group(), consumer_group=group(), tx_count=24
            ),
            "tx_count is 24",
        ),
        (
            lambda: pipeline.PipelineTmaAsync.create(
                num_stages=2, producer_group=group(), consumer_group=group(), tx_count=1 << 20
            ),
            "tx_count is 1048576",
        ),
        (
            lambda: pipeline.PipelineAsync.create(
                num_stages=2,
                producer_group=group(),
                consumer_group=group(),
                barrier_storage=cute.make_smem_tensor(3, cute.Int64),
            ),
            "4 mbarriers are in a tensor of 3 elements",
        ),
        (
            lambda: pipeline.PipelineAsync.create(
                num_stages=2,
                producer_group=group(),
                consumer_group=group(),
                barrier_storage=cute.make_rmem_tensor(4, cute.Int64),
            ),
            "mbarriers cannot be in rmem",
        ),
        (
            lambda: pipeline.PipelineAsync.create(
                num_stages=2, producer_group=group(), consumer_group=group()
            ).consumer_wait(pipeline.make_pipeline_state(CONSUMER, 3)),
            "the state has 3 stages, but the pipeline has 2",
        ),
        (
            lambda: pipeline.PipelineOrder.create(depth=1, length=0, group_id=0, producer_group=group()),
            "an ordered sequence cannot have 0 groups",
        ),
    ],
)
def test_refusals(make: Any, message: str) -> None:
    assert message in str(refusal(make))


def test_copies_of_other_bytes_than_the_pipeline_expects() -> None:
    """Both where the producer commits and, without that, where it acquires the next stage."""
    A, B = tiles()
    with pytest.raises(ProgramError, match=r"E5011.*have 256 bytes, but the pipeline expects 512") as info:
        by_bulk_copies(A, B, 2, 512).build(96)
    assert "tx_count=256" in str(info.value)

    @cute.kernel
    def uncommitted(A):
        sA = cute.make_smem_tensor((TILE, 2), cute.Float32)
        pipe = pipeline.PipelineTmaAsync.create(
            num_stages=2, producer_group=group(), consumer_group=group(), tx_count=256
        )
        producer, _ = pipe.make_participants()
        for _ in cute.range(3):
            stage = producer.acquire_and_advance()
            with cute.arch.elect_one():
                cute.arch.cp_async_bulk_load(sA.ptr(0, stage.index), A.ptr(0, stage.count), 128, stage.barrier)
                cute.arch.cp_async_bulk_load(sA.ptr(32, stage.index), A.ptr(32, stage.count), 64, stage.barrier)
        producer.tail()

    with pytest.raises(ProgramError, match=r"E5011.*have 128 \+ 64 bytes, but the pipeline expects 256"):
        uncommitted(A).build(32)


def test_copies_whose_bytes_are_known_later_are_not_compared() -> None:
    @cute.kernel
    def kernel(A, B, n: cute.Int32):
        t, _, _ = cute.arch.thread_idx()
        sA = cute.make_smem_tensor(TILE, cute.Float32)
        pipe = pipeline.PipelineTmaAsync.create(
            num_stages=1, producer_group=group(), consumer_group=group(2), tx_count=256
        )
        producer, consumer = pipe.make_participants()
        if t < 32:
            stage = producer.acquire()
            if t == 0:
                for i in cute.range(n):
                    bytes = 256 // n
                    cute.arch.cp_async_bulk_load(sA.ptr(i * bytes // 4), A.ptr(i * bytes // 4), bytes, stage.barrier)
            producer.commit()
        consumer.wait()
        B[t] = sA[t]

    for parts in (1, 4):
        A, B = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
        kernel(A, B, parts).launch(1, 64, device="sim")
        np.testing.assert_array_equal(B, A)


class CopiedTwice(pipeline.PipelineTmaAsync):
    """A bulk copy fills one half of a stage, and `cp.async` of a warp the other one: 32 arrivals and one."""

    def producer_acquire(self, state: Any, try_acquire_token: object = None) -> None:
        self.sync_object_empty.wait(state.index, state.phase)
        self.sync_object_full.arrive(state.index)


def test_stages_that_a_bulk_copy_and_copies_of_threads_fill() -> None:
    @cute.kernel
    def kernel(A, B):
        t, _, _ = cute.arch.thread_idx()
        sA = cute.make_smem_tensor((TILE, 2), cute.Float32)
        pipe = CopiedTwice.create(num_stages=2, producer_group=group(33), consumer_group=group(2), tx_count=2 * TILE)
        producer, consumer = pipe.make_participants()
        atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=32)
        part = cute.make_tiled_copy_tv(atom, cute.make_layout(32), cute.make_layout(1)).get_slice(t)
        if t < 32:
            for i in cute.range(A.shape[1]):
                stage = producer.acquire_and_advance()
                with cute.arch.elect_one():
                    cute.arch.cp_async_bulk_load(sA.ptr(0, stage.index), A.ptr(0, i), 2 * TILE, stage.barrier)
                source, target = cute.local_tile(A, (32, 1), (1, i)), cute.local_tile(sA, (32, 1), (1, stage.index))
                cute.copy(part, part.partition_S(source[None, 0]), part.partition_D(target[None, 0]))
                cute.arch.cp_async_mbarrier_arrive_noinc(stage.barrier)
        else:
            for i in cute.range(A.shape[1]):
                stage = consumer.wait_and_advance()
                B[t - 32, i] = sA[t - 32, stage.index] * 2.0
                stage.release()

    check(kernel)


@pytest.mark.parametrize("warps", [1, 3])
def test_a_wrong_number_of_consumers_is_found_when_the_kernel_runs(warps: int) -> None:
    A, B = tiles()
    with pytest.raises(ProgramError, match=r"E3207.*waits at the mbarrier"):
        by_bulk_copies(A, B, 2, 4 * TILE, warps).launch(1, 96, device="sim")


@cute.kernel
def never_released(A, B, at_pipeline: cute.Constexpr):
    """The consumer does not release the stages, of a pipeline or of mbarriers of its own."""
    t, _, _ = cute.arch.thread_idx()
    sA = cute.make_smem_tensor((32, 2), cute.Float32)
    if at_pipeline:
        ring = pipeline.PipelineAsync.create(num_stages=2, producer_group=group(32), consumer_group=group(32))
        full, empty = ring.sync_object_full.get_barrier, ring.sync_object_empty.get_barrier
    else:
        bars, free = cute.make_smem_tensor(2, cute.Int64), cute.make_smem_tensor(2, cute.Int64)
        full, empty = bars.ptr, free.ptr
        if t < 2:
            cute.arch.mbarrier_init(full(t), 32)
            cute.arch.mbarrier_init(empty(t), 32)
        cute.arch.sync_threads()
    for i in range(4):
        if t < 32:
            cute.arch.mbarrier_wait(empty(i % 2), 1 - i // 2)
            sA[t, i % 2] = A[t, i]
            cute.arch.mbarrier_arrive(full(i % 2))
        else:
            cute.arch.mbarrier_wait(full(i % 2), i // 2)
            B[t - 32, i] = sA[t - 32, i % 2]


@pytest.mark.parametrize("stage", ["cute", "instr"])
@pytest.mark.parametrize(
    ("at_pipeline", "full", "empty"), [(True, "ring.full", "ring.empty"), (False, "%bars", "%free")]
)
def test_messages_name_the_mbarriers(at_pipeline: bool, full: str, empty: str, stage: str) -> None:
    A, B = np.zeros((32, 4), np.float32), np.zeros((32, 4), np.float32)
    with pytest.raises(ProgramError) as caught:
        never_released(A, B, at_pipeline).launch(1, 64, device="sim", stage=stage)
    said = str(caught.value)
    assert f"warp 0 waits at the mbarrier {empty}[0] forever" in said
    assert f"the mbarrier {full}[0], phase 1: 0 of 32 arrivals" in said
    assert "byte" not in said


@cute.kernel
def released_early(A, B, early: cute.Constexpr, fenced: cute.Constexpr):
    """Warp 0 loads a stage again and again, warps 1 and 2 read it, and release it before or after."""
    t, _, _ = cute.arch.thread_idx()
    sA = cute.make_smem_tensor((TILE, 1), cute.Float32)
    ring = pipeline.PipelineTmaAsync.create(
        num_stages=1, producer_group=group(), consumer_group=group(2), tx_count=4 * TILE
    )
    if cute.arch.warp_idx() == 0:
        state = pipeline.make_pipeline_state(PRODUCER, 1)
        for _ in cute.range(A.shape[1]):
            ring.producer_acquire(state)
            bar = ring.producer_get_barrier(state)
            with cute.arch.elect_one():
                cute.arch.cp_async_bulk_load(sA.ptr(0, 0), A.ptr(0, state.count), 4 * TILE, bar)
            ring.producer_commit(state)
            state.advance()
    else:
        state = pipeline.make_pipeline_state(CONSUMER, 1)
        for i in cute.range(A.shape[1]):
            ring.consumer_wait(state)
            if early:
                ring.consumer_release(state)
            B[t - 32, i] = 2 * sA[t - 32, 0]
            if fenced:
                cute.arch.fence_view_async_shared()
            if not early:
                ring.consumer_release(state)
            state.advance()


def test_a_stage_that_is_overwritten_while_it_is_read() -> None:
    """The message tells who reads, and that the consumer releases before the producer acquires."""
    found = released_early(*tiles(), True, True).check(grid=1, block=96)
    (fault,) = found.faults
    assert fault.code == "E3205"
    assert "the copy overwrites a stage that thread (32,0,0) reads" in fault.message
    assert "let the consumer release the stage after its last read" in fault.hint
    assert "the producer acquire it" in fault.hint


@pytest.mark.parametrize("fenced", [False, True])
def test_bulk_copies_over_what_threads_have_read_need_a_fence(fenced: bool) -> None:
    """flash-attention@d91ea94f: a remark, since an mbarrier alone is enough for the kernels of many libraries."""
    found = released_early(*tiles(), False, fenced).check(grid=1, block=96)
    assert not found.faults
    assert ("which thread (32,0,0) read by the generic one, with no fence.proxy.async" in str(found)) == (not fenced)


def test_a_state_goes_on_by_several_stages() -> None:
    one, several = (pipeline.make_pipeline_state(PRODUCER, 3) for _ in range(2))
    for _ in range(8):
        one.advance()
    several.advance(7)
    several.advance()
    assert (one.index, one.phase, one.count) == (several.index, several.phase, several.count) == (2, 1, 8)

    @cute.kernel
    def kernel(out, stages: cute.Constexpr):
        t, _, _ = cute.arch.thread_idx()
        state = pipeline.make_pipeline_state(CONSUMER, stages)
        state.advance(t)
        state.advance(2 * t)
        out[0, t], out[1, t] = state.index, state.phase

    steps = 3 * np.arange(32)
    for stages in (1, 3, 4):
        out = np.zeros((2, 32), np.int32)
        kernel(out, stages).launch(1, 32, device="sim")
        np.testing.assert_array_equal(out, [steps % stages, steps // stages % 2])


def test_positions_in_a_ring_without_stages() -> None:
    """Programs advance the state of an operand that they do not have, by the numbers of its stages."""

    @cute.kernel
    def kernel(out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        state = pipeline.PipelineState(0, 0, cute.Int32(t), 1)
        out[t, 0], out[t, 1] = state.index // state.stages, state.index % state.stages
        assert isinstance(state.index, cute.Int32)
        assert state.index.width == 32
        assert (7 // state.stages, 7 % state.stages, state.stages) == (0, 7, 0)

    out = np.ones((4, 2), np.int32)
    kernel(out).launch(grid=1, block=4, device="sim")
    assert out.tolist() == [[0, t] for t in range(4)]


@cute.kernel
def by_one_thread(A, B):
    """Thread 0 of a warp loads and reads; no other thread comes to the pipeline."""
    t, _, _ = cute.arch.thread_idx()
    sA = cute.make_smem_tensor((TILE, 1), cute.Float32)
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=1,
        producer_group=group(),
        consumer_group=group(),
        tx_count=4 * TILE,
        barrier_storage=cute.make_smem_tensor(2, cute.Int64).iterator,
    )
    full = pipeline.make_pipeline_state(PRODUCER, 1)
    read = pipeline.make_pipeline_state(CONSUMER, 1)
    for i in cute.range(A.shape[1]):
        if t == 0:
            pipe.producer_acquire(full)
            cute.arch.cp_async_bulk_load(sA.ptr(0, 0), A.ptr(0, i), 4 * TILE, pipe.producer_get_barrier(full))
            full.advance()
            pipe.consumer_wait(read)
            for k in cute.range(TILE):
                B[k, i] = sA[k, 0] * 2.0
            cute.arch.fence_proxy("async.shared", space="cta")
            pipe.consumer_release(read)
            read.advance()


def test_a_thread_that_the_program_selects_arrives_by_itself() -> None:
    A, B = (x[:, :2] for x in tiles())
    by_one_thread(A, B).launch(1, 32, device="sim")
    np.testing.assert_array_equal(B, 2 * A)
