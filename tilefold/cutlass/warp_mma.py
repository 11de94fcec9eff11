# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix instructions of a warp, `cutlass.cute.nvgpu.warp.mma`, and the types that they take."""

from tilefold.builder.tensors.narrow_mma import (
    MXF8F6F4_SUPPORTED_PAIRS,
    MmaMXF4NVF4Op,
    MmaMXF4Op,
    MmaMXF8F6F4Op,
    MmaMXF8Op,
)
from tilefold.builder.tensors.nvgpu import MatrixOp as MmaOp
from tilefold.builder.tensors.nvgpu import MmaF16BF16Op, MmaFP8Op, MmaTF32Op
from tilefold.builder.tensors.umma import Field

__all__ = [
    "Field", "MXF8F6F4_SUPPORTED_PAIRS", "MmaF16BF16Op", "MmaFP8Op", "MmaMXF4NVF4Op", "MmaMXF4Op", "MmaMXF8F6F4Op",
    "MmaMXF8Op", "MmaOp", "MmaTF32Op",
]  # fmt: skip
