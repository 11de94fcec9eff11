# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names that programs import from `cutlass.cutlass_dsl`."""

from tilefold.cute import Boolean, Constexpr, Float32, Int32, Int64, const_expr
from tilefold.cute.jit import dsl_user_op

__all__ = ["Boolean", "Constexpr", "Float32", "Int32", "Int64", "const_expr", "dsl_user_op"]
