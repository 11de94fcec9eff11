# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX's approximations of functions, and `math`'s functions of f32 in terms of them and of arithmetic.

An approximation is an instruction of the GPU's unit for special functions, or a few: `function_unit` has its bits.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....dialects.math.arithmetic import Arithmetic
from ...engine import NumPyArray, NumPyType
from . import Value, fused_multiply_add
from .function_unit import function_unit

Singles: TypeAlias = NDArray[np.float32]
_F32 = np.dtype(np.float32)
_LEAST_NORMAL, _LARGE = np.float32(2.0**-126), np.float32(2.0**126)
_UP = np.float32(2.0**24)
_ONE = np.float32(1)


def _beyond(
    name: str, is_beyond: Callable[[Singles], Value], by: np.float32, back: Callable[[Singles], Singles]
) -> Callable[[Singles], Singles]:
    """A function that the unit computes of operands beyond its range multiplied `by` a power of two; `back` makes its
    result that of the operand.
    """

    def compute(x: Singles) -> Singles:
        beyond = is_beyond(x)
        if not beyond.any():
            return function_unit(name, x)
        y = function_unit(name, np.where(beyond, x * by, x))
        return np.where(beyond, back(y), y)

    return compute


def _of_subnormals(name: str, back: Callable[[Singles], Singles]) -> Callable[[Singles], Singles]:
    return _beyond(name, lambda x: np.abs(x) < _LEAST_NORMAL, _UP, back)


def _reciprocal(x: Singles) -> Singles:
    """Large operands are made smaller, since the unit has no subnormal results."""
    size = np.abs(x)
    if ((size >= _LEAST_NORMAL) & (size <= _LARGE)).all():
        return function_unit("rcp", x)
    by = np.where(size < _LEAST_NORMAL, _UP, np.where(size > _LARGE, np.float32(0.25), _ONE))
    return by * function_unit("rcp", x * by)


_WITH_SUBNORMALS: Mapping[str, Callable[[Singles], Singles]] = MappingProxyType({
    "ex2": _beyond("ex2", lambda x: x < np.float32(-126), np.float32(0.5), lambda y: y * y),
    "lg2": _of_subnormals("lg2", lambda y: y - np.float32(24)),
    "rcp": _reciprocal,
    "rsqrt": _of_subnormals("rsqrt", lambda y: y * np.float32(2.0**12)),
    "sqrt": _of_subnormals("sqrt", lambda y: y * np.float32(2.0**-12)),
})  # fmt: skip
"""The instructions that ptxas writes for the forms without .ftz, where they are several."""


def approximate(name: str, x: object, dtype: NumPyType, ftz: bool) -> Value:
    """A function that PTX has, such as `ex2`, of numbers of f32, f16 or bf16."""
    single = np.asarray(x).astype(np.float32)
    several = None if ftz or dtype != _F32 else _WITH_SUBNORMALS.get(name)
    y = function_unit(name, single) if several is None else several(single)
    return (y if dtype == _F32 else _toward_zero(y, dtype))[()]


def _toward_zero(y: Singles, dtype: NumPyType) -> NumPyArray:
    """Numbers of f32 in a type of 16 bits, as the unit rounds them: toward zero, in f16 to infinity from 2**16 on."""
    nearest, size = y.astype(dtype), np.abs(y)
    beyond = np.float32(2.0**16 if dtype == np.float16 else np.inf)
    too_large = (np.abs(nearest.astype(np.float32)) > size) & (size < beyond)
    return np.where(np.isnan(y), np.uint16(0x7FFF), nearest.view(np.uint16) - too_large).view(dtype)


class ArrayArithmetic(Arithmetic):
    """Arithmetic of arrays with at least one dimension: float32, uint32 and uint64."""

    def fma(self, a: object, b: object, c: object) -> Value:
        return fused_multiply_add(a, b, c, _F32)

    def absolute(self, x: Value) -> Value:
        return np.abs(x)

    def with_sign(self, x: Value, of: Value) -> Value:
        return np.copysign(x, of)

    def least(self, x: Value, bound: float) -> Value:
        return np.minimum(x, np.float32(bound))

    def greatest(self, x: Value, bound: float) -> Value:
        return np.maximum(x, np.float32(bound))

    def where(self, condition: Value, a: Value, b: Value) -> Value:
        return np.where(condition, _as_array(a), _as_array(b))

    def is_set(self, x: Value, bit: int) -> Value:
        return (x >> bit & 1).astype(np.bool_)

    def bits(self, x: Value) -> Value:
        return x.view(np.uint32)

    def from_bits(self, x: Value) -> Value:
        return x.view(np.float32)

    def to_float(self, x: Value) -> Value:
        return x.view(f"i{x.itemsize}").astype(np.float32)

    def to_i64(self, x: Value) -> Value:
        return x.astype(np.int64).view(np.uint64)

    def extended(self, x: object) -> Value:
        return _as_array(x).astype(np.uint64)

    def truncated(self, x: Value) -> Value:
        return x.astype(np.uint32)

    def halved(self, x: Value) -> Value:
        return (x.view(np.int64) >> 1).view(np.uint64)

    def approximate(self, name: str, x: object, ftz: bool) -> Value:
        return approximate(name, x, _F32, ftz)

    def rarely(
        self, condition: Value, compute: Callable[[], tuple[object, ...]], usual: tuple[object, ...]
    ) -> tuple[Value, ...]:
        if not condition.any():
            return usual
        pairs = zip(compute(), usual, strict=True)
        return tuple(self.where(condition, one, other) for one, other in pairs)


def _as_array(x: object) -> NumPyArray:
    """An array, or a number of Python as one of u32 or f32."""
    return np.asarray(x, np.uint32 if isinstance(x, int) else np.float32 if isinstance(x, float) else None)
