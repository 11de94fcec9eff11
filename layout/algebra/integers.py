# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The integers of layouts, and arithmetic that folds static ones.

A leaf of a shape, stride or coordinate is one of
- a static integer: a Python `int`;
- a dynamic integer: any object with the operators + - * // % & ^ << >> and comparisons, which yield objects
  of its
  kind: `Unknown` in types, SSA values in a compiler, NumPy arrays in a simulator;
- in strides, a `ScaledBasis`: a coordinate axis times an integer.

The helpers here fold 0 and 1, so that nothing dynamic appears where everything is static. Dynamic shapes
and strides are taken to be positive; division rounds down. A dynamic type may define `minimum(other)` and
`maximum(other)`; otherwise they are computed from comparison and multiplication. It may define `ceil_div(a, b)` and
`shape_div(a, b)`, which divide where it is `a` or `b`, and `abs`; the results of its comparisons may define `choose(a,
b)`.
"""

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, final

from ...base.errors import Code, LayoutError
from .display import Displayed

if TYPE_CHECKING:

    class DynamicInt:
        """For the type checker, every kind of dynamic integer but `Unknown`."""


_LARGEST_DIV = 1 << 62


def _known(div: int) -> int:
    """A divisor worth remembering: of one that leaves 64 bits only the power of two is kept."""
    return div if div <= _LARGEST_DIV else min(div & -div, _LARGEST_DIV)


@final
@dataclass(frozen=True, slots=True)
class Unknown:
    """A dynamic integer of `width` bits that `div` is known to divide; prints as `?`, `?{i64}` or `?{i64
    div=8}`.

    Arithmetic keeps the facts that hold for every value: the greatest common divisor for sums, the product for
    products, the quotient where a division is exact. Equality compares the knowledge, not the (unknown)
    value.
    """

    width: int = 32
    div: int = 1

    def __str__(self) -> str:
        notes = [f"i{self.width}"] if self.width != 32 else []
        if self.div != 1:
            notes.append(f"div={self.div}")
        return "?{" + " ".join(notes) + "}" if notes else "?"

    def __bool__(self) -> bool:
        raise TypeError("the value of a dynamic integer is not known")

    def _with(self, other: "int | Unknown", div: int) -> "Unknown":
        width = max(self.width, other.width) if isinstance(other, Unknown) else self.width
        return Unknown(width, _known(div))

    def _gcd(self, other: "int | Unknown") -> "Unknown":
        return self._with(other, gcd(self.div, divisor(other)))

    def __add__(self, other: "int | Unknown") -> "Unknown":
        return self._gcd(other)

    __radd__ = __sub__ = __rsub__ = minimum = maximum = __add__

    def __mul__(self, other: "int | Unknown") -> "Unknown":
        return self._with(other, self.div * abs(divisor(other)) or 1)

    __rmul__ = __mul__

    def __neg__(self) -> "Unknown":
        return self

    def __floordiv__(self, other: "int | Unknown") -> "Unknown":
        exact = isinstance(other, int) and other != 0 and self.div % other == 0
        return self._with(other, self.div // abs(other) if exact and isinstance(other, int) else 1)

    def __rfloordiv__(self, other: int) -> "Unknown":
        return self._with(other, 1)

    def __mod__(self, other: "int | Unknown") -> "Unknown":
        return self._gcd(other)

    def __rmod__(self, other: int) -> "Unknown":
        return self._gcd(other)

    def __and__(self, other: "int | Unknown") -> "Unknown":
        zeros = divisor(other)
        return self._with(other, max(self.div & -self.div, (zeros & -zeros) or 1))

    __rand__ = __and__

    def __xor__(self, other: "int | Unknown") -> "Unknown":
        zeros = divisor(other) | self.div
        return self._with(other, zeros & -zeros)

    __rxor__ = __or__ = __ror__ = __xor__

    def __lshift__(self, other: int) -> "Unknown":
        return self * (1 << other)

    def __rshift__(self, other: int) -> "Unknown":
        return self // (1 << other)

    def _compare(self, other: "int | Unknown") -> "Unknown":
        return Unknown(1)

    __lt__ = __le__ = __gt__ = __ge__ = _compare


def divisor(x: Any) -> int:
    """The largest number known to divide an integer; a static one divides itself."""
    return x.div if isinstance(x, Unknown) else x


@final
@dataclass(frozen=True, slots=True)
class ScaledBasis:
    """`value` times the unit vector of one mode of a coordinate; `path` names the mode, outermost index
    first.

    The stride of an identity layout. Printed innermost index first, as CuTe does: path (0, 1) is `value@1@0`.
    """

    value: "Int"
    path: tuple[int, ...]

    def __str__(self) -> str:
        return "@".join(str(part) for part in (self.value, *reversed(self.path)))

    def __rmul__(self, factor: "Int") -> "ScaledBasis":
        return ScaledBasis(mul(factor, self.value), self.path)

    __mul__ = __rmul__

    @property
    def mode(self) -> list[int]:
        """The positions of the mode, outermost first."""
        return list(self.path)

    def is_static(self) -> bool:
        """Whether the factor is a static integer."""
        return is_static(self.value)


Int: TypeAlias = "int | Unknown | DynamicInt"
"""A leaf of a shape or coordinate."""
IntTuple: TypeAlias = "int | Unknown | DynamicInt | ScaledBasis | tuple[IntTuple, ...]"
"""A shape, a stride or an index: a leaf or a nested tuple of leaves."""
Coord: TypeAlias = "int | Unknown | DynamicInt | tuple[Coord, ...] | None"
"""A coordinate; `None` is CuTe's underscore, which keeps a mode whole."""
Tree: TypeAlias = "int | Unknown | DynamicInt | ScaledBasis | Displayed | tuple[Tree, ...] | None"
"""Any of these, or a tiler with layouts: the argument of functions that look only at the nesting."""


AnyInt: TypeAlias = Any
"""An `Int` or a `ScaledBasis`. Which of them follows from the arguments, and callers rely on it: an int from ints."""
AnyTuple: TypeAlias = Any
"""An `IntTuple` or a `Coord`. Its profile follows from the arguments, and callers rely on it."""


def is_static(x: object) -> TypeGuard[int]:
    """Whether `x` is a static integer."""
    return type(x) is int


def is_dynamic(x: object) -> bool:
    """Whether `x` is a dynamic integer: neither static, nor a basis, nor a tuple, nor an underscore."""
    return x is not None and type(x) not in (int, tuple, ScaledBasis)


def static(x: object, subject: str) -> int:
    """`x` itself if it is a static integer. Raises `LayoutError` (E0207) that names it as `subject`."""
    if type(x) is int:
        return x
    raise LayoutError(Code.DYNAMIC_UNSUPPORTED, f"{subject} must be static, but it is {x}")


def add(a: AnyInt, b: AnyInt) -> AnyInt:
    """`a + b` for integers, bases and coordinates; tuples add element by element, missing elements counting
    as 0.
    """
    if type(a) is int:
        if type(b) is int:
            return a + b
        if a == 0:
            return as_coordinate(b) if type(b) is ScaledBasis else b
    elif type(b) is int and b == 0:
        return as_coordinate(a) if type(a) is ScaledBasis else a
    x: Tree = as_coordinate(a)
    y: Tree = as_coordinate(b)
    if isinstance(x, tuple) or isinstance(y, tuple):
        return _add_tuples(x, y)
    return a + b


def _add_tuples(a: Tree, b: Tree) -> AnyInt:
    if not isinstance(a, tuple) or not isinstance(b, tuple):
        raise LayoutError(Code.PROFILE_MISMATCH, f"cannot add a coordinate and an integer: {a} + {b}")
    if len(a) < len(b):
        a, b = b, a
    return (*(add(x, y) for x, y in zip(a, b, strict=False)), *a[len(b) :])


def as_coordinate(x: object) -> AnyInt:
    """The coordinate that a scaled basis stands for, `3@1` being (0, 3); anything else unchanged."""
    if type(x) is not ScaledBasis:
        return x
    result = x.value
    for mode in reversed(x.path):
        result = (0,) * mode + (result,)
    return result


def mul(a: AnyInt, b: AnyInt) -> Any:
    """`a * b`, where a static 0 or 1 folds; a factor may be a basis, which stays one."""
    if type(a) is int:
        if type(b) is int:
            return a * b
        if a == 1:
            return b
        if a == 0 and type(b) is not ScaledBasis:
            return 0
    elif type(b) is int:
        if b == 1:
            return a
        if b == 0 and type(a) is not ScaledBasis:
            return 0
    if type(a) is ScaledBasis:
        a, b = b, a
    if type(b) is ScaledBasis:
        return ScaledBasis(mul(a, b.value), b.path)
    return a * b


def sub(a: AnyInt, b: AnyInt) -> AnyInt:
    """`a - b`, where a static 0 folds."""
    return a if type(b) is int and b == 0 else a - b


def floordiv(a: AnyInt, b: AnyInt) -> AnyInt:
    """`a // b`, where a static 0 // b and a // 1 fold."""
    if type(b) is int:
        if b == 1:
            return a
        if b == 0:
            raise LayoutError(Code.BAD_ARGUMENT, f"division of {a} by zero")
    if type(a) is int and a == 0:
        return 0
    if type(a) is ScaledBasis or type(b) is ScaledBasis:
        raise LayoutError(Code.BAD_ARGUMENT, f"division of {a} by {b}: strides of coordinates do not divide")
    return a // b


def mod(a: AnyInt, b: AnyInt) -> AnyInt:
    """`a % b`, where a static 0 % b and a % 1 fold."""
    if type(b) is int:
        if b == 1:
            return 0
        if b == 0:
            raise LayoutError(Code.BAD_ARGUMENT, f"remainder of {a} by zero")
    if type(a) is int and a == 0:
        return 0
    if type(a) is ScaledBasis or type(b) is ScaledBasis:
        raise LayoutError(Code.BAD_ARGUMENT, f"remainder of {a} by {b}: strides of coordinates do not divide")
    return a % b


def ceil_div_int(a: object, b: object) -> AnyInt:
    """`a / b` rounded up."""
    if type(a) is int and type(b) is int and b != 0:
        return -(-a // b)
    if type(b) is int and b == 1:
        return a
    for x in (a, b):
        if (own := getattr(x, "ceil_div", None)) is not None:
            return own(a, b)
    return floordiv(sub(add(a, b), 1), b)


def minimum(a: AnyInt, b: AnyInt) -> AnyInt:
    """The smaller of two integers; dynamic if either is."""
    if type(a) is int and type(b) is int:
        return a if a < b else b
    if type(a) is int:
        a, b = b, a
    own_minimum = getattr(a, "minimum", None)
    if own_minimum is not None:
        return own_minimum(b)
    return b + (a - b) * (a < b)


def maximum(a: AnyInt, b: AnyInt) -> AnyInt:
    """The larger of two integers; dynamic if either is."""
    if type(a) is int and type(b) is int:
        return a if a > b else b
    if type(a) is int:
        a, b = b, a
    own_maximum = getattr(a, "maximum", None)
    if own_maximum is not None:
        return own_maximum(b)
    return b + (a - b) * (a > b)


def choose(condition: Any, a: AnyInt, b: AnyInt) -> AnyInt:
    """`a` where a comparison holds, `b` elsewhere; dynamic if the comparison is."""
    if type(condition) is bool:
        return a if condition else b
    own = getattr(condition, "choose", None)
    return own(a, b) if own is not None else b + (a - b) * condition


def shape_div_int(a: object, b: object) -> AnyInt:
    """`a / b` where one divides the other, and at least 1."""
    for x in (a, b):
        if (own := getattr(x, "shape_div", None)) is not None:
            return own(a, b)
    return ceil_div_int(a, b)


def signum(a: object) -> int:
    """-1, 0 or 1; a dynamic integer counts as positive."""
    if type(a) is int:
        return (a > 0) - (a < 0)
    return 1
