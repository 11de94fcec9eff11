# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clusters that run at the same time: each has a seat with shared and local memory of its own."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any
from zlib import crc32

from .translate import Spaces
from .warp import Cluster


@dataclass(slots=True)
class Seats:
    """The places of the clusters that run at the same time. The memory of the one that goes on is in `spaces`, that of
    the others is kept here.
    """

    spaces: Spaces
    kept: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    taken: int = 0
    """The seat of the cluster that goes on."""

    def build(self, count: int, cluster: int, threads: int, warps: int) -> None:
        """Creates the memory of a number of clusters, each with its numbers of blocks, threads and warps of a block."""
        for _ in range(count):
            self.spaces.shared.build(cluster, warps)
            self.spaces.local.build(threads)
            self.kept.append(self._memory())
        self.taken = count - 1

    def take(self, seat: int) -> None:
        """Lets the cluster of a seat go on."""
        if seat != self.taken:
            self.kept[self.taken] = self._memory()
            shared, local = self.kept[seat]
            self.spaces.shared.assume(shared)
            self.spaces.local.assume(local)
            self.taken = seat

    def _memory(self) -> tuple[Any, Any]:
        return self.spaces.shared.private(), self.spaces.local.private()

    def digest(self) -> int:
        """A checksum of all bytes of all seats, and their states."""
        mine, total = self.taken, 0
        for seat in range(len(self.kept)):
            self.take(seat)
            total = crc32(self.spaces.digest().to_bytes(4, "little"), total)
        self.take(mine)
        return total


def take_turns(begin: Iterable[Cluster], seats: Seats, order: Random | None) -> Iterator[Cluster]:
    """The clusters of a launch, each whenever it is to go on: in turns, or picked by `order`. `begin` makes the next
    one that there is a seat for, and `launch.resident` has those that run; who ends leaves it.
    """
    coming, running = iter(begin), deque[Cluster]()
    free = list(reversed(range(len(seats.kept))))
    while True:
        while free:
            seats.take(free[-1])
            cluster = next(coming, None)
            if cluster is None:
                break
            free.pop()
            running.append(cluster)
        if not running:
            return
        if order is not None and len(running) > 1:
            running.rotate(-order.randrange(len(running)))
        cluster = running.popleft()
        seats.take(cluster.seat)
        yield cluster
        if cluster in cluster.launch.resident:
            running.append(cluster)
        else:
            free.append(cluster.seat)


def clusters_of(blocks: int, size: int) -> list[tuple[int, int]]:
    """The clusters of `size` blocks in their order: the number of each among those of its size, and its size. Where
    these do not make up all blocks, ever smaller ones follow.
    """
    clusters: list[tuple[int, int]] = []
    done = 0
    while done < blocks:
        while size > blocks - done:
            size //= 2
        clusters.append((done // size, size))
        done += size
    return clusters
