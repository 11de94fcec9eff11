# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of compiled functions that are prepared for arguments of any extents, strides and numbers. Machine code
computes the numbers of their launches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from xdsl.ir import SSAValue

from tilefold.base.errors import TilefoldError
from tilefold.base.parameters import POINTER, ParameterKind, Scalar
from tilefold.dialects.kernel import passed_as
from tilefold.dialects.tile import TensorType
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.integers import Unknown
from tilefold.layout.algebra.inttuple import leaves
from tilefold.runtime.arrays.array import is_torch
from tilefold.runtime.arrays.signature import ArraySpec
from tilefold.runtime.cuda.comparison import Comparison, Form, Rules
from tilefold.runtime.cuda.direct import Args, DirectLaunch

from ..specialise import FieldConstants
from .numbers import HostProgram, stored_number
from .prepared import ArgumentsText, PreparedCall, PreparedStep

Symbols = Sequence[Sequence[tuple[str, int]]]
"""The places in several tensors whose integers are equal."""


def written_for_any(
    call: PreparedCall, rules: Rules, args: Args, block: object, fields: Mapping[str, FieldConstants], symbols: Symbols
) -> DirectLaunch | None:
    """The launches of a call for all arguments that its function is compiled for; making the machine code takes a
    fraction of a second. `fields` are as in `PreparedCall.written`. None where an argument cannot be compared, or
    where machine code cannot compute a number.
    """
    variant = call.variant
    program = HostProgram("host", variant.slots, variant.constants)
    try:
        return _AnyText(call, Comparison(rules, block), program, symbols).written(rules, args, fields)
    except (_FixedError, TilefoldError):
        return None


class _FixedError(Exception):
    """The launches cannot be made for any numbers."""


@dataclass
class _AnyText(ArgumentsText):
    """The arguments of a call in a text that takes any extents, strides and numbers which the types allow."""

    program: HostProgram
    symbols: Symbols
    _tensors: dict[str, tuple[int, int]] = field(init=False, default_factory=lambda: {})
    """The numbers of the arguments that are tensors, and their ranks."""

    def add_value(self, number: int, value: Any, name: str, ssa: SSAValue) -> bool:
        bound = self.call.bound
        if not isinstance(ssa.type, TensorType):
            kind = passed_as(ssa.type)
            return kind is not None and self.compare(number, value, ssa, kind)
        if name in bound.pointers:
            return self.compare(number, value, ssa, POINTER)
        array = bound.arrays[name]
        form = _form(ssa.type, array.dtype)
        same = not is_torch(value) or tuple(value.shape) == array.shape  # not so where two elements share a byte
        if not same or len(form[0].shape) != len(array.shape):
            return False
        self._tensors[name] = number, len(array.shape)
        return self.compare(number, value, ssa, POINTER, form)

    def values_of(self, step: PreparedStep) -> list[str]:
        values: list[str] = []
        for parameter in step.prepared.kernel.artifact.parameters:
            ssa = step.launch.values[parameter.name]
            given = self.expressions.get(ssa) or [self._computed(ssa, parameter.kind)]
            if len(given) != len(parameter.kinds):
                raise _FixedError
            values += given
        return values

    def _computed(self, ssa: SSAValue, kind: ParameterKind) -> str:
        """The expression of a number that the host computes."""
        if not isinstance(kind, Scalar):
            raise _FixedError
        number = f"numbers[{self.program.place_of(ssa)}]"
        if kind.element.kind == "int":
            return f"{number} & {(1 << kind.element.bits) - 1}"
        return f"{self.text.name(partial(_float, kind))}({number})"

    def grid_of(self, step: PreparedStep) -> str:
        sizes = [str(n) if isinstance(n, int) else f"numbers[{self.program.place_of(n)}]" for n in step.launch.grid]
        return f"({', '.join(sizes)},)"

    def finish(self) -> None:
        guards: list[str] = []
        for ssa, number in self.call.variant.guards.items():
            stored = stored_number(ssa.type, number)
            if stored is None:
                raise _FixedError
            guards.append(f"numbers[{self.program.place_of(ssa)}] == {stored}")
        for places in self.symbols:
            first, *rest = (self._integer(*place) for place in places)
            guards += [f"{first} == {other}" for other in rest]
        if self.program.values:
            self.text.last.append(f"numbers = {self._function()}({', '.join(self._given())})")
        if guards:
            self.text.last += [f"if not ({' and '.join(guards)}):", "    return NotImplemented"]

    def _integer(self, tensor: str, place: int) -> str:
        if tensor not in self._tensors:
            raise _FixedError
        number, rank = self._tensors[tensor]
        return f"s{number}_{place}" if place < rank else f"t{number}_{place - rank}"

    def _function(self) -> str:
        function = self.program.function()
        if function is None:
            raise _FixedError
        return self.text.name(function)

    def _given(self) -> list[str]:
        """The arguments of the machine code, which reads no memory."""
        given: list[str] = []
        for ssa in self.program.slots.values():
            if ssa not in self.expressions:
                raise _FixedError
            values = self.expressions[ssa]
            given += ["0", *values[1:]] if isinstance(ssa.type, TensorType) else values
        return given


def _form(type: TensorType, dtype: str) -> Form:
    """The arrays that a type describes; see `arguments.fits`."""
    layout = type.layout.data
    assert isinstance(layout, Layout), "arguments have plain layouts"
    shape, steps = tuple(leaves(layout.shape)), tuple(leaves(layout.stride))

    def conditions(extents: Sequence[str], strides: Sequence[str]) -> list[str]:
        found: list[str] = []
        for name, wanted in zip(extents, shape, strict=True):
            found += _open(name, wanted) if isinstance(wanted, Unknown) else [f"{name} == {wanted}"]
        for name, wanted, extent in zip(strides, steps, extents, strict=True):
            found += _open(name, wanted) if isinstance(wanted, Unknown) else [f"({name} == {wanted} or {extent} == 1)"]
        return found

    return ArraySpec(dtype, shape, steps, type.align.data), conditions


def _open(name: str, wanted: Unknown) -> list[str]:
    divides = [f"not {name} % {wanted.div}"] if wanted.div > 1 else []
    return [f"0 <= {name} < {1 << (wanted.width - 1)}", *divides]


def _float(kind: Scalar, bits: int) -> float:
    """The float of the lowest bits of a number."""
    return kind.unpack((bits & ((1 << 8 * kind.size) - 1)).to_bytes(kind.size, "little"))
