# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All tasks of a kernel: their pipelines, checks of how they fit together, and their code."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.control.control_functions import if_
from tilefold.builder.pipelines.barriers import pipeline_init_arrive, pipeline_init_wait
from tilefold.builder.pipelines.groups import pipeline_error
from tilefold.builder.pipelines.pipelines import Stages

from .enums import PipelineGroupMode, PipelineType
from .execution import Execution
from .memory import ResourceContext, SmemAllocator, TmemAllocator
from .pipeline_sides import PipelineSides
from .resources import MemoryResource, PipelineConfig, PipelineGroup, WorkQueue
from .schedule_builder import Step
from .task import Task
from .works import BoundWork

_GROUP_OF_WARPS = 4
_FILLS = ("try_acquire", "acquire", "commit", "fetch_work_tile")


class TaskManager:
    """The tasks of a kernel. `resource_dependency_graph` has the resources that each resource is filled from.

    The checks of a run replace those that programs ask for by `exhaustive_deadlock_race_check`; this and `verbose`,
    `skip_validation` and `dma_consumer_release_labels` have no effect. Raises TilefoldError (E5011) for tasks that
    share warps, registers that differ in a warp group, and a step with a resource that the task does not name.
    """

    def __init__(
        self,
        *,
        tasks: Sequence[Task],
        resource_dependency_graph: Mapping[MemoryResource, Sequence[MemoryResource]],
        smem_allocator: SmemAllocator | None = None,
        tmem_allocator: TmemAllocator | None = None,
        verbose: bool = False,
        skip_validation: bool = False,
        exhaustive_deadlock_race_check: bool = False,
        dma_consumer_release_labels: object = None,
    ) -> None:
        self.tasks = tuple(tasks)
        self.resource_dependency_graph = dict(resource_dependency_graph)
        self.smem_allocator = smem_allocator
        self.tmem_allocator = tmem_allocator
        self._pipelines: dict[MemoryResource, Stages] = {}
        self._context = ResourceContext(None, None)
        _check_warps(self.tasks)
        for task in self.tasks:
            for step in _steps(task.schedule.body):
                _check_step(task, step)

    def _forks(self) -> list[tuple[MemoryResource, ...]]:
        """The members of each fork, whose first one has the mbarriers of full stages for all."""
        resources = [step.resource for task in self.tasks for step in _steps(task.schedule.body)]
        groups = dict.fromkeys(each for each in resources if isinstance(each, PipelineGroup))
        return [group.members for group in groups if group.mode is PipelineGroupMode.Fork]

    def setup_resources_and_tasks(self) -> None:
        """Allocates the shared memory and makes the pipelines. All threads of the cluster call it, and wait until they
        see the mbarriers.
        """
        smem = self.smem_allocator
        if smem is not None:
            place = None if smem.tmem_ptr_alloc is None else smem.get(smem.tmem_ptr_alloc)
            self._context = ResourceContext(smem.allocate(), place)
        resources = dict.fromkeys(each for task in self.tasks for each in (*task.src_resources, *task.dst_resources))
        for resource in resources:
            if resource.pipeline_config is not None and resource not in self._pipelines:
                self._pipelines[resource] = self._made(resource, resource.pipeline_config)
        if self._pipelines:
            shape = next((config.cluster.shape for config in _configs(resources) if config.cluster is not None), (1, 1))
            pipeline_init_arrive(shape)
            pipeline_init_wait(shape)
        for first, *others in self._forks():
            for other in others:
                full = self._pipelines[first].sync_object_full
                self._pipelines[other] = replace(self._pipelines[other], sync_object_full=full)

    def _made(self, resource: MemoryResource, config: PipelineConfig) -> Stages:
        """The pipeline that a resource makes. Raises TilefoldError (E5002) if it makes something else."""
        if config.pipeline_type is PipelineType.TmaAsync:
            threads = sum(task.threads for task in self.tasks if resource in task.src_resources)
            config = replace(config, each_thread_arrives=config.consumer_group.size == threads)
        made = cast("object", resource.create_pipeline(config))
        if not isinstance(made, Stages):
            problem = f"create_pipeline of '{resource.name}' returns {type(made).__name__}"
            raise TilefoldError(Code.BUILD_VALUE, problem, "return the pipeline that the base makes, changed or not")
        return made

    def run(self) -> None:
        """The code of the tasks, each for its own warps. A task's changes of resources are seen by its warps only."""
        followers = [member for members in self._forks() for member in members[1:]]
        resources = dict.fromkeys(each for task in self.tasks for each in (*task.src_resources, *task.dst_resources))
        for task in self.tasks:
            before = [dict(vars(resource)) for resource in resources]
            made = Execution(task, tuple(resources), PipelineSides(self._pipelines, followers), self._context)
            if_(task.is_selected(), made.build)
            for resource, attributes in zip(resources, before, strict=True):
                vars(resource).clear()
                vars(resource).update(attributes)


def _configs(resources: Iterable[MemoryResource]) -> list[PipelineConfig]:
    return [resource.pipeline_config for resource in resources if resource.pipeline_config is not None]


def _steps(body: Sequence[Any]) -> Iterator[Step]:
    for part in body:
        if isinstance(part, Step):
            yield part
        else:
            yield from _steps(part.body)


def _check_warps(tasks: Sequence[Task]) -> None:
    owners: dict[int, Task] = {}
    for task in tasks:
        for warp in task.warps:
            if warp in owners:
                problem = f"warp {warp} belongs to '{owners[warp].name}' and to '{task.name}'"
                raise pipeline_error(problem, "give each task warps of its own: warp_idx and num_warps")
            owners[warp] = task
    for warp, task in owners.items():
        other = owners.get(warp - warp % _GROUP_OF_WARPS, task)
        if task.num_registers != other.num_registers:
            problem = f"'{other.name}' and '{task.name}' plan different registers in one warp group"
            raise pipeline_error(problem, "give the tasks of warps 4 i to 4 i + 3 the same num_registers")


def _check_step(task: Task, step: Step) -> None:
    members = step.resource.members if isinstance(step.resource, PipelineGroup) else (step.resource,)
    bound = getattr(step.resource, step.name, None)
    fills = bound.work.fills if isinstance(bound, BoundWork) else step.name in _FILLS
    named = task.dst_resources if fills else task.src_resources
    for member in members:
        if not any(member is resource for resource in named):
            field = "dst_resources" if fills else "src_resources"
            problem = f"the schedule of '{task.name}' calls {step.name}() of '{member.name}'"
            raise pipeline_error(problem, f"name the resource in its {field}")
        needs = not isinstance(bound, BoundWork) and not isinstance(member, WorkQueue)
        if needs and member.pipeline_config is None:
            problem = f"the schedule of '{task.name}' calls {step.name}() of '{member.name}', which has no pipeline"
            raise pipeline_error(problem, "give the resource a pipeline_config, or leave the call out")
