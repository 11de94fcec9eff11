# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The events at which a warp gives way to others, who sees them, and how often the parts of a program were executed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from xdsl.ir import Block, Operation

from ...base.errors import Code
from .faults import Site
from .warp import Warp


@dataclass(slots=True)
class Votes:
    """The threads at a barrier in which a predicate holds, and the reductions that they ask for: those of a warp, and
    all once the barrier is complete.
    """

    kinds: frozenset[str]
    holding: int
    threads: int


def total_votes(votes: Sequence[Votes]) -> None:
    """Gives the votes of parts of a barrier, which is complete, those of all."""
    kinds = frozenset[str]().union(*(part.kinds for part in votes))
    holding, threads = sum(part.holding for part in votes), sum(part.threads for part in votes)
    for part in votes:
        part.kinds, part.holding, part.threads = kinds, holding, threads


@dataclass(frozen=True, slots=True)
class Barrier:
    """A warp yields this when it arrives at a barrier of the block: its number and the operation."""

    id: int
    site: Site
    threads: int | None = None
    """The threads that meet here; all of the block where it is None."""
    waits: bool = True
    """Whether the warp waits for the others, or only says that it was here."""
    votes: Votes | None = None
    """The votes of its threads, where the barrier reduces a predicate."""

    @property
    def purpose(self) -> tuple[int, int | None, bool, bool]:
        """The parts that lanes of a warp which meet have in common."""
        return self.id, self.threads, self.waits, self.votes is not None

    @property
    def described(self) -> str:
        """The barrier, and the lanes' part there, in words."""
        deed = "a reduction" if self.votes is not None else "a wait" if self.waits else "an arrival"
        count = "" if self.threads is None else f" of {self.threads} threads"
        return f"{deed} at barrier {self.id}{count}"


@dataclass(frozen=True, slots=True, eq=False)
class Pause:
    """A warp yields this so that others may go on before it does; one object for each operation. `look` names the
    place that the warp looks at next, in memory of the name `space`, where it may wait for a change.
    """

    site: Site
    look: Callable[[Warp], str] | None = None
    space: str = ""
    idle: frozenset[int] = frozenset()
    """Registers whose values do not matter as long as the warp comes back here."""


@dataclass(frozen=True, slots=True)
class Until:
    """A warp that waits until a condition holds yields this; `describe` names the mbarrier and its missing arrivals, or
    something else and its state; the name also where the condition holds. `code` and `hint` describe a wait without
    end.
    """

    holds: Callable[[], bool]
    site: Site
    describe: Callable[[], tuple[str, str]]
    code: Code = Code.SIM_BARRIER
    hint: str = "let as many threads and copies arrive as the mbarrier expects, and wait for the right parity"
    cause: Callable[[bool], str] = lambda others_wait: ""
    """Why the wait has no end, in words, as far as it shows, by whether other warps wait elsewhere."""
    has_begun: Callable[[], bool] = lambda: False
    """Whether a part of the awaited work has come, so that it shows the missing part."""


BODIES_BETWEEN_PAUSES = 64
"""How often the body of a loop without a bound runs before other warps go on."""

Step: TypeAlias = Callable[[Warp], None]
Event: TypeAlias = Barrier | Pause | Until
Suspension: TypeAlias = Iterator[Event]


@dataclass(frozen=True, slots=True)
class Suspending:
    """A step that runs as a generator and yields where the warp must wait."""

    run: Callable[[Warp], Suspension]


class ScheduleObserver(Protocol):
    """Sees when warps run and wait."""

    def runs(self, warp: Warp) -> None:
        """A warp goes on."""
        ...

    def polls(self, warp: Warp) -> None:
        """A warp has begun or awaited asynchronous work."""
        ...

    def pauses(self, warp: Warp, event: Event | None) -> None:
        """A warp has reached an operation where it yields to others, or its end."""
        ...

    def meets(self, arrived: Iterable[tuple[Warp, Barrier]]) -> None:
        """All of these warps have arrived at a barrier."""
        ...

    def wakes(self, warp: Warp, until: Until) -> None:
        """The condition holds that a warp has waited for."""
        ...


@dataclass(slots=True)
class Executions:
    """How often a block was executed, by warps and by threads."""

    warps: int = 0
    threads: int = 0


@dataclass(frozen=True, slots=True)
class Segment:
    """Operations that follow each other in a block, with the counter of their executions."""

    block: Block
    ops: tuple[Operation, ...]
    executions: Executions
