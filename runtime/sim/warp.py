# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of a run: the cluster that is executing, its blocks, and its warps with their active lanes."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...base.errors import Code
from ...base.target import WARP
from ..engine import LaunchConfig, NumPyArray
from ..errors import Dim3
from .faults import WRITE_FIRST, At, SimulationError, Site, Thread, UndefinedReadError
from .grids import Groups, PlacedGrid
from .launch import Holder, LaunchState
from .memory.provenance import HINT, led_outside
from .ordering.clocks import ASYNC, Clock, Own
from .values import Lanes, Value, anywhere, varies

Bools: TypeAlias = NDArray[np.bool_]
MaskState: TypeAlias = tuple[Bools | None, int, int, NumPyArray | None]


@dataclass(slots=True, eq=False)
class Cluster(Holder):
    """The blocks that are executing, `size` of them: their number in the order of clusters, when they began, and their
    seat among the clusters that run at the same time. Blocks that run in step are a cluster to the simulator.

    The agents of its clocks are its threads, block after block, and then those of asynchronous copies.
    """

    launch: LaunchState
    number: int = 0
    size: int = 1
    start: int = 0
    seat: int = 0
    resident: "list[Cluster]" = field(default_factory=lambda: [])
    """The clusters of the launch that have begun and not ended, a list that they share."""
    warps: "list[Warp]" = field(default_factory=lambda: [])
    finished: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """When the last copy of each agent of copies has completed; 0 where none has."""
    issuers: "list[Warp | str | None]" = field(default_factory=lambda: [])
    """The warps whose lanes have such agents, in the order of these; None for the bulk copies to an mbarrier, and the
    name of another agent.
    """
    reads_global: bool = False
    reads_late: bool = False
    """Whether an asynchronous operation has begun that reads global or other memory while it runs."""
    ended: "list[Warp]" = field(default_factory=lambda: [])
    """The warps that have returned."""
    warp_ends: "list[Callable[[Warp], None]]" = field(default_factory=lambda: [])
    block_ends: "list[Callable[[Block], None]]" = field(default_factory=lambda: [])
    """Actions of other modules when a warp has returned, and when the last warp of a block has."""
    end_checks: "list[Callable[[Collection[Warp]], None]]" = field(default_factory=lambda: [])
    """Checks of other modules on the warps that have returned, once no warp of the cluster can go on."""
    grid: PlacedGrid = field(init=False)
    groups: Groups = field(init=False)

    def __post_init__(self) -> None:
        self.grid = self.launch.grids.of_cluster(self.number)
        self.groups = Groups.of(self.size, self.config.threads)
        self.resident.append(self)
        self.launch.started += self.size
        self.launch.begun[self.seat].append((self.start, self.number))

    @property
    def threads(self) -> int:
        """How many threads the cluster has."""
        return self.size * self.config.threads

    @property
    def config(self) -> LaunchConfig:
        """The sizes of its grid."""
        return self.grid.config

    @property
    def first_agent(self) -> int:
        """The number in the launch of its first thread; threads of a launch are numbered from 1."""
        return self.grid.first_thread + (self.number - self.grid.first_cluster) * self.threads + 1

    def block_number(self, rank: int) -> int:
        """The number in the launch of the block of a rank."""
        return self.grid.first_block + (self.number - self.grid.first_cluster) * self.size + rank

    def name(self, rank: int) -> str:
        """The block of a rank, in words."""
        return self.launch.grids.name(self.block_number(rank))

    def place_of(self, agent: int) -> tuple[int, int]:
        """The number of the cluster of a thread of the launch, and the thread's number there."""
        grids = self.launch.grids
        return divmod(agent - 1, self.threads) if grids.is_single else grids.cluster_place_of(agent)

    def groups_of(self, number: int) -> Groups:
        """The `groups` of a cluster of the launch."""
        grid = self.launch.grids.of_cluster(number)
        return self.groups if grid is self.grid else Groups.of(grid.cluster_size, grid.config.threads)

    def agent_of(self, copies: Any) -> Any:
        """The number in the launch of agents of copies, those of each seat in turns."""
        return ASYNC | (copies * len(self.launch.begun) + self.seat)

    def open_agents(self, issuer: "Warp | str | None") -> int:
        """Agents for the copies of the lanes of a warp, or one for the bulk copies to an mbarrier, or of this name; the
        number of the first.
        """
        first, count = len(self.finished), issuer.lanes if isinstance(issuer, Warp) else 1
        self.finished = np.concatenate([self.finished, np.zeros(count, np.int64)])
        self.issuers += [issuer] * count
        return first


@dataclass(slots=True, eq=False)
class Block(Holder):
    """A block that is executing: its coordinate, and its rank in the cluster."""

    cluster: Cluster
    coordinate: Dim3
    rank: int = 0
    warps: "list[Warp]" = field(default_factory=lambda: [])

    @property
    def launch(self) -> LaunchState:
        """The launch that the block belongs to."""
        return self.cluster.launch

    def thread_of(self, agent: int) -> Thread | None:
        """The coordinates of an agent; None for one that is not a thread, or stands for threads of several blocks."""
        if not agent or agent & ASYNC or agent == self.launch.agent_before:
            return None
        block, index = self.launch.grids.place_of(agent)
        return self.launch.coordinate(block), self.launch.grids.of_block(block).thread(index)

    def describe(self, agent: int) -> str:
        """An agent of a launch in words; the block only where it is another."""
        if not agent:
            return "threads of several blocks"
        if agent == self.launch.agent_before:
            return "the launch before this one"
        if agent & ASYNC:
            copy, seat = divmod(agent & ~ASYNC, len(self.launch.begun))
            owner = next((other for other in self.cluster.resident if other.seat == seat), None)
            issuer = None if owner is None or copy >= len(owner.issuers) else owner.issuers[copy]
            if not isinstance(issuer, Warp):
                return issuer or "a bulk copy"
            assert issuer.first_copy is not None
            number = int(issuer.agents[copy - issuer.first_copy])
            return f"an asynchronous copy of {self.describe(number)}"
        block, index = self.launch.grids.place_of(agent)
        thread = "thread ({},{},{})".format(*self.launch.grids.of_block(block).thread(index))
        own = block == self.cluster.block_number(self.rank)
        return thread if own else f"{thread} of {self.launch.grids.name(block)}"

    def thread(self, index: int) -> Dim3:
        """The coordinate of the thread with this number in the block (x is fastest)."""
        return self.cluster.grid.thread(index)


@dataclass(slots=True, eq=False)
class Warp(Holder):
    """Up to 32 consecutive threads of a block, or all warps of some blocks that run in step, as one with more lanes.

    `registers` holds the value of each slot of the translated program. `mask` says which lanes are active; None is all
    of them.
    """

    block: Block
    index: int
    lanes: int
    registers: list[Value]
    launch: LaunchState = field(init=False)
    calls: list[list[Value]] = field(default_factory=lambda: [])
    """The registers of those who called the functions that have not returned."""
    defined: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    """Addresses and widths in local memory that are known to be written in all lanes."""
    mask: Bools | None = None
    active: int = 0
    warps: int = 0
    """How many warps have active lanes."""
    active_lanes: NumPyArray | None = None
    groups: NumPyArray = field(init=False)
    """Groups of asynchronous copies that each lane has committed."""
    bulk_groups: NumPyArray = field(init=False)
    """Groups of bulk copies that each lane has committed."""
    clock: Clock = field(init=False)
    """The knowledge of all of its lanes."""
    horizon: "int | NDArray[np.int64]" = field(init=False)
    """They know all that happened in the cluster before this time, or one for each lane. Of blocks in step, each lane
    knows that of its own block.
    """
    seen: NDArray[np.int64] = field(init=False)
    """`seen[i, j]`: lane i knows the accesses of lane j of its warp before this time, through barriers of the warp."""
    agents: NumPyArray = field(init=False)
    first_index: int = field(init=False)
    """The place of lane 0 in the clocks of the cluster."""
    first_copy: int | None = None
    """The agent of the copies of lane 0, once an mbarrier waits for such copies."""
    own: dict[int, Own] = field(default_factory=dict[int, Own])
    """The knowledge of some lanes that the others lack, such as of one that has acquired for itself."""
    published: Clock | None = None
    """The knowledge at its last fence of the initialisation of mbarriers."""
    arrivals: dict[int, tuple[Site, int | None]] = field(default_factory=dict[int, tuple[Site, int | None]])
    """By the times, its arrivals at mbarriers, and at barriers with their numbers where only some threads meet."""
    ended: Bools | None = None
    """Which lanes have returned while others have not."""
    diverged: Sequence[tuple[Any, ...]] = ()
    """The lanes that are at another block of the kernel, with their registers."""
    _stamps: tuple[int, NumPyArray | None, Lanes] | None = None

    def __post_init__(self) -> None:
        cluster = self.block.cluster
        self.launch = cluster.launch
        self.active, self.warps = self.lanes, -(-self.lanes // WARP)
        self.groups, self.bulk_groups = np.zeros(self.lanes, np.int64), np.zeros(self.lanes, np.int64)
        self.clock = Clock(cluster.number, np.full(cluster.threads, cluster.start))
        self.horizon = cluster.start
        self.seen = np.zeros((self.lanes, min(self.lanes, WARP)), np.int64)
        self.first_index = self.block.rank * cluster.config.threads + self.first_thread
        self.agents = cluster.first_agent + self.first_index + np.arange(self.lanes)
        cluster.warps.append(self)
        self.block.warps.append(self)

    @property
    def first_thread(self) -> int:
        """The number in the block of the thread in lane 0."""
        return self.index * WARP

    @property
    def is_several(self) -> bool:
        """Whether it is several warps."""
        return self.lanes > WARP

    @property
    def spans_blocks(self) -> bool:
        """Whether it has lanes of several blocks."""
        return self.lanes > self.block.cluster.config.threads

    @property
    def blocks(self) -> NDArray[np.int64]:
        """The rank of the block of each active lane."""
        return self.block.rank + self.lane_numbers() // self.block.cluster.config.threads

    @property
    def is_of_whole_blocks(self) -> bool:
        """Whether all lanes are active that have not returned; of several blocks, those of each with active lanes."""
        if self.mask is None or (self.ended is not None and bool((self.mask | self.ended).all())):
            return True
        return self.spans_blocks and self.active == self.block.cluster.config.threads * len(np.unique(self.blocks))

    @property
    def is_whole(self) -> bool:
        """Whether all 32 lanes are active; for warps in step, all of each warp that has active lanes."""
        return self.active == WARP * self.warps

    @property
    def is_spread(self) -> bool:
        """Whether one lane is active as if it were several, which `spread` does."""
        lanes = self.active_lanes
        return lanes is not None and self.active > 1 and bool(lanes[0] == lanes[-1])

    def leave_lockstep(self, *, is_fault: bool = False) -> None:
        """As `LaunchState.leave_lockstep`."""
        self.launch.leave_lockstep(is_fault=is_fault)

    def narrow(self, lanes: Bools) -> None:
        """Makes exactly `lanes` (at least one) active."""
        count = int(np.count_nonzero(lanes))
        if count == self.lanes:
            self.mask, self.active, self.active_lanes = None, count, None
        else:
            self.mask, self.active, self.active_lanes = lanes, count, np.flatnonzero(lanes)
        if self.lanes > WARP:
            self.warps = int(np.count_nonzero(lanes.reshape(-1, WARP).any(axis=1)))

    def spread(self, lane: int, count: int) -> None:
        """Makes only `lane` active, as `count` lanes: each of its rows of memory is that of one access."""
        self.mask = np.arange(self.lanes) == lane
        self.active, self.active_lanes = count, np.full(count, lane)

    def live(self) -> Bools:
        """Which lanes are active."""
        return np.ones(self.lanes, bool) if self.mask is None else self.mask

    def mask_state(self) -> MaskState:
        """The active lanes, for `restore`."""
        return self.mask, self.active, self.warps, self.active_lanes

    def restore(self, state: MaskState) -> None:
        """Makes the lanes active that were active at `mask_state`."""
        self.mask, self.active, self.warps, self.active_lanes = state

    def select(self, value: Value) -> Lanes:
        """An integer value in each active lane."""
        if not varies(value):
            return np.full(self.active, value, np.int64)
        return value if self.active_lanes is None else value[self.active_lanes]

    def in_lanes(self, values: Lanes) -> Lanes:
        """An array with a row for each active lane as one of all lanes, with zeros in the others."""
        if self.active_lanes is None:
            return values
        whole = np.zeros((self.lanes, *values.shape[1:]), values.dtype)
        whole[self.active_lanes] = values
        return whole

    def note(self, site: Site, does: str, data: Value) -> None:
        """Notes an act of the active lanes that must not depend on undefined bytes, where runs are compared. `data` are
        a value, or rows with one for each active lane.
        """
        if self.launch.trace is not None:
            self.launch.trace.note(self, site, does, self.select(data) if np.ndim(data) < 2 else data)

    def undefined(self, site: Site, first: int, where: str, at: At = None) -> int:
        """The contents of undefined bytes that the active lane number `first` and others read at `where`.

        Where the run cannot be compared with others, the fault of that lane; UndefinedReadError if it can be.
        """
        self.leave_lockstep()
        if self.launch.forgives(Code.SIM_UNINITIALISED, site):
            return 0
        lane = int(self.lane_numbers()[first])
        if self.launch.trace is not None:
            x, y, z = self.block.thread(self.first_thread + lane)
            return self.launch.trace.read(site, f"thread ({x},{y},{z}) reads {where}, which is unwritten", at)
        if self.launch.repeats:
            raise UndefinedReadError
        self.fault(Code.SIM_UNINITIALISED, site, lane, f"reads {where}, which is unwritten", WRITE_FIRST, at)

    def fault_too_large(self, site: Site, bad: Value, exact: Value, bits: int) -> None:
        """A fault (E3209) of a lane in which an integer that an instruction takes, `exact`, does not fit in its
        bits.
        """
        if not anywhere(bad & self.live() if varies(bad) else bad):
            return
        lane = int((self.live() & bad).argmax()) if varies(bad) else 0
        text = f"a coordinate or a distance is {exact[lane] if varies(exact) else exact}, which exceeds {bits} bits"
        self.fault_where(bad, Code.SIM_ARITHMETIC, site, text, HINT)

    def led_outside(self, address: Value, view: str, fixed: Sequence[tuple[Value, Value]]) -> Value:
        """The address of a view, which `view` describes, at integers of a coordinate, each with the extent of its mode:
        `address` where all are inside, in the other lanes one that no access may touch.
        """
        return led_outside(self.launch.outside, address, view, fixed, self.live)

    def thread_in(self, lane: int) -> Thread:
        """The coordinates of the block and of the thread in a lane."""
        return self.block.coordinate, self.block.thread(self.first_thread + lane)

    def lane_numbers(self) -> Lanes:
        """The numbers of the active lanes."""
        return np.arange(self.lanes) if self.active_lanes is None else self.active_lanes

    def active_agents(self) -> Lanes:
        """The numbers in the launch of the active threads."""
        return self.agents if self.active_lanes is None else self.agents[self.active_lanes]

    def stamps(self) -> Lanes:
        """The present time and the agent, packed as the race shadow keeps them: an array (active, 1)."""
        clock, kept = self.launch.clock, self._stamps
        if kept is None or kept[0] != clock or kept[1] is not self.active_lanes:
            stamps = ((clock << 32) | self.active_agents())[:, None]
            kept = self._stamps = (clock, self.active_lanes, stamps)
        return kept[2]

    def fault(
        self,
        code: Code,
        site: Site,
        lane: int | None,
        message: str,
        hint: str = "",
        at: At = None,
        other: Site | None = None,
        rival: Thread | None = None,
    ) -> NoReturn:
        """Raises a SimulationError for the thread in `lane`, or for the block if that is None. It may concern a byte
        `at`, an `other` operation, and a `rival`, the thread of an access that nothing orders.
        """
        self.leave_lockstep(is_fault=True)
        thread = None if lane is None else self.block.thread(self.first_thread + lane)
        block = self.block.coordinate
        if where := self.launch.grids.where(self.block.cluster.grid):
            message = f"{where}: {message}"
        grids = [self.block.cluster.grid.index]
        raise SimulationError(
            code, message, hint, site=site, block=block, thread=thread, at=at, other=other, rival=rival, grids=grids
        )

    def fault_where(self, bad: Value, code: Code, site: Site, message: str, hint: str = "") -> None:
        """Raises a SimulationError of the first active lane for which `bad`, uniform or per lane, holds, if
        any does.
        """
        if varies(bad) and bad.shape[0] == self.lanes:
            chosen = bad if self.mask is None else bad & self.mask
            if chosen.any():
                self.fault(code, site, int(chosen.argmax()), message, hint)
        elif anywhere(bad):
            self.fault(code, site, int(self.lane_numbers()[0]), message, hint)
