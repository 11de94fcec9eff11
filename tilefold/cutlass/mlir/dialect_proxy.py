# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dialects whose functions take values of kernels (`cutlass._mlir_helpers.dialect_proxy`)."""

from typing import Any


class DialectAutoConvertProxy:
    """The functions of a dialect, which take values of kernels as they are."""

    def __init__(self, dialect: object) -> None:
        self._dialect = dialect

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dialect, name)
