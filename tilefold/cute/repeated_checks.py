# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of a call in Python with several sets of arguments, given ones or random ones of the same types."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np

from tilefold.base.errors import Code
from tilefold.base.printable import shown
from tilefold.builder.trace import Parameter
from tilefold.dialects.tile import TensorType
from tilefold.driver.faults import Report
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.inttuple import leaves
from tilefold.runtime.arrays.signature import Marked
from tilefold.runtime.engine import NumPyArray, strided_view
from tilefold.runtime.errors import LaunchError
from tilefold.tools.checking.check import reported
from tilefold.tools.checking.draws import Draw, Geometry
from tilefold.tools.reproduction.replay import replay_of

from .debugging import BoundCall, Outputs, RepeatableLaunch
from .specialise import BoundArguments


class NamedCall(BoundCall, Protocol):
    """A kernel with its arguments by name: see `DebuggableCall`."""

    kernel: Any

    @property
    def arguments(self) -> Mapping[str, Any]: ...


def further_inputs(
    call: NamedCall, inputs: Sequence[Mapping[str, Any]], fuzz: int, ranges: Mapping[str, range], seed: int
) -> Iterator[tuple[str, Any]]:
    """The call with other arguments, which the texts describe: the given `inputs`, and this many random draws.
    LaunchError (E3106) for names that the kernel lacks, and for senseless numbers.
    """
    for name in {*ranges, *(name for given in inputs for name in given)}:
        if name not in call.arguments:
            known = ", ".join(call.arguments) or "none"
            raise LaunchError(Code.RUN_ARGUMENT, f"the kernel has no argument '{name}'", f"its arguments: {known}")
    if type(fuzz) is not int or fuzz < 0:
        raise LaunchError(Code.RUN_ARGUMENT, f"fuzz is {shown(fuzz)}", "give the number of draws")
    for number, given in enumerate(inputs):
        yield f"inputs[{number}]", call.kernel(**{**call.arguments, **given})
    for number in range(fuzz):
        draw = Draw(np.random.Generator(np.random.PCG64([abs(seed), number])), ranges)
        made = drawn_arguments(call.bound, call.arguments, draw)
        yield f"draw {number}: {', '.join(draw.words) or 'other values'}", call.kernel(**made)


def check_all(launches: Sequence[tuple[str, RepeatableLaunch]], outputs: Outputs, stages: Sequence[str]) -> Report:
    """The report on launches with several sets of arguments, each with its description."""
    checks = [launch.examine(outputs, stages, name) for name, launch in launches]
    options = launches[0][1].options
    whole = all(launch.is_repeatable for _, launch in launches)

    def replay() -> Mapping[str, Any]:
        return replay_of([repeated() for _, repeated in checks], seed=options.seed, resident=options.resident)

    return reported([examination for examination, _ in checks], replay if whole else None)


_ALLOCATION = 256


def drawn_arguments(bound: BoundArguments, given: Mapping[str, object], draw: Draw) -> dict[str, Any]:
    """Arguments by their names, as a draw makes them of the given ones. Arrays of other libraries than NumPy and
    arguments in containers stay.
    """
    arrays = {name: found for name, value in given.items() if (found := _geometry(bound, name, value)) is not None}
    draw.begin(list(arrays.values()))
    made: dict[str, object] = {}
    for name, value in given.items():
        if name in arrays:
            made[name] = _array(name, value, arrays[name], draw)
        elif isinstance(bound.arguments.get(name), Parameter) and isinstance(value, int | float | np.generic):
            made[name] = draw.number(name, value)
        else:
            made[name] = value
    return made


def _geometry(bound: BoundArguments, name: str, value: object) -> Geometry | None:
    """The sizes of a NumPy array beside those of its parameter; None for another argument."""
    parameter = bound.arguments.get(name)
    given = value.array if isinstance(value, Marked) else value
    if not isinstance(parameter, Parameter) or not isinstance(given, np.ndarray):
        return None
    array = cast("NumPyArray", given)
    type = parameter.type
    if not isinstance(type, TensorType) or not isinstance(layout := type.layout.data, Layout):
        return None
    extents, steps = tuple(leaves(layout.shape)), tuple(leaves(layout.stride))
    if not array.size or len(extents) != array.ndim or any(step <= 0 for step in array.strides):
        return None
    strides = tuple(step // array.itemsize for step in array.strides)
    return Geometry(array.shape, strides, extents, steps, type.align.data)


def _array(name: str, value: Any, array: Geometry, draw: Draw) -> Any:
    given: NumPyArray = value.array if isinstance(value, Marked) else value
    shape, strides = draw.layout(name, array)
    kept = given[tuple(slice(extent) for extent in shape)]
    span = 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    first = array.align // given.itemsize if array.align < _ALLOCATION and array.align % given.itemsize == 0 else 0
    memory = np.zeros(first + span, given.dtype)
    made = strided_view(memory[first:], shape, [step * given.itemsize for step in strides])
    made[...] = draw.values(name, kept)
    return Marked(made, value.rule) if isinstance(value, Marked) else made
