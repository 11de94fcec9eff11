# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of global and shared memory by TMA copies (CuTe's tma_partition and create_tma_multicast_mask)."""

from ...base.errors import Code, LayoutError
from ...base.target import MAX_CLUSTER
from ..algebra.coalesce import coalesce
from ..algebra.compose import composition
from ..algebra.core import Layout, LayoutLike, cosize, join, plain_layout
from ..algebra.divide import logical_divide
from ..algebra.integers import AnyInt, Coord, is_static
from ..algebra.inttuple import show
from ..algebra.inverse import right_inverse
from ..algebra.modes import slice_and_offset
from ..algebra.product import tile_to_shape
from .tma_copy import TmaCopy, start_of_part


def tma_partition(
    copy: TmaCopy, coord: Coord, blocks: Layout, smem: LayoutLike, gmem: LayoutLike
) -> tuple[tuple[LayoutLike, AnyInt], tuple[LayoutLike, AnyInt]]:
    """Shared memory and the coordinates of global memory by instructions: ((TMA,TMA_Iter),Rest...), each with where it
    begins.

    The first mode of `smem` and of `gmem` is a tile. The block at `coord` of a multicast, which may be dynamic, begins
    where its part of each box does; `blocks` numbers the blocks. Raises `LayoutError` (E0323) where the tiles differ in
    size.
    """
    tile = plain_layout(smem)[0]
    if tile.size != gmem[0].size:
        problem = f"the tile of shared memory has {tile.size} values, that of global memory {gmem[0].size}"
        raise LayoutError(Code.TMA_BOX, problem, "group the modes of a tile to the first mode of each tensor")
    offset = blocks(coord) * (copy.values // cosize(blocks))
    parts = [by_instructions(copy, tile, tensor) for tensor in (smem, gmem)]
    first, second = [(part, start_of_part(plain_layout(part), offset)) for part in parts]
    return first, second


def by_instructions(copy: TmaCopy, tile: Layout, tensor: LayoutLike) -> LayoutLike:
    """A tensor of tiles by instructions: ((TMA,TMA_Iter),Rest...).

    Its first mode is a tile, and `tile` the layout of that in shared memory. Raises `LayoutError` if an instruction
    does not move a part of the tile.
    """
    order = tile_to_shape(join([right_inverse(tile)]), tile.size)
    by_instruction = logical_divide(order[0], Layout(copy.values, 1))
    return coalesce(composition(tensor, (by_instruction, *(None,) * (len(tensor) - 1))), ((1, 1),))


def compute_multicast_mask(blocks: Layout, coord: Coord, modes: tuple[int, ...] = ()) -> AnyInt:
    """The mask of the block at `coord` of a cluster and of those beside it along `modes`: bit i stands for rank i (PTX
    ISA, cp.async.bulk.tensor). The coordinate may be dynamic.

    `blocks` maps coordinates in the cluster to ranks. Raises `LayoutError` (E0202) where `coord` or `modes` do not fit
    its rank, (E0323) for ranks beyond the largest cluster.
    """
    rank = len(blocks)
    position = list(coord) if isinstance(coord, tuple) else [coord]
    if len(position) != rank or any(not 0 <= mode < rank for mode in modes):
        problem = f"the coordinate {show(coord)} and the modes {show(modes)} do not fit the {rank} modes of {blocks}"
        raise LayoutError(Code.RANK_MISMATCH, problem)
    for mode in modes:
        position[mode] = None
    beside, first = slice_and_offset(tuple(position), blocks)
    distances = {plain_layout(beside)(i) for i in range(beside.size)}
    last = first + max(distances) if is_static(first) else cosize(blocks) - 1
    if last >= MAX_CLUSTER:
        raise LayoutError(Code.TMA_BOX, f"{blocks} has the rank {last}; a cluster has at most {MAX_CLUSTER} blocks")
    return sum(1 << distance for distance in distances) << first
