# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions that an expression may call. Shapes and axes are positional or keyword arguments, as in NumPy."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from ...base.element_types import ELEMENT_TYPES, ElementType
from ..engine import NumPyArray, NumPyType, numpy_type
from ..sim.values import narrow, round_to_tf32
from .evaluate import Function, Value, product
from .limits import UnfitError, infer_common_shape, is_floating, widen
from .references import REFERENCES


def _cast(name: str, how: str, function: Callable[[NumPyArray], NumPyArray]) -> Function:
    def apply(a: Value) -> Value:
        if isinstance(a, tuple):
            raise UnfitError("a tuple where an array or a number is needed")
        return function(np.asanyarray(a))

    apply.__doc__ = f"The elements converted to {name}{how}."
    return apply


def _to_narrow(dtype: NumPyType, limit: float) -> Callable[[NumPyArray], NumPyArray]:
    def function(a: NumPyArray) -> NumPyArray:
        if a.dtype == dtype:
            return a
        wide = a.astype(np.float64)
        return np.asanyarray(narrow(np.clip(wide, -limit, limit), dtype))

    return function


def _to_tf32(a: NumPyArray) -> NumPyArray:
    return np.asanyarray(round_to_tf32(a))


def _to_integer(dtype: NumPyType) -> Callable[[NumPyArray], NumPyArray]:
    def function(a: NumPyArray) -> NumPyArray:
        return (np.trunc(a.astype(np.float64)) if is_floating(a.dtype) else a).astype(dtype)

    return function


def _to(element: ElementType) -> Function:
    """The cast to a type; to floats of 8 bits and less, larger values become the greatest."""
    dtype, name = numpy_type(element), element.mlir
    if element.kind == "int":
        return _cast(name, ", a fraction towards zero", _to_integer(dtype))
    if element.stored:
        how = f" of {element.fraction} bits after the point, half away from zero"
        return _cast(name + how, f" (`cvt.rna.{element.ptx}`)", _to_tf32)
    if element.in_numpy:
        return _cast(name, "", lambda a: a.astype(dtype))
    limit = element.greatest if element.bits <= 8 else math.inf
    return _cast(name, "" if limit == math.inf else f", beyond {limit:g} to {limit:g}", _to_narrow(dtype, limit))


CASTS: Mapping[str, Function] = MappingProxyType({
    element.ptx if element.stored else element.mlir: _to(element)
    for element in ELEMENT_TYPES
    if element.exponent or (element.kind == "int" and not element.unsigned)
})  # fmt: skip
"""The casts by name."""


def _array(value: Value) -> NumPyArray:
    if isinstance(value, tuple):
        raise UnfitError("a tuple where an array or a number is needed")
    return np.asanyarray(value)


def _axes(axis: Value | None) -> int | tuple[int, ...] | None:
    if axis is not None and not isinstance(axis, int | tuple):
        raise UnfitError("an axis is an integer or a tuple of integers")
    return axis


def _shape(shape: Value) -> tuple[int, ...]:
    sizes = shape if isinstance(shape, tuple) else (shape,)
    if not all(isinstance(size, int) for size in sizes):
        raise UnfitError("a shape is an integer or a tuple of integers")
    return tuple(int(size) for size in sizes)


def _elementwise(summary: str, function: Callable[[NumPyArray], object]) -> Function:
    def apply(a: Value) -> Value:
        return np.asanyarray(function(_array(a)))

    apply.__doc__ = summary
    return apply


def _pairwise(summary: str, function: Callable[[NumPyArray, NumPyArray], object]) -> Function:
    def apply(a: Value, b: Value) -> Value:
        left, right = _array(a), _array(b)
        infer_common_shape(left.shape, right.shape)
        return np.asanyarray(function(left, right))

    apply.__doc__ = summary
    return apply


def transpose(a: Value, axes: Value | None = None) -> Value:
    """The array with its modes reversed, or in the given order; `A.T` is the same as `transpose(A)`."""
    order = _axes(axes)
    return np.transpose(_array(a), (order,) if isinstance(order, int) else order)


def reshape(a: Value, shape: Value) -> Value:
    """The elements in another shape, taken in NumPy's order (the last mode runs fastest)."""
    array, sizes = _array(a), _shape(shape)
    try:
        return array.reshape(sizes)
    except ValueError:
        raise UnfitError(f"{array.size} elements do not have the shape {sizes}") from None


def broadcast_to(a: Value, shape: Value) -> Value:
    """The array repeated along new or unit modes."""
    sizes = _shape(shape)
    array = _array(a)
    if infer_common_shape(array.shape, sizes) != sizes:
        raise UnfitError(f"an array of shape {array.shape} does not repeat to the shape {sizes}")
    return np.broadcast_to(array, sizes)


def matmul(a: Value, b: Value) -> Value:
    """The product of two matrices, in float64 or int64; `A @ B` is the same. Modes before the last two are a batch."""
    return product(_array(a), _array(b))


def total(a: Value, axis: Value | None = None, keepdims: Value = 0) -> Value:
    """The sum over all or the given modes, in float64 or int64; `keepdims=1` leaves modes of extent 1 for them."""
    return np.asanyarray(widen(_array(a)).sum(axis=_axes(axis), keepdims=bool(keepdims)))


def mean(a: Value, axis: Value | None = None, keepdims: Value = 0) -> Value:
    """The mean over all or the given modes, in float64."""
    return np.asanyarray(widen(_array(a)).mean(axis=_axes(axis), keepdims=bool(keepdims)))


def largest(a: Value, axis: Value | None = None, keepdims: Value = 0) -> Value:
    """The largest element, over all or the given modes."""
    return np.asanyarray(_array(a).max(axis=_axes(axis), keepdims=bool(keepdims)))


def smallest(a: Value, axis: Value | None = None, keepdims: Value = 0) -> Value:
    """The smallest element, over all or the given modes."""
    return np.asanyarray(_array(a).min(axis=_axes(axis), keepdims=bool(keepdims)))


def where(condition: Value, a: Value, b: Value) -> Value:
    """Elements of `a` where the condition holds, of `b` elsewhere."""
    chosen, left, right = _array(condition), _array(a), _array(b)
    infer_common_shape(chosen.shape, left.shape, right.shape)
    # a number takes the type of the array beside it, as in arithmetic
    left, right = (
        side.astype(other.dtype) if isinstance(value, int | float) and not isinstance(against, int | float) else side
        for side, other, value, against in ((left, right, a, b), (right, left, b, a))
    )
    return np.where(chosen, left, right)


def concatenate(a: Value, b: Value, axis: Value = 0) -> Value:
    """Two arrays one after the other along a mode."""
    if not isinstance(axis, int):
        raise UnfitError("an axis is an integer")
    left, right = _array(a), _array(b)
    try:
        return np.concatenate([left, right], axis=axis)
    except (ValueError, OverflowError):
        raise UnfitError(f"shapes {left.shape} and {right.shape} do not join along mode {axis}") from None


_NUMPYS = ("abs", "exp", "exp2", "log", "log2", "sqrt", "tanh", "sin", "cos", "floor", "ceil", "isnan", "square")

FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {
        "matmul": matmul,
        "transpose": transpose,
        "reshape": reshape,
        "broadcast_to": broadcast_to,
        "concatenate": concatenate,
        "where": where,
        "sum": total,
        "mean": mean,
        "max": largest,
        "min": smallest,
        "maximum": _pairwise("The larger of two elements.", np.maximum),
        "minimum": _pairwise("The smaller of two elements.", np.minimum),
        "zeros_like": _elementwise("Zeros of the same shape and type.", np.zeros_like),
        "ones_like": _elementwise("Ones of the same shape and type.", np.ones_like),
        **{name: _elementwise(f"NumPy's {name} of each element.", getattr(np, name)) for name in _NUMPYS},
        "rsqrt": _elementwise("The reciprocal of the square root of each element.", lambda a: 1 / np.sqrt(a)),
        "relu": _elementwise("The larger of each element and 0.", lambda a: np.maximum(a, a.dtype.type(0))),
        **REFERENCES,
        **CASTS,
    }
)
"""Every function of a check, by name. A fill may also call the generators of `fill.py`."""
