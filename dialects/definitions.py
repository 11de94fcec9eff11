# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Definitions of operations: typed operands, and the operations of a dialect."""

from types import ModuleType
from typing import TypeVar, cast

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def

T = TypeVar("T", bound=Attribute)


def typed_operand(kind: type[T]) -> SSAValue[T]:
    """`operand_def(kind)`, of which the type checker knows what `.type` is."""
    return cast("SSAValue[T]", operand_def(kind))


def operations_of(*modules: ModuleType) -> list[type[Operation]]:
    """The operations that modules define, in the order of their definitions; classes without a name are bases.

    `issubclass` would ask all operations that there are, for every class that is not one.
    """
    classes = [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
    return [cast("type[Operation]", kind) for kind in classes if Operation in kind.__mro__ and "name" in vars(kind)]
