# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arithmetic in which the functions of `math` are written, whoever does it: the simulator on arrays of NumPy, or a
pass that writes operations.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Number: TypeAlias = Any
"""A number or a condition of an `Arithmetic`: an array of NumPy, or a value that operations compute."""
TO_INTEGER = 1.5 * 2.0**23
"""Its sum with a small number is rounded to an integer, which is in the low bits."""


class Arithmetic(ABC):
    """Operations on numbers of f32, i32 and i64, beside the operators of Python.

    Floats have `+ - *` and unary `-`, each rounded once, and `<`, which does not hold of NaN. Integers have no sign:
    `+ - * << >> & | ^` of two of a width, reduced to it. The second operand may be a number of Python.
    """

    @abstractmethod
    def fma(self, a: object, b: object, c: object) -> Any:
        """`a * b + c`, rounded once."""

    @abstractmethod
    def absolute(self, x: object) -> Any:
        """A float without its sign."""

    @abstractmethod
    def with_sign(self, x: object, of: object) -> Any:
        """A float with the sign of another."""

    @abstractmethod
    def least(self, x: object, bound: float) -> Any:
        """The lesser of a float and a number; NaN for NaN."""

    @abstractmethod
    def greatest(self, x: object, bound: float) -> Any:
        """The greater of a float and a number; NaN for NaN."""

    @abstractmethod
    def where(self, condition: object, a: object, b: object) -> Any:
        """`a` where the condition holds, else `b`; numbers of Python are of f32 or i32."""

    @abstractmethod
    def is_set(self, x: object, bit: int) -> Any:
        """The condition that a bit of an i32 is set."""

    @abstractmethod
    def bits(self, x: object) -> Any:
        """The i32 with the bits of a float."""

    @abstractmethod
    def from_bits(self, x: object) -> Any:
        """The float with the bits of an i32."""

    @abstractmethod
    def to_float(self, x: object) -> Any:
        """A signed i32 or i64 as the nearest float."""

    @abstractmethod
    def to_i64(self, x: object) -> Any:
        """A whole float as a signed i64."""

    @abstractmethod
    def extended(self, x: object) -> Any:
        """An i32 as an i64, without a sign."""

    @abstractmethod
    def truncated(self, x: object) -> Any:
        """The low bits of an i64 as an i32."""

    @abstractmethod
    def halved(self, x: object) -> Any:
        """A signed i64 shifted to the right by one bit."""

    @abstractmethod
    def approximate(self, name: str, x: object, ftz: bool) -> Any:
        """An instruction of PTX that approximates a function, such as `ex2`."""

    @abstractmethod
    def rarely(
        self, condition: object, compute: Callable[[], tuple[object, ...]], usual: tuple[object, ...]
    ) -> tuple[Any, ...]:
        """The values of `compute` where the condition holds, which is rare, and the usual values elsewhere."""


def evaluate_polynomial(m: Arithmetic, coefficients: Sequence[float], x: object) -> Number:
    """A polynomial by Horner's rule, the highest coefficient first."""
    value = m.fma(x, coefficients[0], coefficients[1])
    for coefficient in coefficients[2:]:
        value = m.fma(value, x, coefficient)
    return value
