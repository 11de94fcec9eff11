# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Warps that go on forever: loops that wait for memory that no thread changes, and loops that repeat their state.

A warp is deterministic: with equal registers, equal active lanes and equal memory it does the same again. So a launch
is stuck once every warp that could go on has come back to a state that it was in before, and memory is as it was. The
watchdog compares states at the events at which warps give way to others: a window after 32 such events, then after
twice as many each time, as in Brent's search for cycles. A kernel that ends pays a few comparisons. Values of a loop on
which nothing in it depends do not count. A loop whose condition depends on a counter is in another state each time; the
budget of steps ends it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, TypeAlias

import numpy as np

from ....base.errors import Code
from ..events import Event, Pause, Suspension
from ..faults import SimulationError, Site
from ..launch import LaunchState
from ..memory.arena import Access
from ..values import varies
from ..warp import Cluster, Warp
from .asynchronous import InFlight, Trackers

_FIRST_LOOK = 32
"""Events before the first window."""
_VISITS = 24
"""Events of each warp in a window: warps whose states repeat after more are not found."""
_MOST_NAMED = 4

State: TypeAlias = tuple[Event, Any, tuple[Any, ...]]
"""The event of a warp, its active lanes, and its registers with those of its callers."""


@dataclass(slots=True, eq=False)
class Watchdog:
    """The warps of a launch that are running; `memory` returns a digest of all memory that they can read, `accesses`
    are the memory operations of the program.
    """

    launch: LaunchState
    memory: Callable[[], int]
    accesses: Sequence[Access] = ()
    ready: dict[Cluster, list[tuple[Warp, Suspension]]] = field(
        default_factory=dict[Cluster, list[tuple[Warp, Suspension]]]
    )
    """The warps that can go on, of each cluster that runs."""
    running: Warp | None = None
    """The warp that runs, or ran last."""
    begun: int = 0
    """How many blocks have begun."""
    _count: int = 0
    _due: int = _FIRST_LOOK
    _left: int = 0
    _marks: dict[Warp, State] = field(default_factory=dict[Warp, State])
    _returned: set[Warp] = field(default_factory=set[Warp])
    _before: int | None = None
    _looks: dict[Warp, dict[str, Pause]] = field(default_factory=dict[Warp, dict[str, Pause]])

    def note(self, warp: Warp, event: Event) -> None:
        """Records that a warp has reached an event. SimulationError (E3231) if no warp that can go on will ever do
        anything new."""
        self._count += 1
        if self._count < self._due:
            return
        if isinstance(event, Pause) and event.look is not None:
            self._looks.setdefault(warp, {})[event.look(warp)] = event
        mark, state = self._marks.get(warp), _state(warp, event)
        if mark is None:
            self._marks[warp] = state
            self._left += _VISITS
            return
        self._left -= 1
        if _is_same(mark, state):
            self._returned.add(warp)
            going = [other for ready in self.ready.values() for other, _ in ready]
            if going and all(other in self._returned for other in going) and not self._is_chance():
                now = self._digest()
                if now == self._before:
                    self._refuse(going)
                if self._before is not None:
                    self._left = 0
                self._before = now
                self._returned.clear()
        if self._left <= 0:
            self.end_window()
            self._due = 2 * self._count

    def end_window(self) -> None:
        """Forgets the states so far: a warp has ended, or states do not repeat."""
        if self._marks:
            self._marks.clear()
            self._returned.clear()
            self._looks.clear()
        self._left, self._before = 0, None

    def _digest(self) -> int:
        """A hash of everything that warps can see: memory, mbarriers, and operations in flight."""
        parts = [self.memory()]
        for cluster in {warp.block.cluster: None for warp in self._marks}:
            barriers = cluster.state(Trackers).rows.values()
            parts += [(b.row, b.phase, b.pending, b.bytes, b.tracked) for b in barriers]
            works = [warp.state(InFlight) for warp in cluster.warps]
            parts += [
                (len(w.operations), len(w.loads), len(w.stores), len(w.multiplications), w.committed) for w in works
            ]
        return hash(tuple(parts))

    def _is_chance(self) -> bool:
        """Whether an operation in flight completes at a random time: others may see that although nothing changed."""
        if self.launch.chance is None:
            return False
        clusters = {warp.block.cluster for warp in self._marks}
        return any(barrier.tracked for cluster in clusters for barrier in cluster.state(Trackers).rows.values())

    def where(self) -> str:
        """Where the simulation is, in words."""
        if self.running is None:
            return "the simulation has not begun"
        block = "block ({},{},{})".format(*self.running.block.coordinate)
        who = block if self.running.is_several else f"{block}, warp {self.running.index}"
        return f"{who} was in {self.launch.site}, after {self.launch.steps} steps"

    def _refuse(self, stuck: Sequence[Warp]) -> None:
        """Raises the fault of warps that go round forever, first that of warps that wait for memory."""
        stuck = sorted(stuck, key=lambda warp: warp.agents[0])
        waiting = [warp for warp in stuck if warp in self._looks]
        first = waiting[0] if waiting else stuck[0]
        event = next(iter(self._looks[first].values())) if waiting else self._marks[first][0]
        parts = self._parts(stuck)
        blocks = self.launch.grids.blocks
        missing = blocks - self.begun
        spaces = {pause.space for looks in self._looks.values() for pause in looks.values()}
        if waiting:
            parts += [f"{self._writers(space)}" for space in sorted(spaces) if space]
        if missing:
            parts.append(f"{missing} of {blocks} blocks have not begun")
        does = "waits for memory that no thread changes" if waiting else "repeats a loop that changes nothing"
        hint = "let the loop's body change the values that its condition depends on"
        if waiting:
            hint = "let a thread that is not waiting write it, and check the expected value"
            if missing:
                hint += (
                    "; blocks that wait for later ones need to run at the same time: in a cluster, in a cooperative "
                    f"launch, or on the simulator, all {blocks} of them, by --resident"
                )
        raise SimulationError(
            Code.SIM_STUCK,
            f"warp {first.index} {does}, forever: {'; '.join(parts)}",
            hint,
            site=event.site,
            block=first.block.coordinate,
            thread=first.block.thread(first.first_thread + int(first.lane_numbers()[0])),
            grids=list(dict.fromkeys(warp.block.cluster.grid.index for warp in [first, *stuck])),
        )

    def _parts(self, stuck: Sequence[Warp]) -> list[str]:
        """Each warp with its operation and the memory that it looks at, in words: equal warps together."""
        groups: dict[str, list[Warp]] = {}
        for warp in stuck:
            looks = self._looks.get(warp)
            texts = [f"{pause.site} looks at {text}" for text, pause in looks.items()] if looks else []
            groups.setdefault(" and ".join(texts) or f"{self._marks[warp][0].site} repeats", []).append(warp)
        parts: list[str] = []
        for text, warps in list(groups.items())[:_MOST_NAMED]:
            blocks = {warp.block: None for warp in warps}
            names = [
                f"{_numbers(w.index for w in warps if w.block is b)} of block {_show(b.coordinate)}" for b in blocks
            ]
            more = f" and of {len(names) - _MOST_NAMED} further blocks" if len(names) > _MOST_NAMED else ""
            parts.append(f"in {', '.join(names[:_MOST_NAMED])}{more} {text}")
        if len(groups) > _MOST_NAMED:
            parts.append(f"{len(groups) - _MOST_NAMED} further groups of warps")
        return parts

    def _writers(self, space: str) -> str:
        """The operations that write a memory, and how often each has run, in words."""
        writers = [access for access in self.accesses if access.space == space and access.kind in ("store", "atomic")]
        if not writers:
            return f"no operation of the kernel writes {space} memory"
        counts: Counter[Site] = Counter()
        for access in sorted(writers, key=lambda access: access.kind):  # atomic ones first
            counts[access.site] += access.requests
        named = ", ".join(f"{site} ({count} times)" for site, count in list(counts.items())[:_MOST_NAMED])
        return f"{space} memory is written by {named}"


def _show(coordinate: tuple[int, int, int]) -> str:
    return "({},{},{})".format(*coordinate)


def _numbers(indices: Iterable[int]) -> str:
    """Warps by their numbers, in words."""
    numbers = sorted(indices)
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"warps {numbers[0]} to {numbers[-1]}"
    return f"warp{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _state(warp: Warp, event: Event) -> State:
    # registers are replaced, never changed in place
    idle = event.idle if isinstance(event, Pause) else ()
    registers = [None if slot in idle else value for slot, value in enumerate(warp.registers)]
    others = tuple([value for _, lanes, held in warp.diverged for value in (lanes, *held)])
    return event, warp.mask, (*registers, *(value for frame in warp.calls for value in frame), *others)


def _is_same(first: State, second: State) -> bool:
    one, other = first[0], second[0]
    if one is not other and (isinstance(one, Pause) or type(one) is not type(other) or one.site != other.site):
        return False
    return _equal(first[1], second[1]) and _equal(first[2], second[2])


def _equal(a: Any, b: Any) -> bool:
    """Whether two values of registers are the same, bit by bit."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if varies(a):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        return bool(np.array_equal(a, b)) if a.dtype.hasobject else a.tobytes() == b.tobytes()
    if type(a) in (tuple, list):
        return len(a) == len(b) and all(map(_equal, a, b))
    if is_dataclass(a):
        return all(_equal(getattr(a, part.name), getattr(b, part.name)) for part in fields(a))
    return isinstance(a, int | float | str | np.generic) and bool(a == b or (a != a and b != b))
