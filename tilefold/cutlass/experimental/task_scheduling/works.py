# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The works that fill and read resources, and the variables by which a task's works pass values to each other."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, cast, overload

from tilefold.builder.pipelines.groups import pipeline_error

from .enums import WorkAttr
from .schedule_builder import Step, recorder


class TaskLocalVariable:
    """A variable that each task has for itself: a work sets it by its result, and other works take it as an argument.

    `default`, or the result of `default_factory`, is its value before. A resource declares it in its class by
    `TaskLocalVariable.uninitialized()`, and its objects assign the variable itself.
    """

    def __init__(
        self,
        dtype: object = None,
        default: object = None,
        default_factory: Callable[[], object] | None = None,
        docs: str = "",
    ) -> None:
        self.dtype = dtype
        self.default = default
        self.default_factory = default_factory
        self.__doc__ = docs
        self.name = ""

    @classmethod
    def uninitialized(cls) -> Any:
        """The place of a variable in a class."""
        return cls()

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def initial(self) -> Any:
        """Its value at the start of a task."""
        return self.default if self.default_factory is None else self.default_factory()


class StageInfo(Protocol):
    """Where a work is: in the loop of its task, at a stage of its resource's pipeline, in a tile."""

    @property
    def loop_offset(self) -> Any:
        """The number of the innermost `domain_loop`. Raises TilefoldError (E5011) outside one."""
        ...

    @property
    def loop_start(self) -> Any:
        """The first number of that loop."""
        ...

    @property
    def loop_end(self) -> Any:
        """The end of that loop."""
        ...

    @property
    def stage_idx(self) -> Any:
        """The stage: for a producer the one that it has acquired, for a consumer the one that it has waited for."""
        ...

    @property
    def barrier(self) -> Any:
        """The mbarrier at which copies into the stage count their bytes."""
        ...

    @property
    def work_tile(self) -> Any:
        """The tile of the innermost `work_tile_loop`."""
        ...

    @property
    def context(self) -> Any:
        """The memory of all resources (`ResourceContext`)."""
        ...


@dataclass(frozen=True)
class Work:
    """A work of a resource, as an attribute of its class."""

    function: Any
    fills: bool
    returns: tuple[TaskLocalVariable | str, ...]
    attributes: WorkAttr

    def __set_name__(self, owner: type, name: str) -> None:
        object.__setattr__(self, "_name", name)

    def __get__(self, owner: object, kind: type | None = None) -> Any:
        return self if owner is None else BoundWork(owner, getattr(self, "_name", ""), self)

    def variables(self, owner: Any) -> list[tuple[str, TaskLocalVariable]]:
        """The variables of a resource that the result sets. Raises TilefoldError (E5011) for one without a type."""
        named: list[tuple[str, TaskLocalVariable]] = []
        for variable in self.returns:
            name = variable if isinstance(variable, str) else variable.name
            found = getattr(owner, name, None)
            if not isinstance(found, TaskLocalVariable) or found is variable:
                hint = f"assign self.{name} = TaskLocalVariable(dtype=..., default=...)"
                raise pipeline_error(f"'{name}' of '{owner.name}' has not been created", hint)
            named.append((name, found))
        return named


@dataclass(frozen=True)
class BoundWork:
    """A work of one resource: in a schedule its call is a step, within another work it is executed."""

    owner: Any
    name: str
    work: Work

    def __call__(self, *args: object, **kwargs: object) -> Any:
        made = recorder()
        if made is None:
            return self.work.function(self.owner, *args, **kwargs)
        for argument in (*args, *kwargs.values()):
            made.check(argument)
        results = made.returned(self.work.variables(self.owner))
        made.note(Step(self.owner, self.name, args, kwargs, results))
        return None if not results else results[0] if len(results) == 1 else results


@overload
def producer_work(function: Callable[..., object], /) -> Any: ...


@overload
def producer_work(*, returns: object = (), work_attrs: WorkAttr = WorkAttr.NONE) -> Callable[[Any], Any]: ...


def producer_work(function: object = None, /, *, returns: object = (), work_attrs: WorkAttr = WorkAttr.NONE) -> Any:
    """Makes a method the work that fills a resource. It takes a `StageInfo` and what the schedule hands to it.

    Its result sets the variables `returns`, one or a tuple, by the declaration in the class or by name.
    """
    return _work(function, True, returns, work_attrs)


@overload
def consumer_work(function: Callable[..., object], /) -> Any: ...


@overload
def consumer_work(*, returns: object = (), work_attrs: WorkAttr = WorkAttr.NONE) -> Callable[[Any], Any]: ...


def consumer_work(function: object = None, /, *, returns: object = (), work_attrs: WorkAttr = WorkAttr.NONE) -> Any:
    """Makes a method the work that reads a resource; see `producer_work`."""
    return _work(function, False, returns, work_attrs)


def _work(function: Any, fills: bool, returns: Any, attributes: WorkAttr) -> Any:
    names = tuple(cast("Iterable[Any]", returns)) if isinstance(returns, tuple | list) else (returns,)

    def made(method: Any) -> Work:
        return Work(method, fills, names, attributes)

    return made if function is None else made(function)
