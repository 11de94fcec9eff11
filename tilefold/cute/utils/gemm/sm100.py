# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.utils.gemm.sm100`: how the results of tcgen05 come from tensor memory to global memory."""

from tilefold.builder.pipelines.epilogues import (
    epilogue,
    epilogue_smem_copy_and_partition,
    epilogue_tma_store,
    epilogue_tmem_copy_and_partition,
    transform_partitioned_tensor_layout,
)

from ...public import publish

__all__ = [
    "epilogue", "epilogue_smem_copy_and_partition", "epilogue_tma_store", "epilogue_tmem_copy_and_partition",
    "transform_partitioned_tensor_layout",
]  # fmt: skip

publish(__name__)
