# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Casts of a check, named as the element types of MLIR, which round as the conversion instructions of PTX do."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.element_types import ELEMENT_TYPES, ElementType
from ..engine import numpy_type
from ..sim.values import narrow, round_to_tf32
from .dtypes import is_floating
from .evaluate import Function, Value
from .limits import UnfitError

_Array = npt.NDArray[Any]


def _cast(name: str, how: str, function: Callable[[_Array], _Array]) -> Function:
    def apply(a: Value) -> Value:
        if isinstance(a, tuple):
            raise UnfitError("a tuple where an array or a number is needed")
        return function(np.asanyarray(a))

    apply.__doc__ = f"The elements converted to {name}{how}."
    return apply


def _to_narrow(dtype: np.dtype[Any], limit: float) -> Callable[[_Array], _Array]:
    def function(a: _Array) -> _Array:
        if a.dtype == dtype:
            return a
        wide = a.astype(np.float64)
        return np.asanyarray(narrow(np.clip(wide, -limit, limit), dtype))

    return function


def _to_tf32(a: _Array) -> _Array:
    return np.asanyarray(round_to_tf32(a))


def _to_integer(dtype: np.dtype[Any]) -> Callable[[_Array], _Array]:
    def function(a: _Array) -> _Array:
        return (np.trunc(a.astype(np.float64)) if is_floating(a.dtype) else a).astype(dtype)

    return function


def _to(element: ElementType) -> Function:
    """The cast to a type; to 8-bit floats, larger values become the greatest."""
    dtype, name = numpy_type(element), element.mlir
    if element.kind == "int":
        return _cast(name, ", a fraction towards zero", _to_integer(dtype))
    if element.stored:
        how = f" of {element.fraction} bits after the point, half away from zero"
        return _cast(name + how, f" (`cvt.rna.{element.ptx}`)", _to_tf32)
    if element.in_numpy:
        return _cast(name, "", lambda a: a.astype(dtype))
    limit = element.greatest if element.bits == 8 else math.inf
    return _cast(name, "" if limit == math.inf else f", beyond {limit:g} to {limit:g}", _to_narrow(dtype, limit))


CASTS: Mapping[str, Function] = MappingProxyType({
    element.ptx if element.stored else element.mlir: _to(element)
    for element in ELEMENT_TYPES
    if element.kind == "float" or (element.kind == "int" and not element.unsigned)
})  # fmt: skip
"""The casts by name."""
