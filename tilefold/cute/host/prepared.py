# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of compiled functions whose launches are prepared: arguments of the same shapes only bring new addresses."""

import dataclasses
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from xdsl.ir import SSAValue

from tilefold.base.parameters import POINTER, ParameterKind
from tilefold.builder.control.objects import is_ours
from tilefold.builder.scalars.dtypes import DType
from tilefold.builder.scalars.values import Value
from tilefold.builder.tensors.tensors import Pointer, Tensor
from tilefold.runtime.arrays.array import is_torch
from tilefold.runtime.cuda.comparison import Comparison, Form, Rules
from tilefold.runtime.cuda.direct import Args, DirectLaunch, Step, written
from tilefold.runtime.cuda.packed_arguments import PackedArguments
from tilefold.runtime.cuda.prepared import Prepared

from ..launch import LaunchRequest
from ..specialise import BoundArguments, FieldConstants, adapted, fields_of
from .arguments import HostArguments
from .streams import StreamSlot


class Recorded(Protocol):
    """A function for certain arguments: see `Variant`."""

    @property
    def guards(self) -> Mapping[SSAValue, int | float | bool]: ...

    @property
    def constants(self) -> Mapping[SSAValue, int | float | bool]: ...

    @property
    def slots(self) -> Mapping[str, SSAValue]: ...

    @property
    def fixed(self) -> frozenset[SSAValue]: ...


class RecordedLaunch(Protocol):
    """A launch of such a function: see `HostLaunch`."""

    @property
    def values(self) -> Mapping[str, SSAValue]: ...

    @property
    def grid(self) -> tuple[int | SSAValue, ...]: ...

    @property
    def request(self) -> LaunchRequest: ...


@dataclass(frozen=True, slots=True)
class PreparedStep:
    """A launch that a call has made, with the values of the kernel's parameters and the grid."""

    prepared: Prepared
    given: BoundArguments
    launch: RecordedLaunch
    grid: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """The launches of a call of a function, on the arguments `bound`."""

    bound: HostArguments
    variant: Recorded
    steps: Sequence[PreparedStep]

    def written(
        self, rules: Rules, args: Args, block: object, fields: Mapping[str, FieldConstants]
    ) -> DirectLaunch | None:
        """The same launches for arguments of the same types, extents and strides; numbers that only kernels have may
        differ. The constants in `fields` are those of the function. None if an argument cannot be compared.
        """
        return ArgumentsText(self, Comparison(rules, block)).written(rules, args, fields)


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


@dataclass
class ArgumentsText:
    """The arguments of a call in a text, which compares them: the expressions of the values that a kernel's parameter
    has of a tensor or a number, as far as they may differ, and of streams.
    """

    call: PreparedCall
    text: Comparison
    expressions: dict[SSAValue, list[str]] = field(init=False, default_factory=lambda: {})
    streams: dict[str, str] = field(init=False, default_factory=lambda: {})

    def written(self, rules: Rules, args: Args, fields: Mapping[str, FieldConstants]) -> DirectLaunch | None:
        """The launches; see `PreparedCall.written`."""
        for number, (name, value) in enumerate(zip(rules.names, args, strict=True)):
            if not self.add(number, value, self.call.bound.arguments[name], fields.get(name)):
                return None
        steps = [self.step(step) for step in self.call.steps]
        self.finish()
        return written(self.text, len(args), steps)

    def add(self, number: int, value: Any, seen: Any, held: FieldConstants | None = None) -> bool:
        """Whether an argument can be compared with its earlier value, which the function has `seen` in its form."""
        if isinstance(seen, StreamSlot):
            self.streams[seen.name] = f"a{number}"
            return True
        if isinstance(seen, Tensor | Pointer | Value):
            ssa = seen.tensor.ssa if isinstance(seen, Pointer) else seen.ssa
            name = next(name for name, own in self.call.bound.slots.items() if own is ssa)
            return self.add_value(number, value, name, self.call.variant.slots[name])
        if adapted(value) is not value or (hasattr(value, "__c_pointers__") and not _is_a(tuple, value)):
            return False  # an object of another library, which says where its values lie
        condition, parts = self._parts(value, seen, held)
        if not condition:
            if hasattr(value, "__new_from_mlir_values__"):
                return False
            self.text.constant(number, value)
            return True
        numbered = [(self.text.part(part.limits), part) for part in parts]
        self.text.take_apart(number, value.__class__, condition, {place: part.read for place, part in numbered})
        return all([self.add(place, part.value, part.seen, part.held) for place, part in numbered])

    def add_value(self, number: int, value: Any, name: str, ssa: SSAValue) -> bool:
        """The same for a tensor, a pointer or a number, which is the argument `name`."""
        kind = self._kind(name, ssa)
        if kind is None:
            self.text.constant(number, value)
            return True
        return self.compare(number, value, ssa, kind)

    def compare(self, number: int, value: Any, ssa: SSAValue, kind: ParameterKind, form: Form | None = None) -> bool:
        """Notes the expressions of the values that a tensor, a pointer or a number has."""
        before = len(self.text.values)
        if not self.text.add(number, value, iter([kind]), form):
            return False
        self.expressions[ssa] = self.text.values[before:]
        return True

    def _kind(self, name: str, ssa: SSAValue) -> ParameterKind | None:
        """How an argument's address or number reaches a kernel; None for one that is fixed, or that no kernel has."""
        if name in self.call.bound.arrays:
            return POINTER
        if ssa not in self.call.variant.fixed:
            for step in self.call.steps:
                for parameter in step.prepared.kernel.artifact.parameters:
                    if step.launch.values[parameter.name] is ssa:
                        return parameter.kind
        return None

    def _parts(self, value: Any, seen: Any, held: FieldConstants | None) -> tuple[str, Sequence[_Part]]:
        """The parts of a container that are not the function's own constants, and a condition that another, `{}`, has
        as many; no condition for anything else.
        """
        kind, form = value.__class__, seen.__class__
        if _is_a(tuple | list, value, seen):
            count = len(value)
            annotations = [each for _, each in fields_of(form)] if hasattr(form, "_make") else [None] * count
            own, within = ({}, {}) if held is None else (held.constants, held.within)
            return f"len({{}}) == {count}", [
                _Part(f"{{}}[{place}]", value[place], seen[place], annotations[place], within.get(place))
                for place in range(count)
                if place not in own
            ]
        if _is_a(dict, value, seen):
            names = {key: self.text.name(key) for key in value}
            return f"tuple({{}}) == {self.text.name(tuple(value))}", [
                _Part(f"{{}}[{name}]", value[key], seen[key]) for key, name in names.items()
            ]
        if dataclasses.is_dataclass(kind) and not is_ours(value):
            return "True", [
                _Part(f"{{}}.{name}", getattr(value, name), getattr(seen, name), annotation)
                for name, annotation in fields_of(kind)
            ]
        return "", ()

    def step(self, step: PreparedStep) -> Step:
        """A launch in the text."""
        request = step.launch.request
        return Step(
            step.prepared,
            self.values_of(step),
            any(is_torch(value) for value in step.given.values.values()),
            self.grid_of(step),
            self._stream(request.stream),
            self.text.name(request.attributes),
        )

    def values_of(self, step: PreparedStep) -> list[str]:
        """The values of the kernel's parameters: those that are not arguments are known."""
        kernel, text = step.prepared.kernel, self.text
        packed = iter(PackedArguments(kernel.driver, kernel.artifact, step.given.values).values)
        values: list[str] = []
        for parameter in kernel.artifact.parameters:
            known = [text.name(struct.unpack("@" + kind.packing, next(packed))[0]) for kind in parameter.kinds]
            given = self.expressions.get(step.launch.values[parameter.name], [])
            values += [*given, *known[len(given) :]]
        return values

    def grid_of(self, step: PreparedStep) -> str:
        """The grid."""
        return self.text.name(step.grid)

    def _stream(self, stream: object) -> str:
        if isinstance(stream, StreamSlot):
            return self.streams.get(stream.name) or self.text.name(self.call.bound.streams[stream.name])
        return self.text.name(stream)

    def finish(self) -> None:
        """Adds the lines after the comparison."""


def _is_a(kind: Any, *objects: object) -> bool:
    """Whether all are objects of a class, which tells type checkers nothing of their parts."""
    return all(isinstance(each, kind) for each in objects)
