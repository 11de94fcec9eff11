# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.nvgpu`: the instructions that atoms are made of."""

from tilefold.compiler.builder.tensors.nvgpu import (
    CopyUniversalOp,
    CpAsyncOp,
    LdMatrixOp,
    MmaOp,
    MmaUniversalOp,
    MovMatrixOp,
    StMatrixOp,
)

__all__ = ["CopyUniversalOp", "CpAsyncOp", "LdMatrixOp", "MmaOp", "MmaUniversalOp", "MovMatrixOp", "StMatrixOp"]


def __dir__() -> list[str]:
    return __all__
