# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types and values of an IR, as programs annotate with them."""

from xdsl.dialects import builtin
from xdsl.ir import Attribute as Type
from xdsl.ir import SSAValue as Value

__all__ = ["IntegerType", "Type", "Value"]


class IntegerType:
    """The types of integers, by their bits."""

    @staticmethod
    def get_signless(width: int) -> Type:
        """The type of integers of a width in bits."""
        return builtin.IntegerType(width)
