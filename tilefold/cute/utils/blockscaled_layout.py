# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.utils.blockscaled_layout`: layouts of the scales of blocks of elements."""

from tilefold.builder.tensors.scale_factors import (
    BlockScaledBasicChunk,
    make_smem_layout_sf,
    make_smem_layout_sfa,
    make_smem_layout_sfb,
    make_tmem_layout_sfa,
    make_tmem_layout_sfb,
    sm120_make_smem_layout_sfa,
    sm120_make_smem_layout_sfb,
    tile_atom_to_shape_SF,
)

from ..public import publish

__all__ = [
    "BlockScaledBasicChunk", "make_smem_layout_sf", "make_smem_layout_sfa", "make_smem_layout_sfb",
    "make_tmem_layout_sfa", "make_tmem_layout_sfb", "sm120_make_smem_layout_sfa", "sm120_make_smem_layout_sfb",
    "tile_atom_to_shape_SF",
]  # fmt: skip

publish(__name__)
