# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of compiled functions whose launches are prepared: arguments of the same shapes only bring new addresses."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from tilefold.base.parameters import POINTER
from tilefold.runtime.arrays.array import is_torch
from tilefold.runtime.arrays.constants import is_exact
from tilefold.runtime.compiled.artifact import Parameter
from tilefold.runtime.cuda.comparison import Comparison, Rules
from tilefold.runtime.cuda.direct import Args, DirectLaunch, Step, written
from tilefold.runtime.cuda.packed_arguments import PackedArguments
from tilefold.runtime.cuda.prepared import Prepared

from ..launch import LaunchRequest
from ..specialise import BoundArguments
from .arguments import HostArguments
from .streams import StreamSlot


@dataclass(frozen=True, slots=True)
class PreparedStep:
    """A launch that a call has made: the values of the kernel's parameters, and as which host values it has
    them.
    """

    prepared: Prepared
    given: BoundArguments
    values: Mapping[str, SSAValue]
    grid: tuple[int, ...]
    request: LaunchRequest


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """The launches of a call, whose arguments are the values `slots` of the host. Numbers are `fixed` if
    more depends on them than a kernel's parameter.
    """

    bound: HostArguments
    slots: Mapping[str, SSAValue]
    steps: Sequence[PreparedStep]
    fixed: frozenset[SSAValue]

    def written(self, rules: Rules, args: Args, block: object) -> DirectLaunch | None:
        """The same launches for arguments of the same types, extents and strides; numbers that are not fixed may
        differ. None if an argument cannot be compared.
        """
        bound = self.bound
        passed = {name: self._parameter(name, ssa) for name, ssa in self.slots.items()}
        text = Comparison(
            rules, block, [argument for name in rules.names if (argument := passed.get(name)) is not None]
        )
        expressions: dict[SSAValue, str] = {}
        streams: dict[str, str] = {}
        for number, (name, value) in enumerate(zip(rules.names, args, strict=True)):
            if name in bound.streams:
                streams[name] = f"a{number}"
            elif passed.get(name) is not None:
                if not text.add(number, value):
                    return None
                expressions[self.slots[name]] = text.values[-1]
            elif name in self.slots or value is None or is_exact(value):
                text.constant(number, value)
            else:
                return None  # a container, which is taken apart
        return written(text, len(args), [_step(step, text, streams, expressions) for step in self.steps])

    def _parameter(self, name: str, ssa: SSAValue) -> Parameter | None:
        """The parameter by which an argument's address or number reaches a kernel; None for one that is fixed, or that
        no kernel has.
        """
        if name in self.bound.arrays:
            return Parameter(name, POINTER)
        if ssa not in self.fixed:
            for step in self.steps:
                for parameter in step.prepared.kernel.artifact.parameters:
                    if step.values[parameter.name] is ssa:
                        return parameter
        return None


def _step(
    step: PreparedStep, text: Comparison, streams: Mapping[str, str], expressions: Mapping[SSAValue, str]
) -> Step:
    """A launch in a text: of the values of its parameters those that are not `expressions` are known."""
    kernel = step.prepared.kernel
    packed = iter(PackedArguments(kernel.driver, kernel.artifact, step.given.values).values)
    values: list[str] = []
    for parameter in kernel.artifact.parameters:
        known = [text.name(struct.unpack("@" + kind.packing, next(packed))[0]) for kind in parameter.kinds]
        expression = expressions.get(step.values[parameter.name])
        values += known if expression is None else [expression, *known[1:]]
    stream = step.request.stream
    return Step(
        step.prepared,
        values,
        any(is_torch(value) for value in step.given.values.values()),
        text.name(step.grid),
        streams[stream.name] if isinstance(stream, StreamSlot) else text.name(stream),
        text.name(step.request.attributes),
    )
