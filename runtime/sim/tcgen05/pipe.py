# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Work of the tensor core in flight: instructions that a thread has issued and not committed, the shared memory that
it reads, and the commits that mbarriers tell of (PTX ISA, tcgen05.commit).

The reads of shared memory are those of an agent for each issuing warp; whoever waits for the commit knows them.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...engine import NumPyArray
from ..faults import Site
from ..memory.spaces import Space
from ..ordering.asynchronous import Arrival, InFlight
from ..ordering.clocks import Clock, Times, for_overwriting
from ..ordering.knowledge import snapshot
from ..warp import Block, Warp
from .order import TensorKnowledge, TensorOrder, Use


@dataclass(slots=True, eq=False)
class TensorWork:
    """A multiplication, copy or shift in flight, and the rows of shared memory that it reads; see `AsyncMma`."""

    use: Use
    shared: Space
    rows: NDArray[np.int64]
    """Rows of 16 bytes."""
    width: int
    is_over: bool = False
    a: tuple[int, int] | None = None
    is_committed: bool = False

    @property
    def origin(self) -> Site:
        """The operation of the program."""
        return self.use.site

    @property
    def cure(self) -> str:
        """How to wait for it, as a hint."""
        return "commit it to an mbarrier by ptx.tcgen05.commit, and wait there"

    def describe(self, lane: int) -> str:
        """The operation in words."""
        return self.use.describe()

    def writes(self, memory: object, byte: int) -> int | None:
        """None: it writes only tensor memory."""
        return None

    def reads(self, memory: object, rows: NumPyArray, width: int) -> tuple[int, int] | None:
        """The first of some rows of shared memory that it reads, and the lane that has issued it."""
        if memory is not self.shared or self.is_over or not len(self.rows):
            return None
        first = rows * width
        if first.max() + width <= self.rows[0] * self.width or (self.rows[-1] + 1) * self.width <= first.min():
            return None
        spans = np.isin(first // self.width, self.rows) | np.isin((first + width - 1) // self.width, self.rows)
        return (int(spans.argmax()), self.use.lane) if spans.any() else None

    def refuse_end(self) -> None:
        """The end of the warp, which may come before that of the work."""


@dataclass(slots=True, eq=False)
class Issued:
    """The work of a warp that no commit has taken yet, and the agent of its reads."""

    warp: Warp
    open: list[TensorWork] = field(default_factory=list[TensorWork])
    agent: int | None = None
    last: dict[int, int] = field(default_factory=dict[int, int])
    """By the lane, the time of the last use."""


def issue(work: TensorWork) -> None:
    """Begins work."""
    warp = work.use.warp
    issued = warp.state(Issued)
    issued.open.append(work)
    issued.last[work.use.lane] = work.use.time
    warp.state(InFlight).multiplications.append(work)
    warp.block.cluster.reads_late = True


def uncommitted(block: Block) -> TensorWork | None:
    """Work that some thread of a block has issued and not committed."""
    return next((work for warp in block.warps for work in warp.state(Issued).open), None)


@dataclass(frozen=True, slots=True, eq=False)
class CommitArrival(Arrival):
    """The arrival of a commit, once work is complete; `so_far` holds the uses of tensor memory that its thread knew,
    `over` the rest of its knowledge: whoever waits may overwrite anything it has seen, such as copies to shared memory.
    """

    work: tuple[TensorWork, ...] = ()
    so_far: Times = field(default_factory=lambda: np.zeros(0, np.int64))
    over: Clock | None = None
    until: int = 0
    """The time of the last use that its thread has issued."""

    def complete(self) -> Clock:
        """Completes the work; who waits for the arrival knows this."""
        warp = self.issuer
        cluster, issued, in_flight = warp.block.cluster, warp.state(Issued), warp.state(InFlight)
        if issued.agent is None:
            issued.agent = cluster.open_agents(f"the tensor core, for warp {warp.index}")
        for work in self.work:
            if not work.is_over and work.shared.shadow is not None and len(work.rows):
                work.shared.read_by(warp, work.use.lane, work.rows, work.width, cluster.agent_of(issued.agent))
            work.is_over = True
        in_flight.multiplications = [part for part in in_flight.multiplications if part not in self.work]
        known = cluster.state(TensorOrder).complete(warp, [work.use for work in self.work], self.so_far, self.until)
        cluster.finished[issued.agent] = warp.launch.clock
        times = np.zeros(cluster.threads + len(cluster.finished), np.int64)
        times[cluster.threads + issued.agent] = warp.launch.tick()
        return Clock(cluster.number, times, proxies=known.proxies).joined(self.over)


def commit(warp: Warp, site: Site, lane: int, is_ordered: bool) -> CommitArrival:
    """The arrival of a lane's commit of all work that it has issued; `is_ordered` where the launch checks for races."""
    issued = warp.state(Issued)
    taken = tuple([work for work in issued.open if work.use.lane == lane])
    issued.open = [work for work in issued.open if work not in taken]
    earlier = tuple([
        work for work in warp.state(InFlight).multiplications
        if isinstance(work, TensorWork) and work.use.lane == lane and work not in taken
    ])  # fmt: skip
    lanes, none = np.array([lane]), np.zeros(warp.lanes, np.int64)
    so_far = warp.state(TensorKnowledge).times
    over = for_overwriting(snapshot(warp, lanes)) if is_ordered else None
    return CommitArrival(site, warp, lanes, (), none, (*earlier, *taken), so_far, over, issued.last.get(lane, 0))
