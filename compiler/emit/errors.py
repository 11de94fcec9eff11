# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The error of emission, which points at the operation that has no translation."""

from xdsl.ir import Operation

from ...layout.errors import Code
from ..diagnostics import Diagnostic, ProgramError, Severity, place_of


class EmitError(ProgramError):
    """An operation, type or name that cannot be written as LLVM IR for the target."""

    def __init__(self, code: Code, op: Operation, message: str, hint: str = "") -> None:
        super().__init__([Diagnostic(Severity.ERROR, message, place_of(op.location), code.id, hint)])
