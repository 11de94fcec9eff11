# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TMA copies of the operands of a tiled MMA, whose shared memory is laid out by instructions (CuTe's
make_tma_atom_A_sm100 and B), and of a tile that the coordinates of its values describe.
"""

from math import prod
from types import MappingProxyType
from typing import Any, cast

from ...base.errors import Code, TilefoldError
from ...layout.algebra.coalesce import coalesce, filter_zeros
from ...layout.algebra.compose import composition
from ...layout.algebra.core import ComposedLayout, Layout, LayoutLike, make_layout, plain_layout
from ...layout.algebra.integers import AnyTuple, ScaledBasis
from ...layout.algebra.inttuple import leaves, product
from ...layout.algebra.modes import compose_parts
from ..scalars.dtypes import DType
from . import nvgpu
from .coordinates import as_layout, as_tuple, tuples
from .nvgpu import TmaCopyOp
from .tensors import Tensor
from .tiled_mma import TiledMma
from .tma import TmaInfo, make_tiled_tma_atom

_AXES = MappingProxyType({"A": 0, "B": 1})
"""The axis of an operand in (M,N,K), beside K."""
_SHARED_ALONG = MappingProxyType({"A": 2, "B": 1})
"""The mode of (V,M,N,K) along which blocks of a cluster need the same part of an operand: those along N that of A,
those along M that of B, at the same place in their pairs.
"""


def make_tiled_tma_atom_A(
    op: TmaCopyOp,
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
    op: TmaCopyOp,
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
    op: TmaCopyOp,
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
    of_pair = mma.shape_mnk[_AXES[operand]]  # the instructions of a pair are so far apart, of which a block has half
    extent, tile = (
        rows.size if more.size == 1 else Layout((rows.size, more.size), (1, of_pair)),
        extents[_AXES[operand]],
    )
    if isinstance(tile, tuple) and product(cast("AnyTuple", tile)) == rows.size * more.size:
        extent = cast("AnyTuple", tile)  # of a tensor whose mode M or N is nested
    along = 1 if cluster is None else as_layout(tuples(cluster))[_SHARED_ALONG[operand]].size
    shared = along if op.facts.multicast else 1
    made = make_tiled_tma_atom(op, tensor, placed, (extent, extents[2], *batches), shared, internal_type=internal_type)
    return TmaInfo(made.atom, made.tma_tensor, smem)


def make_tma_atom_of_values(
    op: "nvgpu.TmaCopyOp", gmem_tensor: Tensor, smem_layout: object, cta_v_map: object, num_multicast: int = 1
) -> TmaInfo:
    """A tensor map like that of `make_tiled_tma_atom`, whose tile is a layout from its values to coordinates of the
    tensor (copy_traits_sm90_tma.hpp, make_tma_copy_atom), the values along mode 0 of the tensor first. Raises
    TilefoldError (E0323) for values in another order.
    """
    tiler = tiler_of_values(as_layout(cta_v_map))
    sizes = tuple([part if isinstance(part, int) else part.size for part in tiler])
    smem = as_layout(smem_layout)
    if plain_layout(smem).size == prod(sizes):  # the values in their order, whatever modes they have
        smem = composition(smem, make_layout(sizes))
    return make_tiled_tma_atom(op, gmem_tensor, smem, tiler, num_multicast)


def tiler_of_values(values: LayoutLike) -> tuple[Layout | int, ...]:
    """The tiler that cuts the tile of these values from a tensor. Raises TilefoldError (E0323), as above."""
    steps: list[list[tuple[Any, Any]]] = []
    plain = plain_layout(values)
    for extent, stride in zip(leaves(plain.shape), leaves(plain.stride), strict=True):
        mode = stride.path[0] if isinstance(stride, ScaledBasis) and len(stride.path) == 1 else -1
        if extent == 1:
            continue
        if mode < 0 or mode < len(steps) - 1:
            raise TilefoldError(
                Code.TMA_BOX,
                f"the values of a tile, {values}, do not go along the modes of the tensor one after the other",
                "take the tile as a composition of cute.make_identity_layout(tensor.shape) with a tiler",
            )
        steps += [[] for _ in range(mode + 1 - len(steps))]
        steps[mode].append((extent, stride.value))
    return tuple([_simple(*zip(*parts, strict=True)) if parts else 1 for parts in steps])


def _simple(shape: tuple[AnyTuple, ...], stride: tuple[AnyTuple, ...]) -> Layout | int:
    """The layout of the steps along a mode, or their number if they are consecutive."""
    layout = coalesce(Layout(shape, stride))
    return layout.size if layout.stride == 1 else layout
