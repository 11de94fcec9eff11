# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mbarriers: phases, arrivals, bytes of transactions, and the order that they establish (PTX ISA, mbarrier)."""

from collections import deque
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....base.spaces import SMEM
from ....dialects.ptx import MAX_ARRIVALS, MAX_TRANSACTION
from ....dialects.ptx.effects import Proxy
from ..faults import Site
from ..warp import Cluster, Warp
from .asynchronous import Arrival, AsyncOperation, Trackers
from .bulk import Transfer
from .clocks import EXECUTED, OVER, Clock, for_overwriting
from .cluster import ClusterBarrier
from .knowledge import executed, known, learn, snapshot

PHASES = 64
"""An mbarrier keeps the order of this many phases; a thread that lags further behind learns too much."""


_CURE = (
    "let the thread arrive at another mbarrier after this wait, and let the threads that arrive for the next phase "
    "wait for that one; or count the thread among the arrivals"
)


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait of a warp that has ended: the phase, the time, a lane and the operation."""

    warp: Warp
    phase: int
    time: int
    lane: int
    site: Site


def _knows(clock: Clock, wait: Wait) -> bool:
    """Whether a clock knows the accesses of a thread of the warp after its wait. A clock of another block need only
    know that its reads are over.
    """
    first = wait.warp.first_index
    clocks = (clock, clock.proxies.get(OVER), clock.proxies.get(EXECUTED))
    return any(
        known is not None and bool((known.times[first : first + wait.warp.lanes] > wait.time).any()) for known in clocks
    )


@dataclass(slots=True, eq=False)
class Mbarrier:
    """An mbarrier in a row of 8 bytes of shared memory. A phase is complete when it needs no more arrivals and no more
    bytes: `pending` of `expected` arrivals, and `bytes`, which is negative where bytes come before they are expected.
    """

    row: int
    expected: int
    maker: int
    """The place in the clocks of the thread that has initialised it."""
    place: int
    """The row in the memory of its block: blocks of a cluster have mbarriers at equal places."""
    made: int = 0
    """When that thread did."""
    is_ordered: bool = True
    """Whether threads publish their clocks when they arrive: where the launch checks for races."""
    is_reached: bool = False
    """Whether threads of other blocks have arrived."""
    label: str = ""
    """Its name, where the operation that initialises it has one."""
    is_published: bool = False
    """Whether that thread has executed a fence for other blocks since."""
    pending: int = field(init=False)
    bytes: int = 0
    phase: int = 0
    arrivals: list[Arrival | Transfer] = field(default_factory=list[Arrival | Transfer])
    """Those that come when operations are complete, and the bytes of bulk copies."""
    agent: int | None = None
    """The agent of the bulk copies to it, once there are any."""
    last: tuple[str, Warp, int] | None = None
    """The last arrival in this phase: in words, its warp and its lane."""
    offered: Clock | None = None
    """The knowledge of those that have arrived."""
    near: Clock | None = None
    """The part of it for waits without a scope: of arrivals of peers, the completed reads."""
    own: Clock | None = None
    """The part of it for waits at scope cta, which of peers' `st.async` has the completed reads, too. PTX gives a wait
    without a scope the scope cta, but public kernels wait so for `st.async`, and the bytes are there.
    """
    counts_peers: bool = False
    """Whether it has counted bytes of `st.async` or `red.async` from other blocks."""
    released: deque[tuple[Clock | None, ...]] = field(
        default_factory=lambda: deque[tuple[Clock | None, ...]](maxlen=PHASES)
    )
    """The knowledge of those that arrived up to the end of each of the last complete phases, and its two parts."""
    waits: "dict[Warp, Wait]" = field(default_factory=lambda: {})
    """The last wait of each warp."""
    missed: "list[Wait]" = field(default_factory=lambda: [])
    """Waits for the last phase but one that the last one may have outrun."""
    arrivers: set[Warp] = field(default_factory=set[Warp])
    """The warps that have arrived."""
    observed: dict[Warp, NDArray[np.int64]] = field(default_factory=dict[Warp, NDArray[np.int64]])
    """The last phase that each lane of a warp has waited for, -1 for none."""

    def __post_init__(self) -> None:
        self.pending = self.expected

    def change(self, arrivals: int = 0, expected: int = 0) -> str | None:
        """Counts arrivals, or makes the phase need more where they are negative, and adds the bytes that it expects,
        less those that came. Completes the phase where it needs nothing more. The problem in words, if there is one.
        """
        if self.pending - arrivals > MAX_ARRIVALS:
            return f"the phase would need {self.pending - arrivals} arrivals, where 1 to {MAX_ARRIVALS} are possible"
        if abs(self.bytes + expected) > MAX_TRANSACTION:
            count = self.bytes + expected
            return (
                f"phase {self.phase} expects {count} bytes, where {-MAX_TRANSACTION} to {MAX_TRANSACTION} are possible"
            )
        self.pending -= arrivals
        self.bytes += expected
        if self.pending == 0 and self.bytes == 0:
            self.phase += 1
            self.pending = self.expected
            self.released.append((self.offered, self.near, self.own))
            self.last = None
            self._check_waits()
        return None

    def arrive(self, count: int, known: Clock | None, warp: Warp, lane: int, who: str = "") -> str | None:
        """Counts arrivals of a lane, or of `who` of it, with its clock. The problem in words, if there is one."""
        if not self.pending:
            return f"phase {self.phase} has all its arrivals and lacks {self.bytes} bytes"
        if not 1 <= count <= self.pending:
            return f"phase {self.phase} receives {count} arrivals, where 1 to {self.pending} are possible"
        self.last = who, warp, lane
        self.arrivers.add(warp)
        self.is_reached |= not self.is_of(warp)
        if known is not None:
            near = known if self.is_of(warp) else for_overwriting(known)
            self._offer(known, near, near)
        return self.change(count)

    def _offer(self, known: Clock, near: Clock, own: Clock) -> None:
        is_near_own = own is near and self.own is self.near
        is_same = near is known and self.near is self.offered
        self.offered = known.joined(self.offered)
        self.near = self.offered if is_same else near.joined(self.near)
        self.own = self.near if is_near_own else own.joined(self.own)

    def is_of(self, warp: Warp) -> bool:
        """Whether it is in the block of a warp."""
        return warp.block.rank == self.maker // warp.block.cluster.config.threads

    def is_fenced(self, warp: Warp, lane: int) -> bool:
        """Whether asynchronous operations of a lane see that it is initialised: by the fence for other blocks, or by
        one between the proxies on the way from its initialisation.
        """
        fenced = known(warp, np.array([lane])).proxies.get(SMEM.ptx)
        return self.is_published or (fenced is not None and int(fenced.times[self.maker]) > self.made)

    def is_known(self, warp: Warp, lane: int) -> bool:
        """Whether a lane of another block knows that it is initialised: by the fence for other blocks, or by a release
        and an acquire on the way from its initialisation, such as those of a cluster barrier. Where no races are looked
        for, all know it.
        """
        if self.is_published or not self.is_ordered:
            return True
        return int(known(warp, np.array([lane])).times[self.maker]) > self.made

    def track(self, arrival: Arrival | Transfer, warp: Warp, lanes: NDArray[np.int64]) -> None:
        """Counts the arrival or bytes of an operation that lanes of a warp have begun, once it is complete."""
        self.arrivals.append(arrival)
        if self.is_ordered:
            now = executed(warp, lanes)
            self._offer(now, now, now)

    def add(self, copy: AsyncOperation, bytes: int) -> int:
        """Counts the bytes of a bulk copy, once it is complete; its agent."""
        if self.agent is None:
            self.agent = copy.issuer.block.cluster.open_agents(None)
        self.track(Transfer(copy, self.agent, bytes), copy.issuer, copy.lanes)
        return self.agent

    def land(self) -> None:
        """Completes the operations that arrive next, in their order. SimulationError (E3215) for an arrival that the
        phase does not need, or for more bytes than it can count.
        """
        arrival = self.arrivals.pop(0)
        known = arrival.complete()
        if isinstance(arrival, Transfer):
            copy = arrival.operation
            by_peer = copy.proxy is Proxy.GENERIC and not self.is_of(copy.issuer)  # st.async and red.async
            self.counts_peers |= by_peer
            self._offer(known, known, for_overwriting(known) if by_peer else known)
            problem = self.change(expected=-arrival.bytes)
            if problem is not None:
                copy.issuer.fault(Code.SIM_MBARRIER, copy.site, int(copy.lanes[0]), problem)
            return
        warp = arrival.issuer
        for lane in arrival.lanes.tolist():
            problem = self.arrive(1, known, warp, lane, "a copy of ")
            if problem is not None:
                warp.fault(Code.SIM_MBARRIER, arrival.site, lane, problem)

    def is_complete(self, parity: int) -> bool:
        """Whether the phase of a parity is complete; it is the current one or the one before."""
        return self.phase % 2 != parity

    def _check_waits(self) -> None:
        """Notes the warps that have waited for the phase before the one that is complete now, if no arrival is behind
        that wait. In another order of execution both phases are complete before they look, and they wait for the next
        phase of the same parity. It is a fault if that one, now complete, needs something behind the wait.
        """
        if self.offered is None or not self.is_ordered:
            return
        missed, self.missed = self.missed, []
        for wait in missed:
            if _knows(self.offered, wait):
                self._refuse(wait)
        for wait in self.waits.values():
            if (self.phase - wait.phase) % 2 == 0 and not _knows(self.offered, wait):
                self.missed.append(wait)

    def end(self) -> None:
        """A fault where a warp may have missed its phase, and no other one follows."""
        for wait in self.missed:
            self._refuse(wait)

    def _refuse(self, wait: "Wait") -> None:
        if wait.phase < 0 or wait.warp.launch.forgives(Code.SIM_PHASE, wait.site):
            return
        text = (
            f"waits for phase {wait.phase} of the mbarrier, and nothing keeps phase {wait.phase + 1} from being "
            "complete before it looks: the wait would then never end"
        )
        wait.warp.fault(Code.SIM_PHASE, wait.site, wait.lane, text, _CURE)

    def missing(self) -> str:
        """The state of the current phase, in words."""
        parts = [f"phase {self.phase}: {self.expected - self.pending} of {self.expected} arrivals"]
        if self.bytes > 0:
            parts.append(f"lacks {self.bytes} bytes")
        if self.bytes < 0:
            parts.append(f"has {-self.bytes} bytes more than it expects")
        if self.last is not None:
            who, warp, lane = self.last
            parts.append(f"the last by {who}{warp.block.describe(int(warp.agents[lane]))}")
        return ", ".join(parts)

    def cause(self, warp: Warp, parity: int, others_wait: bool) -> str:
        """Why a warp waits here for a parity forever, in words, as far as it shows: `others_wait` says whether others
        wait elsewhere. Empty where arrivals are complete and bytes are missing.
        """
        came, ended = self.expected - self.pending, warp.block.cluster.state(ClusterBarrier).ended
        over = [bool(ended[other.first_index]) for other in self.arrivers]
        if not self.pending:
            return ""
        if not came and self.last is not None:
            return (
                "cp.async.mbarrier.arrive without noinc raises the arrivals that the phase expects by the one that it "
                "makes: add noinc, or let threads arrive, too"
            )
        if came:
            return f"too few arrivals: {came} of {self.expected} came in phase {self.phase}"
        if over and all(over) and warp not in self.arrivers:
            return (
                f"a loop is too short: the warps that arrived for the phases before {self.phase} have ended, and this "
                "wait is for one round more"
            )
        if over and self.passed(warp, parity):
            return (
                f"too many arrivals: the mbarrier expects {self.expected} in a phase, and others have ended two phases "
                "while this warp made one round"
            )
        if over:
            return "the parity is flipped, or a wait is one too many: those that arrive here wait for the next phase"
        if warp in self.observed:
            return "a release is missing: no thread has ever arrived here, and the warp waits for the second time"
        if others_wait:
            return (
                "the parity is flipped: the first wait for a stage that is still empty takes parity 1, and the warps "
                "that would arrive here wait for this one"
            )
        return "a release is missing: no thread has ever arrived here"

    def has_begun(self, warp: Warp, parity: int) -> bool:
        """Whether a part of the current phase has come, or phases have ended before a warp looked for one."""
        return self.pending < self.expected or bool(self.bytes) or bool(self.passed(warp, parity))

    def passed(self, warp: Warp, parity: int) -> str:
        """An addition where a warp waits for a phase, and the next phase has ended before the warp looked."""
        last = int(self.observed[warp].max()) if warp in self.observed else -1
        phase = last + (last % 2 != parity)
        if phase < 0 or phase + 1 >= self.phase:
            return ""
        return f", phases {phase} and {phase + 1} have ended before warp {warp.index} looked for phase {phase}"

    @property
    def tracked(self) -> int:
        """How many operations arrive, or bring bytes, once they are complete."""
        return len(self.arrivals)

    @property
    def arrived(self) -> int:
        """The arrivals of all phases so far."""
        return (self.phase + 1) * self.expected - self.pending

    def acquire(self, warp: Warp, parity: int, lanes: NDArray[np.int64], reach: int, site: Site) -> None:
        """Tells lanes of a warp that have waited for a parity the accesses before the arrivals up to that phase.
        `reach` is 0 for a wait at scope cluster, 1 for one without a scope, 2 for one at scope cta.

        Later phases may be complete by now, but need not be when a thread goes on. So it is the first phase of the
        parity that the lanes have not waited for, unless they know by other means that the phase behind it is complete.
        """
        observed = self.observed.setdefault(warp, np.full(warp.lanes, -1))
        before = warp.mask_state()
        for last in np.unique(observed[lanes]).tolist():
            chosen = lanes[observed[lanes] == last]
            phase = last + (last % 2 != parity)
            warp.narrow(np.isin(np.arange(warp.lanes), chosen))
            mine = None
            while phase + 2 < self.phase:
                mine = snapshot(warp, chosen) if mine is None else mine
                if not mine.covers(self._released(phase + 1)):
                    break
                phase += 2
            observed[chosen] = phase
            wait = self.waits[warp] = Wait(warp, phase, warp.launch.clock, int(chosen[0]), site)
            if self.is_ordered and self.offered is not None and self.phase == phase + 2:  # it went on late
                self.missed.append(wait)
            if phase >= 0:
                learn(warp, self._released(phase, reach))
            warp.restore(before)

    def _released(self, phase: int, reach: int = 0) -> Clock | None:
        """The knowledge of those that arrived up to the end of a complete phase, or of the first that is kept."""
        return self.released[max(phase - self.phase, -len(self.released))][reach] if self.released else None


def mbarriers_of(cluster: Cluster) -> dict[int, Mbarrier]:
    """The mbarriers in the shared memory of a cluster, by the row of 8 bytes."""
    return cast("dict[int, Mbarrier]", cluster.state(Trackers).rows)  # there are no others
