# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types and values of an IR, as programs annotate with them."""

from xdsl.dialects import builtin
from xdsl.dialects.builtin import LocationAttr as Location
from xdsl.ir import Attribute as Type
from xdsl.ir import SSAValue as Value
from xdsl.rewriter import InsertPoint as InsertionPoint

__all__ = ["InsertionPoint", "IntegerType", "Location", "Type", "Value"]


class IntegerType:
    """The types of integers, by their bits."""

    @staticmethod
    def get_signless(width: int) -> Type:
        """The type of integers of a width in bits."""
        return builtin.IntegerType(width)
