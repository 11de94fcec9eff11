# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of a launch that all of its blocks share, its limits, and when its asynchronous operations complete."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...base.errors import Code
from ...base.limits import Limits
from ...base.parameters import TENSOR_MAP
from ...base.printable import printable
from ...base.target import Target
from ...layout.tma.recipe import PlacedMap
from ..engine import LaunchConfig, NumPyArray
from ..errors import Dim3
from ..options import ProgrammaticStreamSerialization
from .faults import SimulationError, Site
from .grids import Grids
from .memory.provenance import Fragments, Outside, Tiles

if TYPE_CHECKING:
    from .exact.patterns import Table
    from .memory.host_arrays import Reached
    from .memory.undefined import Trace

MAP_BASE = 1 << 40
"""The address of the first tensor map among a kernel's parameters."""


T = TypeVar("T")
EVERY_STEPS = 1024
"""Steps of warps between two looks at the clock, the progress and the limits."""


@dataclass(slots=True, eq=False)
class Holder:
    """State that other modules define: an object of each of their classes, made when it is first asked for."""

    _states: dict[Any, Any] = field(init=False, default_factory=dict[Any, Any])

    def state(self, kind: Callable[[Any], T]) -> T:
        """The state of a class, which takes only the holder."""
        state: T | None = self._states.get(kind)
        if state is None:
            state = self._states[kind] = kind(self)
        return state


class Completion(Enum):
    """When asynchronous operations on mbarriers complete, which PTX leaves open: when a thread looks at the
    mbarrier, when they are issued, or at random times in between.
    """

    LATE = "late"
    EARLY = "early"
    RANDOM = "random"


@dataclass(frozen=True, slots=True)
class Loads:
    """How atomic loads find their values. Usually a load lets other warps go on first, and finds the newest value. Here
    one in two of the first ones of a warp at a place of the kernel does not wait, as the seed `hurry` chooses, or loads
    find outdated values as `seed` chooses, maybe only those at a `site`.
    """

    hurry: int | None = None
    seed: int | None = None
    site: Site | None = None


class OutOfStepError(Exception):
    """A launch whose warps run in step has come to something that they must do one after the other; `always` where that
    is sure before it begins. `is_fault` where it is a fault, which the report of the first thread names.
    """

    def __init__(self, always: bool, is_fault: bool = False) -> None:
        super().__init__()
        self.always = always
        self.is_fault = is_fault


def unknown_registers() -> int | None:
    """The registers of a thread where the simulator does not know an assembler."""
    return None


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """Facts of a kernel that only messages and refusals need; each is computed when it is asked for."""

    fragments: Fragments = dict
    """The types of the fragments, as the kernel was written."""
    tiles: Tiles = dict
    """The tensor arguments, by name, beyond which tiles reach."""
    registers: Callable[[], int | None] = unknown_registers
    """The registers of a thread, which say how many blocks share a multiprocessor; assembles the kernel."""


def refuse_output(text: str) -> None:
    """Where a run in step, or one of several processes, would print."""
    raise OutOfStepError(always=True)


Forgiven: TypeAlias = frozenset[tuple[Code, Site]] | None
"""Faults of some operations, or of all where it is None, that do not end a launch."""


@dataclass(frozen=True, slots=True, eq=False)
class Left:
    """The bytes of an argument as a launch has left them, and which of them it has written."""

    storage: NumPyArray
    content: NDArray[np.uint8]
    written: NDArray[np.bool_]

    def within(self, storage: NumPyArray) -> NDArray[np.bool_] | None:
        """Which bytes of a storage are written ones; None if the two share none, or if the host has changed some since,
        for which it has waited for the launch.
        """
        raw = storage.view(np.uint8)
        shift = raw.ctypes.data - self.storage.ctypes.data
        first, end = max(shift, 0), min(shift + raw.size, self.written.size)
        if first >= end or not np.array_equal(raw[first - shift : end - shift], self.content[first:end]):
            return None
        chosen = np.zeros(raw.size, np.bool_)
        chosen[first - shift : end - shift] = self.written[first:end]
        return chosen


@dataclass(slots=True, eq=False)
class Stream:
    """A stream of launches: its handle, and what the last one has `left` to those that may overlap with it."""

    handle: object = None
    left: Sequence[Left] = ()

    def of(self, handle: object) -> "Stream":
        """The stream of the next launch. Nothing is known of the order of launches in different ones."""
        if handle is not self.handle:
            self.handle, self.left = handle, ()
        return self

    def is_overlapped_by(self, config: LaunchConfig) -> bool:
        """Whether a launch may begin before the last one has ended."""
        return bool(self.left) and ProgrammaticStreamSerialization() in config.attributes


@dataclass(frozen=True, slots=True)
class PlacedMulticast:
    """Multicast addresses, `size` bytes from `start` on, and the memory of each device that they stand for."""

    start: int
    size: int
    parts: tuple[int, ...]


class Reporter(Protocol):
    """Shows how far a launch is."""

    def look(self, launch: "LaunchState") -> None:
        """Shows it, if it is time to."""
        ...

    def share(self, done: int, processes: int) -> None:
        """The blocks after those that are done are shared out among processes."""
        ...

    def clear(self) -> None:
        """Removes a line that is written over, before another text."""
        ...


@dataclass(slots=True)
class LaunchState:
    """The state that all blocks of a launch share: its grids, budget, clock, and where text goes."""

    grids: Grids
    budget: Limits
    sink: Callable[[str], None]
    repeats: bool = False
    """Whether the launch is run again after a read of undefined bytes."""
    in_step: int = 0
    """How many blocks run in step, for speed, with all of their warps: faults are then found but cannot be reported,
    since they depend on the order of the warps. 0 where warps run one after the other.
    """
    races: bool = True
    """Whether the launch checks that accesses are ordered, so that clocks record their order."""
    shares: bool = False
    """Whether several processes may share out its clusters."""
    trace: "Trace | None" = None
    """The trace by which runs are compared, after a read of undefined bytes."""
    completion: Completion = Completion.LATE
    chance: Random | None = None
    """The source of the times at which operations complete, where these are random."""
    loads: Loads | None = None
    """How atomic loads find their values, where that is not the usual way."""
    numbers: bool = False
    """Whether the launch checks for numbers that go wrong."""
    tensor_cores: Target | None = None
    """The target whose tensor cores sum the products of matrix instructions; None sums in f64."""
    tensor_fences: bool = True
    """Whether only fences of tcgen05 order uses of tensor memory by different threads."""
    exact: "Table | None" = None
    """The bit patterns of exact numbers, where the kernel runs in exact arithmetic."""
    outside: Outside = field(default_factory=Outside)
    facts: KernelFacts = field(default_factory=KernelFacts)
    reached: "Reached | None" = None
    """The host memory that the kernel may reach by addresses, if it makes pointers of numbers."""
    times: int = 0
    """How often clocks have been read."""
    multicasts: list[PlacedMulticast] = field(default_factory=list[PlacedMulticast])
    """The multicast memory of these devices."""
    maps: list[PlacedMap] = field(default_factory=list[PlacedMap])
    """The tensor maps among the kernel's parameters, each at a multiple of their size after `MAP_BASE`."""
    forgiven: Forgiven = frozenset()
    """Faults of some operations, or of all where it is None, that do not end the launch: it goes on without harm."""
    begun: "list[list[tuple[int, int]]]" = field(default_factory=lambda: [[]])
    """The clusters that have begun in each seat: the time and the number of each."""
    fences: set[str] = field(default_factory=set[str])
    """The scopes of the kernel's fences."""
    coming: deque[tuple[int, int]] = field(default_factory=deque[tuple[int, int]])
    """The clusters that have not begun: the number of each among those of its size, and its size."""
    lets_next_begin: bool = False
    """Whether the kernel lets the next launch begin before its end."""
    pairs: bool = False
    """Whether the kernel has barriers at which only some threads meet or wait: numbered ones, or mbarriers."""
    progress: Reporter | None = None
    """Who shows how far the launch is, if anybody does."""
    started: int = 0
    """How many blocks have begun."""
    ended: int = 0
    """How many blocks have ended."""
    clock: int = 1
    steps: int = 0
    due: int = 0
    """The number of steps at which the next look at the limits and the progress is due."""
    site: Site | None = None
    """The operation whose body ran last."""
    printed: int = 0

    def leave_lockstep(self, *, is_fault: bool = False) -> None:
        """OutOfStepError if warps run in step: the caller's next step, maybe the words for a fault, needs them one
        after the other.
        """
        if self.in_step:
            raise OutOfStepError(always=not self.steps, is_fault=is_fault)

    def forgives(self, code: Code, site: Site) -> bool:
        """Whether a fault of an operation does not end the launch."""
        return self.forgiven is None or (code, site) in self.forgiven

    @property
    def devices(self) -> int:
        """How many devices it runs on."""
        return self.grids.devices

    def coordinate(self, number: int) -> Dim3:
        """The coordinate of a block in its grid."""
        return self.grids.of_block(number).coordinate(number)

    @property
    def agent_before(self) -> int:
        """The agent of all accesses of the launch before this one, where the two may overlap."""
        return self.grids.threads + 1

    def is_widest(self, scope: str) -> bool:
        """Whether a scope has all threads of the launch."""
        return scope == "sys" or (scope == "gpu" and self.devices == 1)

    def parameter_map(self, address: int) -> PlacedMap | None:
        """The tensor map among the parameters at an address; None for an address in memory."""
        number = (address - MAP_BASE) // TENSOR_MAP.size
        return self.maps[number] if 0 <= number < len(self.maps) else None

    def tick(self) -> int:
        """Advances the clock at an event that orders threads; the new time."""
        self.clock += 1
        return self.clock

    def spend(self, steps: int, site: Site) -> None:
        """Counts operations that the one at `site` executes. SimulationError beyond the budget: E3210 of steps, E3243
        of time.
        """
        self.steps += steps
        self.site = site
        if self.steps > self.due:
            self._look(site)

    def _look(self, site: Site) -> None:
        if monotonic() - self.budget.began > self.budget.seconds:
            raise SimulationError(
                Code.SIM_SECONDS,
                f"the simulation has taken {self.budget.seconds:g} seconds and has not ended",
                "look for a loop that does not end, launch a smaller grid, or allow more by --max-seconds",
                site=site,
            )
        if self.steps > self.budget.steps:
            raise SimulationError(
                Code.SIM_STEPS,
                f"the launch has executed {self.budget.steps} steps and has not ended",
                "look for a loop that does not end, launch a smaller grid, or allow more by --max-steps",
                site=site,
            )
        self.due = min(self.budget.steps, self.steps + EVERY_STEPS)
        if self.progress is not None:
            self.progress.look(self)

    def print(self, text: str, site: Site | None = None) -> None:
        """Passes on the text that the kernel, or a kernel launched from here, prints at `site`. SimulationError
        (E3210) beyond the budget.
        """
        text = printable(text)
        self.printed += len(text)
        if self.printed > self.budget.characters:
            text = f"the kernel has printed {self.budget.characters} characters"
            raise SimulationError(Code.SIM_STEPS, text, "let fewer threads print", site=site)
        if self.progress is not None:
            self.progress.clear()
        if self.trace is not None:
            self.trace.note(None, site, "prints", np.frombuffer(text.encode(), np.uint8))
        self.sink(text)
