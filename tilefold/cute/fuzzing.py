# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Further arguments of a call in Python: random ones, of the same types as those that it is given."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tilefold.builder.trace import Parameter
from tilefold.dialects.tile import TensorType
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.inttuple import leaves
from tilefold.runtime.arrays.signature import Marked
from tilefold.runtime.engine import strided_view
from tilefold.tools.checking.draws import Draw, Geometry

from .specialise import BoundArguments

_ALLOCATION = 256


def drawn_arguments(bound: BoundArguments, given: Mapping[str, Any], draw: Draw) -> dict[str, Any]:
    """Arguments by their names, as a draw makes them of the given ones. Arrays of other libraries than NumPy and
    arguments in containers stay.
    """
    arrays = {name: found for name, value in given.items() if (found := _geometry(bound, name, value)) is not None}
    draw.begin(list(arrays.values()))
    made: dict[str, Any] = {}
    for name, value in given.items():
        if name in arrays:
            made[name] = _array(name, value, arrays[name], draw)
        elif isinstance(bound.arguments.get(name), Parameter) and isinstance(value, int | float | np.generic):
            made[name] = draw.number(name, value)
        else:
            made[name] = value
    return made


def _geometry(bound: BoundArguments, name: str, value: Any) -> Geometry | None:
    """The sizes of a NumPy array beside those of its parameter; None for another argument."""
    parameter = bound.arguments.get(name)
    given: Any = value.array if isinstance(value, Marked) else value
    if not isinstance(parameter, Parameter) or not isinstance(given, np.ndarray):
        return None
    array = cast("NDArray[Any]", given)
    type = parameter.type
    if not isinstance(type, TensorType) or not isinstance(layout := type.layout.data, Layout):
        return None
    extents, steps = tuple(leaves(layout.shape)), tuple(leaves(layout.stride))
    if not array.size or len(extents) != array.ndim or any(step <= 0 for step in array.strides):
        return None
    strides = tuple(step // array.itemsize for step in array.strides)
    return Geometry(array.shape, strides, extents, steps, type.align.data)


def _array(name: str, value: Any, array: Geometry, draw: Draw) -> Any:
    given: NDArray[Any] = value.array if isinstance(value, Marked) else value
    shape, strides = draw.layout(name, array)
    kept = given[tuple(slice(extent) for extent in shape)]
    span = 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    first = array.align // given.itemsize if array.align < _ALLOCATION and array.align % given.itemsize == 0 else 0
    memory = np.zeros(first + span, given.dtype)
    made = strided_view(memory[first:], shape, [step * given.itemsize for step in strides])
    made[...] = draw.values(name, kept)
    return Marked(made, value.rule) if isinstance(value, Marked) else made
