# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Persistent blocks: which tiles of the result a block computes, one after the other, and in which order.

The unit is a cluster of blocks, and so the tiles that a cluster computes at a time (CUTLASS,
gemm/kernel/static_tile_scheduler.hpp).

On sm_100 blocks may also take over the tiles of blocks that have not begun (PTX ISA, clusterlaunchcontrol; CUTLASS,
gemm/kernel/sm100_tile_scheduler.hpp).
"""

from dataclasses import dataclass
from typing import NamedTuple

from ...base.errors import Code, TilefoldError
from ...base.target import MAX_GRID
from ..control.control_functions import if_
from ..instructions import arch, cluster
from ..instructions.math import maximum, where
from ..instructions.warp import elect_one
from ..scalars.dtypes import Boolean, Int32
from ..scalars.operators import Operand
from ..scalars.values import Bool, Value, check_integer, convert
from ..tensors.tensors import Address, Pointer, address_of
from ..tensors.views import rasterize
from ..tracing.attributes import Stateful
from ..tracing.state import host
from .groups import pipeline_error


@dataclass(frozen=True)
class PersistentTileSchedulerParams:
    """The tiles of a problem along M, N and L (the batch), the blocks of a cluster along M, N and K, and the order.

    Clusters follow each other along M, or along N; with a `swizzle_size` of more than 1, each step takes that number of
    the other mode, so that those that run at the same time read fewer rows and columns. Raises TilefoldError: E5002 for
    anything but integers, E5011 for numbers that are not sizes.
    """

    problem_shape_ntile_mnl: tuple[Operand, Operand, Operand]
    cluster_shape_mnk: tuple[int, int, int] = (1, 1, 1)
    swizzle_size: int = 1
    raster_along_m: bool = True

    def __post_init__(self) -> None:
        for subject, sizes in (("a number of tiles", self.problem_shape_ntile_mnl), ("a cluster", self._static)):
            if len(sizes) != 3:
                raise pipeline_error(
                    f"{subject} has {len(sizes)} modes", "the tiles are (m, n, l), a cluster is (m, n, k)"
                )
            for size in sizes:
                check_integer(subject, size)
        if any(isinstance(size, Value) or size < 1 for size in self._static) or self.cluster_shape_mnk[2] != 1:
            raise pipeline_error(
                f"a cluster cannot have {self.cluster_shape_mnk} blocks", "pass static sizes (m, n, 1), at least 1"
            )
        if type(self.swizzle_size) is not int or self.swizzle_size < 1:
            raise pipeline_error(f"swizzle_size is {self.swizzle_size!r}", "pass a static number of at least 1")

    def __extract_mlir_values__(self) -> list[Value]:
        """The values of the kernel in it, a method that programs replace."""
        return [size for size in self.problem_shape_ntile_mnl if isinstance(size, Value)]

    @property
    def _static(self) -> tuple[int, int, int]:
        return self.cluster_shape_mnk

    @property
    def clusters(self) -> tuple[Operand, Operand, Operand]:
        """The clusters along M, N and L, the last of which may have tiles beyond the problem."""
        m, n, layers = self.problem_shape_ntile_mnl
        rows, columns, _ = self.cluster_shape_mnk
        return (m + (rows - 1)) // rows, (n + (columns - 1)) // columns, layers

    def get_grid_shape(self, max_active_clusters: int) -> tuple[int, int, int]:
        """The grid for a launch: as many clusters as the GPU holds at a time, but no more than the problem has. Raises
        TilefoldError (E5003) unless the tiles are Python numbers.
        """
        m, n, layers = self.clusters
        total = m * n * layers
        if isinstance(total, Value) and host() is None:
            hint = "compute the grid on the host, from the shapes of the arrays"
            raise TilefoldError(Code.BUILD_RUN_TIME, "a grid must be static, but the number of tiles is not", hint)
        if type(max_active_clusters) is not int or max_active_clusters < 1:
            raise pipeline_error(f"max_active_clusters is {max_active_clusters!r}", "pass a number of at least 1")
        clusters: Operand = total  # on the host a number that compares as others do
        rows, columns, _ = self.cluster_shape_mnk
        return rows, columns, max(1, min(clusters, max_active_clusters, MAX_GRID[2]))


class WorkTileInfo(NamedTuple):
    """A tile of the problem by its coordinate (m, n, l), and whether the tile exists: a block ends at the first one
    that does not. A tile of a cluster at the edge may lie beyond the problem along M or N.
    """

    tile_idx: tuple[Operand, Operand, Operand]
    is_valid_tile: Operand


class StaticPersistentTileScheduler(Stateful):
    """The tiles of one block: cluster i of the grid computes tiles i, i + n, i + 2 n, ..., where n is the number of
    clusters in the grid.
    """

    def __init__(
        self, params: PersistentTileSchedulerParams, in_cluster: tuple[Operand, Operand], first: Operand, step: Operand
    ):
        self.params = params
        self.in_cluster = in_cluster
        self.step = step
        self.current = first
        self.num_tiles_executed: Operand = 0

    @classmethod
    def create(
        cls,
        params: PersistentTileSchedulerParams,
        block_idx: tuple[Operand, Operand, Operand],
        grid_dim: tuple[Operand, Operand, Operand],
    ) -> "StaticPersistentTileScheduler":
        """The scheduler of a block in a grid of `get_grid_shape`: its z numbers the clusters."""
        rows, columns, _ = params.cluster_shape_mnk
        in_cluster = tuple(
            0 if extent == 1 else at % extent for at, extent in zip(block_idx, (rows, columns), strict=False)
        )
        return cls(params, (in_cluster[0], in_cluster[1]), convert(block_idx[2], Int32), convert(grid_dim[2], Int32))

    @staticmethod
    def get_grid_shape(params: PersistentTileSchedulerParams, max_active_clusters: int) -> tuple[int, int, int]:
        """The grid for a launch, see `PersistentTileSchedulerParams`."""
        return params.get_grid_shape(max_active_clusters)

    def initial_work_tile_info(self) -> WorkTileInfo:
        """The first tile of the block."""
        return self.get_current_work()

    def advance_to_next_work(self, advance_count: int = 1) -> None:
        """Advances by one or several tiles of the block."""
        self.current = self.current + self.step * advance_count
        self.num_tiles_executed = self.num_tiles_executed + 1

    def get_current_work(self) -> WorkTileInfo:
        """The next tile."""
        m, n, layers = (
            convert(extent, Int32) if isinstance(extent, Value) else extent for extent in self.params.clusters
        )
        is_valid: Bool = self.current < m * n * layers
        m, n = maximum(m, 1), maximum(n, 1)  # of an empty problem no tile is valid, and the rest must not divide by 0
        at = where(is_valid, self.current, 0)
        layer = 0
        if not (isinstance(layers, int) and layers == 1):
            layer = at // (m * n)
            at = at - layer * (m * n)
        if self.params.raster_along_m:
            column, row = rasterize(at, n, m, self.params.swizzle_size)
        else:
            row, column = rasterize(at, m, n, self.params.swizzle_size)
        rows, columns, _ = self.params.cluster_shape_mnk
        tile = row * rows + self.in_cluster[0], column * columns + self.in_cluster[1], layer
        return WorkTileInfo(tile, is_valid)


class StaticPersistentRuntimeTileScheduler(StaticPersistentTileScheduler):
    """The tiles of one block where the kernel itself finds out which is the last: cluster i computes tiles i, i + n,
    ..., without end. A tile is that of a cluster, by its coordinate along M and N, of which the inner one goes first.
    """

    def __init__(
        self,
        params: PersistentTileSchedulerParams,
        in_cluster: tuple[Operand, Operand],
        first: Operand,
        step: Operand,
        inner: int = 1,
    ) -> None:
        super().__init__(params, in_cluster, first, step)
        self.inner = inner

    @classmethod
    def create(
        cls,
        params: PersistentTileSchedulerParams,
        block_idx: tuple[Operand, Operand, Operand],
        grid_dim: tuple[Operand, Operand, Operand],
        inner_mode: int = 1,
    ) -> "StaticPersistentRuntimeTileScheduler":
        """The scheduler of a block: its z numbers the clusters. `inner_mode` is 0 for M and 1 for N. Raises
        TilefoldError (E5011) for another.
        """
        if inner_mode not in (0, 1):
            raise pipeline_error(f"inner_mode is {inner_mode!r}", "pass 0 for M, or 1 for N")
        tiles = StaticPersistentTileScheduler.create(params, block_idx, grid_dim)
        return cls(params, tiles.in_cluster, tiles.current, tiles.step, inner_mode)

    def get_current_work(self) -> WorkTileInfo:
        """The next tile, which always counts as one that exists."""
        inner = convert(maximum(self.params.clusters[self.inner], 1), Int32)
        along = self.current % inner, self.current // inner
        m, n = along if self.inner == 0 else along[::-1]
        return WorkTileInfo((m, n, 0), convert(True, Boolean))


@dataclass(frozen=True)
class ClcDynamicPersistentTileSchedulerParams(PersistentTileSchedulerParams):
    """The tiles of a problem along M, N and L (the batch), and the blocks of a cluster along M, N and K. A launch has a
    block for each tile.
    """

    def get_grid_shape(self, max_active_clusters: int = 1) -> tuple[Operand, Operand, Operand]:
        """The grid for a launch: a block for each tile, in whole clusters, however many the GPU holds at a time."""
        m, n, layers = self.clusters
        rows, columns, _ = self.cluster_shape_mnk
        return m * rows, n * columns, layers


class ClcDynamicPersistentTileScheduler(Stateful):
    """The tiles of one block: its own, and then those of blocks whose clusters its cluster has cancelled. The answer to
    the request is 16 bytes of shared memory at `response`.
    """

    def __init__(
        self, params: ClcDynamicPersistentTileSchedulerParams, own: tuple[object, object, object], response: Address
    ) -> None:
        self.params = params
        self.own = own
        self.response = response
        self.num_tiles_executed: Operand = 0

    @classmethod
    def create(
        cls,
        params: ClcDynamicPersistentTileSchedulerParams,
        block_idx: tuple[object, object, object],
        grid_dim: tuple[object, object, object],
        clc_response_ptr: Pointer,
    ) -> "ClcDynamicPersistentTileScheduler":
        """The scheduler of a block in a grid of `get_grid_shape`."""
        return cls(params, block_idx, address_of(clc_response_ptr))

    @staticmethod
    def get_grid_shape(params: ClcDynamicPersistentTileSchedulerParams) -> tuple[Operand, Operand, Operand]:
        """The grid for a launch, see `ClcDynamicPersistentTileSchedulerParams`."""
        return params.get_grid_shape()

    def initial_work_tile_info(self) -> WorkTileInfo:
        """The block's own tile."""
        return WorkTileInfo(self.own, Boolean(True))

    def advance_to_next_work(self, mbarrier_addr: Address | Pointer) -> None:
        """Asks for the next tile: the answer goes to all blocks of the cluster, and the mbarrier of each counts it.
        A whole warp of one block calls it.
        """
        rows, columns, _ = self.params.cluster_shape_mnk
        several = rows * columns > 1
        if_(elect_one(), lambda: cluster.issue_clc_query(mbarrier_addr, self.response, multicast=several))
        self.num_tiles_executed = self.num_tiles_executed + 1

    def get_current_work(self) -> WorkTileInfo:
        """The tile of the answer, after a wait for it. The bytes may be used again afterwards."""
        x, y, z, more = cluster.clc_response(self.response)
        arch.fence_proxy("async.shared", "cta")
        rows, columns, _ = self.params.cluster_shape_mnk
        if rows * columns > 1:
            inside = cluster.block_in_cluster_idx()
            x, y = x + inside[0], y + inside[1]
        return WorkTileInfo((x, y, z), more)
