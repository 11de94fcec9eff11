# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments of a host function: tensors, pointers, numbers and streams, and everything else as it is."""

import copy
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Any, cast

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Block, SSAValue

from tilefold.base.spaces import GMEM
from tilefold.builder.scalars.dtypes import DType, HostNumber, dtype_of
from tilefold.builder.scalars.values import wrap
from tilefold.builder.tensors.tensors import Tensor
from tilefold.builder.trace import Parameter
from tilefold.dialects.cute import LayoutAttr
from tilefold.dialects.cute.values import unknowns
from tilefold.dialects.ptx import MAP_BYTES, SpaceAttr
from tilefold.dialects.tile import TensorType
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.integers import Unknown
from tilefold.layout.algebra.inttuple import leaves, transform_leaves
from tilefold.runtime.arrays.array import ALLOCATION, Array, array_of, canonical_strides, is_array
from tilefold.runtime.arrays.signature import Constexpr, Dynamic, Marked, address_alignment, misalignment
from tilefold.runtime.errors import LaunchError, MisfitError, argument_error

from ..jit_arguments import CType, JitArgument, PtrType, StructType, number_at
from ..specialise import BoundArguments, element_of_name, name_of_elements, unmark
from .descriptions import FakeTensor, Pointer, SymInt
from .streams import StreamSlot, is_stream

WORKSPACE = "workspace of tensor maps"
"""The name of the memory for tensor maps among the arguments, which no parameter can have."""
_BYTE = element_of_name("ui8")
_MAPS = FakeTensor(_BYTE, Layout((Unknown(64),), (1,)), MAP_BYTES)
"""That memory as functions are compiled for it."""


@dataclass
class _PointerArguments(BoundArguments):
    """Arguments of a host function: pointers in the memory of C are pointers, which kernels take as integers."""

    def _at(self, name: str, kind: CType, address: int) -> object:
        if not isinstance(kind, PtrType):
            return super()._at(name, kind, address)
        number, _ = number_at(name, kind, address)
        return self._leaf(name, Pointer(dtype_of(kind.pointee), int(number), kind.alignment), None)


@dataclass
class HostArguments(_PointerArguments):
    """The arguments of a call of a host function; see `BoundArguments`.

    `fixed` leaves numbers as they are, those in objects with their types, as a call does that executes the function at
    once; else they are arguments of the compiled function. `types` are those of the tensors that the function is
    compiled for: an array that fits its type there has it. `block` has the tensors, pointers and numbers as arguments,
    `slots` these by name, and `streams` the streams by name. Some extents or strides of the tensors in `open` are
    unknown, and all extents of `pointers`. An array that does not fit its type in `types` has another type, or is
    refused where these are `strict`. `symbols` are the integers of described tensors that are `SymInt`, by the tensor
    and their places. The arguments named `given` are not those of later calls, so their numbers are fixed: an object
    whose method is compiled may be a NamedTuple. `described` are pointers by name; a number given for one is its
    address, and an array stands for the address of its first element.
    """

    fixed: bool = False
    block: Block = field(default_factory=Block)
    slots: dict[str, SSAValue] = field(default_factory=lambda: {})
    types: Mapping[str, TensorType] = field(default_factory=lambda: {})
    streams: dict[str, Any] = field(default_factory=lambda: {})
    open: set[str] = field(default_factory=lambda: set())
    pointers: set[str] = field(default_factory=lambda: set())
    strict: bool = False
    symbols: dict[SymInt, list[tuple[str, int]]] = field(default_factory=lambda: {})
    given: frozenset[str] = frozenset()
    described: dict[str, Any] = field(default_factory=lambda: {})
    marked: dict[str, Dynamic] = field(default_factory=lambda: {})
    widened: dict[str, TensorType] = field(default_factory=lambda: {})

    def add(self, name: str, value: object, annotation: object) -> object:
        if name in self.given and not self.fixed:
            return replace(self, fixed=True).add(name, value, annotation)
        if self.fixed and isinstance(value, HostNumber):
            return value
        return super().add(name, value, None if isinstance(value, FakeTensor) else annotation)

    def _leaf(self, name: str, value: object, annotation: object) -> object:
        if is_stream(value):
            name = self._unique(name)
            self.streams[name] = value
            self.key.append(StreamSlot)
            return StreamSlot(name, value)
        held = name if name in self.described else f"{name}0"  # the one value of an object of another library
        if held in self.described and (address := _address(name, value, self.described[held].dtype)) is not None:
            name, pointer = held, self.described[held]
            value = pointer.__class__(pointer.dtype, address, pointer.align)
        described = getattr(value, "__tilefold_pointer__", None)
        if described is not None:
            self.described[name] = value
            name = self._unique(name)
            self.pointers.add(name)
            return cast("Tensor", self._leaf(name, described, None)).iterator
        if hasattr(value.__class__, "__new_from_mlir_values__"):
            return self._object(name, value)
        if isinstance(value, FakeTensor):
            name = self._unique(name)
            self.values[name] = self.arrays[name] = value.array
            if not value.is_static:
                self.open.add(name)
            for place, symbol in value.symbols.items():
                self.symbols.setdefault(symbol, []).append((name, place))
            self.key.append((value.tensor_type, value.element_type))
            return self._argument(Parameter(name, value.tensor_type, value.element_type))
        given = getattr(value, "__tilefold_array__", value)
        if name in self.types and (isinstance(given, Marked) or is_array(given)):
            own, type = array_of(name, unmark(given)), self.types[name]
            array = _counted_as(type, own)
            dtype = element_of_name(array.dtype)
            if name in self.marked and not fits(type, array, dtype):
                wider = _wider(type, array, self.marked[name])
                if fits(wider, array, dtype):
                    self.widened[name] = type = wider
            other = array if fits(type, array, dtype) else self._other(name, given, array, type)
            if other is not None:
                self.values[name], self.arrays[name] = unmark(given) if other is own else other, other
                self.key.append((type, dtype))
                return self._argument(Parameter(name, type, dtype))
        if isinstance(given, Marked):
            self.marked[name] = given.rule
        if isinstance(value, SymInt):  # a number that each call passes
            value = 1
        elif self.fixed and isinstance(value, int | float):
            return value
        return self._argument(super()._leaf(name, value, annotation))

    def _other(self, name: str, given: object, array: Array, type: TensorType) -> Array | None:
        """The array to pass as one of a type that it does not fit; None for none. Strides of modes of one element are
        those of no step, so that others which fit replace them. Raises MisfitError (E3106).
        """
        strides = canonical_strides(array.shape, array.strides, array.itemsize)
        made = replace(array, strides=strides)
        if fits(type, made, element_of_name(array.dtype)):
            return made
        if self.strict:
            raise misfit(name, type, array)
        return None

    def _at(self, name: str, kind: CType, address: int) -> object:
        if self.fixed and not isinstance(kind, PtrType | StructType):
            return HostNumber(*number_at(name, kind, address))
        return super()._at(name, kind, address)

    def _foreign(self, name: str, value: JitArgument) -> Any:
        made = super()._foreign(name, value)
        return made.make(list(made.values))

    def _object(self, name: str, value: object) -> object:
        """An object of a class that says that it holds arguments: its pointers and tensors are."""
        made = copy.copy(value)
        self.key.append(value.__class__)
        for attribute in list(made.__dict__):
            part = getattr(value, attribute)
            if hasattr(part, "__tilefold_pointer__") or hasattr(part, "__tilefold_array__"):
                setattr(made, attribute, self.add(f"{name}_{attribute}", part, None))
            else:
                self._constant(name, part)
        return made

    def workspace(self) -> SSAValue:
        """The memory that calls of the function pass after their arguments."""
        if WORKSPACE not in self.slots:
            self.slots[WORKSPACE] = ssa = self.block.insert_arg(_MAPS.tensor_type, len(self.block.args))
            ssa.name_hint = "workspace"
        return self.slots[WORKSPACE]

    def give_workspace(self, memory: object) -> None:
        """Sets that memory; None for a call that has none. LaunchError (E3106) for anything but bytes in a row, at an
        address that maps can have.
        """
        array = _MAPS.array if memory is None else array_of(WORKSPACE, unmark(memory))
        if array.dtype != _MAPS.array.dtype or array.strides != (1,):
            raise argument_error(
                WORKSPACE, "is not a contiguous array of bytes", "give it one mode, and elements of uint8"
            )
        if problem := misalignment(array, MAP_BYTES):
            raise argument_error(WORKSPACE, problem, f"maps lie at multiples of {MAP_BYTES} bytes")
        self.values[WORKSPACE], self.arrays[WORKSPACE] = array if memory is None else unmark(memory), array

    def check_workspace(self, needed: int) -> None:
        """LaunchError (E3106) if it has fewer than `needed` bytes."""
        given = self.arrays[WORKSPACE].bytes
        if given < needed:
            problem = f"has {given} bytes, and the tensor maps of the kernel take {needed}"
            raise argument_error(WORKSPACE, problem, "ask QueryDeviceWorkspaceFunc for the size")

    def _argument(self, part: object) -> Any:
        """The form in which the function sees a parameter; anything else as it is."""
        if not isinstance(part, Parameter):
            return part
        ssa = self.slots[part.name] = self.block.insert_arg(part.type, len(self.block.args))
        ssa.name_hint = part.name
        return Tensor(ssa, part.dtype) if isinstance(part.type, TensorType) else wrap(ssa, part.dtype)

    def _constant(self, name: str, value: object) -> object:
        return value if self.fixed else super()._constant(name, value)

    def _dataclass(self, name: str, value: Any) -> object:
        made = super()._dataclass(name, value)
        fields = dataclasses.fields(value)
        return value if all(getattr(made, f.name) is getattr(value, f.name) for f in fields) else made


def _address(name: str, value: object, dtype: DType) -> int | None:
    """The address that a number, or an array of a type, stands for; None for anything else. LaunchError (E3106) for an
    array of another type.
    """
    if isinstance(value, int):
        return int(value)
    given = getattr(value, "__tilefold_array__", None)
    if given is None and not is_array(value):
        return None
    array = array_of(name, value if given is None else unmark(given))
    if element_of_name(array.dtype).in_memory != dtype.in_memory:
        problem = f"is an array of {array.dtype}, and the function is compiled for a pointer to {dtype}"
        raise argument_error(name, problem, "pass a pointer of that type, or an array of such elements")
    return array.address


@dataclass
class KernelArguments(_PointerArguments):
    """The arguments of a call of a host function that is executed as a kernel: its numbers are known, as they
    are to the host, but for those of an annotated type. `memory` is the memory of its pointers, by their names.
    """

    memory: Mapping[str, Array] = field(default_factory=lambda: {})

    def add(self, name: str, value: Any, annotation: object) -> object:
        is_known = isinstance(value, int | float | tuple) and not isinstance(annotation, DType)
        return super().add(name, value, Constexpr if is_known else annotation)

    def _at(self, name: str, kind: CType, address: int) -> object:
        if isinstance(kind, PtrType | StructType):
            return super()._at(name, kind, address)
        return self._constant(name, number_at(name, kind, address)[0])

    def _leaf(self, name: str, value: object, annotation: object) -> object:
        described = getattr(value, "__tilefold_pointer__", None)
        if not isinstance(described, Marked):
            return super()._leaf(name, value, annotation)
        marked = Marked(self.memory[self._unique(name)], described.rule)
        return replace(cast("Parameter", super()._leaf(name, marked, None)), view=_beginning)


def _beginning(tensor: Tensor) -> object:
    return tensor.iterator


def _counted_as(type: TensorType, array: Array) -> Array:
    """Bytes as the floats of 8 bits that a type describes, which libraries pass as bytes; other arrays as they are."""
    if element_of_name(array.dtype) is not _BYTE:
        return array
    wanted = dtype_of(type.element_type)
    return replace(array, dtype=name_of_elements(wanted)) if wanted.is_float and wanted.bits == _BYTE.bits else array


def fits(type: TensorType, array: Array, dtype: DType) -> bool:
    """Whether an array is one of those that a type describes: of its elements, extents, strides and alignment. The
    stride of a mode of one element is that of no step, so it may be any where the type has a number.
    """
    layout, given = type.layout.data, array.layout
    assert isinstance(layout, Layout), "arguments have plain layouts"
    if dtype.in_memory != type.element_type or misalignment(array, type.align.data):
        return False
    wanted, have = _integers(layout), _integers(given)
    steps = [1] * len(array.shape) + [extent - 1 for extent in array.shape]
    return len(wanted) == len(have) and all(map(_fits, wanted, have, steps))


def _wider(type: TensorType, array: Array, rule: Dynamic) -> TensorType:
    """The type for an array, too, as far as its address and its strides are concerned."""
    layout = type.layout.data
    assert isinstance(layout, Layout), "arguments have plain layouts"
    steps = iter(array.strides)

    def widen(leaf: Any) -> Any:
        step = next(steps, 0)
        return Unknown(leaf.width, gcd(leaf.div, step)) if isinstance(leaf, Unknown) else leaf

    align = type.align.data if rule.align is not None else min(type.align.data, address_alignment(array.place))
    made = LayoutAttr(Layout(layout.shape, transform_leaves(widen, layout.stride)))
    return TensorType.new([type.element_type, SpaceAttr(GMEM), IntAttr(align), made])


def _fits(wanted: object, given: int, steps: int) -> bool:
    if isinstance(wanted, Unknown):
        return given % wanted.div == 0 and 0 <= given < 1 << (wanted.width - 1)
    return wanted == given or steps == 0


def check_symbols(symbols: Iterable[Sequence[tuple[str, int]]], arrays: Mapping[str, Array]) -> None:
    """LaunchError (E3106) where the integers at places of several arrays, which one `SymInt` describes, differ."""
    for places in symbols:
        (first, at), *rest = places
        wanted = _integers(arrays[first].layout)[at]
        for name, place in rest:
            given = _integers(arrays[name].layout)[place]
            if given != wanted:
                theirs, ours = _fact(arrays[first], at), _fact(arrays[name], place)
                problem = f"has {ours} {given}, but {theirs} of argument '{first}' is {wanted}"
                raise argument_error(
                    name, problem, "the function is compiled for one number in both places", MisfitError
                )


def _fact(array: Array, place: int) -> str:
    rank = len(array.shape)
    return f"extent {place}" if place < rank else f"stride {place - rank}"


def misfit(name: str, type: TensorType, array: Array) -> LaunchError:
    """The error for an array that does not fit the one that a function is compiled for."""
    have, wanted = f"{array.layout} of {array.dtype}", f"{type.layout.data} of {type.element_type}"
    if misalignment(array, type.align.data):
        have += f", at a multiple of {array.place & -array.place or ALLOCATION} bytes"
        wanted += f", at a multiple of {type.align.data}"
    problem = f"is {have}; the function is compiled for {wanted}"
    hint = "pass such an array, or compile for one with open extents: from_dlpack(x).mark_layout_dynamic()"
    return argument_error(name, problem, hint, MisfitError)


def open_integers(type: TensorType, array: Array) -> tuple[int, ...]:
    """The integers of an array that its type leaves open, those of the shape first."""
    layout = type.layout.data
    assert isinstance(layout, Layout), "arguments have plain layouts"
    wanted, have = _integers(layout), _integers(array.layout)
    unknown_values = tuple(n for leaf, n in zip(wanted, have, strict=True) if isinstance(leaf, Unknown))
    assert len(unknown_values) == len(unknowns(type.layout.data)), "each ? is an integer"
    return unknown_values


def _integers(layout: Layout) -> list[Any]:
    return [*leaves(layout.shape), *leaves(layout.stride)]
