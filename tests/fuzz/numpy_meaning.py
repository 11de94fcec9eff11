# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the functions of `cute` mean on scalars and arrays of NumPy, for random functions that both execute."""

from collections.abc import Callable
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
from tilefold.runtime.sim.values import fused_multiply_add, narrow

DTYPES: dict[str, np.dtype[Any]] = {
    **{f"{kind}{bits}": np.dtype(f"{kind.lower()}{bits}") for kind in ("Int", "Uint") for bits in (8, 16, 32, 64)},
    **{f"Float{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    "BFloat16": np.dtype(ml_dtypes.bfloat16),
    "Float8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "Float8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "Boolean": np.dtype(np.bool_),
}
_GREATEST = {"Float8E4M3FN": 448.0, "Float8E5M2": 57344.0}


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a type is one of floats, those of ml_dtypes among them."""
    return dtype.kind not in "iub"


def to(x: Any, name: str) -> Any:
    """`x.to(T)`: integers wrap, floats round to the nearest, and saturate where they become integers or 8 bits wide."""
    value, target = np.asarray(x), DTYPES[name]
    if value.dtype == target:
        return value[()]  # a number of Python becomes one of NumPy
    if target == np.bool_:
        return (value != 0)[()]
    if value.dtype == np.bool_:
        value = value.astype(np.int32)
    if not is_float(target):
        return _saturated(value, target)[()] if is_float(value.dtype) else value.astype(target)[()]
    if target.itemsize == 1:
        single: Any = narrow(value.astype(np.float64), np.dtype(np.float32))
        greatest = _GREATEST[name]
        return np.asarray(np.clip(single, -greatest, greatest)).astype(target)[()]
    if target == DTYPES["BFloat16"]:
        return np.asarray(narrow(value.astype(np.float64), target))[()]
    if value.dtype.kind in "iu":
        return value.astype(target)[()]
    return value.astype(np.float64).astype(target)[()]


def _saturated(value: Any, target: np.dtype[Any]) -> Any:
    """cvt.rzi of the PTX ISA: NaN becomes 0, but of f64 or as 64 bits the number with the upper bit alone."""
    limits = np.iinfo(target)
    wide = value.dtype.itemsize == 8 or target.itemsize == 8
    bits = max(target.itemsize * 8, 32)
    upper = -(2 ** (bits - 1)) if target.kind == "i" else 2 ** (bits - 1)

    def one(x: float) -> int:
        if np.isnan(x):
            whole = upper if wide else 0
        elif np.isinf(x):
            whole = limits.max if x > 0 else limits.min
        else:
            whole = int(x)
        return min(max(whole, limits.min), limits.max)

    found = [one(float(x)) for x in value.reshape(-1)]
    return np.array(found, target).reshape(value.shape)


def where(condition: Any, a: Any, b: Any) -> Any:
    """`cute.where`."""
    return np.where(np.asarray(condition), np.asarray(a), np.asarray(b))[()]


def maximum(a: Any, b: Any) -> Any:
    """`cute.math.max`: what is no NaN, and -0 below +0."""
    return _extreme(a, b, np.maximum, lambda x, y: np.signbit(x))


def minimum(a: Any, b: Any) -> Any:
    """`cute.math.min`."""
    return _extreme(a, b, np.minimum, lambda x, y: ~np.signbit(x))


def _extreme(a: Any, b: Any, of_numbers: Any, takes_second: Callable[[Any, Any], Any]) -> Any:
    x, y = np.broadcast_arrays(a, b)
    if not is_float(x.dtype):
        return of_numbers(x, y)[()]
    equal = np.where(takes_second(x, y), y, x)
    result = np.where(x == y, equal, of_numbers(x, y))
    return np.where(np.isnan(x), y, np.where(np.isnan(y), x, result))[()]


def fma(a: Any, b: Any, c: Any) -> Any:
    """`cute.fma`: rounded once."""
    x, y, z = np.broadcast_arrays(a, b, c)
    return np.asarray(fused_multiply_add(x, y, z, x.dtype), x.dtype)[()]


STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "ADD": lambda a, b: a + b,
    "MUL": lambda a, b: a * b,
    "MAX": maximum,
    "MIN": minimum,
    "AND": lambda a, b: a & b,
    "OR": lambda a, b: a | b,
    "XOR": lambda a, b: a ^ b,
}


def _start(op: str, dtype: np.dtype[Any]) -> Any:
    if op in ("MAX", "MIN") and is_float(dtype):
        return -np.inf if op == "MAX" else np.inf
    if op in ("MAX", "MIN"):
        limits = np.iinfo(dtype)
        return limits.min if op == "MAX" else limits.max
    ones = True if dtype == np.bool_ else np.iinfo(dtype).max if dtype.kind == "u" else -1
    return {"ADD": 0, "MUL": 1, "AND": ones, "OR": 0, "XOR": 0}[op] if op != "AND" else ones


def reduce(x: Any, op: str, init: Any = None, profile: Any = 0, keepdims: bool = False) -> Any:
    """`x.reduce(...)`: elements in colexicographic order, each step in the type of the elements."""
    start = _start(op, x.dtype) if not is_float(x.dtype) or op in ("MAX", "MIN") else {"ADD": 0, "MUL": 1}[op]
    parts: Any = (profile,) * x.ndim if profile == 0 else profile
    over = {axis for axis, part in enumerate(parts) if part is not None}
    kept = tuple(1 if axis in over else size for axis, size in enumerate(x.shape))
    result = np.full(kept, start if init is None else init, x.dtype)
    for backwards in product(*(range(size) for size in reversed(x.shape))):
        at = tuple(reversed(backwards))
        to_ = tuple(0 if axis in over else index for axis, index in enumerate(at))
        result[to_] = STEPS[op](result[to_], x[at])
    return result if keepdims else result.reshape([size for axis, size in enumerate(kept) if axis not in over])[()]


def counted(bound: Any) -> Any:
    """`range`: its numbers are as wide as coordinates where the kernel knows the bound."""
    return range(bound) if isinstance(bound, int) else map(np.int64, range(int(bound)))


NAMES: dict[str, Any] = {
    "to": to, "where": where, "maximum": maximum, "minimum": minimum, "fma": fma, "reduce": reduce,
    "range": counted, "show": str,
    **{name: name for name in DTYPES}, **{op: op for op in STEPS},
}  # fmt: skip
"""The globals of a random function that NumPy executes."""
