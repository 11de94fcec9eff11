# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order of accesses to tensor memory (PTX ISA, tcgen05 Memory Consistency Model).

All accesses are asynchronous. Those of loads and stores complete when their warp has waited for them, those of the
tensor core when a commit of the thread has arrived. Another access of the same cells must know that: its warp has
waited itself, or it has executed the fence behind a synchronisation with a thread that knew. A few pairs of
instructions of the tensor core need no completion: `PIPELINED`; they need only be issued in order, by one thread or
with fences on the way.

Lanes of a warp count as one here: they share their knowledge.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..faults import Site
from ..ordering.clocks import OVER, TENSOR, Clock, Times, later
from ..ordering.knowledge import known, learn
from ..warp import Block, Cluster, Warp

PIPELINED = frozenset((("mma", "mma"), ("cp", "mma"), ("shift", "mma"), ("shift", "cp"), ("mma", "shift")))
"""The pairs whose second comes after the first. Two of mma must have the same accumulator and shape, and cp
behind shift must be of 4x256b.
"""
IN_ORDER = frozenset((("mma", "cp"), ("cp", "cp")))
"""Pairs that PTX does not promise, and CUTLASS relies on: copies of scales over those of earlier multiplications."""
_ROLES = 3
_ACCESSES, _ISSUED, _COMPLETE = range(_ROLES)


@dataclass(frozen=True, slots=True)
class Region:
    """Cells of a block: the lanes, a bit each, and the columns from `first` up to `end`."""

    rank: int
    lanes: int
    first: int
    end: int

    def overlaps(self, other: "Region") -> bool:
        """Whether some cell is in both."""
        near = self.first < other.end and other.first < self.end
        return near and self.rank == other.rank and (self.lanes & other.lanes) != 0

    def covers(self, other: "Region") -> bool:
        """Whether all cells of another are in it."""
        inside = self.first <= other.first and other.end <= self.end
        return inside and self.rank == other.rank and other.lanes & ~self.lanes == 0

    def shared(self, other: "Region") -> tuple[int, int]:
        """The lane and the column of the first cell that both have."""
        lanes = self.lanes & other.lanes
        return (lanes & -lanes).bit_length() - 1, max(self.first, other.first)


def lane_bits(lanes: NDArray[np.int64] | Sequence[int]) -> int:
    """Lanes as bits."""
    total = 0
    for lane in np.unique(lanes).tolist():
        total |= 1 << lane
    return total


@dataclass(slots=True, eq=False)
class Use:
    """A use of cells by an instruction of `site`, of a warp, for a lane: what it `does` ("ld", "mma"), what it reads
    and writes; for the tensor core also the shape, which chained multiplications have in common.
    """

    site: Site
    warp: Warp
    lane: int
    does: str
    reads: tuple[Region, ...]
    writes: tuple[Region, ...]
    shape: object = None
    time: int = 0
    date: int = 0
    """When it was issued, by the clock of the launch."""
    is_over: bool = False

    @property
    def in_pipe(self) -> bool:
        """Whether the tensor core does it."""
        return self.does not in ("ld", "st")

    def describe(self) -> str:
        """The instruction and its thread, in words."""
        return f"{self.site} of {self.warp.block.describe(int(self.warp.agents[self.lane]))}"


@dataclass(frozen=True, slots=True)
class Clash:
    """A use that another one may not come after yet: the cell, whether the first one writes it, and what is missing; a
    fence alone, or more.
    """

    before: Use
    rank: int
    lane: int
    column: int
    writes: bool
    lacks: str
    fence_alone: bool


@dataclass(slots=True, eq=False)
class TensorKnowledge:
    """A warp's knowledge of uses: for each agent, the time up to which it knows them."""

    warp: Warp
    times: Times = field(default_factory=lambda: np.zeros(0, np.int64))

    def agent(self, role: int) -> int:
        """The number of an agent of the warp."""
        return self.warp.block.cluster.warps.index(self.warp) * _ROLES + role

    def note(self, role: int, time: int) -> None:
        """Raises the time of an agent of the warp."""
        agent = self.agent(role)
        raised = np.zeros(agent + 1, np.int64)
        raised[agent] = time
        self.times = later(self.times, raised)

    def knows(self, agent: int, time: int) -> bool:
        """Whether it knows an agent's uses up to a time."""
        return agent < len(self.times) and bool(self.times[agent] >= time)


@dataclass(slots=True, eq=False)
class TensorOrder:
    """The uses of tensor memory by a cluster that later ones must still be compared with."""

    cluster: Cluster
    uses: list[Use] = field(default_factory=list[Use])
    now: int = 0

    def clash(self, use: Use) -> Clash | None:
        """The first earlier use that this one may not come after yet."""
        return next(self._clashes(use), None)

    def _clashes(self, use: Use) -> Iterator[Clash]:
        for before in self.uses:
            found = _conflict(before, use)
            if found is None or self._is_ordered(before, use):
                continue
            rank, lane, column, writes = found
            yield Clash(before, rank, lane, column, writes, *self._lacks(before, use))

    def _is_ordered(self, before: Use, use: Use) -> bool:
        own, theirs = use.warp.state(TensorKnowledge), before.warp.state(TensorKnowledge)
        if not use.warp.launch.tensor_fences and self._is_synchronised(before, use):
            return True
        if before.is_over and own.knows(theirs.agent(_COMPLETE if before.in_pipe else _ACCESSES), before.time):
            return True
        return is_pipelined(before, use) and own.knows(theirs.agent(_ISSUED), before.time)

    def _is_synchronised(self, before: Use, use: Use) -> bool:
        """Whether threads have synchronised between two uses. A load is complete where its values are used."""
        own, theirs = known(use.warp), before.warp.state(TensorKnowledge)
        behind = before.warp is use.warp or _is_behind(own, before)
        if not before.in_pipe:
            return behind and (before.is_over or before.does == "ld")
        published, agent = own.proxies.get(TENSOR), theirs.agent(_COMPLETE)
        complete = published is not None and agent < len(published.times) and published.times[agent] >= before.time
        in_order = is_pipelined(before, use) or (before.does, use.does) in IN_ORDER
        return (before.is_over and bool(complete)) or (in_order and behind)

    def _lacks(self, before: Use, use: Use) -> tuple[str, bool]:
        """The missing order between two uses, as a hint, and whether a fence alone is missing."""
        if before.does in ("ld", "st") and not before.is_over:
            return f'wait for it first, by ptx.tcgen05.wait "{before.does}", and then order the threads', False
        if not before.is_over and is_pipelined(before, use):
            return "let one thread issue both, or fence before and after the synchronisation between them", False
        if not before.is_over:
            return "commit it to an mbarrier, and wait there for the phase that the commit completes", False
        own, theirs = known(use.warp), before.warp.state(TensorKnowledge)
        published = own.proxies.get(TENSOR)
        agent = theirs.agent(_COMPLETE if before.in_pipe else _ACCESSES)
        if published is not None and agent < len(published.times) and published.times[agent] >= before.time:
            return 'execute ptx.tcgen05.fence "after_thread_sync" after the wait', True
        if not before.in_pipe and _is_behind(own, before):
            return 'execute ptx.tcgen05.fence "before_thread_sync" in the thread that synchronises with this one', True
        if before.in_pipe:
            return "wait at the mbarrier for the phase that its commit completes", False
        return "order the two threads, with ptx.tcgen05.fence before and after the synchronisation", False

    def add(self, use: Use) -> None:
        """Enters a use, which is ordered after all before it, in place of those that it covers."""
        self.now += 1
        use.time, use.date = self.now, use.warp.launch.clock
        written = use.writes
        self.uses = [
            before for before in self.uses
            if not all(any(new.covers(old) for new in written) for old in (*before.reads, *before.writes))
        ]  # fmt: skip
        self.uses.append(use)
        if use.in_pipe:
            use.warp.state(TensorKnowledge).note(_ISSUED, use.time)

    def finish(self, uses: Sequence[Use]) -> None:
        """Ends loads and stores, which their warp knows."""
        for use in uses:
            use.is_over = True
            use.warp.state(TensorKnowledge).note(_ACCESSES, use.time)

    def complete(self, warp: Warp, uses: Sequence[Use], so_far: Times, until: int) -> Clock:
        """Ends uses of the tensor core; what those know who wait for the commit, beside what its thread knew: all uses
        that the thread has issued up to a time, also those that an earlier commit has ended.
        """
        agent = warp.state(TensorKnowledge).agent(_COMPLETE)
        raised = np.zeros(agent + 1, np.int64)
        raised[agent] = until
        for use in uses:
            use.is_over = True
        return published(self.cluster, later(so_far, raised))

    def within(self, region: Region) -> list[Use]:
        """The uses of cells of a region."""
        return [use for use in self.uses if any(part.overlaps(region) for part in (*use.reads, *use.writes))]

    def forget(self, region: Region) -> None:
        """Forgets the uses of cells of a region, whose life has ended."""
        gone = self.within(region)
        self.uses = [use for use in self.uses if use not in gone]

    def in_use(self, region: Region, warp: Warp) -> Use | None:
        """The first use of cells of a region that may still run while a warp frees them. That is synchronous, so it
        comes after the loads of its own thread, and after those of threads that have synchronised with it, without
        `tcgen05.wait::ld` (PTX ISA, tcgen05: Asynchronous Operations, Specialized Inter-thread Synchronization);
        multiplications, copies and stores must be complete. A load that happens to be complete is a fault, too, if
        its thread has not synchronised. Without fences of tcgen05 loads are not looked at.
        """
        own, lenient = known(warp), not warp.launch.tensor_fences
        for use in self.within(region):
            is_behind = use.does == "ld" and (lenient or use.warp is warp or _is_behind(own, use))
            if not is_behind and (use.does == "ld" or not use.is_over):
                return use
        return None

    def is_known(self, warp: Warp, use: Use) -> bool:
        """Whether a warp knows that a use is complete."""
        agent = use.warp.state(TensorKnowledge).agent(_COMPLETE if use.in_pipe else _ACCESSES)
        return use.is_over and warp.state(TensorKnowledge).knows(agent, use.time)


def _is_behind(own: Clock, before: Use) -> bool:
    """Whether who has a clock has synchronised with the thread of a use since, also at an mbarrier of another block,
    whose scope does not matter to tensor memory.
    """
    place = before.warp.first_index + before.lane
    clocks = own, own.proxies.get(OVER)
    return any(c is not None and place < len(c.times) and bool(c.times[place] > before.date) for c in clocks)


def is_pipelined(before: Use, use: Use) -> bool:
    """Whether a use by the tensor core comes after an earlier one without a wait."""
    if (before.does, use.does) not in PIPELINED:
        return False
    if before.does == use.does == "mma":  # an accumulator of another shape, or scales and A, have no such order
        same = before.writes == use.writes and before.shape == use.shape
        return same and not any(w.overlaps(r) for w in before.writes for r in use.reads if r not in before.writes)
    return use.does != "cp" or use.shape == "4x256b"


def _conflict(before: Use, use: Use) -> tuple[int, int, int, bool] | None:
    """The rank, the lane and the column of the first cell for which the order of two uses matters, and whether the
    earlier one writes it.
    """
    for writes, earlier, new in (
        (True, before.writes, (*use.reads, *use.writes)), (False, before.reads, use.writes),
    ):  # fmt: skip
        for first in earlier:
            for second in new:
                if first.overlaps(second):
                    return first.rank, *first.shared(second), writes
    return None


def published(cluster: Cluster, times: Times) -> Clock:
    """Knowledge of uses, as clocks carry it."""
    return Clock(cluster.number, np.zeros(0, np.int64), proxies={TENSOR: Clock(cluster.number, times)})


def knows_uses(warp: Warp, block: Block) -> bool:
    """Whether a warp knows some use of tensor memory by a block."""
    own = warp.state(TensorKnowledge)
    agents = (peer.state(TensorKnowledge).agent(role) for peer in block.warps for role in range(_ROLES))
    return any(own.knows(agent, 1) for agent in agents)


def fence(warp: Warp, before: bool) -> None:
    """A fence of the active lanes: publishes their knowledge with their next synchronisation, or takes what others have
    published.
    """
    own = warp.state(TensorKnowledge)
    if before:
        learn(warp, published(warp.block.cluster, own.times))
    elif (given := known(warp).proxies.get(TENSOR)) is not None:
        own.times = later(own.times, given.times)
