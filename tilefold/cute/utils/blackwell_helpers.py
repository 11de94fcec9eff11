# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.utils.blackwell_helpers`: tiled MMAs with scales, and the parts of threads of their scales."""

from tilefold.builder.tensors.scale_factors import (
    get_layoutSFA_TV,
    get_layoutSFB_TV,
    get_permutation_mnk,
    partition_fragment_SFA,
    partition_fragment_SFB,
    sm120_get_smem_store_op,
)

from ..public import publish

__all__ = [
    "get_layoutSFA_TV", "get_layoutSFB_TV", "get_permutation_mnk", "partition_fragment_SFA", "partition_fragment_SFB",
    "sm120_get_smem_store_op",
]  # fmt: skip

publish(__name__)
