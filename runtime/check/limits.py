# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The limits of one step of an evaluation, so that a file from anywhere can be run; and how near its results must
be.
"""

from math import prod

import numpy as np

from ...base.element_types import ELEMENT_TYPES
from ..engine import NumPyArray, NumPyType, numpy_type

MAX_ELEMENTS = 2**28
"""Most elements that one step of an evaluation may produce."""
MORE_MEMORY = "use smaller tensors, or allow more by --max-memory"
SMALLER_RESULT = "use smaller tensors, check parts of them, or give an argument's values by --arg NAME=FILE.npy"


class UnfitError(ValueError):
    """A value that does not fit its place, in words for the user; `hint` names one that would."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Memory:
    """The memory of an evaluation: `limit` bytes for all of its results together."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._taken = 0

    def check(self, bytes: int) -> None:
        """CostError if this many more bytes exceed the limit."""
        if self._taken + bytes > self.limit:
            text = f"the expression needs {self._taken + bytes} bytes of memory; the limit is {self.limit}"
            raise CostError(text, MORE_MEMORY)

    def take(self, bytes: int) -> None:
        """Counts bytes that a step needs. CostError beyond the limit."""
        self.check(bytes)
        self._taken += bytes


class CostError(ValueError):
    """A step of an evaluation that would take more time or memory than is accepted; `hint` says how to allow more."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def check_elements(shape: tuple[int, ...]) -> None:
    """Raises CostError for an array of more than MAX_ELEMENTS elements."""
    if prod(shape) > MAX_ELEMENTS:
        message = f"a result of shape {shape} has {prod(shape)} elements; at most {MAX_ELEMENTS} are accepted"
        raise CostError(message, SMALLER_RESULT)


def infer_common_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that operands of these shapes have together, by NumPy's rule. UnfitError if they do not fit,
    CostError if it has more than MAX_ELEMENTS elements.
    """
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        *most, last = map(str, shapes)
        hint = "extents must be equal, or 1, counted from the last mode"
        raise UnfitError(f"the shapes {', '.join(most)} and {last} do not fit together", hint) from None
    check_elements(shape)
    return shape


_FLOATS = frozenset(numpy_type(element) for element in ELEMENT_TYPES if element.exponent)


def is_floating(dtype: NumPyType) -> bool:
    """Whether a type is floating-point, counting bfloat16 and floats of 8 bits and less, whose kind NumPy does not
    know, and the objects that are exact numbers.
    """
    return dtype.kind in "fO" or dtype in _FLOATS


def widen(array: NumPyArray) -> NumPyArray:
    """The array in float64, or in int64 where it holds integers or truth values."""
    return array.astype(np.float64 if is_floating(array.dtype) else np.int64, copy=False)


TOLERANCES = {numpy_type(element): element.tolerance for element in ELEMENT_TYPES if not element.stored}
"""Relative and absolute tolerance of `~=` by element type."""

_EXACT = (0.0, 0.0)


def tolerance(left: NumPyType, right: NumPyType) -> tuple[float, float]:
    """The relative and absolute tolerance of comparing two types: that of the coarser one; integers are exact."""
    return max(TOLERANCES.get(left, _EXACT), TOLERANCES.get(right, _EXACT))
