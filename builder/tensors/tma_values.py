# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps for a tile that is given by the coordinates of its values, not by a tiler (CuTe's cta_v_map)."""

from math import prod
from typing import Any

from ...base.errors import Code, TilefoldError
from ...layout.algebra.coalesce import coalesce
from ...layout.algebra.compose import composition
from ...layout.algebra.core import Layout, LayoutLike, make_layout, plain_layout
from ...layout.algebra.integers import ScaledBasis
from ...layout.algebra.inttuple import leaves
from . import nvgpu
from .coordinates import as_layout
from .tensors import Tensor
from .tma import TmaInfo, make_tiled_tma_atom


def make_tma_atom_of_values(
    op: "nvgpu.TensorCopyOp", gmem_tensor: Tensor, smem_layout: object, cta_v_map: object, num_multicast: int = 1
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


def _simple(shape: tuple[Any, ...], stride: tuple[Any, ...]) -> Layout | int:
    """The steps along a mode: a number, if they follow each other."""
    layout = coalesce(Layout(shape, stride))
    return layout.size if layout.stride == 1 else layout
