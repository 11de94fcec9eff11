# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.nvgpu.warp`: matrix instructions of a warp by the names of CuTe programs."""

from typing import Literal

from tilefold.compiler.builder.scalars.dtypes import DType
from tilefold.compiler.builder.tensors.nvgpu import LdMatrixOp, MmaOp, StMatrixOp

__all__ = ["LdMatrix8x8x16bOp", "MmaF16BF16Op", "StMatrix8x8x16bOp"]


def LdMatrix8x8x16bOp(transpose: bool = False, num_matrices: Literal[1, 2, 4] = 1) -> LdMatrixOp:
    """Loads matrices of 8 x 8 elements of 16 bits from shared memory into the registers of a warp (ldmatrix)."""
    return LdMatrixOp(num_matrices, transpose)


def StMatrix8x8x16bOp(transpose: bool = False, num_matrices: Literal[1, 2, 4] = 1) -> StMatrixOp:
    """Stores matrices of 8 x 8 elements of 16 bits from the registers of a warp to shared memory (stmatrix)."""
    return StMatrixOp(num_matrices, transpose)


def MmaF16BF16Op(ab_dtype: DType, acc_dtype: DType, shape_mnk: tuple[int, int, int]) -> MmaOp:
    """Multiplies Float16 or BFloat16 by a warp (mma.sync)."""
    return MmaOp(ab_dtype, acc_dtype, shape_mnk)


def __dir__() -> list[str]:
    return __all__
