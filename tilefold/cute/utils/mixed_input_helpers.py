# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.utils.mixed_input_helpers`: parts of kernels that multiply narrow integers with wide floats on sm_100a."""

from tilefold.builder.pipelines.group_scheduler import (
    contiguous_group_search,
    create_initial_contiguous_group_search_state,
    make_contiguous_group_work_tile_info,
)
from tilefold.builder.pipelines.mixed_inputs import (
    TransformMode,
    compute_smem_layout,
    cvt_tensor_a,
    epilog_gmem_copy_and_partition,
    epilog_smem_copy_and_partition,
    epilog_tmem_copy_and_partition,
    get_copy_atom_a_transform,
    get_divisibility,
    get_gmem_layout_scale,
    get_smem_layout_scale,
    get_tma_atom_kind,
    get_transform_a_source,
    is_shuffle_a,
    is_valid_mma_tiler_and_cluster_shape,
    is_valid_scale_granularity,
    is_valid_tensor_alignment,
    scale_partition,
    scale_tma_partition,
    store_transformed_a,
    transform_partition,
)

from ..public import publish

__all__ = [
    "TransformMode", "compute_smem_layout", "contiguous_group_search", "create_initial_contiguous_group_search_state",
    "cvt_tensor_a", "epilog_gmem_copy_and_partition", "epilog_smem_copy_and_partition",
    "epilog_tmem_copy_and_partition", "get_copy_atom_a_transform", "get_divisibility", "get_gmem_layout_scale",
    "get_smem_layout_scale", "get_tma_atom_kind", "get_transform_a_source", "is_shuffle_a",
    "is_valid_mma_tiler_and_cluster_shape", "is_valid_scale_granularity", "is_valid_tensor_alignment",
    "make_contiguous_group_work_tile_info", "scale_partition", "scale_tma_partition", "store_transformed_a",
    "transform_partition",
]  # fmt: skip

publish(__name__)
