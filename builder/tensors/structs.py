# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Structures in shared memory: a class whose annotations are its members, as `cute.struct` makes it.

Members are placed as in C: one after the other, each at a multiple of its alignment. Where a member of 1024 bytes or
more is aligned for TMA copies, to 128 bytes, its multiple is 1024: CuTe swizzles addresses, tilefold the offsets in
a tensor, and both are the same where the tensor begins at a period of the swizzle.

`native_struct` makes objects with typed fields that kernels change, as state that is updated in loops.
"""

import inspect
import sys
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from functools import partial
from typing import Any, NoReturn

from ...base.errors import Code, TilefoldError
from ...layout.algebra.core import LayoutLike
from ...layout.tma.tensor_map import SHARED_ALIGNMENT
from ..scalars.dtypes import DType, as_dtype
from ..scalars.operators import Arithmetic, Bitwise
from .coordinates import as_tuple
from .pointers import alias, in_elements
from .tensors import Pointer, Tensor

_PERIOD = 8 * SHARED_ALIGNMENT
"""The bytes after which a swizzle of 128 bytes repeats."""


@dataclass(frozen=True)
class MemRange:
    """A member of `size` elements of a type: `MemRange[Float32, 64]`."""

    dtype: DType
    size: int

    def __class_getitem__(cls, given: object) -> "MemRange":
        dtype, size, *_ = (*as_tuple(given), None)
        if type(size) is not int or size < 0:
            raise _struct_error("MemRange has a type and a number of elements", "write cute.struct.MemRange[dtype, n]")
        return cls(as_dtype(dtype), size)


@dataclass(frozen=True)
class Align:
    """A member that begins at a multiple of `bytes`: `Align[MemRange[Float16, 512], 1024]`."""

    member: Any
    bytes: int

    def __class_getitem__(cls, given: object) -> "Align":
        member, bytes, *_ = (*as_tuple(given), 0)
        if type(bytes) is not int or bytes < 1 or bytes & (bytes - 1):
            raise _struct_error("Align has a member and a power of two", "write cute.struct.Align[member, 1024]")
        return cls(member, bytes)


@dataclass(frozen=True)
class _Member:
    offset: int
    kind: Any


class Struct:
    """The type of a structure: `size_in_bytes()`, and `S(pointer)`, the structure that begins at a pointer to shared
    memory.
    """

    def __init__(self, name: str, annotations: Mapping[str, object], overlap: bool = False) -> None:
        self.name = name
        self.members: dict[str, _Member] = {}
        self.alignment, end = 1, 0
        for member, given in annotations.items():
            kind = given.member if isinstance(given, Align) else given
            bytes, align = _extent(member, kind)
            align = max(align, given.bytes if isinstance(given, Align) else 1)
            if align >= SHARED_ALIGNMENT and bytes >= _PERIOD:
                align = max(align, _PERIOD)
            offset = 0 if overlap else -(-end // align) * align
            self.members[member] = _Member(offset, kind)
            self.alignment, end = max(self.alignment, align), max(end, offset + bytes)
        self._bytes = -(-end // self.alignment) * self.alignment

    def size_in_bytes(self) -> int:
        """The bytes of the structure, a multiple of its alignment."""
        return self._bytes

    __sizeof__ = size_in_bytes

    def __alignof__(self) -> int:
        """The alignment of the structure in bytes."""
        return self.alignment

    def __call__(self, pointer: object, offset: int = 0) -> "StructView":
        return StructView(self, pointer, offset)

    def __repr__(self) -> str:
        return f"struct {self.name}"


class StructView:
    """A structure in shared memory: its members are attributes."""

    def __init__(self, struct: Struct, pointer: object, offset: int) -> None:
        if not isinstance(pointer, Pointer):
            raise _struct_error(
                f"{struct!r} begins at a {type(pointer).__name__}", "give the result of allocator.allocate(n)"
            )
        object.__setattr__(self, "_struct", struct)
        object.__setattr__(self, "_base", (pointer.tensor, offset))

    def __getattr__(self, name: str) -> Any:
        struct: Struct = self.__dict__["_struct"]
        member = struct.members.get(name)
        if member is None:
            listed = ", ".join(struct.members)
            raise TilefoldError(Code.BUILD_NAME, f"{struct!r} has no member '{name}'", f"it has {listed}")
        memory, offset = self.__dict__["_base"]
        if isinstance(member.kind, Struct):
            return member.kind(Pointer(memory), offset + member.offset)
        if isinstance(member.kind, MemRange):
            return Range(memory, offset + member.offset, member.kind)
        return ScalarMember(Pointer(alias(memory, 1, member.kind, offset + member.offset)))

    def __setattr__(self, name: str, value: object) -> None:
        member = getattr(self, name)
        if not isinstance(member, ScalarMember):
            raise _struct_error(f"'{name}' is not a scalar", "write to its elements")
        member.ptr.store(value)


@dataclass(frozen=True, eq=False)
class ScalarMember(Arithmetic, Bitwise):
    """A member of one element: `ptr` points to it, and it is an address where one is expected. Operators and conditions
    raise TilefoldError (E5002).
    """

    ptr: Pointer

    @property
    def address(self) -> Pointer:
        """Where it lies: `address_of` reads it."""
        return self.ptr

    def toint(self) -> Any:
        """The number of its address, as of a pointer."""
        return self.ptr.toint()

    @property
    def llvm_ptr(self) -> Pointer:
        """The pointer to it."""
        return self.ptr

    def __bool__(self) -> bool:
        return self._unary("not")

    def _binary(self, name: str, a: object, b: object) -> Any:
        return self._unary(name)

    def _compare(self, predicate: str, a: object, b: object) -> Any:
        return self._unary(predicate)

    def _unary(self, name: str) -> NoReturn:
        message = f"a member of a structure is a place in memory, not a value of type {self.ptr.dtype}"
        raise TilefoldError(Code.BUILD_VALUE, message, "read it by .ptr.load()")


@dataclass(frozen=True)
class Range:
    """A member of several elements: `m[i]` is one of them."""

    memory: Tensor
    offset: int
    kind: MemRange

    @property
    def _size(self) -> int:
        """The number of elements, by the name that FlashAttention's MLA kernels read."""
        return self.kind.size

    def data_ptr(self) -> Pointer | None:
        """The start of the elements, a pointer; None if there are none."""
        return self._all().iterator if self.kind.size else None

    def get_tensor(self, layout: LayoutLike, swizzle: Any = None, dtype: object = None) -> Tensor:
        """A tensor in a layout, whose addresses are swizzled by `swizzle`; by default of the elements' type. It may
        take the members that follow, too: programs use their memory again.

        Raises TilefoldError for a layout that does not fit the structure.
        """
        element = self.kind.dtype if dtype is None else as_dtype(dtype)
        return alias(self.memory, in_elements(swizzle, layout, element), element, self.offset).swizzled_by(layout)

    def __getitem__(self, index: object) -> Any:
        return self._all()[index]

    def __setitem__(self, index: object, value: object) -> None:
        self._all()[index] = value

    def _all(self) -> Tensor:
        if not self.kind.size:
            raise _struct_error("the member has no elements", "give its MemRange some")
        return alias(self.memory, self.kind.size, self.kind.dtype, self.offset)


class struct(Struct):  # noqa: N801 - the name of CuTe programs
    """`@cute.struct` makes a class the type of a structure in shared memory, which `SmemAllocator.allocate` takes.

    Each annotation is a type such as `cute.Int64`, `cute.struct.MemRange[dtype, n]`, another structure, or
    `cute.struct.Align[member, bytes]`. Raises TilefoldError (E5002) for anything else.
    """

    MemRange = MemRange
    Align = Align

    def __init__(self, decorated: type) -> None:
        if not isinstance(decorated, type):  # pyright: ignore[reportUnnecessaryIsInstance]
            problem = f"struct takes a class, not {type(decorated).__name__}"
            raise _struct_error(problem, "write @cute.struct before a class")
        super().__init__(decorated.__name__, _annotations_of(decorated))


class union(Struct):  # noqa: N801 - the name of CuTe programs
    """`@cute.union` makes a class the type of a union in shared memory: all members begin where it begins.

    Annotations are those of `struct`. Raises TilefoldError (E5002) for anything else.
    """

    def __init__(self, decorated: type) -> None:
        super().__init__(decorated.__name__, _annotations_of(decorated), overlap=True)


def _annotations_of(decorated: type) -> dict[str, object]:
    """The annotations of a class. Those that are texts, as `from __future__ import annotations` makes all, may name
    what the function around the class has.
    """
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back and frame.f_globals.get("__name__") != decorated.__module__:
        frame = frame.f_back
    names = {**getattr(sys.modules.get(decorated.__module__), "__dict__", {}), **frame.f_locals}
    return inspect.get_annotations(decorated, globals=names, eval_str=True)


def _extent(name: str, kind: object) -> tuple[int, int]:
    """The bytes of a member, and their alignment."""
    if isinstance(kind, Struct):
        return kind.size_in_bytes(), kind.alignment
    if isinstance(kind, DType | MemRange):
        dtype, size = (kind, 1) if isinstance(kind, DType) else (kind.dtype, kind.size)
        bits = 8 if dtype.kind == "bool" else dtype.bits
        return -(-bits * size // 8), max(1, bits // 8)
    hint = "write a type such as cute.Int64, cute.struct.MemRange[dtype, n], cute.struct.Align[...], or a structure"
    raise _struct_error(f"member '{name}' of a structure is {kind!r}", hint)


def _struct_error(problem: str, hint: str) -> TilefoldError:
    return TilefoldError(Code.BUILD_VALUE, problem, hint)


def native_struct(cls: type[Any] | None = None, /, *, zero_init: bool = True, packed: bool = False) -> Any:
    """Makes a class with annotated fields a structure of values: `@cute.native_struct`. Branches and loops carry its
    fields.

    `S(total=x)` converts numbers and values to the types of the fields; other fields are 0 unless `zero_init` is False,
    and must be given then. Its objects are arguments of kernels, too. A structure has no memory, so that `packed`
    changes nothing; `cute.struct` describes one in shared memory. Raises TilefoldError (E5002) for anything but a
    class.
    """
    if cls is None:
        return partial(native_struct, zero_init=zero_init, packed=packed)
    if not isinstance(cls, type):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"native_struct takes a class, not {type(cls).__name__}"
        raise TilefoldError(Code.BUILD_VALUE, message, "write @cute.native_struct before a class")
    types = {
        name: type for name, type in inspect.get_annotations(cls, eval_str=True).items() if isinstance(type, DType)
    }

    def convert(self: object) -> None:
        for name, type in types.items():
            setattr(self, name, type(getattr(self, name)))

    for name in types if zero_init else ():
        if getattr(cls, name, MISSING) is MISSING:
            setattr(cls, name, types[name].zero)
    cls.__post_init__ = convert
    return dataclass(kw_only=False, eq=False)(cls)
