# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Distances in memory: sums and products of type `index`. The simulator checks that they do not wrap."""

from collections.abc import Sequence
from functools import reduce
from operator import add, mul
from typing import Any

from xdsl.dialects.builtin import UnitAttr

from ...dialects.arith.integer_range import Range, contains, limits
from ...dialects.arith.semantics import CHECKED, INTEGER_OPERATIONS, SUMS, Function
from ..scalars.values import Int, index_of


def moved(offset: object, elements: object, by: Function = add) -> Any:
    """The distance `elements` elements after `offset`, or before by `sub`; both are numbers or integer values."""
    return _exact(by, offset, elements if type(elements) is int else index_of(elements))


def index_in(coord: Sequence[object], strides: Sequence[object]) -> Any:
    """The index of a coordinate, numbers or integer values, in modes of these strides."""
    integers = [[x if type(x) is int else index_of(x) for x in part] for part in (coord, strides)]
    products = [_exact(mul, x, stride) for x, stride in zip(*integers, strict=True)]
    return reduce(lambda total, product: _exact(add, total, product), products, 0)


def _exact(function: Function, a: object, b: object) -> Any:
    """A sum, difference or product; where it may exceed 64 bits, its operation is one that the simulator checks."""
    result = function(a, b)
    if isinstance(result, Int) and isinstance(op := result.ssa.owner, SUMS):
        exact = INTEGER_OPERATIONS[type(op)].range(_range(a), _range(b), 64)
        if exact is None or not contains(limits(64), exact):
            op.attributes[CHECKED] = UnitAttr()
    return result


def _range(x: Any) -> Range:
    return x.range if isinstance(x, Int) else (x, x)
