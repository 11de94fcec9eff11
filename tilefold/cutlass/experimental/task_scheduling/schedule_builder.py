# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Schedules: the order in which a task uses its resources, recorded by calls and `with` statements.

The calls of a schedule run once, before the kernel has the task's code; they note steps, and return the names of
values. Loops of Python therefore repeat steps, and `domain_loop` and `work_tile_loop` become loops of the kernel.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.pipelines.groups import pipeline_error


@dataclass(frozen=True, eq=False)
class Result:
    """A value that a work returns: that of the variable of its task, as the step left it."""

    variable: object
    name: str
    step: int


@dataclass(frozen=True)
class Step:
    """A call of a resource: `acquire`, `wait` and the like of its pipeline, or a work."""

    resource: Any
    name: str
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict[str, object])
    results: tuple[Result, ...] = ()


@dataclass(frozen=True)
class Loop:
    """Steps for each number of a range, whose end may be a method of the task."""

    start: Any
    stop: Any
    step: Any
    unroll: int | None
    body: list[object]


@dataclass(frozen=True)
class TileLoop:
    """Steps for each tile of a queue."""

    queue: Any
    skip_if: Callable[..., Any] | None
    body: list[object]

    @contextmanager
    def skippable(self) -> Generator[None, None, None]:
        """Within it, steps are left out for tiles of which `skip_if` holds."""
        with _within(Skippable([])):
            yield


@dataclass(frozen=True)
class Skippable:
    """Steps that a tile may leave out."""

    body: list[object]


@dataclass(frozen=True)
class Schedule:
    """The steps of a task."""

    name: str
    body: Sequence[object]


class Recorder:
    """The steps of a schedule that is being recorded."""

    def __init__(self) -> None:
        self.bodies: list[list[Any]] = [[]]
        self._made = 0
        self._latest: dict[int, int] = {}

    def note(self, part: object) -> None:
        """Adds a step to the innermost loop."""
        self.bodies[-1].append(part)

    def returned(self, variables: Sequence[tuple[str, object]]) -> tuple[Result, ...]:
        """The values of a step's variables."""
        self._made += 1
        for _, variable in variables:
            self._latest[id(variable)] = self._made
        return tuple(Result(variable, name, self._made) for name, variable in variables)

    def check(self, argument: object) -> None:
        """Raises TilefoldError (E5011) for a value that another step has replaced: a task has one variable of a name,
        so that the value is lost.
        """
        if isinstance(argument, tuple | list):
            for part in argument:  # pyright: ignore[reportUnknownVariableType]
                self.check(part)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(argument, Result) and self._latest[id(argument.variable)] != argument.step:
            hint = "hand it on before the next step that returns it, or give the resource a second variable"
            raise pipeline_error(f"a later step has replaced the value of '{argument.name}'", hint)


_RECORDER: ContextVar[Recorder | None] = ContextVar("tilefold_schedule", default=None)


def recorder() -> Recorder | None:
    """The schedule that is being recorded; None outside one."""
    return _RECORDER.get()


def _recording(name: str) -> Recorder:
    made = _RECORDER.get()
    if made is None:
        raise TilefoldError(
            Code.BUILD_OUTSIDE, f"{name} is used outside a schedule", "write it in a @schedule function"
        )
    return made


@contextmanager
def _within(part: Loop | TileLoop | Skippable) -> Generator[None, None, None]:
    made = _recording("a loop of tasks")
    made.note(part)
    made.bodies.append(part.body)
    yield
    made.bodies.pop()


@contextmanager
def domain_loop(
    start: object, stop: object = None, step: object = 1, *, unroll: int | None = None
) -> Generator[None, None, None]:
    """A loop of the task: `with domain_loop(start, stop, step):`, of which works see the number as
    `stage_info.loop_offset`. With one argument it counts from 0. The end may be a method of the task's class that takes
    the coordinates of the tile. `unroll` is as in `cute.range`.
    """
    begin, end = (0, start) if stop is None else (start, stop)
    with _within(Loop(begin, end, step, unroll, [])):
        yield


@contextmanager
def work_tile_loop(queue: object, skip_if: Callable[..., object] | None = None) -> Generator[TileLoop, None, None]:
    """A loop over the tiles of a `WorkQueue`: `with work_tile_loop(queue) as tiles:`. Its body ends by
    `queue.get_and_advance_work_tile()`. `skip_if` is a method of the queue's class that takes a tile: where it holds,
    the steps in `with tiles.skippable():` are left out.
    """
    loop = TileLoop(queue, skip_if, [])
    with _within(loop):
        yield loop


def schedule(function: Callable[..., None]) -> Callable[..., Schedule]:
    """Makes a function of resources record a schedule when it is called."""

    @wraps(function)
    def record(*resources: object, **named: object) -> Schedule:
        made = Recorder()
        token = _RECORDER.set(made)
        try:
            function(*resources, **named)
        finally:
            _RECORDER.reset(token)
        return Schedule(function.__name__, tuple(made.bodies[0]))

    return record
