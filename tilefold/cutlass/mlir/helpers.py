# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dialects whose functions take values of kernels (`cutlass._mlir_helpers.dialect_proxy`), and functions on numbers
that take the number first, then the type, beside those of MLIR's dialect arith (`cutlass._mlir_helpers.arith`).
"""

from typing import Any

from .dialects import arith


class DialectAutoConvertProxy:
    """The functions of a dialect, which take values of kernels as they are."""

    def __init__(self, dialect: object) -> None:
        self._dialect = dialect

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dialect, name)


def bitcast(src: object, res_elem_type: object) -> Any:
    """The bits of a number, or of the elements of a vector, as another type."""
    return arith.bitcast(res_elem_type, src)
