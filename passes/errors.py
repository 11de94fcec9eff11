# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The error of a pass that cannot lower a program: it knows the operation at fault."""

from xdsl.ir import Operation

from ..base.errors import Code, TilefoldError


class LoweringError(TilefoldError):
    """A program that a pass refuses. `operation` is the one at fault; its location says where in the source it is."""

    def __init__(self, code: Code, message: str, operation: Operation, hint: str = "") -> None:
        super().__init__(code, message, hint)
        self.operation = operation
