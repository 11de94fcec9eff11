# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.nvgpu.warp`: matrix instructions of a warp, and its copies of matrices."""

from tilefold.compiler.builder.tensors.nvgpu import (
    LdMatrix8x8x16bOp,
    LdMatrix8x16x8bOp,
    MmaF16BF16Op,
    MmaFP8Op,
    MmaTF32Op,
    StMatrix8x8x16bOp,
)

__all__ = [
    "LdMatrix8x16x8bOp", "LdMatrix8x8x16bOp", "MmaF16BF16Op", "MmaFP8Op", "MmaTF32Op", "StMatrix8x8x16bOp",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
