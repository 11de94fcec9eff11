# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Counting through coordinates, which may be values."""

from ...layout.algebra.inttuple import unflatten
from ..scalars.operators import Operand
from ..tensors.tuples import flatten_to_tuple
from .math import where


def increment_coord(coord: Operand, shape: object) -> Operand:
    """The coordinate after another one of a congruent shape: the first mode counts first, and all but the last start
    anew at their extent (CuTe's `increment`, stride.hpp).
    """
    *inner, last = zip(flatten_to_tuple(coord), flatten_to_tuple(shape), strict=True)
    carry: Operand = True
    made: list[Operand] = []
    for place, extent in inner:
        ends = carry & (place == extent - 1)
        made.append(where(ends, 0, where(carry, place + 1, place)))
        carry = ends
    return unflatten((*made, where(carry, last[0] + 1, last[0])), coord)
