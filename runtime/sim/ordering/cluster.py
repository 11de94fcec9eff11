# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules among the blocks of a cluster: their barrier, the addresses of their shared memory, and when they may reach
into that of a peer (PTX ISA, barrier.cluster, State Spaces: shared::cluster; CUDA C++ Programming Guide, Distributed
Shared Memory).

A plain address of shared memory means the own block's. The address of a byte in a block of a rank has the rank, counted
from 1, in its upper bits.

A block's shared memory exists from its begin to its end. So a thread that reaches into it must know some access of the
block, and some thread of the block must know the thread's access when it ends. A cluster barrier says both.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....base.target import MAX_CLUSTER
from ...engine import NumPyArray
from ..faults import Site
from ..memory.arena import Access
from ..values import Value, varies
from ..warp import Block, Cluster, Warp
from .clocks import OVER, Clock, join_clocks
from .knowledge import known, learn, snapshot

_SYNC = "let all threads of the cluster meet, by ptx.barrier.cluster.arrive and ptx.barrier.cluster.wait"
_WINDOW = 1 << 26
"""The addresses of a block; 32 bits hold those of all blocks that a cluster can have."""
_BEYOND = (MAX_CLUSTER + 2) * _WINDOW
"""Where the addresses end that have a rank in their upper bits, or stand for an impossible one."""


@dataclass(slots=True, eq=False)
class ClusterBarrier:
    """The barrier of all threads of a cluster: its phase, and for each thread whether it has `arrived` in that phase,
    whether it has `ended`, and the phase in which it has arrived and not waited, or -1.
    """

    cluster: Cluster
    phase: int = 0
    arrived: NDArray[np.bool_] = field(init=False)
    ended: NDArray[np.bool_] = field(init=False)
    due: NDArray[np.int64] = field(init=False)
    offered: Clock | None = None
    """The knowledge of those that have arrived."""
    released: Clock | None = None
    """The knowledge of the threads that arrived in complete phases."""

    def __post_init__(self) -> None:
        threads = self.cluster.threads
        self.arrived, self.ended = np.zeros(threads, bool), np.zeros(threads, bool)
        self.due = np.full(threads, -1)
        for warp in self.cluster.ended:
            self._count(warp)
        self.cluster.warp_ends.append(self._end)

    def arrive(self, warp: Warp, site: Site, relaxed: bool) -> None:
        """The active lanes arrive. SimulationError (E3221) for one that has not waited since it arrived last."""
        lanes = warp.lane_numbers()
        places = warp.first_index + lanes
        if (self.due[places] >= 0).any():
            lane = int(lanes[(self.due[places] >= 0).argmax()])
            text = f"arrives at the cluster barrier in phase {self.phase} again, without a wait since its last arrival"
            warp.fault(Code.SIM_CLUSTER_BARRIER, site, lane, text, "let each arrival be followed by one wait")
        self.arrived[places], self.due[places] = True, self.phase
        offered = _fenced(warp) if relaxed else snapshot(warp, lanes)
        if offered is not None:
            self.offered = offered.joined(self.offered)
        self._advance()

    def awaited(self, warp: Warp, site: Site) -> int:
        """The phase that the active lanes wait for. SimulationError (E3221) for one that has not arrived."""
        lanes = warp.lane_numbers()
        phases = self.due[warp.first_index + lanes]
        if (phases < 0).any():
            text = "waits at the cluster barrier without having arrived"
            lane = int(lanes[(phases < 0).argmax()])
            warp.fault(Code.SIM_CLUSTER_BARRIER, site, lane, text, "execute ptx.barrier.cluster.arrive before the wait")
        return int(phases.max())

    def leave(self, warp: Warp) -> None:
        """Lanes go on after their wait; they know all accesses before the arrivals."""
        self.due[warp.first_index + warp.lane_numbers()] = -1
        learn(warp, self.released)

    def _count(self, warp: Warp) -> None:
        """The threads of a warp that has ended count as having arrived from now on."""
        self.ended[warp.first_index : warp.first_index + warp.lanes] = True

    def _end(self, warp: Warp) -> None:
        self._count(warp)
        self._advance()

    def missing(self) -> str:
        """The state of the current phase, in words."""
        return f"phase {self.phase}: {int((self.arrived | self.ended).sum())} of {self.cluster.threads} threads"

    def _advance(self) -> None:
        """Completes the phase once all threads have arrived or ended. All know then that all blocks have begun."""
        if not self.arrived.any() or not (self.arrived | self.ended).all():
            return
        begun = Clock(self.cluster.number, np.full(self.cluster.threads, self.cluster.start + 1))
        self.phase, self.released = self.phase + 1, begun.joined(self.offered)
        self.arrived[:] = False


def _fenced(warp: Warp) -> Clock | None:
    """The knowledge of the active lanes at their last fences, as a relaxed arrival offers it."""
    from .releases import fenced_knowledge

    return join_clocks((fenced_knowledge(warp), warp.published))


@dataclass(slots=True, eq=False)
class Reach:
    """The accesses of threads to the shared memory of peers: the time of the last one to each block by each thread, and
    the operation of each warp.
    """

    cluster: Cluster
    times: NDArray[np.int64] = field(init=False)
    sites: dict[tuple[int, int], Site] = field(default_factory=dict[tuple[int, int], Site])
    ended: set[int] = field(default_factory=set[int])
    """The ranks of the blocks that have ended."""

    def __post_init__(self) -> None:
        self.times = np.zeros((self.cluster.size, self.cluster.threads), np.int64)
        for block in {warp.block: None for warp in self.cluster.warps}:
            if all(warp in self.cluster.ended for warp in block.warps):
                self.ended.add(block.rank)
        self.cluster.block_ends.append(self._end)

    def note(self, warp: Warp, site: Site, ranks: NDArray[np.int64], completes_later: bool, is_ordered: bool) -> None:
        """Each active lane reaches into the block of a rank, its own or another, now or when an operation that it has
        begun `completes_later`. SimulationError for a block that has ended (E3220) and, where the order
        of accesses `is_ordered` by clocks, for one that may not have begun (E3218).
        """
        cluster, lanes = warp.block.cluster, warp.lane_numbers()
        others, completes_now = ranks != warp.block.rank, is_ordered and not completes_later
        threads = cluster.config.threads
        for rank in np.unique(ranks[others]).tolist():
            lane = int(lanes[(ranks == rank).argmax()])
            if is_ordered and known(warp).times[rank * threads : (rank + 1) * threads].max() <= cluster.start:
                text = f"accesses the shared memory of {cluster.name(rank)}, which may not have begun"
                warp.fault(Code.SIM_PEER_BEGIN, site, lane, text, f"{_SYNC}, before the first access to a peer")
            if rank in self.ended:
                _fail_ended_peer(warp, site, lane, f"{cluster.name(rank)}, which has ended")
            if completes_now:
                self.sites[rank, warp.first_index] = site
        if completes_now:
            self.times[ranks[others], warp.first_index + lanes[others]] = warp.launch.clock

    def _end(self, block: Block) -> None:
        """A block ends. SimulationError (E3220) if it does not know all accesses of peers to its shared memory."""
        self.ended.add(block.rank)
        total = join_clocks(known(warp, np.arange(warp.lanes)) for warp in block.warps)
        assert total is not None, "a block has warps"
        total = total.joined(total.proxies.get(OVER))
        late = self.times[block.rank] >= np.maximum(total.times[: self.times.shape[1]], 1)
        if late.any():
            place = int(late.argmax())
            warp = next(w for w in block.cluster.warps if 0 <= place - w.first_index < w.lanes)
            site = self.sites[block.rank, warp.first_index]
            _fail_ended_peer(
                warp, site, place - warp.first_index, f"{block.cluster.name(block.rank)}, which may have ended"
            )


def _fail_ended_peer(warp: Warp, site: Site, lane: int, block: str) -> None:
    text = f"accesses the shared memory of {block}"
    warp.fault(Code.SIM_PEER_END, site, lane, text, f"{_SYNC}, after the last access to a peer")


def map_to_rank(address: Value, rank: Value) -> Value:
    """The address in the block of a rank that a plain address has in the own one; no block's for an impossible rank."""
    if varies(rank):
        inside = np.where((rank >= 0) & (rank < MAX_CLUSTER), rank, MAX_CLUSTER)
        return address + (inside.astype(np.int64) + 1) * _WINDOW
    return address + ((rank if 0 <= rank < MAX_CLUSTER else MAX_CLUSTER) + 1) * _WINDOW


def rank_of(warp: Warp, address: Value) -> Value:
    """The rank of the block in whose shared memory an address is; that of the own block where it is in none."""
    if varies(address):
        return np.where(_is_mapped(address), address // _WINDOW - 1, warp.block.rank)
    return address // _WINDOW - 1 if _is_mapped(address) else warp.block.rank


def plain_address(address: Value) -> Value:
    """The address in the own block that is at the same place as one in any block."""
    return (
        np.where(_is_mapped(address), address % _WINDOW, address)
        if varies(address)
        else (address % _WINDOW if _is_mapped(address) else address)
    )


def _is_mapped(address: Any) -> Any:
    """Whether `map_to_rank` makes such addresses."""
    return (address >= _WINDOW) & (address < _BEYOND)


def windows_of(warp: Warp, access: Access, at: NumPyArray, is_ordered: bool) -> tuple[NumPyArray, NumPyArray]:
    """The ranks of the blocks that the active lanes reach into, and the plain addresses there. SimulationError (E3202)
    for a rank that the cluster does not have, and as `Reach.note`, where clocks say how accesses are ordered.
    """
    ranks, cluster = rank_of(warp, at), warp.block.cluster
    if (ranks >= cluster.size).any():
        index = int((ranks >= cluster.size).argmax())
        rank = f"rank {ranks[index]}" if ranks[index] < MAX_CLUSTER else "a rank that no cluster has"
        text = f"accesses the shared memory of {rank}; the cluster has {cluster.size} blocks"
        hint = "the ranks of a cluster are 0 to its size less 1"
        warp.fault(Code.SIM_OUT_OF_BOUNDS, access.site, int(warp.lane_numbers()[index]), text, hint)
    cluster.state(Reach).note(warp, access.site, ranks, access.kind in ("async", "bulk"), is_ordered)
    return ranks, np.where(_is_mapped(at), at % _WINDOW, at)
