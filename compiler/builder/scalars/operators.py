# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python's operators, for values of a kernel and for fragments alike: each is a method that is given its name."""

from typing import Any, Self

from ....base.errors import Code, TilefoldError

STANDS_FOR_PYTHON = True
"""Functions of this module stand for Python's own: errors in them count as Python's."""


def not_combined(*operands: object) -> Any:
    """`NotImplemented`, so that Python asks the other operand. Raises TilefoldError (E5002) for a NumPy array, to
    which a value of the kernel is a sequence.
    """
    if any(hasattr(type(operand), "__array_interface__") for operand in operands):
        hint = "pass it to the kernel as an argument, and load its elements"
        raise TilefoldError(Code.BUILD_VALUE, "a kernel cannot compute with an array of NumPy", hint)
    return NotImplemented


class Compared:
    """Comparison of two values of the kernel; the result is a predicate, or a fragment of predicates."""

    __slots__ = ()
    __array_ufunc__ = None  # a NumPy scalar on the left leaves the operation to this class

    def _binary(self, name: str, a: Any, b: Any) -> Any:
        raise NotImplementedError

    def _compare(self, predicate: str, a: Any, b: Any) -> Any:
        raise NotImplementedError

    def _unary(self, name: str) -> Any:
        raise NotImplementedError

    def _stored(self, name: str, other: Any) -> Any:
        """The value that `self op= other` stores: as in C++, an integer that is computed with in a wider type keeps its
        own."""
        result = self._binary(name, self, other)
        own, made = getattr(self, "dtype", None), getattr(result, "dtype", None)
        if own is None or made is None or getattr(other, "dtype", own).bits >= 32:
            return result
        return result.to(own) if own.kind == made.kind == "int" and own.bits < made.bits == 32 else result

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Any:
        return self._compare("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return self._compare("ne", self, other)


class Ordered(Compared):
    """A value that can be compared and computed with."""

    __slots__ = ()

    def __lt__(self, other: Any) -> Any:
        return self._compare("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return self._compare("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return self._compare("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return self._compare("ge", self, other)

    def __add__(self, other: Any) -> Any:
        return self._binary("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._binary("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._binary("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._binary("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._binary("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._binary("mul", other, self)

    def __iadd__(self, other: Any) -> Any:
        return self._stored("add", other)

    def __isub__(self, other: Any) -> Any:
        return self._stored("sub", other)

    def __imul__(self, other: Any) -> Any:
        return self._stored("mul", other)

    def __ifloordiv__(self, other: Any) -> Any:
        return self._stored("floordiv", other)

    def __imod__(self, other: Any) -> Any:
        return self._stored("mod", other)

    def __truediv__(self, other: Any) -> Any:
        return self._binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._binary("div", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self._binary("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._binary("floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return self._binary("mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._binary("mod", other, self)

    def __pow__(self, exponent: Any) -> Any:
        return self._binary("pow", self, exponent)

    def __rpow__(self, base: Any) -> Any:
        return self._binary("pow", base, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __neg__(self) -> Any:
        return self._unary("neg")

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Any:
        return self._unary("abs")


class Bits(Compared):
    """A value whose bits can be combined."""

    __slots__ = ()

    def __and__(self, other: Any) -> Any:
        return self._binary("and", self, other)

    def __rand__(self, other: Any) -> Any:
        return self._binary("and", other, self)

    def __or__(self, other: Any) -> Any:
        return self._binary("or", self, other)

    def __ror__(self, other: Any) -> Any:
        return self._binary("or", other, self)

    def __xor__(self, other: Any) -> Any:
        return self._binary("xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return self._binary("xor", other, self)

    def __lshift__(self, other: Any) -> Any:
        return self._binary("shl", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return self._binary("shl", other, self)

    def __rshift__(self, other: Any) -> Any:
        return self._binary("shr", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return self._binary("shr", other, self)

    def __invert__(self) -> Any:
        return self._unary("not")

    def __iand__(self, other: Any) -> Any:
        return self._stored("and", other)

    def __ior__(self, other: Any) -> Any:
        return self._stored("or", other)

    def __ixor__(self, other: Any) -> Any:
        return self._stored("xor", other)

    def __ilshift__(self, other: Any) -> Any:
        return self._stored("shl", other)

    def __irshift__(self, other: Any) -> Any:
        return self._stored("shr", other)
