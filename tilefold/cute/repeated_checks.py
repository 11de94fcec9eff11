# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of a call in Python with several sets of arguments, and their report."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tilefold.base.errors import Code
from tilefold.base.printable import shown
from tilefold.driver.faults import Report
from tilefold.runtime.errors import LaunchError
from tilefold.tools.checking.check import reported
from tilefold.tools.checking.draws import Draw
from tilefold.tools.reproduction.replay import replay_of

from .debugging import BoundCall, Outputs, Rehearsal
from .fuzzing import drawn_arguments


class NamedCall(BoundCall, Protocol):
    """A kernel with its arguments by name: see `DebuggableCall`."""

    kernel: Any

    @property
    def arguments(self) -> Mapping[str, Any]: ...


def further_inputs(
    call: NamedCall, inputs: Sequence[Mapping[str, Any]], fuzz: int, ranges: Mapping[str, range], seed: int
) -> Iterator[tuple[str, Any]]:
    """The call with other arguments, which the texts describe: the given `inputs`, and so many random draws.
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


def check_all(rehearsals: Sequence[tuple[str, Rehearsal]], outputs: Outputs, stages: Sequence[str]) -> Report:
    """The report on launches with several sets of arguments, each with its description."""
    checks = [rehearsal.examine(outputs, stages, name) for name, rehearsal in rehearsals]
    options = rehearsals[0][1].options
    whole = all(rehearsal.is_repeatable for _, rehearsal in rehearsals)

    def replay() -> Mapping[str, Any]:
        return replay_of([repeated() for _, repeated in checks], seed=options.seed, resident=options.resident)

    return reported([examination for examination, _ in checks], replay if whole else None)
