# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The grids that run in one simulation, and how their clusters, blocks and threads are numbered: grid by grid, so that
numbers are of the whole launch.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...base.target import WARP
from ..engine import LaunchConfig
from ..errors import Dim3


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """A cluster's number of threads, and those with which a warp, a block and the cluster `begin`."""

    threads: int
    begin: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

    @classmethod
    def of(cls, size: int, threads: int) -> "Groups":
        """Those of a cluster of `size` blocks with so many threads each."""
        blocks = np.arange(size) * threads
        warps = blocks[:, None] + np.arange(0, threads, WARP)
        return cls(size * threads, (warps.ravel(), blocks, np.zeros(1, np.int64)))


@dataclass(frozen=True, slots=True)
class PlacedGrid:
    """A grid, number `index` of those that run together: its size, its device, its kernel's name, and the numbers in
    the launch of its first cluster, block and thread, from 0.
    """

    config: LaunchConfig
    device: int = 0
    kernel: str = ""
    index: int = 0
    first_cluster: int = 0
    first_block: int = 0
    first_thread: int = 0

    @property
    def cluster_size(self) -> int:
        """The blocks of a cluster."""
        return prod(self.config.cluster)

    @property
    def clusters(self) -> int:
        """How many clusters it has."""
        return self.config.blocks // self.cluster_size

    def thread(self, index: int) -> Dim3:
        """The coordinate of the thread with this number in its block (x is fastest)."""
        x, y, _ = self.config.block
        return index % x, index // x % y, index // (x * y)

    def coordinate(self, block: int) -> Dim3:
        """The coordinate of a block by its number in the launch. Blocks are numbered cluster by cluster, and by rank
        within; x is fastest.
        """
        size, (x, y, _) = self.config.cluster, self.config.grid
        cluster, rank = divmod(block - self.first_block, prod(size))
        clusters = x // size[0], y // size[1]
        first, inside = (
            (n % extent[0], n // extent[0] % extent[1], n // (extent[0] * extent[1]))
            for n, extent in ((cluster, clusters), (rank, size))
        )
        i, j, k = (c * n + r for c, n, r in zip(first, size, inside, strict=True))
        return i, j, k


@dataclass(frozen=True, slots=True, eq=False)
class Grids:
    """The grids of a launch, at least one."""

    placed: tuple[PlacedGrid, ...]
    _threads: NDArray[np.int64]
    """The first thread of each grid."""
    _blocks: NDArray[np.int64]
    """The first block of each grid."""

    @classmethod
    def of(cls, grids: "Iterable[tuple[LaunchConfig, int, str]]") -> "Grids":
        """Grids by their sizes, devices and the names of their kernels."""
        placed: list[PlacedGrid] = []
        cluster = block = thread = 0
        for config, device, kernel in grids:
            placed.append(PlacedGrid(config, device, kernel, len(placed), cluster, block, thread))
            cluster += placed[-1].clusters
            block += config.blocks
            thread += config.blocks * config.threads
        firsts = ([grid.first_thread for grid in placed], [grid.first_block for grid in placed])
        return cls(tuple(placed), *(np.array(numbers) for numbers in firsts))

    @classmethod
    def single(cls, config: LaunchConfig) -> "Grids":
        """One grid."""
        return cls.of([(config, 0, "")])

    @property
    def is_single(self) -> bool:
        """Whether there is one."""
        return len(self.placed) == 1

    @property
    def devices(self) -> int:
        """How many devices they run on."""
        return len({grid.device for grid in self.placed})

    @property
    def blocks(self) -> int:
        """How many blocks they have."""
        return self.placed[-1].first_block + self.placed[-1].config.blocks

    @property
    def threads(self) -> int:
        """How many threads they have."""
        last = self.placed[-1]
        return last.first_thread + last.config.blocks * last.config.threads

    @property
    def most_blocks(self) -> int:
        """The blocks of the largest cluster."""
        return max(grid.cluster_size for grid in self.placed)

    @property
    def most_threads(self) -> int:
        """The threads of the largest block."""
        return max(grid.config.threads for grid in self.placed)

    @property
    def most_warps(self) -> int:
        """The warps of the largest block."""
        return -(-self.most_threads // WARP)

    def of_cluster(self, number: int) -> PlacedGrid:
        """The grid of a cluster."""
        if self.is_single:
            return self.placed[0]
        return self.placed[bisect_right(self.placed, number, key=lambda grid: grid.first_cluster) - 1]

    def of_block(self, number: int) -> PlacedGrid:
        """The grid of a block."""
        return self.placed[bisect_right(self._blocks, number) - 1]

    def device_of(self, block: Any) -> Any:
        """The device of a block, by its number; or of each of some blocks."""
        devices = np.array([grid.device for grid in self.placed])
        return devices[np.searchsorted(self._blocks, block, "right") - 1]

    def place_of(self, agent: Any) -> tuple[Any, Any]:
        """The number of the block of a thread, and the thread's number there; or those of each of some threads, which
        are counted from 1.
        """
        if self.is_single:
            return divmod(agent - 1, self.placed[0].config.threads)
        if isinstance(agent, int):
            grid = self.placed[bisect_right(self._threads, agent - 1) - 1]
            block, thread = divmod(agent - 1 - grid.first_thread, grid.config.threads)
            return grid.first_block + block, thread
        found = cast("NDArray[np.int64]", np.searchsorted(self._threads, agent - 1, "right")) - 1
        sizes = np.array([grid.config.threads for grid in self.placed])
        block, thread = np.divmod(agent - 1 - self._threads[found], sizes[found])
        return self._blocks[found] + block, thread

    def cluster_place_of(self, agent: int) -> tuple[int, int]:
        """The number of the cluster of a thread, and the thread's number there."""
        block, thread = self.place_of(agent)
        grid = self.of_block(block)
        cluster, rank = divmod(block - grid.first_block, grid.cluster_size)
        return grid.first_cluster + cluster, rank * grid.config.threads + thread

    def clusters(self, in_step: int) -> list[tuple[int, int]]:
        """The clusters in their order: the number of each among those of its size, and its size. Where blocks run
        `in_step`, these are the clusters, so many blocks in each, and ever smaller ones for the rest.
        """
        if not in_step:
            sizes = [grid.cluster_size for grid in self.placed for _ in range(grid.clusters)]
            return list(enumerate(sizes))
        clusters: list[tuple[int, int]] = []
        done, size = 0, in_step
        while done < self.blocks:
            while size > self.blocks - done:
                size //= 2
            clusters.append((done // size, size))
            done += size
        return clusters

    def name(self, block: int) -> str:
        """A block in words, with its grid where there are several."""
        grid = self.of_block(block)
        of = f" of {where}" if (where := self.where(grid)) else ""
        return "block ({},{},{})".format(*grid.coordinate(block)) + of

    def where(self, grid: PlacedGrid) -> str:
        """A grid in words: its device where there are several, its kernel where its device has several grids."""
        kernel = [f"@{grid.kernel}"] if sum(other.device == grid.device for other in self.placed) > 1 else []
        return " of ".join([*kernel, *([f"device {grid.device}"] if self.devices > 1 else [])])
