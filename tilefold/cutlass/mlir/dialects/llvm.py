# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX as text, in the form of MLIR's dialect llvm."""

from collections.abc import Sequence
from enum import Enum
from typing import Any

from tilefold.compiler.builder.instructions.inline import inline_ptx


class AsmDialect(Enum):
    """The dialect of assembly; PTX has one."""

    AD_ATT = 0
    AD_Intel = 1


def inline_asm(res: Any, operands_: Sequence[Any], asm_string: str, constraints: str, **flags: Any) -> Any:
    """Instructions as text; see `cute.arch.inline_ptx`. `res` is the type of the result, None for none."""
    return inline_ptx(asm_string, constraints, *operands_, results=() if res is None else res)
