# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Families of types, as programs ask for them: `issubclass(Float16, Float)`, `isinstance(x, Numeric)`."""

from .dtypes import DType
from .values import Value


class _Family(type):
    """A class whose subclasses are types of numbers, and whose instances are values of these types."""

    def holds(cls, dtype: DType) -> bool:
        """Whether a type belongs to the family."""
        return True

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Value) and cls.holds(x.dtype)

    def __subclasscheck__(cls, kind: object) -> bool:
        return cls.holds(kind) if isinstance(kind, DType) else kind is cls


class _Integers(_Family):
    def holds(cls, dtype: DType) -> bool:
        return dtype.is_integer or dtype.kind == "bool"


class _Floats(_Family):
    def holds(cls, dtype: DType) -> bool:
        return dtype.is_float


class Numeric(metaclass=_Family):
    """Every type of numbers, and every value."""


class Integer(metaclass=_Integers):
    """The types of integers and predicates."""


class Float(metaclass=_Floats):
    """The types of floats."""

    zero, inf, nan = 0.0, float("inf"), float("nan")
