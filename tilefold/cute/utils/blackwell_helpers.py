# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.utils.blackwell_helpers` and `sm100`: choices for kernels that multiply into tensor memory; tiled MMAs of warps
with scales, and the parts of threads of their scales.
"""

from tilefold.builder.pipelines.allocator import SMEM_CAPACITY
from tilefold.builder.pipelines.tmem_allocator import get_num_tmem_alloc_cols
from tilefold.builder.tensors.blackwell import (
    check_gemm_tma_alignment,
    cluster_shape_to_tma_atom_A,
    cluster_shape_to_tma_atom_B,
    cluster_shape_to_tma_atom_SFB,
    compute_epilogue_tile_shape,
    compute_epilogue_tile_size,
    get_smem_layout_atom_ab,
    get_smem_store_op,
    get_tmem_load_op,
    make_blockscaled_trivial_tiled_mma,
    make_smem_layout,
    make_smem_layout_a,
    make_smem_layout_b,
    make_smem_layout_epi,
    make_trivial_tiled_mma,
)
from tilefold.builder.tensors.hopper import LayoutEnum
from tilefold.builder.tensors.scale_factors import (
    get_layoutSFA_TV,
    get_layoutSFB_TV,
    get_permutation_mnk,
    partition_fragment_SFA,
    partition_fragment_SFB,
    sm120_get_smem_store_op,
)
from tilefold.builder.tensors.tensor_memory import get_tmem_copy_properties, tile_to_mma_shape
from tilefold.builder.tensors.umma import make_smem_layout_atom

from ..public import publish

__all__ = [
    "LayoutEnum", "SMEM_CAPACITY", "check_gemm_tma_alignment", "cluster_shape_to_tma_atom_A",
    "cluster_shape_to_tma_atom_B", "cluster_shape_to_tma_atom_SFB", "compute_epilogue_tile_shape",
    "compute_epilogue_tile_size", "get_layoutSFA_TV", "get_layoutSFB_TV", "get_num_tmem_alloc_cols",
    "get_permutation_mnk", "get_smem_layout_atom_ab", "get_smem_store_op", "get_tmem_copy_properties",
    "get_tmem_load_op", "make_blockscaled_trivial_tiled_mma", "make_smem_layout", "make_smem_layout_a",
    "make_smem_layout_atom", "make_smem_layout_b", "make_smem_layout_epi", "make_trivial_tiled_mma",
    "partition_fragment_SFA", "partition_fragment_SFB", "sm120_get_smem_store_op", "tile_to_mma_shape",
]  # fmt: skip

publish(__name__)
