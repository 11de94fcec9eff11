# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integer constants of the IR."""

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from ...dialects.arith.integer_range import signed
from ...dialects.ptx.types import integer_bits


def constant_of(value: SSAValue) -> int | None:
    """The value of an integer constant, as a signed integer of its type; None for anything else."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return signed(owner.value.value.data, integer_bits(value.type) or 64)
    return None
