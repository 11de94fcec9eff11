# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Casts of a check, named as the element types of MLIR, which round as the conversion instructions of PTX do."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ..sim.values.rounding import narrow, round_to_tf32
from .budget import UnfitError
from .dtypes import is_floating
from .evaluate import Function, Value

_Array = npt.NDArray[Any]


def _cast(name: str, how: str, function: Callable[[_Array], _Array]) -> Function:
    def apply(a: Value) -> Value:
        if isinstance(a, tuple):
            raise UnfitError("a tuple where an array or a number is needed")
        return function(np.asarray(a))

    apply.__doc__ = f"The elements converted to {name}{how}."
    return apply


def _to_native(dtype: Any) -> Callable[[_Array], _Array]:
    return lambda a: a.astype(dtype)


def _to_narrow(dtype: Any, limit: float = math.inf) -> Callable[[_Array], _Array]:
    def function(a: _Array) -> _Array:
        if a.dtype == dtype:
            return a
        wide = a.astype(np.float64)
        return np.asarray(narrow(np.clip(wide, -limit, limit), np.dtype(dtype)))

    return function


def _to_tf32(a: _Array) -> _Array:
    return np.asarray(round_to_tf32(a))


def _to_integer(dtype: Any) -> Callable[[_Array], _Array]:
    def function(a: _Array) -> _Array:
        return (np.trunc(a.astype(np.float64)) if is_floating(a.dtype) else a).astype(dtype)

    return function


CASTS: Mapping[str, Function] = MappingProxyType(
    {
        "f16": _cast("f16", "", _to_native(np.float16)),
        "bf16": _cast("bf16", "", _to_narrow(ml_dtypes.bfloat16)),
        "f32": _cast("f32", "", _to_native(np.float32)),
        "f64": _cast("f64", "", _to_native(np.float64)),
        "tf32": _cast("f32 of 10 bits after the point, half away from zero", " (`cvt.rna.tf32`)", _to_tf32),
        "f8E4M3FN": _cast("f8E4M3FN", ", beyond 448 to 448", _to_narrow(ml_dtypes.float8_e4m3fn, 448)),
        "f8E5M2": _cast("f8E5M2", ", beyond 57344 to 57344", _to_narrow(ml_dtypes.float8_e5m2, 57344)),
        **{
            f"i{bits}": _cast(f"i{bits}", ", a fraction towards zero", _to_integer(np.dtype(f"i{bits // 8}")))
            for bits in (8, 16, 32, 64)
        },
    }
)
"""The casts by name."""
