# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers of the IR: the widths of their types, the values of constants, and the known facts of those in layouts."""

from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Attribute, SSAValue

from ...dialects.arith.integer_range import wrap_signed
from ...dialects.cute.values import map_integers
from ...dialects.ptx.types import integer_bits


def int_width(type: Attribute) -> int | None:
    """The width of an integer type in bits; 64 for `index`; None for other types."""
    return 64 if isinstance(type, IndexType) else integer_bits(type)


def constant_of(value: SSAValue) -> int | None:
    """The value of an integer constant, as a signed integer of its type; None for anything else."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return wrap_signed(owner.value.value.data, integer_bits(value.type) or 64)
    return None


def typed(layout: Any) -> Any:
    """A layout as a type or an attribute holds it: of integers that are SSA values, the known facts."""
    return map_integers(lambda x: getattr(x, "known", x), layout)
