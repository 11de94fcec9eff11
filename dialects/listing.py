# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations of a dialect are those that its modules define."""

from types import ModuleType

from xdsl.ir import Operation


def operations_of(*modules: ModuleType) -> list[type[Operation]]:
    """The operations that modules define, in the order of their definitions; classes without a name are bases."""
    return [
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Operation) and "name" in vars(kind)
        if kind.__module__ == module.__name__
    ]
