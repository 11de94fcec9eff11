# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor copies of the operands of a tiled MMA, whose shared memory is laid out by instructions (CuTe's
make_tma_atom_A_sm100 and B)."""

from typing import Any

from ...base.errors import Code, TilefoldError
from ...layout.algebra.coalesce import filter_zeros
from ...layout.algebra.core import ComposedLayout, Layout, plain_layout
from ...layout.algebra.inttuple import product
from ...layout.algebra.modes import compose_parts
from ...layout.tma.operand_copy import AXES, blocks_that_share
from ..scalars.dtypes import DType
from .coordinates import as_layout, as_tuple, tuples
from .nvgpu import TensorCopyOp
from .tensors import Tensor
from .tiled_mma import TiledMma
from .tma import TmaInfo, make_tiled_tma_atom


def make_tiled_tma_atom_A(
    op: TensorCopyOp,
    gmem_tensor: Tensor,
    smem_layout: object,
    mma_tiler_mnk: object,
    tiled_mma: TiledMma,
    cluster_shape_vmnk: object = None,
    *,
    internal_type: DType | None = None,
) -> TmaInfo:
    """A tensor map for copies of a block's part of A to shared memory, and the tensor of its coordinates:
    `make_tiled_tma_atom` for a layout ((MMA_M,MMA_K),RestM,RestK,...) of shared memory, of which further modes are
    stages. Where shared memory has several elements at an address and the tile has one, it is copied once.
    `mma_tiler_mnk` is the tile of the block, or of the pair of blocks, that multiply; blocks along N of the cluster
    `cluster_shape_vmnk` share the tiles of a multicast.

    Raises TilefoldError as `make_tiled_tma_atom` does.
    """
    return _operand("A", op, gmem_tensor, smem_layout, mma_tiler_mnk, tiled_mma, cluster_shape_vmnk, internal_type)


def make_tiled_tma_atom_B(
    op: TensorCopyOp,
    gmem_tensor: Tensor,
    smem_layout: object,
    mma_tiler_mnk: object,
    tiled_mma: TiledMma,
    cluster_shape_vmnk: object = None,
    *,
    internal_type: DType | None = None,
) -> TmaInfo:
    """The same for B, ((MMA_N,MMA_K),RestN,RestK,...), which blocks along M of the cluster share."""
    return _operand("B", op, gmem_tensor, smem_layout, mma_tiler_mnk, tiled_mma, cluster_shape_vmnk, internal_type)


def _operand(
    operand: str,
    op: TensorCopyOp,
    tensor: Tensor,
    smem_layout: object,
    tiler: object,
    mma: TiledMma,
    cluster: object,
    internal_type: DType | None,
) -> TmaInfo:
    if not isinstance(mma, TiledMma):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TilefoldError(Code.BUILD_VALUE, f"expected a tiled MMA, got {type(mma).__name__}", "see make_tiled_mma")
    smem = as_layout(smem_layout)
    outer, extents = plain_layout(smem), as_tuple(tuples(tiler))
    if len(outer) < 3 or len(outer[0]) != 2:
        text = f"shared memory for an operand of tcgen05.mma is ((MN,K),RestMN,RestK,...), not {outer.shape}"
        raise TilefoldError(Code.RANK_MISMATCH, text, "make the layout by tcgen05.tile_to_mma_shape")
    if outer[0][1].size * outer[2].size != product(extents[2]):
        outer = filter_zeros(outer)
    (rows, depth), more, deeper = outer[0], outer[1], outer[2]
    batches = (1,) * (len(tensor.shape) - 2)
    by_modes = Layout(
        ((rows.shape, more.shape), (depth.shape, deeper.shape), *batches),
        ((rows.stride, more.stride), (depth.stride, deeper.stride), *(0 for _ in batches)),
    )
    placed = by_modes if not isinstance(smem, ComposedLayout) else compose_parts(smem.inner, smem.offset, by_modes)
    of_pair = mma.shape_mnk[AXES[operand]]  # the instructions of a pair are so far apart, of which a block has half
    kept: Any = rows.size if more.size == 1 else Layout((rows.size, more.size), (1, of_pair))
    along = 1 if cluster is None else blocks_that_share(operand, as_layout(tuples(cluster)))
    shared = along if op.facts.multicast else 1
    made = make_tiled_tma_atom(op, tensor, placed, (kept, extents[2], *batches), shared, internal_type=internal_type)
    return TmaInfo(made.atom, made.tma_tensor, smem)
