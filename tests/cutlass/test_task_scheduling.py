# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels as tasks that share resources, `cutlass.experimental.task_scheduling`."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.builder.primitives.arrays import Array

from tilefold import cute
from tilefold.cute import pipeline, utils
from tilefold.cutlass.experimental.task_scheduling.enums import PipelineGroupMode, WorkAttr
from tilefold.cutlass.experimental.task_scheduling.memory import (
    SmemAllocation,
    SmemAllocator,
    TmemAllocation,
    TmemAllocator,
)
from tilefold.cutlass.experimental.task_scheduling.resources import (
    MemoryResource,
    PipelineConfig,
    PipelineGroup,
    StageInfo,
    TaskLocalVariable,
    TileSchedulerConfig,
    WorkQueue,
    consumer_work,
    producer_work,
)
from tilefold.cutlass.experimental.task_scheduling.schedule_builder import domain_loop, schedule, work_tile_loop
from tilefold.cutlass.experimental.task_scheduling.task import Task
from tilefold.cutlass.experimental.task_scheduling.task_manager import TaskManager

WARP = 32


def threads(warps: int) -> Any:
    return pipeline.CooperativeGroup(pipeline.Agent.Thread, warps * WARP)


@dataclass
class Ring(MemoryResource):
    """Rows of 32 numbers in shared memory."""

    stages: Any = field(init=False, default=None)
    row = TaskLocalVariable.uninitialized()
    place: Any = field(init=False, default=None)

    def __init__(self, stages: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stages = stages
        self.row = TaskLocalVariable(dtype=cute.Int32, default=cute.Int32(0))
        self.place = SmemAllocation("rows", dtype=cute.Int32, count=WARP * stages)
        self.rows: Any = None

    def get_smem_requirements(self) -> Any:
        return [self.place]

    @producer_work(work_attrs=WorkAttr.AUXILIARY)
    @cute.jit
    def begin(self, stage_info: StageInfo) -> None:
        start = stage_info.context.smem_base.data_ptr() + self.place.offset
        self.rows = Array(start, (WARP * self.stages,), dtype=cute.Int32)

    @consumer_work(work_attrs=WorkAttr.AUXILIARY)
    @cute.jit
    def begin_to_read(self, stage_info: StageInfo) -> None:
        start = stage_info.context.smem_base.data_ptr() + self.place.offset
        self.rows = Array(start, (WARP * self.stages,), dtype=cute.Int32)

    @producer_work
    @cute.jit
    def fill(self, stage_info: StageInfo, A: cute.Tensor) -> None:
        lane = cute.arch.lane_idx()
        self.rows.store(A[stage_info.loop_offset, lane], idx=stage_info.stage_idx * WARP + lane)

    @consumer_work(returns=row)
    @cute.jit
    def read(self, stage_info: StageInfo) -> cute.Int32:
        return self.rows.load(stage_info.stage_idx * WARP + cute.arch.lane_idx())


@dataclass
class Sums(MemoryResource):
    """Sums of the rows so far, in global memory."""

    out: Any = field(init=False, default=None)
    total: Any = field(init=False, default=None)

    def __init__(self, B: cute.Tensor, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.out = B
        self.total = cute.Int32(0)

    @producer_work
    @cute.jit
    def add(self, stage_info: StageInfo, *, row: cute.Int32) -> None:
        self.total = self.total + row
        self.out[stage_info.loop_offset, cute.arch.lane_idx()] = self.total

    @producer_work
    @cute.jit
    def last(self, stage_info: StageInfo, *, row: cute.Int32, at: cute.Constexpr) -> None:
        self.out[at, cute.arch.lane_idx()] = row


def config(stages: int, **options: Any) -> PipelineConfig:
    return PipelineConfig.create_async_async_pipeline_cfg(
        num_stages=stages, producer_group=threads(1), consumer_group=threads(1), **options
    )


@cute.kernel
def summed(A: cute.Tensor, B: cute.Tensor, rows: cute.Int32) -> None:
    """One warp fills a ring, another one sums its rows; the last row of B is the last row of A."""
    ring = Ring(2, name="ring", pipeline_config=config(2))
    sums = Sums(B, name="sums")
    allocator = SmemAllocator()
    allocator.add_resource(ring)
    allocator.compute_layout()

    @schedule
    def filling(ring: Ring) -> None:
        ring.begin()
        with domain_loop(0, rows, 1):
            ring.try_acquire()
            ring.acquire()
            ring.fill(A)
            ring.commit()

    @schedule
    def summing(ring: Ring, sums: Sums) -> None:
        ring.begin_to_read()
        with domain_loop(rows):
            ring.try_wait()
            ring.wait()
            row = ring.read()
            sums.add(row=row)
            ring.release()
        sums.last(row=row, at=6)

    fill = Task(
        name="fill", src_resources=[], dst_resources=[ring], warp_idx=0, num_warps=1, schedule=filling(ring)
    )  # fmt: skip
    sum = Task(
        name="sum", src_resources=[ring], dst_resources=[sums], warp_idx=1, num_warps=1, schedule=summing(ring, sums)
    )  # fmt: skip
    manager = TaskManager(
        tasks=[fill, sum],
        resource_dependency_graph={ring: [], sums: [ring]},  # pyright: ignore[reportUnhashable]
        smem_allocator=allocator,
    )
    manager.setup_resources_and_tasks()
    manager.run()


@pytest.mark.parametrize("rows", [6, 1, 0])
def test_a_value_flows_through_a_ring_from_task_to_task(rows: int) -> None:
    A = np.random.default_rng(3).integers(-9, 9, (6, WARP)).astype(np.int32)
    B = np.zeros((7, WARP), np.int32)
    summed(A, B, rows).launch(grid=1, block=64, device="sim")
    assert np.array_equal(B[:rows], np.cumsum(A, 0)[:rows])
    assert np.array_equal(B[6], A[rows - 1] if rows else np.zeros(WARP))


@dataclass(kw_only=True)
class Queue(WorkQueue):
    """Tiles, of which those from a number on are left out."""

    tiles: Any

    @cute.jit
    def beyond(self, tile: Any) -> cute.Boolean:
        return tile.tile_idx[0] >= self.tiles


@dataclass
class Marks(MemoryResource):
    """A number for each tile."""

    out: Any = field(init=False, default=None)

    def __init__(self, B: cute.Tensor, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.out = B

    @producer_work
    @cute.jit
    def mark(self, stage_info: StageInfo) -> None:
        tile, _, _ = stage_info.work_tile.tile_idx
        self.out[tile, stage_info.loop_offset] = tile + stage_info.loop_end


class Steps(Task):
    """A task with a loop as long as the number of its tile."""

    def steps(self, tile: Any) -> Any:
        return tile[0]


@cute.kernel
def marked(B: cute.Tensor, tiles: cute.Constexpr, params: utils.PersistentTileSchedulerParams) -> None:
    """Each tile but the last ones marks as many places as its number says."""
    of_tiles = TileSchedulerConfig.create_static_persistent_tile_scheduler_params(tile_scheduler_params=params)
    queue = Queue(name="queue", tile_scheduler_config=of_tiles, tiles=tiles)
    marks = Marks(B, name="marks")

    @schedule
    def marking(marks: Marks, queue: Queue) -> None:
        with work_tile_loop(queue, skip_if=Queue.beyond) as each:
            with each.skippable(), domain_loop(0, Steps.steps, 1):
                marks.mark()
            queue.try_wait()
            queue.wait()
            queue.get_and_advance_work_tile()
            queue.release()

    task = Steps(
        name="mark", src_resources=[queue], dst_resources=[marks], warp_idx=0, num_warps=1,
        schedule=marking(marks, queue),
    )  # fmt: skip
    graph: dict[MemoryResource, list[MemoryResource]] = {marks: [queue]}  # pyright: ignore[reportUnhashable]
    manager = TaskManager(tasks=[task], resource_dependency_graph=graph)
    manager.setup_resources_and_tasks()
    manager.run()


@cute.jit
def mark(B: cute.Tensor, tiles: cute.Constexpr) -> None:
    params = utils.PersistentTileSchedulerParams((6, 1, 1), (1, 1, 1))
    marked(B, tiles, params).launch(grid=(1, 1, 2), block=(1, 1, 1))


def test_tiles_have_loops_of_their_own_length_and_may_be_left_out() -> None:
    B = np.zeros((6, 6), np.int32)
    mark(B, 4)
    expected = [[tile + tile if place < tile < 4 else 0 for place in range(6)] for tile in range(6)]
    assert B.tolist() == expected


def test_memory_of_tiles_begins_where_swizzles_do_and_may_be_shared() -> None:
    small, tile, other = (SmemAllocation(name, size) for name, size in (("small", 4), ("tile", 2048), ("other", 1024)))
    allocator = SmemAllocator()
    allocator.add(small)
    allocator.add_alias_group([[tile], [other]])
    allocator.compute_layout()
    assert (tile.offset, other.offset, small.offset) == (0, 0, 2048)
    columns = TmemAllocator()
    parts = [TmemAllocation(str(number), 128) for number in range(3)]
    columns.add_alias_group([[parts[0]], [parts[1], parts[2]]])
    columns.compute_layout()
    assert [part.offset for part in parts] == [0, 0, 128]
    assert columns.num_columns == 256


class Needs(MemoryResource):
    """A resource of many columns, with a work."""

    value = TaskLocalVariable.uninitialized()

    def get_tmem_requirements(self) -> Any:
        return [TmemAllocation("many", 600)]

    @consumer_work(returns=value)
    def take(self, stage_info: StageInfo) -> None: ...

    @producer_work
    def give(self, stage_info: StageInfo, value: object) -> None: ...


def needs(name: str) -> Needs:
    made = Needs(name=name)
    made.value = TaskLocalVariable(dtype=cute.Int32, default=0)
    return made


def task(name: str, warp: int, steps: Any, sources: Any = (), registers: int = 40) -> Task:
    return Task(
        name=name, src_resources=sources, dst_resources=[], warp_idx=warp, num_warps=1, schedule=steps,
        num_registers=registers,
    )  # fmt: skip


@schedule
def nothing() -> None:
    with domain_loop(0, 1, 1):
        pass


@schedule
def reads(resource: Any) -> None:
    resource.take()


@schedule
def waits(resource: Any) -> None:
    resource.wait()


def late(resource: Any) -> None:
    first = resource.take()
    resource.take()
    resource.give(first)


def managed(*tasks: Task) -> TaskManager:
    return TaskManager(tasks=tasks, resource_dependency_graph={})


@pytest.mark.parametrize(
    ("fails", "message"),
    [
        (lambda: managed(task("a", 0, nothing()), task("b", 0, nothing())), "warp 0 belongs to 'a' and to 'b'"),
        (lambda: managed(task("a", 0, nothing()), task("b", 1, nothing(), registers=8)), "different registers"),
        (lambda: managed(task("a", 0, reads(needs("x")))), r"calls take\(\) of 'x'"),
        (lambda: (x := needs("x"), managed(task("a", 0, waits(x), [x]))), "which has no pipeline"),
        (lambda: schedule(late)(needs("x")), "a later step has replaced the value of 'value'"),
        (lambda: reads(Needs(name="x")), "'value' of 'x' has not been created"),
        (lambda: task("a", 0, nothing), "the schedule of 'a' is a function"),
        (lambda: config(1, interleave_stride=2), "E5009"),
        (lambda: needs("x").wait(), "E5001"),
        (lambda: domain_loop(3).__enter__(), "E5001"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_are_refused(fails: Any, message: str) -> None:
    with pytest.raises(TilefoldError, match=message):
        fails()


def test_a_resource_makes_its_pipeline() -> None:
    class Other(Needs):
        def create_pipeline(self, pipeline_config: PipelineConfig) -> Any:
            assert isinstance(super().create_pipeline(pipeline_config), pipeline.PipelineAsync)

    @cute.kernel
    def kernel() -> None:
        other = Other(name="x", pipeline_config=config(1))
        managed(task("a", 0, waits(other), [other])).setup_resources_and_tasks()

    with pytest.raises(TilefoldError, match="create_pipeline of 'x' returns NoneType"):
        kernel().build(32)


def test_more_columns_than_tensor_memory_has_are_refused() -> None:
    allocator = TmemAllocator()
    allocator.add_resource(needs("x"))
    with pytest.raises(TilefoldError, match="600 columns"):
        allocator.compute_layout()


def test_a_group_has_its_members_by_name_and_resources_are_themselves() -> None:
    a, b = needs("a"), needs("b")
    group = PipelineGroup(name="both", members=[a, b], mode=PipelineGroupMode.Merge)
    assert group.a is a
    assert a != needs("a")
    with pytest.raises(AttributeError, match="no member 'c'"):
        _ = group.c
