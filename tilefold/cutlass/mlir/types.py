# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types of the IR by MLIR's names, as functions (`cutlass._mlir.extras.types`)."""

from ..cutlass_dsl import T
from .ir import F32Type, IntegerType

__all__ = ["F32Type", "IntegerType", "bf16", "bool", "f16", "f32", "f64", "i16", "i32", "i64", "i8", "vector"]

bf16, bool, f16, f32, f64, i16, i32, i64, i8, vector = (
    T.bf16, T.bool, T.f16, T.f32, T.f64, T.i16, T.i32, T.i64, T.i8, T.vector,
)  # fmt: skip
