# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.utils.hopper_helpers`: tiled MMAs of warpgroups, and layouts of shared memory for their tiles."""

from tilefold.builder.pipelines.allocator import SMEM_CAPACITY
from tilefold.builder.tensors.hopper import (
    compute_tile_shape_or_override,
    get_smem_layout_atom,
    make_smem_layout_a,
    make_smem_layout_b,
    make_smem_layout_epi,
    make_trivial_tiled_mma,
    sm90_get_smem_store_op,
)
from tilefold.builder.tensors.hopper import sm90_get_smem_store_op as get_smem_store_op
from tilefold.builder.tensors.warpgroup import make_smem_layout_atom

from ..public import publish

__all__ = [
    "SMEM_CAPACITY", "compute_tile_shape_or_override", "get_smem_layout_atom", "get_smem_store_op",
    "make_smem_layout_a",
    "make_smem_layout_atom", "make_smem_layout_b", "make_smem_layout_epi", "make_trivial_tiled_mma",
    "sm90_get_smem_store_op",
]  # fmt: skip

publish(__name__)
