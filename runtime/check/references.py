# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reference functions of a check that are more than one NumPy call: always in float64, whatever their operands are."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ..special_functions import erf
from .evaluate import Function, Value
from .limits import UnfitError, check_elements

_Doubles = npt.NDArray[np.float64]


def _double(value: Value) -> _Doubles:
    if isinstance(value, tuple):
        raise UnfitError("a tuple where an array or a number is needed")
    return np.asanyarray(value).astype(np.float64)


def _integer(value: Value, subject: str) -> int:
    if not isinstance(value, int):
        raise UnfitError(f"{subject} is an integer")
    return value


def _elementwise(summary: str, function: Callable[[_Doubles], object]) -> Function:
    def apply(a: Value) -> Value:
        return np.asanyarray(function(_double(a)))

    apply.__doc__ = summary + " In float64."
    return apply


def softmax(a: Value, axis: Value = -1) -> Value:
    """`exp(a - max) / sum(exp(a - max))` along a mode, the last unless another is named. In float64."""
    x = _double(a)
    mode = _integer(axis, "an axis")
    powers = np.exp(x - x.max(axis=mode, keepdims=True))
    return powers / powers.sum(axis=mode, keepdims=True)


def rms_norm(a: Value, eps: Value = 0, axis: Value = -1) -> Value:
    """`a / sqrt(mean(a * a) + eps)` along a mode, the last unless another is named. In float64."""
    x = _double(a)
    mean = np.square(x).mean(axis=_integer(axis, "an axis"), keepdims=True)
    return x / np.sqrt(mean + _double(eps))


def iota(a: Value, axis: Value = -1) -> Value:
    """The coordinate in one mode of each element of an array like `a`: `where(iota(S, 1) <= iota(S, 0), S, 0)`."""
    shape = np.shape(a)
    mode = _integer(axis, "an axis")
    if not -len(shape) <= mode < len(shape):
        raise UnfitError(f"an array of {len(shape)} modes has no mode {mode}")
    check_elements(shape)
    return np.indices(shape, sparse=True)[mode] + np.zeros(shape, np.int64)


def causal(scores: Value, offset: Value = 0) -> Value:
    """The scores where column <= row + offset, in the last two modes; -inf elsewhere. In float64."""
    x = _double(scores)
    if x.ndim < 2:
        raise UnfitError("scores have rows and columns")
    return np.where(np.tri(*x.shape[-2:], k=_integer(offset, "the offset"), dtype=np.bool_), x, -np.inf)


def infinity() -> Value:
    """The number infinity; `-inf` is the other one."""
    return math.inf


def _gelu(x: _Doubles) -> _Doubles:
    return x * 0.5 * (1 + erf(x / math.sqrt(2)))


def _gelu_tanh(x: _Doubles) -> _Doubles:
    return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _sigmoid(x: _Doubles) -> _Doubles:
    return 1 / (1 + np.exp(-x))


def _silu(x: _Doubles) -> _Doubles:
    return x * _sigmoid(x)


REFERENCES: Mapping[str, Function] = MappingProxyType(
    {
        "softmax": softmax,
        "rms_norm": rms_norm,
        "causal": causal,
        "iota": iota,
        "inf": infinity,
        "erf": _elementwise("The error function of each element.", erf),
        "gelu": _elementwise("`a / 2 * (1 + erf(a / sqrt(2)))` of each element.", _gelu),
        "gelu_tanh": _elementwise(
            "`a / 2 * (1 + tanh(sqrt(2 / pi) * (a + 0.044715 * a**3)))` of each element, which approximates gelu.",
            _gelu_tanh,
        ),
        "sigmoid": _elementwise("`1 / (1 + exp(-a))` of each element.", _sigmoid),
        "silu": _elementwise("`a * sigmoid(a)` of each element.", _silu),
    }
)
"""The functions by name."""
