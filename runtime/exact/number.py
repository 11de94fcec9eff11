# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exact numbers as elements of NumPy arrays, and the arrays that stay exact in NumPy's functions."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..engine import NumPyArray
from ..special_functions import erf
from . import ring

_CONSTANTS = tuple(
    (math.frexp(written)[0], math.frexp(value)[1], element)
    for value, element in ((math.log2(math.e), ring.quotient(1, ring.LN2)), (math.log(2), ring.LN2))
    for written in (value, float(np.float32(value)))
)
"""The fractions and exponents of log2(e) and ln(2) as kernels write them, and their elements."""
_NEVER = -float(1 << 20)
"""exp of numbers below is 0 in every format: they stand for minus infinity, as masks of attention do."""
_MOST_POWER = 1024


@lru_cache(maxsize=1 << 16)
def element_of(number: float) -> int:
    """The element of the ring for a float: of log2(e) and ln(2) times a power of two the exact ones."""
    if not math.isfinite(number):
        return ring.symbol(str(number))
    fraction, exponent = math.frexp(number)
    for known, of_known, element in _CONSTANTS:
        if abs(fraction) == known:
            sign, shift = (1 if fraction > 0 else -1), exponent - of_known
            scale = ring.rational(1 << shift) if shift >= 0 else ring.rational(1, 1 << -shift)
            return sign * element * scale % ring.MODULUS
    return ring.rational(*number.as_integer_ratio())


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """A number: its `element` of the ring, and a float `near` it, by which numbers are compared. Infinities and NaN
    have no element.
    """

    element: int
    near: float

    __array_ufunc__ = None

    @classmethod
    def of(cls, number: Any) -> "Exact":
        """A Python number or NumPy, or the only one of an array. TypeError or ValueError for anything else."""
        if isinstance(number, np.ndarray):
            number = cast(Any, number.item())
        if isinstance(number, cls):
            return number
        if isinstance(number, int | np.integer | np.bool_):
            whole = int(cast(Any, number))
            return cls(whole % ring.MODULUS, float(whole))
        near = float(number)
        return cls(element_of(near), near)

    def _made(self, near: float, element: Callable[[], int], *operands: "Exact") -> "Exact":
        """The result of an operation: that of floats where one is not finite."""
        known = all(math.isfinite(operand.near) for operand in (self, *operands))
        return Exact(element() % ring.MODULUS, near) if known and math.isfinite(near) else Exact.of(near)

    def __add__(self, other: object) -> "Exact":
        b = Exact.of(other)
        return self._made(self.near + b.near, lambda: self.element + b.element, b)

    def __sub__(self, other: object) -> "Exact":
        b = Exact.of(other)
        return self._made(self.near - b.near, lambda: self.element - b.element, b)

    def __mul__(self, other: object) -> "Exact":
        b = Exact.of(other)
        return self._made(self.near * b.near, lambda: self.element * b.element, b)

    def __truediv__(self, other: object) -> "Exact":
        b = Exact.of(other)
        with np.errstate(all="ignore"):
            near = float(np.float64(self.near) / np.float64(b.near))
        return self._made(near, lambda: ring.quotient(self.element, b.element), b)

    def __pow__(self, other: object) -> "Exact":
        b = Exact.of(other)
        with np.errstate(all="ignore"):
            near = float(np.float64(self.near) ** np.float64(b.near))
        return self._made(near, lambda: self._power(b), b)

    def _power(self, b: "Exact") -> int:
        for times, base in ((1, self.element), (2, ring.sqrt(self.element))):
            whole = round(b.near * times) if math.isfinite(b.near) else 0
            if abs(whole) <= _MOST_POWER and Fraction(whole, times) == b.near and b == Exact.of(b.near):
                return ring.power(base, whole)
        return ring.exp(b.element * ring.log(self.element) % ring.MODULUS)

    def __radd__(self, other: object) -> "Exact":
        return Exact.of(other) + self

    def __rsub__(self, other: object) -> "Exact":
        return Exact.of(other) - self

    def __rmul__(self, other: object) -> "Exact":
        return Exact.of(other) * self

    def __rtruediv__(self, other: object) -> "Exact":
        return Exact.of(other) / self

    def __rpow__(self, other: object) -> "Exact":
        return Exact.of(other) ** self

    def __neg__(self) -> "Exact":
        return self._made(-self.near, lambda: -self.element)

    def __pos__(self) -> "Exact":
        return self

    def __abs__(self) -> "Exact":
        return -self if self.near < 0 else self

    def conjugate(self) -> "Exact":
        """The number itself."""
        return self

    def __eq__(self, other: object) -> bool:
        try:
            b = Exact.of(other)
        except (TypeError, ValueError):
            return NotImplemented
        if math.isfinite(self.near) and math.isfinite(b.near):
            return (self.element - b.element) % ring.COMPARED == 0
        return self.near == b.near or (self.near != self.near and b.near != b.near)

    def __hash__(self) -> int:
        return hash(self.element % ring.COMPARED)

    def __lt__(self, other: object) -> bool:
        b = Exact.of(other)
        return self.near < b.near and self != b

    def __le__(self, other: object) -> bool:
        b = Exact.of(other)
        return self.near <= b.near or (self == b and self.near == self.near)

    def __gt__(self, other: object) -> bool:
        return Exact.of(other) < self

    def __ge__(self, other: object) -> bool:
        return Exact.of(other) <= self

    def __bool__(self) -> bool:
        return self != Exact.of(0)

    def __int__(self) -> int:
        """The number without its fraction, as far as the float near it tells."""
        whole = round(self.near)
        return whole if self == Exact.of(whole) else int(self.near)

    def __float__(self) -> float:
        return self.near

    def __str__(self) -> str:
        return f"{self.near:.9g}"

    def __repr__(self) -> str:
        return f"Exact({self.near!r})"


def _function(name: str, near: Callable[[Any], Any], element: Callable[[int], int] | None = None) -> Any:
    """A method for a NumPy function of this name; a symbol without a rule for `element`."""

    def method(self: Exact) -> Exact:
        with np.errstate(all="ignore"):
            value = float(near(np.float64(self.near)))
        if name in ("exp", "exp2") and self.near < _NEVER:
            return Exact(0, 0.0)
        return self._made(  # pyright: ignore[reportPrivateUsage]
            value, lambda: ring.symbol(name, self.element) if element is None else element(self.element)
        )

    method.__name__, method.__doc__ = name, f"NumPy's {name}."
    return method


def _rounding_method(name: str, near: Callable[[Any], Any]) -> Any:
    """A method for a rounding to integers."""

    def method(self: Exact) -> Exact:
        nearest = Exact.of(round(self.near)) if math.isfinite(self.near) else self
        return nearest if nearest == self else Exact.of(float(near(np.float64(self.near))))

    method.__name__, method.__doc__ = name, f"NumPy's {name}."
    return method


def _tanh(x: int) -> int:
    square = ring.exp(2 * x % ring.MODULUS)
    return ring.quotient((square - 1) % ring.MODULUS, (square + 1) % ring.MODULUS)


FUNCTIONS: dict[str, Any] = {
    "exp": _function("exp", np.exp, ring.exp),
    "exp2": _function("exp2", np.exp2, lambda x: ring.exp(x * ring.LN2 % ring.MODULUS)),
    "expm1": _function("expm1", np.expm1, lambda x: ring.exp(x) - 1),
    "log": _function("log", np.log, ring.log),
    "log2": _function("log2", np.log2, lambda x: ring.quotient(ring.log(x), ring.LN2)),
    "log10": _function("log10", np.log10, lambda x: ring.quotient(ring.log(x), ring.log(10))),
    "log1p": _function("log1p", np.log1p, lambda x: ring.log((x + 1) % ring.MODULUS)),
    "sqrt": _function("sqrt", np.sqrt, ring.sqrt),
    "sin": _function("sin", np.sin, ring.sin),
    "cos": _function("cos", np.cos, ring.cos),
    "tan": _function("tan", np.tan, lambda x: ring.quotient(ring.sin(x), ring.cos(x))),
    "tanh": _function("tanh", np.tanh, _tanh),
    "erf": _function("erf", erf),
    "floor": _rounding_method("floor", np.floor),
    "ceil": _rounding_method("ceil", np.ceil),
    "trunc": _rounding_method("trunc", np.trunc),
    "rint": _rounding_method("rint", np.rint),
}
"""The functions of a number, by NumPy's names."""
for _name, _method in FUNCTIONS.items():
    setattr(Exact, _name, _method)

_exact = np.frompyfunc(Exact.of, 1, 1)
_near = np.frompyfunc(float, 1, 1)
_element = np.frompyfunc(lambda number: number.element, 1, 1)


class ExactArray(np.ndarray[Any, Any]):
    """An array of exact numbers. NumPy's functions of it are exact: numbers beside it become so, conversions to other
    floating-point types change nothing, and comparisons are exact.
    """

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: object, **options: Any) -> Any:
        if ufunc.__name__ in ("isnan", "isfinite", "isinf", "signbit"):
            return getattr(ufunc, method)(*[nearest(number) for number in inputs], **options)
        name = ufunc.__name__
        plain: list[Any] = [np.asarray(exact_array(number)) if _is_number(number) else number for number in inputs]
        if name == "matmul" and (product := _product(*plain[:2])) is not None:
            return product
        if name in FUNCTIONS and method == "__call__":
            return _wrap(np.frompyfunc(lambda x: FUNCTIONS[name](x), 1, 1)(*plain))
        options = {key: value for key, value in options.items() if key not in ("dtype", "casting")}
        if options.get("out") is not None:
            options["out"] = tuple(np.asarray(number) for number in options["out"])
        with np.errstate(all="ignore"):
            return _wrap(getattr(ufunc, method)(*plain, **options))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _wrap(super().__array_function__(func, types, args, kwargs))

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Itself for a floating-point type, whose rounding does not count; integers and truth values of the numbers."""
        kind = np.dtype(dtype).kind
        if kind in "iub":
            convert: Any = np.frompyfunc(int if kind in "iu" else bool, 1, 1)
            return convert(np.asarray(self)).astype(dtype)
        return self


def _is_number(value: object) -> bool:
    return isinstance(value, np.ndarray | np.generic | int | float | Exact)


def exact_array(values: object) -> ExactArray:
    """An array of floats, integers or exact numbers as an exact one."""
    if isinstance(values, ExactArray):
        return values
    array = np.asarray(values)
    if array.dtype != object and array.dtype.kind not in "biuf":
        array = array.astype(np.float64)  # those of ml_dtypes
    result = np.empty(array.shape, object)
    result[...] = _exact(array)
    return result.view(ExactArray)


def of_parts(elements: NumPyArray, near: NumPyArray) -> ExactArray:
    """An exact array of elements of the ring and the floats near them."""
    result = np.empty(elements.shape, object)
    result[...] = np.frompyfunc(Exact, 2, 1)(elements, near.astype(object))
    return result.view(ExactArray)


def nearest(values: object) -> NDArray[np.float64]:
    """The floats near the numbers of an array."""
    return np.asarray(_near(np.asarray(values)), np.float64)


def parts(numbers: object) -> tuple[NumPyArray, NDArray[np.float64]]:
    """The elements of the ring of an exact array, and the floats near its numbers."""
    plain = np.asarray(numbers)
    return np.asarray(_element(plain), object), nearest(plain)


def _product(a: NumPyArray, b: NumPyArray) -> ExactArray | None:
    """The product of matrices of finite numbers, by integers."""
    (left, near_left), (right, near_right) = parts(a), parts(b)
    near = near_left @ near_right
    return of_parts(left @ right % ring.MODULUS, near) if np.isfinite(near).all() else None


def _wrap(result: object) -> Any:
    """The result of a NumPy function, its numbers exact."""
    if isinstance(result, tuple):
        return tuple(map(_wrap, cast("tuple[Any, ...]", result)))
    exact = isinstance(result, Exact) or getattr(result, "dtype", None) == np.dtype(object)
    return exact_array(result) if exact else result
