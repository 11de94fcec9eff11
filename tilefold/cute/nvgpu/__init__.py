# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.nvgpu`: the instructions that atoms are made of; those that copy asynchronously are in `cute.nvgpu.cpasync`,
those of warps in `cute.nvgpu.warp`, those of warpgroups in `cute.nvgpu.warpgroup`.
"""

from tilefold.compiler.builder.tensors.nvgpu import CopyUniversalOp, LoadCacheMode, MmaOp, MmaUniversalOp, MovMatrixOp
from tilefold.compiler.builder.tensors.warpgroup import OperandMajorMode

from ..public import publish
from . import cpasync, warp, warpgroup

__all__ = [
    "CopyUniversalOp", "LoadCacheMode", "MmaOp", "MmaUniversalOp", "MovMatrixOp", "OperandMajorMode", "cpasync",
    "warp", "warpgroup",
]  # fmt: skip

publish(__name__)
