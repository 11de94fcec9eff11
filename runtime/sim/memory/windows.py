# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Addresses in the shared memory of a cluster (PTX ISA, State Spaces: shared::cluster).

A plain address of shared memory means the own block's. The address of a byte in a block of a rank has the rank, counted
from 1, in its upper bits.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....base.target import MAX_CLUSTER
from ..values import Value, varies
from ..warp import Warp

if TYPE_CHECKING:
    from .spaces import Access

_WINDOW = 1 << 26
"""The addresses of a block; 32 bits hold those of all blocks that a cluster can have."""
_BEYOND = (MAX_CLUSTER + 2) * _WINDOW
"""Where the addresses end that have a rank in their upper bits, or stand for an impossible one."""


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


def _is_mapped(address: Any) -> Any:
    """Whether `map_to_rank` makes such addresses."""
    return (address >= _WINDOW) & (address < _BEYOND)


def windows_of(warp: Warp, access: "Access", at: NDArray[Any], is_ordered: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """The ranks of the blocks that the active lanes reach into, and the plain addresses there. SimulationError (E3202)
    for a rank that the cluster does not have, and as `Reach.note`, where clocks say how accesses are ordered.
    """
    ranks, cluster = rank_of(warp, at), warp.block.cluster
    if (ranks >= cluster.size).any():
        index = int((ranks >= cluster.size).argmax())
        rank = f"rank {ranks[index]}" if ranks[index] < MAX_CLUSTER else "a rank that no cluster has"
        text = f"reaches into the shared memory of {rank}; the cluster has {cluster.size} blocks"
        hint = "the ranks of a cluster are 0 to its size less 1"
        warp.fault(Code.SIM_OUT_OF_BOUNDS, access.site, int(warp.lane_numbers()[index]), text, hint)
    cluster.reach.note(warp, access.site, ranks, access.kind in ("async", "bulk"), is_ordered)
    return ranks, np.where(_is_mapped(at), at % _WINDOW, at)
