# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Objects of other libraries as arguments: in the memory of C, as numbers, addresses and structures of these.

An object that is a `JitArgument` says which types its values have and where they lie. Each call reads them; the
function sees the object's own reconstruction of them.
"""

import builtins
import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from xdsl.ir import Attribute

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.parameters import SCALARS, ParameterKind
from tilefold.builder.scalars.dtypes import DType, Int64, dtype_of
from tilefold.builder.tensors.address_space import AddressSpace
from tilefold.dialects.kernel import passed_as
from tilefold.runtime.errors import argument_error


@runtime_checkable
class JitArgument(Protocol):
    """An argument of host functions: the types of its values, pointers to them, and the object that the function sees,
    which is made of them.
    """

    def __get_mlir_types__(self) -> Sequence[Any]: ...

    def __c_pointers__(self) -> Sequence[Any]: ...

    def __new_from_mlir_values__(self, values: Sequence[object]) -> Any: ...


@runtime_checkable
class DynamicExpression(Protocol):
    """An argument of kernels within host functions: the values in it, and an object with others."""

    def __extract_mlir_values__(self) -> Any: ...

    def __new_from_mlir_values__(self, values: Sequence[object]) -> Any: ...


@dataclass(frozen=True, slots=True)
class PointerType:
    """The type of addresses in a memory, by its number (`AddressSpace`)."""

    space: AddressSpace

    @staticmethod
    def get(address_space: "int | AddressSpace" = 0) -> "PointerType":
        """The type of addresses in a memory, also by its number. Raises TilefoldError (E5002) for an unknown one."""
        if isinstance(address_space, AddressSpace):
            return PointerType(address_space)
        known = {space.value: space for space in AddressSpace}
        if address_space not in known:
            hint = f"known are {', '.join(map(str, known))}"
            raise TilefoldError(Code.BUILD_VALUE, f"unknown address space {address_space}", hint)
        return PointerType(known[address_space])


@dataclass(frozen=True, slots=True)
class PtrType:
    """The type of a pointer to elements of a type in a memory, at a multiple of some bytes."""

    pointee: Any
    memspace: AddressSpace
    alignment: int

    @staticmethod
    def get(pointee: object, address_space: AddressSpace, alignment: int = 1) -> "PtrType":
        """The type of a pointer."""
        return PtrType(pointee, address_space, alignment)


@dataclass(frozen=True, slots=True)
class StructType:
    """The type of a structure in C, by the types of its members."""

    members: "tuple[CType, ...]"

    @staticmethod
    def get_literal(body: "Sequence[CType]", *, packed: bool = False) -> "StructType":
        """The type of a structure. TilefoldError (E5002) for a packed one."""
        if packed:
            raise TilefoldError(Code.BUILD_VALUE, "structures are not packed", "leave out packed=True")
        return StructType(tuple(body))


CType: TypeAlias = Attribute | PointerType | PtrType | StructType
"""A type of values in the memory of C."""


class StructValue(NamedTuple):
    """A structure whose members are values of a function."""

    members: tuple[Any, ...]


def places_in(name: str, argument: JitArgument) -> Iterator[tuple[CType, int]]:
    """The types of an argument's values, and their addresses. LaunchError (E3106) for another number of pointers than
    of types, and for a null pointer.
    """
    types, pointers = list(argument.__get_mlir_types__()), list(argument.__c_pointers__())
    if len(types) != len(pointers):
        problem = f"has {len(types)} types and {len(pointers)} pointers"
        raise argument_error(name, problem, "return a pointer for each type")
    for number, (type, pointer) in enumerate(zip(types, pointers, strict=True)):
        try:
            address = pointer if isinstance(pointer, int) else ctypes.cast(pointer, ctypes.c_void_p).value
        except ctypes.ArgumentError:
            given = builtins.type(pointer).__name__
            raise argument_error(
                name, f"has a {given} in place of a pointer", "return the address of the value"
            ) from None
        if not address:
            raise argument_error(name, f"has a null pointer for its value {number}", "return the address of the value")
        yield type, address


def members_at(name: str, type: StructType, address: int) -> Iterator[tuple[CType, int]]:
    """The types of the members of a structure at an address, and their addresses."""
    for member, offset in zip(type.members, _offsets(name, type)[0], strict=True):
        yield member, address + offset


def number_at(name: str, type: Attribute | PointerType | PtrType, address: int) -> tuple[int | float, DType]:
    """The number at an address, and its type in functions, where addresses are integers. LaunchError (E3106), which
    names the argument, for a type that numbers do not have.
    """
    dtype = Int64 if isinstance(type, PointerType | PtrType) else dtype_of(type)
    kind = _kind(name, type)
    return kind.unpack(ctypes.string_at(address, kind.size)), dtype


def _kind(name: str, type: Attribute | PointerType | PtrType) -> ParameterKind:
    kind = SCALARS["i64"] if isinstance(type, PointerType | PtrType) else passed_as(type)
    if kind is None:
        hint = "use integers, floats, pointers and structures of these"
        raise argument_error(name, f"has a value of type {type}", hint)
    return kind


def _size(name: str, type: CType) -> tuple[int, int]:
    """The bytes of a value in the memory of C, and its alignment."""
    if isinstance(type, StructType):
        return _offsets(name, type)[1:]
    kind = _kind(name, type)
    return kind.size, kind.align


def _offsets(name: str, type: StructType) -> tuple[list[int], int, int]:
    """The offsets of a structure's members, its size, and its alignment."""
    offsets, end, most = list[int](), 0, 1
    for member in type.members:
        size, align = _size(name, member)
        offsets.append(-(-end // align) * align)
        end, most = offsets[-1] + size, max(most, align)
    return offsets, -(-end // most) * most, most
