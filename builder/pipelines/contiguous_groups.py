# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A group of products whose parts of one mode lie one after the other in the same tensors: the part in which a tile
begins, and the tile as the warps of a block pass it on.

Group g has the indices from `cumsum[g]` to `cumsum[g + 1]` of the mode, and each group begins with a tile of its own.
"""

from typing import NamedTuple

from ..control.control_functions import while_
from ..instructions.math import minimum
from ..scalars.dtypes import Int32
from ..scalars.operators import Operand
from ..scalars.values import Bool, Scalar, convert
from ..tensors.tensors import Tensor


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
