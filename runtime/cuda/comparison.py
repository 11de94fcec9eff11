# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The text that compares the arguments of a launch with those that a kernel was prepared for, and reads what
is passed of them.

Everything that the kernel's type depends on is compared; see `tilefold.cute.specialise`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ...base.parameters import POINTER, ParameterKind, Scalar
from ..arrays.array import HOST, Array, array_of, choose_reader, is_array, is_numpy_scalar, is_torch
from ..arrays.constants import constant_key, is_exact
from ..arrays.signature import ALIGN, ArraySpec, Dynamic, Marked, fit_conditions, infer_array_spec
from ..arrays.torch_guards import tensor_check

Conditions = Callable[[Sequence[str], Sequence[str]], Sequence[str]]
"""Conditions in Python on the extents and the strides of an array, by their names."""
Form = tuple[ArraySpec, Conditions]
"""The arrays of a type: those that have its integers, and fulfil the conditions on the others."""

_WRAPPED = ("__tilefold_array__", "__tilefold_pointer__")
"""The attribute in which objects that stand for an array have it, marked or not."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The facts about a kernel's parameters: which are known while it is built, which are declared dynamic, and of
    numbers of a declared type the least and the greatest. Where they are `exact`, all extents and strides are compared,
    also those of arrays that are marked as dynamic.
    """

    names: tuple[str, ...]
    constants: frozenset[str] = frozenset()
    dynamic: Mapping[str, Dynamic] = field(default_factory=lambda: {})
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=lambda: {})
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Exact:
    """An argument that must be this very object; one that is only equal is compared by the text."""

    value: object


@dataclass(frozen=True, slots=True)
class Number:
    """An argument that is a `float`, or an `int` from `least` to `greatest`, and its place among the values."""

    kind: Scalar
    first: int
    least: int = 0
    greatest: int = 0


@dataclass(frozen=True, slots=True)
class Tensor:
    """An array among the arguments: the number of its argument, the place of its address among the values, itself, and
    the values that a launch reads. Its extents and strides may differ where there are `conditions` on them, which take
    their names. `align` is the number of bytes that must divide its address, if not the address it has now tells.
    """

    number: int
    first: int
    given: Any
    array: Array
    spec: ArraySpec
    conditions: Conditions | None = None
    align: int | None = None

    @property
    def extents(self) -> list[str]:
        return [f"s{self.number}_{mode}" for mode in range(len(self.array.shape))]

    @property
    def strides(self) -> list[str]:
        return [f"t{self.number}_{mode}" for mode in range(len(self.array.shape))]

    @property
    def values(self) -> list[str]:
        """The variables to pack: the address, and the values that the type leaves open."""
        pairs = zip((*self.extents, *self.strides), (*self.spec.shape, *self.spec.strides), strict=True)
        return [f"p{self.number}", *(name for name, known in pairs if not isinstance(known, int))]

    @property
    def alignment(self) -> str:
        """The condition that the address has the alignment of the type; none where it is `ALIGN`."""
        address = f"p{self.number}"
        if self.align is not None:
            return f"not {address} % {self.align}"
        mask, bits = self.aligned
        return f"{address} & {mask} == {bits}" if bits else ""

    @property
    def aligned(self) -> tuple[int, int]:
        """The bits of the address that tell its alignment without a rule, and their value."""
        align = self.spec.align
        return (2 * align - 1, align) if align < ALIGN else (ALIGN - 1, 0)


class Comparison:
    """The `lines` that read and compare arguments `a0`, `a1` and so on, the expressions of the `values` to pack, and
    the `scope` with the names that they use; `last` are lines after these. `arguments` are facts, by the numbers of the
    arguments that a native launch can compare, too.
    """

    def __init__(self, rules: Rules, block: Any) -> None:
        self.rules = rules
        self._names = list(rules.names)
        self._ranges = {n: rules.ranges[name] for n, name in enumerate(rules.names) if name in rules.ranges}
        self.scope: dict[str, Any] = {"BLOCK": block, "constant_key": constant_key, "Marked": Marked}
        self.lines: list[str] = []
        self.values: list[str] = []
        self._conditions = ["block == BLOCK"]
        self._tensors: list[Tensor] = []
        self.arguments: dict[int, Exact | Number | Tensor] = {}
        self.last: list[str] = []

    def part(self, limits: tuple[int, int] | None = None) -> int:
        """The number of a further argument, which is a part of another. `limits` are the least and the greatest integer
        that it may be.
        """
        self._names.append(f"a{len(self._names)}")
        if limits is not None:
            self._ranges[len(self._names) - 1] = limits
        return len(self._names) - 1

    def take_apart(self, number: int, kind: type[object], condition: str, reads: Mapping[int, str]) -> None:
        """Compares the class of a container, and reads its parts by expressions in which `{}` is the container."""
        argument = f"a{number}"
        self._require(f"{argument}.__class__ is {self.name(kind)}")
        self._require(condition.format(argument))
        self._flush(*[f"a{part} = {read.format(argument)}" for part, read in reads.items()])

    def add(self, number: int, value: object, kinds: Iterator[ParameterKind], form: Form | None = None) -> bool:
        """Whether an argument can be compared with its earlier value. Takes the next of `kinds` if a kernel's parameter
        is this argument. An array may be any of a type `form` that fulfils its conditions.
        """
        argument, name = f"a{number}", self._names[number]
        if name in self.rules.constants or isinstance(value, str):
            self.constant(number, value)
        elif value is None:
            self._require(f"{argument} is None")
            self.arguments[number] = Exact(None)
        elif isinstance(value, int | float) or is_numpy_scalar(value):
            return self._number(number, value, kinds)
        elif hasattr(value, "__tilefold_number__"):
            return self._typed_number(number, value, kinds)
        else:
            return self._array(number, name, value, kinds, form)
        return True

    def _number(self, number: int, value: Any, kinds: Iterator[ParameterKind]) -> bool:
        argument = f"a{number}"
        kind = next(kinds, None)
        self._require(f"{argument}.__class__ is {self.name(type(value))}")
        if not isinstance(kind, Scalar):
            return False
        bits = kind.element.bits
        if kind.element.kind != "int":
            if type(value) is float:
                self.arguments[number] = Number(kind, len(self.values))
            self.values.append(argument)
            return True
        if isinstance(value, float) or (is_numpy_scalar(value) and value.dtype.kind not in "biu"):
            return False  # each number is looked at, whether it is an integer
        if number in self._ranges:
            least, greatest = self._ranges[number]
            self._require(f"{least} <= {argument} <= {greatest}")
        elif type(value) is int:
            least, greatest = -(1 << bits - 1), (1 << bits - 1) - 1
            self._require(f"{least} <= {argument} <= {greatest}")
            if bits == 64:
                self._require(f"not {-(1 << 31)} <= {argument} < {1 << 31}")
        else:
            least, greatest = 0, -1
        if type(value) is int and (number in self._ranges or bits < 64):
            self.arguments[number] = Number(kind, len(self.values), least, greatest)
        self.values.append(f"{argument if type(value) is int else f'int({argument})'} & {(1 << bits) - 1}")
        return True

    def _typed_number(self, number: int, value: Any, kinds: Iterator[ParameterKind]) -> bool:
        """A number of a type that the program made, which is read out of it in each call."""
        argument = f"a{number}"
        self._require(
            f"{argument}.__class__ is {self.name(type(value))} and {argument}.dtype is {self.name(value.dtype)}"
        )
        self._flush(f"{argument} = {argument}.value")
        if value.dtype.kind == "int":
            self._ranges[number] = value.dtype.least, value.dtype.greatest
        is_compared = self._number(number, value.value, kinds)
        self.arguments.pop(number, None)
        return is_compared

    @property
    def has_torch(self) -> bool:
        """Whether a torch tensor is an argument, whose current stream is then launched in."""
        return any(is_torch(tensor.given) for tensor in self._tensors)

    def finish(self) -> None:
        """Compares the tensors, which are left."""
        self._flush()  # an argument in a wrapper is unwrapped before it is compared
        self._compare_torch([tensor for tensor in self._tensors if is_torch(tensor.given)])
        for tensor in self._tensors:
            self._read(tensor)
        self._conditions += [f"p{tensor.number}" for tensor in self._tensors]  # none is 0
        self._conditions += [tensor.alignment for tensor in self._tensors if tensor.alignment]
        if aligned := [f"p{tensor.number}" for tensor in self._tensors if not tensor.alignment]:
            self._conditions.append(f"not ({' | '.join(aligned)}) & {ALIGN - 1}")
        self._flush(*self.last)

    def constant(self, number: int, value: Any) -> None:
        """Compares an argument with a value that is known while the kernel is built."""
        argument, name = f"a{number}", self._names[number]
        if is_exact(value):
            self.arguments[number] = Exact(value)
            self._require(f"{argument}.__class__ is {self.name(type(value))}")
            self._require(f"{argument} == {self.name(value)}")
        else:
            key: Any = constant_key(name, value)
            if key.__class__ is tuple and len(key) == 2 and key[1] is value:  # nothing in it changes
                self.arguments[number] = Exact(value)
            self._require(f"constant_key({name!r}, {argument}) == {self.name(key)}")

    def _array(
        self,
        number: int,
        name: str,
        value: Any,
        kinds: Iterator[ParameterKind],
        form: Form | None,
    ) -> bool:
        given, rule = value, self.rules.dynamic.get(name)
        while True:
            if isinstance(value, Marked):
                value, rule = value.array, None if self.rules.exact else value.rule
                self._require(f"a{number}.__class__ is Marked")
                if rule is not None:
                    self._require(f"a{number}.rule == {self.name(rule)}")
                self._flush(f"a{number} = a{number}.array")
            elif wrapped := next((w for w in _WRAPPED if hasattr(value, w)), None):
                self._require(f"a{number}.__class__ is {self.name(type(value))}")
                value = getattr(value, wrapped)
                self._flush(f"a{number} = a{number}.{wrapped}")
            else:
                break
        if not is_array(value):
            return self._other(number, value)
        if next(kinds, None) != POINTER:
            return False  # an array without modes that is passed as a number
        array = array_of(name, value)
        if array.device is HOST and not is_torch(value):
            return False
        spec, conditions, align = infer_array_spec(name, array, rule), None, None
        if form is not None:
            (spec, conditions), align = form, form[0].align
        elif rule is not None:
            conditions, align = partial(fit_conditions, spec, rule, array.itemsize), rule.align
        tensor = Tensor(number, len(self.values), value, array, spec, conditions, align)
        self._tensors.append(tensor)
        if value is given and is_torch(value) and conditions is None and not (tensor.values[1:]):
            self.arguments[number] = tensor
        self.values += tensor.values
        return True

    def _other(self, number: int, value: object) -> bool:
        """Types, functions and layouts are constants; containers are taken apart in each call."""
        if is_exact(value):
            self.constant(number, value)
        return is_exact(value)

    def _compare_torch(self, tensors: list[Tensor]) -> None:
        """Compares the types of torch tensors: in one call, where torch has it."""
        first: dict[int, int] = {}
        distinct: list[Tensor] = []
        for tensor in tensors:
            if first.setdefault(id(tensor.given), tensor.number) == tensor.number:
                distinct.append(tensor)
            else:
                self._require(f"a{tensor.number} is a{first[id(tensor.given)]}")
        if not distinct:
            return
        check = tensor_check(
            [tensor.given for tensor in distinct],
            [[n if isinstance(n, int) else None for n in tensor.spec.shape] for tensor in distinct],
            [[n if tensor.conditions is None else None for n in tensor.array.strides] for tensor in distinct],
        )
        if check is not None:
            self._require(f"{self.name(check)}({', '.join(f'a{tensor.number}' for tensor in distinct)})")
            # torch knows classes by their address: they must stay
            self.name([type(tensor.given) for tensor in distinct])
        else:
            for tensor in distinct:
                self._compare_attributes(tensor)
        self._flush()

    def _compare_attributes(self, tensor: Tensor) -> None:
        argument, given = f"a{tensor.number}", tensor.given
        self._require(f"{argument}.__class__ is {self.name(type(given))}")
        self._require(f"{argument}.dtype == {self.name(given.dtype)}")
        self._require(f"{argument}.get_device() == {given.get_device()}")
        self._require(f"not {argument}.is_neg()")
        if tensor.conditions is None:
            self._require(
                f"{argument}.shape == {tuple(tensor.array.shape)} and {argument}.stride() == {tensor.array.strides}"
            )

    def _read(self, tensor: Tensor) -> None:
        """Reads the values of an array, and compares everything that depends on them or is not compared yet."""
        number, array = tensor.number, tensor.array
        if is_torch(tensor.given):
            lines, shape, strides = [f"p{number} = a{number}.data_ptr()"], f"a{number}.shape", f"a{number}.stride()"
        else:
            same = self.name(type(tensor.given))
            self._require(f"a{number}.__class__ is {same}")
            self._flush(f"x{number} = {self.name(choose_reader(tensor.given))}(a{number})")
            lines, shape, strides = [f"p{number} = x{number}.address"], f"x{number}.shape", f"x{number}.strides"
            self._require(f"x{number}.dtype == {array.dtype!r} and x{number}.device == {array.device!r}")
            if tensor.conditions is None:
                self._require(f"{shape} == {array.shape} and {strides} == {array.strides}")
        self.lines += lines
        if tensor.conditions is not None:
            if array.shape:
                self.lines += [f"{', '.join(tensor.extents)}, = {shape}", f"{', '.join(tensor.strides)}, = {strides}"]
            else:
                self._require(f"not {shape}")
            self._conditions += tensor.conditions(tensor.extents, tensor.strides)

    def _require(self, condition: str) -> None:
        self._conditions.append(condition)

    def _flush(self, *after: str) -> None:
        if self._conditions:
            self.lines += [f"if not ({' and '.join(self._conditions)}):", "    return NotImplemented"]
        self._conditions = []
        self.lines += after

    def name(self, value: Any) -> str:
        """A name for an object."""
        name = f"known{len(self.scope)}"
        self.scope[name] = value
        return name
