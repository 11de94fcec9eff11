# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integer constants of the IR."""

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue


def constant_of(value: SSAValue) -> int | None:
    """The value of an integer constant; None for anything else."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None
