# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integer constants of the IR."""

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from ...dialects.ptx.types import integer_bits


def signed(value: int, bits: int) -> int:
    """`value` modulo 2**bits, as a signed integer."""
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def constant_of(value: SSAValue) -> int | None:
    """The value of an integer constant, as a signed integer of its type; None for anything else."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return signed(owner.value.value.data, integer_bits(value.type) or 64)
    return None
