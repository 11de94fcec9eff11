# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types and values of an IR, as programs annotate with them."""

from typing import Any

from xdsl.dialects import builtin
from xdsl.dialects.builtin import LocationAttr as Location
from xdsl.ir import Attribute as Type
from xdsl.rewriter import InsertPoint as InsertionPoint

__all__ = ["InsertionPoint", "IntegerType", "Location", "Type", "Value"]


class Value:
    """A value of a function in a class of the user's: `value` is what `llvm.extractvalue` and its like take."""

    def __init__(self, value: Any) -> None:
        self.value: Any = value.value if isinstance(value, Value) else value


class IntegerType:
    """The types of integers, by their bits."""

    @staticmethod
    def get_signless(width: int) -> Type:
        """The type of integers of a width in bits."""
        return builtin.IntegerType(width)
