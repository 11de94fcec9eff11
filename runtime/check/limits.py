# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The limits of one step of an evaluation, so that a file from anywhere can be run."""

from math import prod

import numpy as np

MAX_ELEMENTS = 2**29
"""Most elements that one step of an evaluation may produce."""


class UnfitError(ValueError):
    """A value that does not fit where it stands, in words for the user; `hint` says what would fit."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class CostError(ValueError):
    """A step of an evaluation that would take more time or memory than is accepted."""


def check_elements(shape: tuple[int, ...]) -> None:
    """Raises CostError for an array of more than MAX_ELEMENTS elements."""
    if prod(shape) > MAX_ELEMENTS:
        raise CostError(f"a result of shape {shape} has {prod(shape)} elements; at most {MAX_ELEMENTS} are accepted")


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
