# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX's approximations of functions, and `math`'s functions of f32 in terms of them and of arithmetic.

An approximation is the exact function rounded to the type: how far a GPU's results are from it is bounded by a test on
a GPU.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....dialects.math.arithmetic import Arithmetic
from . import fused_multiply_add, narrow

Doubles = NDArray[np.float64]
_F32 = np.dtype(np.float32)
_LEAST_NORMAL = 2.0**-126  # of f32 and bf16, the types that are flushed


def _reciprocal(x: Doubles) -> Doubles:
    return 1 / x


def _reciprocal_root(x: Doubles) -> Doubles:
    return 1 / np.sqrt(x)


APPROXIMATIONS: Mapping[str, Callable[[Doubles], Doubles]] = {
    "ex2": np.exp2, "lg2": np.log2, "rcp": _reciprocal, "rsqrt": _reciprocal_root, "sqrt": np.sqrt,
    "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
}  # fmt: skip


def _flush(x: Any) -> Any:
    """Numbers with subnormal ones replaced by zero of their sign."""
    wide = np.asarray(x).astype(np.float64)
    return np.where(np.abs(wide) < _LEAST_NORMAL, np.copysign(0.0, wide), wide)


def approximate(name: str, x: Any, dtype: np.dtype[Any], ftz: bool) -> Any:
    """A function that PTX has, such as `ex2`, of numbers of a type."""
    y = narrow(APPROXIMATIONS[name](_flush(x) if ftz else np.asarray(x).astype(np.float64)), dtype)
    return _flush(y).astype(dtype)[()] if ftz else y


class ArrayArithmetic(Arithmetic):
    """Arithmetic of arrays with at least one dimension: float32, uint32 and uint64."""

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        return fused_multiply_add(a, b, c, _F32)

    def absolute(self, x: Any) -> Any:
        return np.abs(x)

    def with_sign(self, x: Any, of: Any) -> Any:
        return np.copysign(x, of)

    def least(self, x: Any, bound: float) -> Any:
        return np.minimum(x, np.float32(bound))

    def greatest(self, x: Any, bound: float) -> Any:
        return np.maximum(x, np.float32(bound))

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        return np.where(condition, _as_array(a), _as_array(b))

    def is_set(self, x: Any, bit: int) -> Any:
        return (x >> bit & 1).astype(np.bool_)

    def bits(self, x: Any) -> Any:
        return x.view(np.uint32)

    def from_bits(self, x: Any) -> Any:
        return x.view(np.float32)

    def to_float(self, x: Any) -> Any:
        return x.view(f"i{x.itemsize}").astype(np.float32)

    def to_i64(self, x: Any) -> Any:
        return x.astype(np.int64).view(np.uint64)

    def extended(self, x: Any) -> Any:
        return _as_array(x).astype(np.uint64)

    def truncated(self, x: Any) -> Any:
        return x.astype(np.uint32)

    def halved(self, x: Any) -> Any:
        return (x.view(np.int64) >> 1).view(np.uint64)

    def approximate(self, name: str, x: Any, ftz: bool) -> Any:
        return approximate(name, x, _F32, ftz)

    def rarely(self, condition: Any, compute: Callable[[], tuple[Any, ...]], usual: tuple[Any, ...]) -> tuple[Any, ...]:
        if not condition.any():
            return usual
        pairs = zip(compute(), usual, strict=True)
        return tuple(self.where(condition, one, other) for one, other in pairs)


def _as_array(x: Any) -> NDArray[Any]:
    """An array, or a number of Python as one of u32 or f32."""
    return np.asarray(x, np.uint32 if isinstance(x, int) else np.float32 if isinstance(x, float) else None)
