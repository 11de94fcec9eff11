# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one step of an evaluation may cost, so that a file from anywhere can be run."""

from math import prod

MAX_ELEMENTS = 2**29
"""Most elements that one step of an evaluation may produce."""


class CostError(ValueError):
    """A step of an evaluation that would take more time or memory than is accepted."""


def check_elements(shape: tuple[int, ...]) -> None:
    """Raises CostError for an array of more than MAX_ELEMENTS elements."""
    if prod(shape) > MAX_ELEMENTS:
        raise CostError(f"a result of shape {shape} has {prod(shape)} elements; at most {MAX_ELEMENTS} are accepted")
