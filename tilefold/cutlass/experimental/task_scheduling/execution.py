# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code of one task: its recorded steps, with the variables and positions that belong to its warps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tilefold.builder.control.branches import branch
from tilefold.builder.control.loop_range import make_range
from tilefold.builder.control.loops import conditional_loop, counted_loop
from tilefold.builder.control.variables import MISSING, Temporary, Variable
from tilefold.builder.pipelines.groups import pipeline_error
from tilefold.builder.scalars.dtypes import DType, Int32
from tilefold.builder.scalars.values import convert, is_scalar

from .enums import TileSchedulerType
from .memory import ResourceContext
from .pipeline_sides import PipelineSides
from .resources import MemoryResource, PipelineConfig, PipelineGroup, WorkQueue
from .schedule_builder import Loop, Result, Skippable, Step, TileLoop
from .task import Task
from .works import BoundWork, TaskLocalVariable


@dataclass
class _Attribute:
    """An attribute of a resource as a variable of control flow."""

    resource: MemoryResource
    attribute: str
    is_stable: bool = True

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"{self.resource.name}.{self.attribute}"

    def get(self) -> object:
        """Its value; MISSING without one."""
        return getattr(self.resource, self.attribute, MISSING)

    def set(self, value: object) -> None:
        """Sets its value; MISSING deletes it."""
        if value is not MISSING:
            setattr(self.resource, self.attribute, value)
        elif self.attribute in vars(self.resource):
            delattr(self.resource, self.attribute)


_FIXED = (MemoryResource, PipelineGroup, PipelineConfig, TaskLocalVariable, str)
"""Attributes of these types do not change while a task runs."""


@dataclass(frozen=True)
class _Now:
    """Where a work is (`StageInfo`)."""

    execution: "Execution"
    resource: MemoryResource
    fills: bool

    @property
    def _loop(self) -> tuple[Any, Any, Any]:
        if self.execution.loop is None:
            hint = "call the work within a domain_loop"
            raise pipeline_error(f"a work of '{self.resource.name}' asks for a loop outside one", hint)
        return self.execution.loop

    @property
    def loop_offset(self) -> Any:
        """The number of the innermost loop."""
        return self._loop[0]

    @property
    def loop_start(self) -> Any:
        """The first number of that loop."""
        return self._loop[1]

    @property
    def loop_end(self) -> Any:
        """The end of that loop."""
        return self._loop[2]

    @property
    def stage_idx(self) -> Any:
        """The stage of the work's side."""
        state = self.execution.sides.side(self.resource, self.fills)
        return 0 if state is None else state.index

    @property
    def barrier(self) -> Any:
        """The mbarrier of a full stage."""
        pipeline, state = (
            self.execution.sides.pipeline(self.resource),
            self.execution.sides.side(self.resource, self.fills),
        )
        if pipeline is None or state is None:
            raise pipeline_error(f"'{self.resource.name}' has no pipeline", "give it a pipeline_config")
        return pipeline.producer_get_barrier(state)

    @property
    def work_tile(self) -> Any:
        """The tile of the innermost loop over tiles."""
        tile = self.execution.tile.get()
        if tile is MISSING:
            hint = "call the work within a work_tile_loop"
            raise pipeline_error(f"a work of '{self.resource.name}' asks for a tile outside their loop", hint)
        return tile

    @property
    def context(self) -> ResourceContext:
        """The memory of all resources."""
        return self.execution.context


class Execution:
    """The code of a task: its loops, branches and works; `sides` are those of its pipelines."""

    def __init__(
        self,
        task: Task,
        resources: Sequence[MemoryResource],
        sides: PipelineSides,
        context: ResourceContext,
    ) -> None:
        self.context = context
        self.sides = sides
        self.loop: tuple[Any, Any, Any] | None = None
        self.tile = Temporary("the tile")
        self._task = task
        self._resources = resources
        self._scheduler = Temporary("the scheduler of tiles")
        self._skips = Temporary("whether a tile is skipped")
        self._slots: dict[TaskLocalVariable, Temporary] = {}

    def build(self) -> None:
        """Builds the code, in the branch of the task's warps."""
        self._steps(self._task.schedule.body)
        for resource in self._task.dst_resources:
            self.sides.end(resource)

    def _prepare(self, body: Sequence[Any]) -> None:
        """Makes the variables and positions that steps of a loop use, before the loop."""
        for part in body:
            if not isinstance(part, Step):
                self._prepare(part.body)
                continue
            members = part.resource.members if isinstance(part.resource, PipelineGroup) else (part.resource,)
            for member in members:
                self.sides.prepare(member)
            for given in (*part.args, *part.kwargs.values(), part.results):
                for result in _results(given):
                    self._slot(result)

    def _slot(self, result: Result) -> Temporary:
        variable = result.variable
        assert isinstance(variable, TaskLocalVariable)
        if variable not in self._slots:
            self._slots[variable] = Temporary(result.name, variable.initial())
        return self._slots[variable]

    def _variables(self) -> list[Variable]:
        """All that a loop may change."""
        attributes = [
            _Attribute(resource, name)
            for resource in self._resources
            for name in vars(resource)
            if not isinstance(getattr(resource, name), _FIXED)
        ]
        boxes = [self.tile, self._scheduler, self._skips, *self._slots.values(), *self.sides.positions()]
        return [*attributes, *(box for box in boxes if box.get() is not MISSING)]

    def _steps(self, body: Sequence[Any]) -> None:
        for part in body:
            match part:
                case Loop():
                    self._loop(part)
                case TileLoop():
                    self._tiles(part)
                case Skippable():
                    self._leave_out(part)
                case _:
                    self._step(part)

    def _loop(self, part: Loop) -> None:
        if not part.body:
            return
        start, step = part.start, part.step
        stop: Any = part.stop
        if callable(stop):
            stop = stop(self._task, _Now(self, self._resources[0], False).work_tile.tile_idx)
        self._prepare(part.body)
        outer = self.loop
        self.sides.forget_answers()

        def body(number: Any) -> None:
            self.loop = (convert(number, Int32), start, stop)
            self._steps(part.body)
            self.sides.forget_answers()

        counted_loop(make_range(start, stop, step, unroll=part.unroll), body, self._variables())
        self.loop = outer

    def _tiles(self, part: TileLoop) -> None:
        queue: WorkQueue = part.queue
        self._prepare(part.body)
        scheduler = queue.create_tile_scheduler()
        self._scheduler.set(scheduler)
        self.tile.set(scheduler.initial_work_tile_info())
        self.sides.forget_answers()

        def body() -> None:
            if part.skip_if is not None:
                self._skips.set(part.skip_if(queue, self.tile.get()))
            self._steps(part.body)
            self._skips.set(MISSING)
            self.sides.forget_answers()

        def more() -> Any:
            tile: Any = self.tile.get()
            return tile.is_valid_tile

        conditional_loop(more, body, self._variables())
        self.tile.set(MISSING)
        self._scheduler.set(MISSING)

    def _leave_out(self, part: Skippable) -> None:
        skips: Any = self._skips.get()
        if skips is MISSING:
            self._steps(part.body)
            return
        self._prepare(part.body)
        self.sides.forget_answers()
        branch(skips, lambda: None, lambda: self._steps(part.body), self._variables())
        self.sides.forget_answers()

    def _step(self, step: Step) -> None:
        resource = step.resource
        bound = getattr(resource, step.name)
        if isinstance(bound, BoundWork):
            args = [self._value(argument) for argument in step.args]
            named = {name: self._value(argument) for name, argument in step.kwargs.items()}
            result = bound.work.function(resource, _Now(self, resource, bound.work.fills), *args, **named)
            values = result if len(step.results) > 1 else (result,)
            for name, value in zip(step.results, values, strict=False):
                self._slot(name).set(_of_type(value, name.variable))
        elif isinstance(resource, PipelineGroup):
            for member in resource.members:
                self._pass(member, step.name)
        else:
            self._pass(resource, step.name)

    def _value(self, argument: object) -> object:
        if isinstance(argument, Result):
            return self._slot(argument).get()
        if isinstance(argument, tuple | list):
            return type(argument)(map(self._value, argument))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return argument

    def _pass(self, resource: MemoryResource, name: str) -> None:
        """A step of a pipeline, or of a queue."""
        if name == "get_and_advance_work_tile":
            self._next_tile(resource)
            return
        pipeline = self.sides.pipeline(resource)
        if pipeline is None:
            return  # a queue of fixed order
        if name == "fetch_work_tile":
            scheduler: Any = self._scheduler.get()
            self.sides.fetch(resource, pipeline, scheduler.advance_to_next_work)
        else:
            self.sides.step(resource, pipeline, name)

    def _next_tile(self, resource: MemoryResource) -> None:
        scheduler: Any = self._scheduler.get()
        assert isinstance(resource, WorkQueue)
        if resource.tile_scheduler_config.kind is TileSchedulerType.StaticPersistent:
            scheduler.advance_to_next_work()
        self.tile.set(scheduler.get_current_work())


def _results(given: object) -> Iterator[Result]:
    """The values of steps in an argument."""
    if isinstance(given, Result):
        yield given
    elif isinstance(given, tuple | list):
        for part in given:  # pyright: ignore[reportUnknownVariableType]
            yield from _results(part)  # pyright: ignore[reportUnknownArgumentType]


def _of_type(value: object, variable: object) -> object:
    """A result as its variable holds it: a number has the type of the variable."""
    dtype = variable.dtype if isinstance(variable, TaskLocalVariable) else None
    return convert(value, dtype) if isinstance(dtype, DType) and is_scalar(value) else value
