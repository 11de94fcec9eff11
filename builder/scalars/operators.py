# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python's operators, for values of a kernel and for fragments alike: each is a method that is given its name."""

from collections.abc import Callable
from typing import Any, Self, TypeAlias

from ...base.errors import Code, TilefoldError
from ..tracing.truth import is_compared_by_user
from .dtypes import Int32

STANDS_FOR_PYTHON = True
"""Functions of this module stand for Python's own: errors in them count as Python's."""

Operand: TypeAlias = Any
"""A number, a value of the kernel, or a fragment of values: arithmetic takes all of them, and gives one of them."""


def not_combined(*operands: object) -> Operand:
    """`NotImplemented`, so that Python asks the other operand. Raises TilefoldError (E5002) for a NumPy array, to
    which a value of the kernel is a sequence.
    """
    if any(hasattr(type(operand), "__array_interface__") for operand in operands):
        hint = "pass it to the kernel as an argument, and load its elements"
        raise TilefoldError(Code.BUILD_VALUE, "a kernel cannot compute with a NumPy array", hint)
    return NotImplemented


Binary: TypeAlias = Callable[[Operand, Operand], Operand]


def _operators(name: str) -> tuple[Binary, Binary]:
    """An operator, with the value on the left and on the right."""
    return lambda self, other: self._binary(name, self, other), lambda self, other: self._binary(name, other, self)


def _in_place(name: str) -> Binary:
    """An operator that keeps the type of its left operand: as in C++, the result is converted to it."""

    def store(self: Any, other: Operand) -> Operand:
        result = self._binary(name, self, other)
        own, made = getattr(self, "dtype", None), getattr(result, "dtype", None)
        return result if own is None or made is None or made == own else result.to(own)

    return store


def _comparison(predicate: str) -> Binary:
    return lambda self, other: self._compare(predicate, self, other)


def _equality(predicate: str) -> Binary:
    """`==` or `!=`. Python takes two objects that do not compare for unequal; here that is a mistake, but with None."""

    def compare(self: Any, other: Operand) -> Operand:
        result = self._compare(predicate, self, other)
        if result is not NotImplemented or other is None or not is_compared_by_user():
            return result
        result = getattr(other.__class__, f"__{predicate}__")(other, self)
        if result is NotImplemented:
            hint = "compare it with a number, a value or a fragment; `is` asks whether two objects are the same"
            if isinstance(other, str):
                hint = "write the number without quotes"
            message = f"{self!r} is compared with an object of type {type(other).__name__}, which is never equal to it"
            raise TilefoldError(Code.BUILD_VALUE, message, hint)
        return result

    return compare


class Comparable:
    """Comparison of two values of the kernel; the result is a predicate, or a fragment of predicates."""

    __slots__ = ()
    __array_ufunc__ = None  # a NumPy scalar on the left leaves the operation to this class

    def _binary(self, name: str, a: object, b: object) -> Operand:
        raise NotImplementedError

    def _compare(self, predicate: str, a: object, b: object) -> Operand:
        raise NotImplementedError

    def _unary(self, name: str) -> Operand:
        raise NotImplementedError

    __hash__ = object.__hash__

    __eq__, __ne__ = _equality("eq"), _equality("ne")


class Arithmetic(Comparable):
    """A value that can be compared and computed with."""

    __slots__ = ()
    __lt__, __le__ = _comparison("lt"), _comparison("le")
    __gt__, __ge__ = _comparison("gt"), _comparison("ge")
    __add__, __radd__ = _operators("add")
    __sub__, __rsub__ = _operators("sub")
    __mul__, __rmul__ = _operators("mul")
    __truediv__, __rtruediv__ = _operators("div")
    __floordiv__, __rfloordiv__ = _operators("floordiv")
    __mod__, __rmod__ = _operators("mod")
    __pow__, __rpow__ = _operators("pow")
    __iadd__, __isub__, __imul__ = _in_place("add"), _in_place("sub"), _in_place("mul")
    __itruediv__, __ifloordiv__, __imod__ = _in_place("div"), _in_place("floordiv"), _in_place("mod")
    __ipow__ = _in_place("pow")

    def __divmod__(self, other: object) -> Operand:
        return self // other, self % other

    def __rdivmod__(self, other: object) -> Operand:
        return other // self, other % self

    def __neg__(self) -> Operand:
        return self._unary("neg")

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Operand:
        return self._unary("abs")

    def __round__(self, digits: int | None = None) -> Operand:
        if digits is not None:
            raise TilefoldError(Code.BUILD_VALUE, "a value can be rounded to an integer only", "write round(x)")
        return self._whole("round_even")

    def __floor__(self) -> Operand:
        return self._whole("floor")

    def __ceil__(self) -> Operand:
        return self._whole("ceil")

    def __trunc__(self: Any) -> Operand:
        return self.to(Int32) if self.dtype.kind == "float" else self

    def _whole(self: Any, rounding: str) -> Operand:
        """Rounds to an integer, as Python does."""
        return self._unary(rounding).to(Int32) if self.dtype.kind == "float" else self


class Bitwise(Comparable):
    """A value whose bits can be combined."""

    __slots__ = ()
    __and__, __rand__ = _operators("and")
    __or__, __ror__ = _operators("or")
    __xor__, __rxor__ = _operators("xor")
    __lshift__, __rlshift__ = _operators("shl")
    __rshift__, __rrshift__ = _operators("shr")
    __iand__, __ior__, __ixor__ = _in_place("and"), _in_place("or"), _in_place("xor")
    __ilshift__, __irshift__ = _in_place("shl"), _in_place("shr")

    def __invert__(self) -> Operand:
        return self._unary("not")
