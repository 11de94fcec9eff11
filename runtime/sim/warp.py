# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of a run: the launch, the block that is executing, and its warps with their active lanes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...base.errors import Code
from ..engine import LaunchConfig
from ..errors import Dim3
from .faults import SimulationError, Site
from .memory.outside import Outside, led_outside
from .memory.undefined import WRITE_FIRST, Trace, UndefinedReadError
from .ordering.knowledge import Knowledge
from .values.values import Lanes, Value, varies

if TYPE_CHECKING:
    from .ordering.async_copy import Pending
    from .ordering.mbarrier import Mbarrier

WARP = 32
"""Lanes of a full warp."""

Bools: TypeAlias = NDArray[np.bool_]
MaskState: TypeAlias = tuple[Bools | None, int, NDArray[Any] | None]


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may use before it is ended with an error.

    `steps` are operations executed by warps, `bytes` the memory of the arguments and of the block,
    `characters` what the kernel prints.
    """

    steps: int = 100_000_000
    bytes: int = 4 << 30
    characters: int = 16 << 20


@dataclass(slots=True)
class Launch:
    """What all blocks of a launch share: configuration, budget, clock, and where text goes."""

    config: LaunchConfig
    budget: Budget
    sink: Callable[[str], None]
    repeats: bool = False
    """Whether the launch is run again after a read of undefined bytes."""
    trace: Trace | None = None
    """What the run is compared by, after a read of undefined bytes."""
    outside: Outside = field(default_factory=Outside)
    clock: int = 1
    steps: int = 0
    printed: int = 0

    def tick(self) -> int:
        """Advances the clock at an event that orders threads; the new time."""
        self.clock += 1
        return self.clock

    def spend(self, steps: int, site: Site) -> None:
        """Counts operations that the one at `site` executes. SimulationError (E3210) beyond the budget."""
        self.steps += steps
        if self.steps > self.budget.steps:
            raise SimulationError(
                Code.SIM_STEPS,
                f"the launch has executed {self.budget.steps} steps and has not ended",
                "look for a loop that does not end, launch a smaller grid, or allow more by --max-steps",
                site=site,
            )

    def print(self, text: str, site: Site | None = None) -> None:
        """Passes on what the kernel prints at `site`, or what a kernel launched from here prints. SimulationError
        (E3210) beyond the budget.
        """
        self.printed += len(text)
        if self.printed > self.budget.characters:
            text = f"the kernel has printed {self.budget.characters} characters"
            raise SimulationError(Code.SIM_STEPS, text, "let fewer threads print", site=site)
        if self.trace is not None:
            self.trace.note(None, site, "prints", np.frombuffer(text.encode(), np.uint8))
        self.sink(text)


@dataclass(slots=True)
class Block:
    """The block that is executing: its coordinate, and the times when it began and when its last barrier
    completed.
    """

    launch: Launch
    coordinate: Dim3
    number: int
    start: int
    epoch: int
    mbarriers: "dict[int, Mbarrier]" = field(default_factory=lambda: {})
    """The mbarriers in its shared memory, by the row of 8 bytes."""

    def thread(self, index: int) -> Dim3:
        """The coordinate of the thread with this number in the block (x is fastest)."""
        x, y, _ = self.launch.config.block
        return index % x, index // x % y, index // (x * y)


@dataclass(slots=True, eq=False)
class Warp:
    """Up to 32 consecutive threads of a block. `registers` holds the value of each slot of the translated
    program.

    `mask` says which lanes are active; None is all of them.
    """

    block: Block
    index: int
    lanes: int
    registers: list[Value]
    pending: "list[Pending]" = field(init=False)
    issued: int = 0
    """Requests of asynchronous copies so far."""
    tied: NDArray[Any] = field(init=False)
    """How many of them each lane has let arrive at an mbarrier."""
    calls: list[int] = field(default_factory=lambda: [])
    """The sizes of the frames of the functions that have not returned."""
    mask: Bools | None = None
    active: int = 0
    active_lanes: NDArray[Any] | None = None
    groups: NDArray[Any] = field(init=False)
    """Groups of asynchronous copies that each lane has committed."""
    seen: NDArray[Any] = field(init=False)
    """`seen[i, j]`: lane i sees what lane j did before this time, through barriers of the warp."""
    agents: NDArray[Any] = field(init=False)
    known: Knowledge = field(default_factory=dict[int, NDArray[np.int64]])
    """What its lanes know of other threads, beyond the barriers of the block."""
    fenced: Knowledge = field(default_factory=dict[int, NDArray[np.int64]])
    """What they knew at their last fence."""
    observed: Knowledge = field(default_factory=dict[int, NDArray[np.int64]])
    """What relaxed reads since then have found released."""
    offered: Knowledge = field(default_factory=dict[int, NDArray[np.int64]])
    """What they knew when they arrived at the barrier of some warps."""

    def __post_init__(self) -> None:
        self.active = self.lanes
        self.pending = []
        self.groups = np.zeros(self.lanes, np.int64)
        self.tied = np.zeros(self.lanes, np.int64)
        self.seen = np.zeros((self.lanes, self.lanes), np.int64)
        self.agents = np.arange(self.first_agent, self.first_agent + self.lanes)

    @property
    def launch(self) -> Launch:
        """The launch that the warp belongs to."""
        return self.block.launch

    @property
    def first_thread(self) -> int:
        """The number in the block of the thread in lane 0."""
        return self.index * WARP

    @property
    def first_agent(self) -> int:
        """The number in the launch of the thread in lane 0; threads of a launch are numbered from 1."""
        return self.block.number * self.launch.config.threads + self.first_thread + 1

    def narrow(self, lanes: Bools) -> None:
        """Makes exactly `lanes` (at least one) active."""
        count = int(np.count_nonzero(lanes))
        if count == self.lanes:
            self.mask, self.active, self.active_lanes = None, count, None
        else:
            self.mask, self.active, self.active_lanes = lanes, count, np.flatnonzero(lanes)

    def live(self) -> Bools:
        """Which lanes are active."""
        return np.ones(self.lanes, bool) if self.mask is None else self.mask

    def mask_state(self) -> MaskState:
        """The active lanes, for `restore`."""
        return self.mask, self.active, self.active_lanes

    def restore(self, state: MaskState) -> None:
        """Makes the lanes active that were active at `mask_state`."""
        self.mask, self.active, self.active_lanes = state

    def select(self, value: Value) -> Lanes:
        """An integer value in each active lane."""
        if not varies(value):
            return np.full(self.active, value, np.int64)
        return value if self.active_lanes is None else value[self.active_lanes]

    def note(self, site: Site, does: str, data: Value) -> None:
        """Notes what the active lanes do that must not depend on undefined bytes, where that is looked at."""
        if self.launch.trace is not None:
            self.launch.trace.note(self, site, does, self.select(data) if np.ndim(data) < 2 else data)

    def undefined(self, site: Site, first: int, where: str) -> int:
        """What undefined bytes hold that the active lane number `first` and others read, at `where`.

        Where the run cannot be compared with others, the fault of that lane; UndefinedReadError where it is to be.
        """
        lane = int(self.lane_numbers()[first])
        if self.launch.trace is not None:
            x, y, z = self.block.thread(self.first_thread + lane)
            return self.launch.trace.read(site, f"thread ({x},{y},{z}) reads {where}, which nobody has written")
        if self.launch.repeats:
            raise UndefinedReadError
        self.fault(Code.SIM_UNINITIALISED, site, lane, f"reads {where}, which nobody has written", WRITE_FIRST)

    def led_outside(self, address: Value, view: str, fixed: Sequence[tuple[Value, Value]]) -> Value:
        """The address of a view, which `view` describes, at integers of a coordinate, each with the extent of its mode:
        `address` where all are inside, in the other lanes one that no access may touch.
        """
        return led_outside(self.launch.outside, address, view, fixed, self.live)

    def lane_numbers(self) -> Lanes:
        """The numbers of the active lanes."""
        return np.arange(self.lanes) if self.active_lanes is None else self.active_lanes

    def active_agents(self) -> Lanes:
        """The numbers in the launch of the active threads."""
        return self.agents if self.active_lanes is None else self.agents[self.active_lanes]

    def active_seen(self) -> Lanes:
        """The rows of `seen` of the active lanes."""
        return self.seen if self.active_lanes is None else self.seen[self.active_lanes]

    def stamps(self) -> Lanes:
        """The present time and the agent, packed as the race shadow keeps them: an array (active, 1)."""
        return ((self.launch.clock << 32) | self.active_agents())[:, None]

    def fault(self, code: Code, site: Site, lane: int | None, message: str, hint: str = "") -> NoReturn:
        """Raises a SimulationError of the thread in `lane`, or of the block where that is None."""
        thread = None if lane is None else self.block.thread(self.first_thread + lane)
        raise SimulationError(code, message, hint, site=site, block=self.block.coordinate, thread=thread)

    def fault_where(self, bad: Value, code: Code, site: Site, message: str, hint: str = "") -> None:
        """Raises a SimulationError of the first active lane for which `bad`, uniform or per lane, holds, if
        any does.
        """
        if varies(bad) and bad.shape[0] == self.lanes:
            chosen = bad if self.mask is None else bad & self.mask
            if chosen.any():
                self.fault(code, site, int(chosen.argmax()), message, hint)
        elif np.any(bad):
            self.fault(code, site, int(self.lane_numbers()[0]), message, hint)
