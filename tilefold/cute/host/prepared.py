# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of compiled functions whose launches are prepared: arguments of the same shapes only bring new addresses."""

import dataclasses
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from xdsl.ir import SSAValue

from tilefold.base.parameters import POINTER
from tilefold.builder.control.objects import is_ours
from tilefold.builder.scalars.dtypes import DType
from tilefold.builder.scalars.values import Value
from tilefold.builder.tensors.tensors import Pointer, Tensor
from tilefold.runtime.arrays.array import is_torch
from tilefold.runtime.compiled.artifact import Parameter
from tilefold.runtime.cuda.comparison import Comparison, Rules
from tilefold.runtime.cuda.direct import Args, DirectLaunch, Step, written
from tilefold.runtime.cuda.packed_arguments import PackedArguments
from tilefold.runtime.cuda.prepared import Prepared

from ..launch import LaunchRequest
from ..specialise import BoundArguments, FieldConstants, adapted, fields_of
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

    def written(
        self, rules: Rules, args: Args, block: object, fields: Mapping[str, FieldConstants]
    ) -> DirectLaunch | None:
        """The same launches for arguments of the same types, extents and strides; numbers that are not fixed may
        differ. The constants in `fields` are those of the function. None if an argument cannot be compared.
        """
        made = _Arguments(self, Comparison(rules, block))
        for number, (name, value) in enumerate(zip(rules.names, args, strict=True)):
            if not made.add(number, value, self.bound.arguments[name], fields.get(name)):
                return None
        return written(made.text, len(args), [made.step(step) for step in self.steps])

    def parameter(self, name: str, ssa: SSAValue) -> Parameter | None:
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


class _Part(NamedTuple):
    """A part of an argument: the expression that reads it from `{}`, its value, the form in which the function has seen
    it, its annotation, and what is known of it if it is a NamedTuple.
    """

    read: str
    value: Any
    seen: Any
    annotation: object = None
    held: FieldConstants | None = None

    @property
    def limits(self) -> tuple[int, int] | None:
        """The least and the greatest number of one that is annotated as an integer."""
        dtype = self.annotation
        return (dtype.least, dtype.greatest) if isinstance(dtype, DType) and dtype.kind == "int" else None


@dataclass(frozen=True, slots=True)
class _Arguments:
    """The arguments of a call in a text, which compares them: the expressions of addresses, numbers and streams."""

    call: PreparedCall
    text: Comparison
    expressions: dict[SSAValue, str] = field(default_factory=lambda: {})
    streams: dict[str, str] = field(default_factory=lambda: {})

    def add(self, number: int, value: Any, seen: Any, held: FieldConstants | None = None) -> bool:
        """Whether an argument can be compared with its earlier value, which the function has `seen` in its form."""
        if isinstance(seen, StreamSlot):
            self.streams[seen.name] = f"a{number}"
            return True
        if isinstance(seen, Tensor | Pointer | Value):
            return self._value(number, value, seen.tensor.ssa if isinstance(seen, Pointer) else seen.ssa)
        if adapted(value) is not value or (hasattr(value, "__c_pointers__") and not isinstance(value, tuple)):
            return False  # an object of another library, which says where its values lie
        condition, parts = self._parts(value, seen, held)
        if not condition:
            if hasattr(value, "__new_from_mlir_values__"):
                return False
            self.text.constant(number, value)
            return True
        numbered = [(self.text.part(part.limits), part) for part in parts]
        self.text.take_apart(number, type(value), condition, {place: part.read for place, part in numbered})
        return all([self.add(place, part.value, part.seen, part.held) for place, part in numbered])

    def _value(self, number: int, value: Any, ssa: SSAValue) -> bool:
        """The same for a tensor, a pointer or a number."""
        call = self.call
        name = next(name for name, own in call.bound.slots.items() if own is ssa)
        parameter = call.parameter(name, call.slots[name])
        if parameter is None:
            self.text.constant(number, value)
            return True
        if not self.text.add(number, value, iter([parameter.kind])):
            return False
        self.expressions[call.slots[name]] = self.text.values[-1]
        return True

    def _parts(self, value: Any, seen: Any, held: FieldConstants | None) -> tuple[str, Sequence[_Part]]:
        """The parts of a container that are not the function's own constants, and a condition that another, `{}`, has
        as many; no condition for anything else.
        """
        if isinstance(value, tuple | list) and isinstance(seen, tuple | list):
            given: Sequence[Any] = value
            kind: Any = type(cast("object", seen))
            annotations = [each for _, each in fields_of(kind)] if hasattr(kind, "_make") else [None] * len(given)
            own, within = ({}, {}) if held is None else (held.constants, held.within)
            places = [place for place in range(len(given)) if place not in own]
            return f"len({{}}) == {len(given)}", [
                _Part(f"{{}}[{place}]", given[place], seen[place], annotations[place], within.get(place))
                for place in places
            ]
        if isinstance(value, dict) and isinstance(seen, dict):
            entries = cast("dict[Any, Any]", value)
            names = {key: self.text.name(key) for key in entries}
            return f"tuple({{}}) == {self.text.name(tuple(entries))}", [
                _Part(f"{{}}[{name}]", entries[key], seen[key]) for key, name in names.items()
            ]
        if dataclasses.is_dataclass(value) and not isinstance(value, type) and not is_ours(value):
            return "True", [
                _Part(f"{{}}.{name}", getattr(value, name), getattr(seen, name), annotation)
                for name, annotation in fields_of(type(value))
            ]
        return "", ()

    def step(self, step: PreparedStep) -> Step:
        """A launch in the text: of the values of its parameters those that are not arguments are known."""
        kernel, text = step.prepared.kernel, self.text
        packed = iter(PackedArguments(kernel.driver, kernel.artifact, step.given.values).values)
        values: list[str] = []
        for parameter in kernel.artifact.parameters:
            known = [text.name(struct.unpack("@" + kind.packing, next(packed))[0]) for kind in parameter.kinds]
            expression = self.expressions.get(step.values[parameter.name])
            values += known if expression is None else [expression, *known[1:]]
        return Step(
            step.prepared,
            values,
            any(is_torch(value) for value in step.given.values.values()),
            text.name(step.grid),
            self._stream(step.request.stream),
            text.name(step.request.attributes),
        )

    def _stream(self, stream: object) -> str:
        if isinstance(stream, StreamSlot):
            return self.streams.get(stream.name) or self.text.name(self.call.bound.streams[stream.name])
        return self.text.name(stream)
