# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TMA copies of the operands of a tiled MMA (CuTe's make_tma_atom_A_sm100 and B).

Each block of a pair loads its own part of an operand. Blocks of a cluster that need the same part share it: those along
N that of A, those along M that of B, at the same place in their pairs.
"""

from types import MappingProxyType
from typing import Any

from ..algebra.compose import composition
from ..algebra.core import Layout, LayoutLike, make_identity_layout, make_layout
from ..algebra.divide import tiled_divide
from ..algebra.modes import slice_
from ..atoms.tma import TmaFacts
from ..tiling.tiled_mma import TiledMma
from .tma_copy import TmaCopy, copy_of_tile

AXES = MappingProxyType({"A": 0, "B": 1})
"""The axis of an operand in (M,N,K), beside K."""
_SHARED_ALONG = {"A": 2, "B": 1}
"""The mode of (V,M,N,K) along which blocks need the same part of an operand."""


def cluster_by_pairs(shape: tuple[int, ...], mma: TiledMma) -> Layout:
    """The ranks of the blocks of a cluster by (V,M,N,K): V counts the blocks that share a multiplication."""
    result: Layout = tiled_divide(make_layout(shape), (make_layout(mma.atom.threads),))
    return result


def blocks_that_share(operand: str, cluster: Layout) -> int:
    """How many blocks of a cluster (V,M,N,K) load a part of each box of an operand for all of them."""
    return cluster[_SHARED_ALONG[operand]].size


def make_tma_operand_copy(
    facts: TmaFacts, operand: str, gmem: Layout, smem: LayoutLike, tiler: tuple[Any, ...], mma: TiledMma,
    cluster: Layout, *, val_bits: int, smem_bits: int | None = None,
) -> TmaCopy:  # fmt: skip
    """The TMA copies of a block's part of the operand "A" or "B" to one stage of shared memory, whose layout is
    ((MN,K),RestMN,RestK).

    `tiler` is that of M, N, K and so on, `cluster` that of `cluster_by_pairs`. Values have `val_bits` bits, and take
    `smem_bits` in shared memory. Raises `LayoutError` as `make_tma_copy` does.
    """
    kept = (tiler[AXES[operand]], tiler[2], *tiler[3:])
    tile: Layout = composition(make_identity_layout(gmem.shape), kept)
    whole = mma.thrfrg(operand, tile)
    of_block = slice_((0, (None, (None,) * len(whole[1][1]))), whole)
    assert isinstance(of_block, Layout), "coordinates are not swizzled"
    shared = blocks_that_share(operand, cluster) if facts.multicast else 1
    return copy_of_tile(
        facts, gmem, smem, of_block, val_bits=val_bits, multicast=shared, bits=None, smem_bits=smem_bits
    )
