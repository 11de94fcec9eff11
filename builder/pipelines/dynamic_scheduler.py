# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks that take over the tiles of blocks that have not begun (PTX ISA, clusterlaunchcontrol; sm_100, and CUTLASS,
gemm/kernel/sm100_tile_scheduler.hpp).
"""

from dataclasses import dataclass

from ..control.control_functions import if_
from ..instructions import arch, cluster
from ..instructions.warp import elect_one
from ..scalars.dtypes import Boolean
from ..scalars.operators import Operand
from ..tensors.tensors import Address, Pointer, address_of
from ..tracing.attributes import Stateful
from .tile_scheduler import PersistentTileSchedulerParams, WorkTileInfo


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
