# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turns the annotations and arguments of a call into the types of a kernel's parameters: the form of each argument in
the kernel.
"""

import copy
import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, TypeVar, cast, get_type_hints

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute

from tilefold.base.element_types import BY_NAME, ELEMENTS, ELEMENTS_HINT
from tilefold.base.errors import Code
from tilefold.base.printable import shown
from tilefold.base.spaces import GMEM
from tilefold.builder.control.objects import is_ours
from tilefold.builder.primitives import arrays
from tilefold.builder.scalars.dtypes import DTYPES, Boolean, DType, Float32, HostNumber, Int32, Int64
from tilefold.builder.tensors.tensors import Tensor
from tilefold.builder.trace import DeferredArgument, Parameter
from tilefold.dialects.cute import LayoutAttr
from tilefold.dialects.ptx import SpaceAttr
from tilefold.dialects.tile import TensorType
from tilefold.runtime.arrays.array import Array, array_of, is_array, is_numpy_scalar
from tilefold.runtime.arrays.constants import constant_key
from tilefold.runtime.arrays.signature import (
    ArraySpec,
    Dynamic,
    Marked,
    infer_array_spec,
    is_constexpr,
    read_annotation,
)
from tilefold.runtime.errors import ArgumentTypeError, LaunchError, argument_error

from .jit_arguments import CType, JitArgument, StructType, StructValue, members_at, number_at, places_in

AdapterT = TypeVar("AdapterT", bound=type)


@cache
def _adapters() -> dict[type, type]:
    return {}


def register_jit_arg_adapter(*types: type) -> Callable[[AdapterT], AdapterT]:
    """Makes a class the adapter of arguments of other classes: an object of it, made of the argument, stands for it."""

    def register(adapter: AdapterT) -> AdapterT:
        _adapters().update(dict.fromkeys(types, adapter))
        return adapter

    return register


def adapted(value: Any) -> Any:
    """The argument, or its adapter where its class has one."""
    known = _adapters()
    adapter = next((known[kind] for kind in type(value).__mro__ if kind in known), None) if known else None
    return value if adapter is None else adapter(value)


def _holds_arguments(value: object) -> bool:
    """Whether an attribute of an object is a pointer or a tensor of ours, to which its own methods would lead."""
    parts = getattr(value, "__dict__", {}).values()
    return any(hasattr(part, "__tilefold_pointer__") or hasattr(part, "__tilefold_array__") for part in parts)


@dataclass
class BoundArguments:
    """The arguments of a call: as a kernel is built from them, and as it is launched on them.

    `arguments` have a `Parameter` for each tensor and number, `values` hold the values to pass for it, and `key` is the
    same for calls that one kernel serves. `arrays` describe those of the values that are arrays. `smem` are the bytes
    of shared memory that the launch gives, for which the kernel is built, too.
    """

    arguments: dict[str, object] = field(default_factory=lambda: {})
    values: dict[str, Any] = field(default_factory=lambda: {})
    key: list[object] = field(default_factory=lambda: [])
    arrays: dict[str, Array] = field(default_factory=lambda: {})
    smem: int | None = None

    def add(self, name: str, value: Any, annotation: object) -> object:
        """The stand-in for an argument while the kernel is built. Raises LaunchError (E3106)."""
        if isinstance(value, HostNumber):
            is_own = is_constexpr(annotation) or isinstance(annotation, DType)
            value, annotation = value.value, annotation if is_own else value.dtype
        _check_kind(name, value, annotation)
        if isinstance(value, memoryview) and not is_constexpr(annotation):
            hint = "pass an array of torch, CuPy, JAX or NumPy"
            raise argument_error(name, "is a memoryview", hint, ArgumentTypeError)
        if is_constexpr(annotation) or value is None or isinstance(value, str | DType):
            return self._constant(name, cast(object, value))
        value = adapted(value)
        if hasattr(value, "__c_pointers__") and not isinstance(value, tuple) and not _holds_arguments(value):
            return self._foreign(name, value)
        if isinstance(value, tuple | list):
            kind: Any = type(cast("object", value))
            given = cast("Sequence[object]", value)
            self.key.append((kind, len(given)))  # before its elements, as for all containers
            kinds = [annotation for _, annotation in fields_of(kind)] if hasattr(kind, "_make") else [None] * len(given)
            parts = [self.add(f"{name}{i}", part, kinds[i]) for i, part in enumerate(given)]
            if not isinstance(value, tuple):
                return parts
            return kind._make(parts) if hasattr(kind, "_make") else tuple(parts)
        if isinstance(value, dict):
            entries = cast("dict[object, object]", value)
            self.key.append(("dict", constant_key(name, tuple(entries))))
            return {key: self.add(f"{name}_{key}", part, None) for key, part in entries.items()}
        if dataclasses.is_dataclass(value) and not isinstance(value, type) and not is_ours(value):
            return self._dataclass(name, value)
        return self._leaf(name, value, annotation)

    def _foreign(self, name: str, value: JitArgument) -> DeferredArgument:
        """The stand-in for an object of another library."""
        places = list(places_in(name, value))
        self.key.append((type(value), tuple(kind for kind, _ in places)))
        values = [self._at(f"{name}{number}", *place) for number, place in enumerate(places)]
        return DeferredArgument(value.__new_from_mlir_values__, tuple(values))

    def _at(self, name: str, kind: CType, address: int) -> object:
        """The stand-in for a value in the memory of C."""
        if not isinstance(kind, StructType):
            return self._leaf(name, *number_at(name, kind, address))
        places = enumerate(members_at(name, kind, address))
        return StructValue(tuple(self._at(f"{name}_{number}", *place) for number, place in places))

    def _leaf(self, name: str, value: Any, annotation: object) -> object:
        """The stand-in for an argument that is not a container."""
        value = getattr(value, "__tilefold_array__", value)
        name, dtype = self._unique(name), _scalar_dtype(name, value, annotation)
        if dtype is not None:
            type_: Attribute = dtype.ir
            value = value.item() if hasattr(value, "item") else value
            _check_number(name, value, dtype)
        else:
            rule = annotation if isinstance(annotation, Dynamic) else None
            if isinstance(value, Marked):
                value, rule = unmark(value), value.rule
            if not is_array(value):
                return self._constant(name, value)
            array = self.arrays[name] = array_of(name, value)
            type_, dtype = array_type(name, array, rule), element_of_name(array.dtype)
        self.values[name] = value
        self.key.append((type_, dtype))
        return Parameter(name, type_, dtype, arrays.Array.of if annotation is arrays.Array else None)

    def _unique(self, name: str) -> str:
        """A name for a parameter that the IR can have and no other parameter has."""
        name = re.sub(r"\W", "_", name, flags=re.ASCII)
        while name in self.values:
            name += "_"
        return name

    def _dataclass(self, name: str, value: Any) -> object:
        made = copy.copy(value)
        kind = cast("type[object]", type(value))
        self.key.append(kind)
        for attribute, annotation in fields_of(kind):
            part = self.add(f"{name}_{attribute}", getattr(value, attribute), annotation)
            object.__setattr__(made, attribute, part)
        return made

    def _constant(self, name: str, value: object) -> object:
        self.key.append(constant_key(name, value))
        return value


@dataclass(frozen=True, slots=True)
class FieldConstants:
    """The NamedTuple that a function is compiled for: its fields that are `Constexpr`, by their places, and the
    NamedTuples within it.
    """

    kind: type[Any]
    constants: dict[int, object]
    within: "dict[int, FieldConstants]"

    @classmethod
    def of(cls, value: Any) -> "FieldConstants | None":
        """Those of an argument; None where it is not a NamedTuple."""
        kind: Any = type(cast("object", value))
        if not isinstance(value, tuple) or not hasattr(kind, "_make"):
            return None
        parts = list(enumerate(zip(fields_of(kind), cast("Sequence[object]", value), strict=True)))
        constants = {place: part for place, ((_, annotation), part) in parts if is_constexpr(annotation)}
        found = {place: cls.of(part) for place, (_, part) in parts if place not in constants}
        within = {place: held for place, held in found.items() if held is not None}
        return cls(kind, constants, within)

    def put_into(self, value: Any) -> Any:
        """The argument of a call with its constants replaced by these, as CuTe ignores a call's own. A plain tuple of
        as many parts stands for the NamedTuple, which TVM FFI passes as one; other values are returned.
        """
        kind = value.__class__
        if kind is not self.kind and (kind is not tuple or len(value) != len(self.kind._fields)):
            return value
        parts = [self.constants.get(place, part) for place, part in enumerate(value)]
        for place, held in self.within.items():
            parts[place] = held.put_into(parts[place])
        return self.kind._make(parts)


def _check_kind(name: str, value: object, annotation: object) -> None:
    """LaunchError (E3106) for an argument that is not the number or tensor of its annotation. None is always
    one of an optional parameter.
    """
    if value is None or annotation is None:
        return
    if isinstance(annotation, DType):
        if isinstance(value, str) or not (isinstance(value, int | float) or getattr(value, "shape", None) == ()):
            problem = f"is of type {type(value).__name__}, but is annotated as a number"
            raise argument_error(name, problem, f"pass a number of type {annotation}", ArgumentTypeError)
    elif annotation is Tensor or annotation is arrays.Array or isinstance(annotation, Dynamic):
        array = getattr(value, "__tilefold_array__", value)
        if is_numpy_scalar(array) or not (isinstance(array, Marked) or is_array(array)):
            problem = f"is of type {type(value).__name__}, but is annotated as a tensor"
            raise argument_error(name, problem, "pass an array of torch, CuPy, JAX or NumPy", ArgumentTypeError)


@lru_cache(maxsize=256)
def fields_of(kind: type[Any]) -> tuple[tuple[str, object], ...]:
    """The fields of a dataclass or a NamedTuple with their annotations, evaluated where they can be."""
    try:
        hints = get_type_hints(kind, include_extras=True)
    except Exception:  # an annotation that names something undefined is ignored
        hints = {}
    if dataclasses.is_dataclass(kind):
        return tuple((f.name, read_annotation(hints.get(f.name, f.type))) for f in dataclasses.fields(kind))
    return tuple((name, read_annotation(hints.get(name))) for name in cast("tuple[str, ...]", kind._fields))


def _scalar_dtype(name: str, value: object, annotation: object) -> DType | None:
    """The type of a number in the kernel; None for other values. LaunchError (E3106) for one that kernels do not
    have.
    """
    if isinstance(value, complex):
        raise argument_error(
            name, "is complex, but kernels do not support complex numbers", "pass its real and its imaginary part"
        )
    is_of_array = getattr(value, "shape", None) == () and hasattr(value, "dtype")  # a scalar, or without modes
    dtype = annotation if isinstance(annotation, DType) and (is_of_array or isinstance(value, int | float)) else None
    if dtype is None and isinstance(value, int | float):
        return Boolean if isinstance(value, bool) else Float32 if isinstance(value, float) else _integer_type(value)
    if dtype is None and is_numpy_scalar(value):
        return element_of_name(array_of(name, value).dtype)
    return dtype


def _integer_type(value: int) -> DType:
    return Int32 if -(1 << 31) <= value < 1 << 31 else Int64


def _check_number(name: str, value: object, dtype: DType) -> None:
    """LaunchError (E3106) for a number that a type does not have."""
    if not dtype.has_arithmetic:
        raise argument_error(
            name, f"cannot be of type {dtype}, which does not support arithmetic", "annotate it cute.Float32"
        )
    if dtype.kind == "float":
        return
    if not isinstance(value, int):
        raise argument_error(name, f"is {shown(value)}, which is not a number of type {dtype}", "pass an integer")
    if not dtype.least <= value <= dtype.greatest:
        hint = "annotate it with a type that holds it, such as cute.Uint64, or pass a float"
        raise argument_error(name, f"is {shown(value)}, which is not a number of type {dtype}", hint)


def array_type(name: str, array: Array, rule: Dynamic | None = None) -> TensorType:
    """The type of a parameter for an array. LaunchError (E3106) for one that breaks a promise of its rule."""
    return _tensor_type(infer_array_spec(name, array, rule))


@lru_cache(maxsize=4096)
def _tensor_type(spec: ArraySpec) -> TensorType:
    """The type of a tensor in global memory; kept, since verifying it takes longer than a launch."""
    element = element_of_name(spec.dtype).in_memory
    return TensorType.new([element, SpaceAttr(GMEM), IntAttr(spec.align), LayoutAttr(spec.layout)])


def name_of_elements(dtype: DType) -> str:
    """The name of a type in `Array.dtype`. LaunchError (E3106) for one that the elements of no argument have."""
    element = BY_NAME.get(dtype.of_tensor.name)
    if element is None or (element.dlpack is None and not element.is_held_in_bytes):
        message = f"arguments cannot have elements of type {dtype}"
        raise LaunchError(Code.RUN_ARGUMENT, message, ELEMENTS_HINT)
    return element.signed_name


def element_of_name(dtype: str) -> DType:
    """The type of Python for the elements of an array."""
    return DTYPES[ELEMENTS[dtype].name]


def unmark(array: Any) -> Any:
    """The array itself of one that is marked as dynamic, or that a host function has."""
    while isinstance(array, Marked) or hasattr(array, "__tilefold_array__"):
        array = array.array if isinstance(array, Marked) else array.__tilefold_array__
    return array
