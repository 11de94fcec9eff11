# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.nvgpu`: the instructions that atoms are made of; those of tensor copies are in `cute.nvgpu.cpasync`, those of
warpgroups in `cute.nvgpu.warpgroup`.
"""

from tilefold.compiler.builder.tensors.nvgpu import (
    CopyUniversalOp,
    CpAsyncOp,
    LdMatrixOp,
    MmaOp,
    MmaUniversalOp,
    MovMatrixOp,
    StMatrixOp,
)
from tilefold.compiler.builder.tensors.warpgroup import OperandMajorMode

from . import cpasync, warp, warpgroup

__all__ = [
    "CopyUniversalOp",
    "CpAsyncOp",
    "LdMatrixOp",
    "MmaOp",
    "MmaUniversalOp",
    "MovMatrixOp",
    "OperandMajorMode",
    "StMatrixOp",
    "cpasync",
    "warp",
    "warpgroup",
]


def __dir__() -> list[str]:
    return __all__
