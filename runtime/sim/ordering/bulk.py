# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order of bulk copies: the events that complete them, and the agents of their accesses (PTX ISA, cp.async.bulk).

A copy to shared memory takes its bytes off the count of an mbarrier when it is complete. Its accesses are those of an
agent of that mbarrier, whose completions its phases order: who waits for the phase knows them. A copy to global memory
is part of a group of its thread. When the thread has waited for the group, the reads and writes are its own, made at
the wait; after a wait only for the reads, the writes are still in flight.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....dialects.ptx.effects import Proxy
from ...engine import NumPyArray
from ..warp import Cluster, Warp
from .asynchronous import AsyncOperation, InFlight, is_global
from .clocks import ATOMIC, PROXIED, Clock


@dataclass(frozen=True, slots=True, eq=False)
class Transfer:
    """A bulk copy, as an agent of its own, whose bytes an mbarrier counts."""

    operation: AsyncOperation
    agent: int
    bytes: int

    def complete(self) -> Clock:
        """Completes the copy; who waits for the mbarrier knows this."""
        operation, warp = self.operation, self.operation.issuer
        cluster, time = warp.block.cluster, warp.launch.clock
        _end_reads(operation, cluster.agent_of(self.agent))
        _land(operation, cluster.agent_of(self.agent))
        warp.state(InFlight).loads.remove(operation)
        _hold_others(operation)
        cluster.finished[self.agent] = time
        times = np.zeros(cluster.threads + len(cluster.finished), np.int64)
        times[cluster.threads + self.agent] = warp.launch.tick()
        return Clock(cluster.number, times)


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """Reductions of a `kind`: the bytes that they write to rows, of these and of the bytes that they copy."""

    kind: str
    combine: Callable[[NumPyArray, NDArray[np.uint8]], NDArray[np.uint8]]


@dataclass(slots=True, eq=False)
class Reduction(AsyncOperation):
    """A bulk copy that combines its bytes with those in memory, when it is complete."""

    change: Change | None = None

    def land(self, which: NDArray[np.bool_], time: int, agents: NumPyArray) -> None:
        """Ends the flight of some rows, as atomic writes of these agents at a time."""
        assert self.change is not None
        self.content[which] = self.change.combine(self.rows[which], self.content[which])
        AsyncOperation.land(self, which, time, agents | ATOMIC)


def reductions(cluster: Cluster, kind: str) -> list[AsyncOperation]:
    """The reductions of a kind that are in flight. Their bytes are so to all accesses but one another."""
    copies = (copy for other in cluster.resident for warp in other.warps
              for copy in (*warp.state(InFlight).stores, *warp.state(InFlight).loads)
              if other is cluster or is_global(copy.memory))  # fmt: skip
    return [other for other in copies if isinstance(other, Reduction) and other.change and other.change.kind == kind]


def commit(warp: Warp) -> None:
    """The active lanes' copies to global memory since the last commit become a group."""
    warp.bulk_groups[warp.lane_numbers()] += 1


def wait(warp: Warp, in_flight: int, reads_only: bool) -> None:
    """Completes the active lanes' groups except for their `in_flight` latest ones, or of their reads."""
    limit, live = warp.bulk_groups - in_flight, warp.live()
    for operation in tuple(warp.state(InFlight).stores):
        lane = int(operation.lanes[0])
        if live[lane] and operation.groups[0] < limit[lane]:
            _end_reads(operation, int(warp.agents[lane]))
            if not reads_only:
                _store(operation)


def leave(warp: Warp) -> None:
    """The end of a warp. SimulationError (E3217) if its copies still read shared memory, where the launch checks for
    races: the next block's writes race with these reads.
    """
    for operation in warp.state(InFlight).stores:
        if operation.source is not None and operation.source.memory.races:
            hint = "commit the copies of the thread to a group, and wait for it: ptx.cp.async.bulk.wait_group 0 read"
            text = "the thread ends while its bulk copy may still read shared memory"
            warp.fault(Code.SIM_EXIT, operation.site, int(operation.lanes[0]), text, hint)


def drain(cluster: Cluster) -> None:
    """The end of a cluster: completes the copies to global memory. SimulationError (E3217) for a copy to shared memory
    for which nobody has waited.
    """
    for warp in cluster.warps:
        for operation in warp.state(InFlight).loads:
            text = "the block ends while the copy may still write its shared memory"
            hint = "wait at the mbarrier for the phase that counts its bytes"
            warp.fault(Code.SIM_EXIT, operation.site, int(operation.lanes[0]), text, hint)
        for operation in tuple(warp.state(InFlight).stores):
            _store(operation)


def _store(operation: AsyncOperation) -> None:
    """Completes a copy to global memory, as a write of its thread."""
    warp = operation.issuer
    _land(operation, int(warp.agents[operation.lanes[0]]))
    warp.state(InFlight).stores.remove(operation)
    _hold_others(operation)


def _hold_others(operation: AsyncOperation) -> None:
    """Bytes of a reduction that is complete stay in flight where others of its kind still change them."""
    warp = operation.issuer
    if isinstance(operation, Reduction) and operation.change is not None:
        for other in reductions(warp.block.cluster, operation.change.kind):
            other.memory.hold(other.issuer, other.rows, other.width)


def _end_reads(operation: AsyncOperation, agent: int) -> None:
    """Ends the reads of a copy, as those of an agent made now."""
    source, maps = operation.source, operation.further
    operation.source, operation.further = None, ()
    for read in (*(() if source is None else (source,)), *maps):
        lane, is_map = int(read.lanes[0]), read is not source
        read.memory.read_by(operation.issuer, lane, read.rows, read.width, agent, each=is_map)


def _land(operation: AsyncOperation, agent: int) -> None:
    """Ends the writes of a copy, as those of an agent made now."""
    proxied = PROXIED if operation.proxy is Proxy.ASYNC else 0
    agents = np.full(np.count_nonzero(operation.flying), proxied | agent)
    operation.land(operation.flying, operation.issuer.launch.clock, agents)
