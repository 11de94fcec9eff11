# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The effects of operations on memory."""

from collections.abc import Set

from xdsl import traits
from xdsl.dialects import arith, cf
from xdsl.ir import Operation
from xdsl.traits import EffectInstance

_PURE = (arith.RemUIOp, arith.ExtSIOp)
"""Arithmetic of which xDSL does not say that it has no effects."""


def get_effects(op: Operation) -> Set[EffectInstance] | None:
    """The effects of an operation; None if they are not known."""
    return frozenset() if isinstance(op, _PURE) else traits.get_effects(op)


def is_side_effect_free(op: Operation) -> bool:
    """Whether an operation is known to do nothing to memory."""
    return isinstance(op, (*_PURE, cf.AssertOp)) or traits.is_side_effect_free(op)
