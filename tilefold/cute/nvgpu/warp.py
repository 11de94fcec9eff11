# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.nvgpu.warp`: matrix instructions of a warp, and its copies of matrices."""

from tilefold.builder.tensors.narrow_mma import (
    MXF8F6F4_SUPPORTED_PAIRS,
    MmaMXF4NVF4Op,
    MmaMXF4Op,
    MmaMXF8F6F4Op,
    MmaMXF8Op,
)
from tilefold.builder.tensors.nvgpu import (
    LdMatrix8x8x16bOp,
    LdMatrix8x16x8bOp,
    LdMatrix16x16x8bOp,
    MmaF16BF16Op,
    MmaFP8Op,
    MmaTF32Op,
    StMatrix8x8x16bOp,
    WarpMmaOp,
)
from tilefold.builder.tensors.nvgpu import MatrixOp as MmaOp
from tilefold.builder.tensors.umma import Field

from ..public import publish

__all__ = [
    "Field", "LdMatrix16x16x8bOp", "LdMatrix8x16x8bOp", "LdMatrix8x8x16bOp", "MXF8F6F4_SUPPORTED_PAIRS", "MmaF16BF16Op",
    "MmaFP8Op", "MmaMXF4NVF4Op", "MmaMXF4Op", "MmaMXF8F6F4Op", "MmaMXF8Op", "MmaOp", "MmaTF32Op", "StMatrix8x8x16bOp",
    "WarpMmaOp",
]  # fmt: skip

publish(__name__)
