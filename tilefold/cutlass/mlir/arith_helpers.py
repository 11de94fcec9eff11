# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions on numbers that take the number first, then the type, beside those of MLIR's dialect arith."""

from typing import Any

from .dialects import arith

__all__ = ["bitcast"]


def bitcast(src: object, res_elem_type: object) -> Any:
    """The bits of a number, or of the elements of a vector, as another type."""
    return arith.bitcast(res_elem_type, src)
