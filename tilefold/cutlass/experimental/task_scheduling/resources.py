# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Resources: memory that tasks share, and the pipelines between those that fill it and those that read it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.instructions import arch
from tilefold.builder.pipelines.groups import CooperativeGroup
from tilefold.builder.pipelines.pipelines import PipelineAsync, PipelineTmaAsync, Stages
from tilefold.builder.pipelines.tensor_core_pipelines import (
    PipelineAsyncUmma,
    PipelineClcFetchAsync,
    PipelineTmaUmma,
    PipelineUmmaAsync,
)
from tilefold.builder.pipelines.tile_scheduler import ClcDynamicPersistentTileScheduler, StaticPersistentTileScheduler
from tilefold.layout.algebra.core import Layout, make_layout

from .enums import PipelineGroupMode, PipelineType, SignalingThreads, TileSchedulerType, WorkAttr
from .memory import SmemAllocation, TmemAllocation
from .schedule_builder import Step, recorder
from .works import StageInfo, TaskLocalVariable, Work, consumer_work, producer_work

__all__ = [
    "MemoryResource", "PdlLaunchBarrier", "PdlWaitBarrier", "PipelineConfig", "PipelineGroup", "StageInfo",
    "TaskLocalVariable", "TileSchedulerConfig", "Work", "WorkAttr", "WorkQueue", "consumer_work", "producer_work",
]  # fmt: skip

_WITH_BYTES = {
    PipelineType.TmaAsync: PipelineTmaAsync,
    PipelineType.TmaUmma: PipelineTmaUmma,
    PipelineType.ClcFetchAsync: PipelineClcFetchAsync,
}
_OF_CLUSTERS = {PipelineType.AsyncUmma: PipelineAsyncUmma, PipelineType.UmmaAsync: PipelineUmmaAsync}


@dataclass(frozen=True)
class PipelineConfig:
    """A pipeline of a resource, which `TaskManager` lets the resource make. `num_bytes` is the number of bytes that
    copies into a stage count for all blocks that read it together; the groups and the cluster are those of
    `cutlass.pipeline`. Consumer threads of `TmaAsync` arrive one by one where the group has as many as the consumer
    tasks (`each_thread_arrives`, which `TaskManager` sets), else one of each warp. With `advance_on_wait` a consumer
    may wait for further stages before it releases the first one.
    """

    pipeline_type: PipelineType
    num_stages: int
    producer_group: CooperativeGroup
    consumer_group: CooperativeGroup
    num_bytes: int = 0
    cta_layout_vmnk: Any = None
    producer_signaling_threads: SignalingThreads = SignalingThreads.All
    consumer_signaling_threads: SignalingThreads = SignalingThreads.All
    num_bytes_per_warp_per_cta: int | None = None
    barrier_ptr: Any = None
    advance_on_wait: bool = False
    each_thread_arrives: bool = False

    def create(self) -> Stages:
        """Makes the pipeline. All threads call it, and wait afterwards until they see its mbarriers."""
        common: dict[str, Any] = {
            "num_stages": self.num_stages, "producer_group": self.producer_group,
            "consumer_group": self.consumer_group, "barrier_storage": self.barrier_ptr, "defer_sync": True,
        }  # fmt: skip
        if self.pipeline_type is PipelineType.AsyncAsync:
            return PipelineAsync.create(**common)
        common["cta_layout_vmnk"] = self.cluster
        if self.pipeline_type in _OF_CLUSTERS:
            return _OF_CLUSTERS[self.pipeline_type].create(**common)
        common["tx_count"] = self.num_bytes
        if self.each_thread_arrives:
            common["tidx"] = 0
        return _WITH_BYTES[self.pipeline_type].create(**common)

    @property
    def cluster(self) -> Layout | None:
        """The cluster (V,M,N,K); None for a block by itself."""
        given = self.cta_layout_vmnk
        layout = make_layout(given) if isinstance(given, tuple) else given  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return None if layout is None or layout.size == 1 else layout

    @classmethod
    def _of(cls, kind: PipelineType, options: Mapping[str, Any]) -> "PipelineConfig":
        unknown = sorted(options.keys() - cls.__dataclass_fields__.keys())
        if unknown:
            hint = "public programs do not show its meaning"
            raise TilefoldError(Code.BUILD_NAME, f"a pipeline of tasks takes no {', '.join(unknown)}", hint)
        return cls(kind, **options)

    @classmethod
    def create_tma_async_pipeline_cfg(cls, **options: object) -> "PipelineConfig":
        """TMA copies fill stages, and threads read them."""
        return cls._of(PipelineType.TmaAsync, options)

    @classmethod
    def create_tma_umma_pipeline_cfg(cls, **options: object) -> "PipelineConfig":
        """TMA copies fill stages, and multiplications read them."""
        return cls._of(PipelineType.TmaUmma, options)

    @classmethod
    def create_async_async_pipeline_cfg(cls, **options: object) -> "PipelineConfig":
        """Threads fill stages, and threads read them."""
        return cls._of(PipelineType.AsyncAsync, options)

    @classmethod
    def create_async_umma_pipeline_cfg(cls, **options: object) -> "PipelineConfig":
        """Threads fill stages, and multiplications read them."""
        return cls._of(PipelineType.AsyncUmma, options)

    @classmethod
    def create_umma_async_pipeline_cfg(cls, **options: object) -> "PipelineConfig":
        """Multiplications fill stages of tensor memory, and threads read them."""
        return cls._of(PipelineType.UmmaAsync, options)

    @classmethod
    def create_clc_fetch_async_pipeline_cfg(cls, **options: object) -> "PipelineConfig":
        """Answers of cluster launch control fill stages, and threads read them."""
        return cls._of(PipelineType.ClcFetchAsync, options)


class _Steps:
    """The calls of a pipeline that schedules record."""

    def _note(self, name: str) -> None:
        made = recorder()
        if made is None:
            hint = "call it in a @schedule function"
            raise TilefoldError(Code.BUILD_OUTSIDE, f"{name}() of a resource is called outside a schedule", hint)
        made.note(Step(self, name))

    def try_acquire(self) -> None:
        """Whether a stage is empty, for the next `acquire`."""
        self._note("try_acquire")

    def acquire(self) -> None:
        """Waits until a stage is empty, for the producer."""
        self._note("acquire")

    def commit(self) -> None:
        """Passes the stage on to the consumer, and advances to the next one."""
        self._note("commit")

    def try_wait(self) -> None:
        """Whether a stage is full, for the next `wait`."""
        self._note("try_wait")

    def wait(self) -> None:
        """Waits until a stage is full, for the consumer."""
        self._note("wait")

    def release(self) -> None:
        """Passes the stage back to the producer, and advances to the next one."""
        self._note("release")


@dataclass(kw_only=True, eq=False)
class MemoryResource(_Steps):
    """Memory that tasks share, as a base of the program's classes: dataclasses or not. A resource without a pipeline
    belongs to the tasks that use it, or needs no order.
    """

    name: str
    pipeline_config: PipelineConfig | None = None

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        # `dataclass` leaves both where a class has them: a resource is itself, whatever its fields hold
        cls.__eq__, cls.__hash__ = object.__eq__, object.__hash__

    def get_smem_requirements(self) -> Sequence[SmemAllocation]:
        """The shared memory that it needs."""
        return ()

    def get_tmem_requirements(self) -> Sequence[TmemAllocation]:
        """The tensor memory that it needs."""
        return ()

    def create_pipeline(self, pipeline_config: PipelineConfig) -> Stages:
        """Makes its pipeline; a class may change what the base makes."""
        return pipeline_config.create()


class PipelineGroup(_Steps):
    """Resources whose pipelines belong together; `group.name` is the member of this name.

    The producer of a fork calls `commit` of the group, the consumer of a merge `release`; the rest are calls of the
    members. The members of a fork have one mbarrier for a full stage.
    """

    def __init__(self, *, name: str, members: Sequence[MemoryResource], mode: PipelineGroupMode) -> None:
        self.name = name
        self.members = tuple(members)
        self.mode = mode

    def __getattr__(self, name: str) -> MemoryResource:
        for member in self.__dict__.get("members", ()):
            if member.name == name:
                return member
        raise AttributeError(f"the group has no member '{name}'", name=name, obj=self)


@dataclass(frozen=True)
class TileSchedulerConfig:
    """How the blocks of a launch come to their tiles."""

    kind: TileSchedulerType
    tile_scheduler_params: Any
    response_ptr: Any = None

    @classmethod
    def create_static_persistent_tile_scheduler_params(cls, *, tile_scheduler_params: object) -> "TileSchedulerConfig":
        """Tiles in a fixed order (`utils.StaticPersistentTileScheduler`)."""
        return cls(TileSchedulerType.StaticPersistent, tile_scheduler_params)

    @classmethod
    def create_clc_dynamic_persistent_tile_scheduler_params(
        cls, *, tile_scheduler_params: object, response_ptr: object
    ) -> "TileSchedulerConfig":
        """Tiles of blocks that have not begun (`utils.ClcDynamicPersistentTileScheduler`), whose answers are in shared
        memory at `response_ptr`.
        """
        return cls(TileSchedulerType.ClcDynamicPersistent, tile_scheduler_params, response_ptr)


@dataclass(kw_only=True, eq=False)
class WorkQueue(MemoryResource):
    """The tiles of a block. With launch control it has a pipeline of answers, which one task fetches."""

    tile_scheduler_config: TileSchedulerConfig

    def create_tile_scheduler(self) -> StaticPersistentTileScheduler | ClcDynamicPersistentTileScheduler:
        """The scheduler of this block."""
        config = self.tile_scheduler_config
        given = (config.tile_scheduler_params, arch.block_idx(), arch.grid_dim())
        if config.kind is TileSchedulerType.StaticPersistent:
            return StaticPersistentTileScheduler.create(*given)
        return ClcDynamicPersistentTileScheduler.create(*given, config.response_ptr)

    def fetch_work_tile(self) -> None:
        """Asks for the next tile, between `acquire` and `commit` of the task that fetches."""
        self._note("fetch_work_tile")

    def get_and_advance_work_tile(self) -> None:
        """Goes on to the next tile, between `wait` and `release`."""
        self._note("get_and_advance_work_tile")


@dataclass(kw_only=True, eq=False)
class PdlWaitBarrier(MemoryResource):
    """The end of the launch before this one (PTX ISA, griddepcontrol)."""

    @consumer_work(work_attrs=WorkAttr.AUXILIARY)
    def wait_griddep(self, stage_info: StageInfo) -> None:
        """Waits for it."""
        arch.griddepcontrol_wait()


@dataclass(kw_only=True, eq=False)
class PdlLaunchBarrier(MemoryResource):
    """The beginning of the next launch (PTX ISA, griddepcontrol)."""

    @producer_work(work_attrs=WorkAttr.AUXILIARY)
    def launch_griddep(self, stage_info: StageInfo) -> None:
        """Lets it begin."""
        arch.griddepcontrol_launch_dependents()
