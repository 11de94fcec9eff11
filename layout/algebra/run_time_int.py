# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An integer that counts as dynamic in the algebra although its value is at hand.

CuTe C++ tells `Int<8>{}` from `8`: only the first lets a layout fold. Where a result must look as it would
there, `RunTimeInt(8)` stands for the second.
"""

import operator
from collections.abc import Callable
from typing import Any, final

from .inttuple import transform_leaves


@final
class RunTimeInt:
    """A dynamic integer of a known `value`; every operation on it yields another. Prints as the value."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value

    def __str__(self) -> str:
        return str(self.value)

    __repr__ = __str__


def value_of(x: Any) -> Any:
    """The value of a run-time integer; a tuple with those in it; anything else unchanged."""
    return transform_leaves(lambda leaf: leaf.value if isinstance(leaf, RunTimeInt) else leaf, x)


def run_time(x: Any) -> Any:
    """A coordinate or a shape with its static integers made run-time ones; underscores are kept."""
    return transform_leaves(lambda leaf: RunTimeInt(leaf) if type(leaf) is int else leaf, x)


def _operator(name: str) -> Callable[[RunTimeInt, Any], RunTimeInt]:
    apply: Callable[[Any, Any], Any] = getattr(operator, name)
    return lambda self, other: RunTimeInt(apply(self.value, value_of(other)))


def _make_reflected(name: str) -> Callable[[RunTimeInt, Any], RunTimeInt]:
    apply: Callable[[Any, Any], Any] = getattr(operator, name)
    return lambda self, other: RunTimeInt(apply(value_of(other), self.value))


for _name in ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift"):
    setattr(RunTimeInt, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(RunTimeInt, f"__r{_name}__", _make_reflected(f"__{_name}__"))
for _name in ("__lt__", "__le__", "__gt__", "__ge__"):
    setattr(RunTimeInt, _name, _operator(_name))
