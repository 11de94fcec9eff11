# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Persistent blocks for a group of products with sizes in memory: the tile and the product that a block computes
(CUTLASS, gemm/kernel/sm90_tile_scheduler_group.hpp).

The tiles of all products are numbered one after the other, in a product along M first; the number is the third
coordinate of a tile, the first two are those of a block in its cluster.

The parts of one mode may lie one after the other in the same tensors: group g has the indices from `cumsum[g]` to
`cumsum[g + 1]` of the mode, and begins with a tile of its own.
"""

from typing import NamedTuple

from ..control.control_functions import while_
from ..instructions.math import maximum, minimum, where
from ..scalars.dtypes import Int32
from ..scalars.operators import Operand
from ..scalars.values import Bool, Scalar, convert
from ..tensors.tensors import Tensor
from ..tracing.attributes import Stateful
from .tile_scheduler import PersistentTileSchedulerParams, StaticPersistentTileScheduler


class GroupSearchState(NamedTuple):
    """The state of a search through the products: the last one, and the numbers of its first tile and of the next
    product's first tile, counted in clusters.
    """

    group_idx: Operand = -1
    first: Operand = 0
    end: Operand = 0


def create_initial_search_state() -> GroupSearchState:
    """The state before the first search."""
    return GroupSearchState()


class GroupSearchResult(NamedTuple):
    """A tile of a product: its coordinate, in tiles of a block, the sizes of the product, and the tiles along its K."""

    cta_tile_idx_m: Operand
    cta_tile_idx_n: Operand
    problem_shape_m: Operand
    problem_shape_n: Operand
    problem_shape_k: Operand
    group_idx: Operand
    cta_tile_count_k: Operand


class GroupedGemmTileSchedulerHelper(Stateful):
    """Finds the product of a tile. A block must ask for ascending numbers, so each search continues from the last one;
    the result for a smaller number is undefined.
    """

    def __init__(
        self,
        group_count: int,
        tile_sched_params: PersistentTileSchedulerParams,
        cluster_tile_shape_mnk: tuple[int, int, int],
        search_state: GroupSearchState,
    ) -> None:
        self.group_count = group_count
        self.tile_sched_params = tile_sched_params
        self.cluster_tile_shape_mnk = cluster_tile_shape_mnk
        self.search_state = search_state

    def delinearize_z(
        self, cta_tile_coord: tuple[Operand, Operand, Operand], problem_shape_mnkl: Tensor
    ) -> GroupSearchResult:
        """The tile of a coordinate (m, n, number) among products of the sizes (M, N, K, L), one per row."""
        m, n, number = (convert(part, Int32) for part in cta_tile_coord)

        def clusters(group: object) -> tuple[Operand, Operand]:
            """The numbers of tiles along M and N."""
            rows, columns, _ = self.cluster_tile_shape_mnk
            return (
                (problem_shape_mnkl[group, 0] + (rows - 1)) // rows,
                (problem_shape_mnkl[group, 1] + (columns - 1)) // columns,
            )

        def goes_on(group: Operand, first: object, end: Operand) -> Operand:
            return (number >= end) & (group + 1 < self.group_count)

        def following(group: Operand, first: object, end: Operand) -> tuple[Operand, Operand, Operand]:
            along_m, along_n = clusters(group + 1)
            return group + 1, end, end + along_m * along_n

        before = tuple(convert(part, Int32) for part in self.search_state)
        group, first, end = while_(goes_on, following, *before)
        self.search_state = GroupSearchState(group, first, end)
        along_m = maximum(clusters(group)[0], 1)  # of an empty product there is no tile to ask for
        at = where(number < first, 0, number - first)
        rows, columns, _ = self.tile_sched_params.cluster_shape_mnk
        size_m, size_n, size_k = (problem_shape_mnkl[group, mode] for mode in range(3))
        depth = self.cluster_tile_shape_mnk[2]
        return GroupSearchResult(
            at % along_m * rows + m,
            at // along_m * columns + n,
            size_m,
            size_n,
            size_k,
            group,
            (size_k + (depth - 1)) // depth,
        )

    def search_cluster_tile_count_k(
        self, cta_tile_coord: tuple[object, object, object], problem_shape_mnkl: Tensor
    ) -> tuple[Operand, Operand]:
        """The tiles along K of the product of a coordinate, and its number: a warp that only multiplies needs no
        more.
        """
        found = self.delinearize_z(cta_tile_coord, problem_shape_mnkl)
        return found.cta_tile_count_k, found.group_idx


class GroupWorkTileInfo(NamedTuple):
    """The fields of `WorkTileInfo`, and the tile of its product."""

    tile_idx: tuple[Operand, Operand, Operand]
    is_valid_tile: Operand
    group_search_result: GroupSearchResult


class StaticPersistentGroupTileScheduler(Stateful):
    """The tiles of one block for a group of products, in the order of `StaticPersistentTileScheduler`."""

    def __init__(
        self, tiles: StaticPersistentTileScheduler, helper: GroupedGemmTileSchedulerHelper, problem_shape_mnkl: Tensor
    ) -> None:
        self.tiles = tiles
        self.helper = helper
        self.problem_shape_mnkl = problem_shape_mnkl

    @classmethod
    def create(
        cls,
        params: PersistentTileSchedulerParams,
        block_idx: tuple[object, object, object],
        grid_dim: tuple[object, object, object],
        cluster_tile_shape_mnk: tuple[int, int, int],
        initial_search_state: GroupSearchState,
        group_count: int,
        problem_shape_mnkl: Tensor,
    ) -> "StaticPersistentGroupTileScheduler":
        """The scheduler of a block in a grid of `get_grid_shape`. The tiles of `params` are (blocks of a cluster along
        M and N, clusters of all products); a row of `problem_shape_mnkl` has the sizes (M, N, K, L) of a product.
        """
        tiles = StaticPersistentTileScheduler.create(params, block_idx, grid_dim)
        helper = GroupedGemmTileSchedulerHelper(group_count, params, cluster_tile_shape_mnk, initial_search_state)
        return cls(tiles, helper, problem_shape_mnkl)

    get_grid_shape = staticmethod(StaticPersistentTileScheduler.get_grid_shape)

    @property
    def num_tiles_executed(self) -> Operand:
        """The number of tiles that the block has finished."""
        return self.tiles.num_tiles_executed

    def initial_work_tile_info(self) -> GroupWorkTileInfo:
        """The first tile of the block."""
        return self.get_current_work()

    def advance_to_next_work(self, advance_count: int = 1) -> None:
        """Advances by one or several tiles of the block."""
        self.tiles.advance_to_next_work(advance_count)

    def get_current_work(self) -> GroupWorkTileInfo:
        """The next tile. Without one, the search does not advance."""
        coord, is_valid = self.tiles.get_current_work()
        number = where(is_valid, convert(coord[2], Int32), 0)
        result = self.helper.delinearize_z((coord[0], coord[1], number), self.problem_shape_mnkl)
        return GroupWorkTileInfo(coord, is_valid, result)


class ContiguousGroupSearchState(NamedTuple):
    """The result of a search, from which the next one goes on: the number of the group, counted from 1; the first index
    of the tile, and the one behind the group; the number of the tile, and that of the next group's first tile.

    The group of a tile behind all others has a number beyond the last one.
    """

    cur_group_idx: Operand
    cur_start: Operand
    cur_boundary: Operand
    tile_idx: Operand
    end_tile: Operand


def create_initial_contiguous_group_search_state() -> ContiguousGroupSearchState:
    """The state before the first search."""
    return ContiguousGroupSearchState(*(convert(0, Int32) for _ in range(5)))


def contiguous_group_search(
    tile_shape_mnk: tuple[int, int, int],
    group_count: int,
    tile_idx: Scalar,
    search_state: ContiguousGroupSearchState,
    cumsum: Tensor,
    mode: int,
) -> ContiguousGroupSearchState:
    """The group of a tile, by the number of the tile along a mode of `tile_shape_mnk`. A block must ask for ascending
    numbers, as each search goes on from the last one.
    """
    extent, number = tile_shape_mnk[mode], convert(tile_idx, Int32)

    def goes_on(group: Operand, start: object, end: object, tile: object, behind: Operand) -> Operand:
        return (number >= behind) & (group <= group_count)

    def following(group: Operand, start: object, end: Operand, tile: object, behind: Operand) -> tuple[Operand, ...]:
        new_end = cumsum[minimum(group + 1, group_count)]  # behind the last group an empty one follows
        return group + 1, end, new_end, behind, behind + (new_end - end + (extent - 1)) // extent

    group, start, end, tile, behind = while_(goes_on, following, *search_state)
    return ContiguousGroupSearchState(group, start + (number - tile) * extent, end, number, behind)


class ContiguousGroupWorkTileInfo(NamedTuple):
    """A tile of a group: its place in tiles of a block along M and in elements along N, the group counted from 0, the
    elements from there to the end of the group, and whether there is such a tile.
    """

    cta_coord_m: Operand
    coord_n: Operand
    group_idx: Operand
    distance_to_boundary: Operand
    is_valid_tile: Bool


def make_contiguous_group_work_tile_info(group_count: int, tile_info: Tensor) -> ContiguousGroupWorkTileInfo:
    """The tile of four numbers (cta_coord_m, coord_n, group_idx, distance_to_boundary) in memory."""
    row, column, group, distance = (tile_info[i] for i in range(4))
    return ContiguousGroupWorkTileInfo(row, column, group, distance, group < group_count)
