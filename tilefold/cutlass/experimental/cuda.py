# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps that host functions make, of extents and strides, for kernels that copy boxes by coordinates."""

from tilefold.builder.primitives.tensor_maps import (
    TensorMap,
    TensorMapDataFormat,
    TensorMapL2Promotion,
    TensorMapSwizzle,
    create_tensor_map_tiled,
    create_tensor_map_tiled_from_view,
)

__all__ = [
    "TensorMap", "TensorMapDataFormat", "TensorMapL2Promotion", "TensorMapSwizzle", "create_tensor_map_tiled",
    "create_tensor_map_tiled_from_view",
]  # fmt: skip
