# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor copies of whole tiles: a tile of a tensor map's tensor and one of shared memory, which are not partitioned."""

from collections.abc import Mapping
from typing import Any

from ...base.errors import Code, TilefoldError
from ...layout.algebra.core import make_layout
from ..instructions.cluster import block_idx_in_cluster
from ..tensors.copies import copy
from ..tensors.layouts import rank
from ..tensors.modes import group_modes
from ..tensors.tensors import CoordTensor
from ..tensors.tma import create_tma_multicast_mask, tma_partition


def block_copy(
    atom: Any, src: Any, dst: Any, *, tma_multicast: Mapping[str, Any] | None = None, **options: Any
) -> None:
    """Copies a tile between global and shared memory by a tensor map; all modes of both belong to the tile. `options`
    are those of `copy`.

    `tma_multicast` has the `cluster_shape` (M,N) of blocks that load parts of the tile for each other, and the
    `multicast_dim`, "M" or "N", that these blocks have in common. By an atom without a multicast each block loads the
    whole tile. TilefoldError (E5002) for another one, and for pairs
    of blocks (`use_2cta_mma_inst`).
    """
    coord: Any = 0
    blocks, mask = 1, None
    if tma_multicast is not None and atom.type.multicast.data > 1:
        coord, blocks, mask = _multicast(**tma_multicast)
    loads = isinstance(src, CoordTensor)
    tiles = (group_modes(tensor, 0, rank(tensor)) for tensor in ((dst, src) if loads else (src, dst)))
    shared, coords = tma_partition(atom, coord, make_layout(blocks), *tiles)
    options |= {} if mask is None else {"mcast_mask": mask}
    copy(atom, *((coords, shared) if loads else (shared, coords)), **options)


def _multicast(
    cluster_shape: tuple[int, int], multicast_dim: str, use_2cta_mma_inst: bool = False
) -> tuple[Any, int, Any]:
    """The place of the block among those that share a tile, their number, and the mask of them, None for one."""
    if use_2cta_mma_inst or multicast_dim not in ("M", "N"):
        hint = 'multicast_dim is "M" or "N", and pairs of blocks need sm_100'
        raise TilefoldError(Code.BUILD_VALUE, f"blocks share no tile along {multicast_dim!r}", hint)
    rows, columns = cluster_shape
    blocks = columns if multicast_dim == "M" else rows
    if blocks == 1:
        return 0, 1, None
    own = block_idx_in_cluster()
    place = own % rows, own // rows
    mode = 1 if multicast_dim == "M" else 0
    return place[mode], blocks, create_tma_multicast_mask(make_layout((rows, columns)), place, mode)
