# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of the kernel that is being built: memory with a layout, and coordinates with a layout."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from types import MappingProxyType
from typing import Any, cast

from xdsl.dialects.builtin import IntAttr

from ...base.errors import Code, TilefoldError
from ...base.spaces import GMEM, SMEM, TMEM, Space
from ...dialects.cute import LayoutAttr
from ...dialects.ptx import GLOBAL, SHARED, SHARED_CLUSTER, IntToPtrOp, PtrType, SpaceAttr
from ...dialects.tile import AliasOp, AllocOp, CoordinateOp, PtrOp, TensorAtOp, TensorType, ViewOp
from ...layout.algebra.core import ComposedLayout, Layout, LayoutLike
from ...layout.algebra.swizzle import Swizzle
from ..scalars.dtypes import DTYPES, DType, Index, Int32, Int64
from ..scalars.values import MOST, Int, index_of, is_scalar
from ..tracing.state import emit, host
from ..tracing.truth import refuse_presence
from .address_space import AddressSpace
from .coordinates import as_tuple, counted_from_end, has_none, show_layout, split_coordinate
from .fragments import Vec, load, store
from .raw_pointers import Address, RawPointer
from .tensor_base import AnyTensor, Elements, inside, replaced_leaves, slice_modes
from .vectors import load_packed


def aligned_after(type: TensorType, distance: Int) -> int:
    """The known alignment in bytes of the element at a distance from a tensor's beginning. Raises TilefoldError
    (E5002) for a place within a byte.
    """
    divisor = 0 if distance.range == (0, 0) else distance.known.div
    bits = gcd(divisor * type.element_bits, 8 * type.align.data)
    if bits % 8:
        message = f"elements of {type.element_bits} bits begin within a byte"
        raise TilefoldError(Code.BUILD_VALUE, message, f"move by a multiple of {8 // type.element_bits}")
    return bits // 8 & -(bits // 8)  # the largest power of two that divides it


@dataclass(frozen=True, slots=True)
class PointerType:
    """The type of a pointer: the swizzle of its addresses, in bytes."""

    swizzle_type: Swizzle


@dataclass(frozen=True, eq=False, repr=False)  # without slots, as programs derive pointers to memory of the host
class Pointer:
    """The start of a tensor; `make_tensor` takes a pointer with a layout, and gives the tensor the pointer's `swizzle`
    (`recast_ptr`), if it has one. `p + n` is `n` elements further on: in shared memory that the kernel allocates,
    `distance` bytes after the start of the tensor `origin`.
    """

    tensor: "Tensor"
    swizzle: Swizzle | None = None
    origin: "Tensor | None" = None
    distance: Any = 0

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return self.tensor.element_type

    value_type = dtype

    @property
    def type(self) -> PointerType:
        """The type with the swizzle of addresses, of none by 0 bits."""
        held = self.tensor.ir_type.layout.data
        inner = held.inner if isinstance(held, ComposedLayout) else None
        if not isinstance(inner, Swizzle):
            return PointerType(self.swizzle or Swizzle(0, 4, 3))
        return PointerType(in_bytes(inner, self.dtype))

    @property
    def memspace(self) -> AddressSpace:
        """`AddressSpace.gmem`, `smem`, `rmem` or `dsmem`."""
        return self.tensor.memspace

    @property
    def value(self) -> "Pointer":
        """The pointer itself, as functions of MLIR dialects take it."""
        return self

    @property
    def alignment(self) -> int:
        """The known alignment of its address in bytes."""
        holder = self.tensor.ir_type
        held, align = holder.layout.data, holder.align.data
        if not isinstance(held, ComposedLayout) or not isinstance(held.inner, Swizzle) or held.offset == 0:
            return align
        step: Any = getattr(held.offset, "div", held.offset)
        return gcd(align, step * max(self.dtype.bits // 8, 1), 1 << in_bytes(held.inner, self.dtype).base)

    max_alignment = alignment

    def align(self, min_align: int) -> "Pointer":
        """The pointer with the promise that its address is a multiple of `min_align` bytes. Raises TilefoldError
        (E5002) for registers, and unless `min_align` is a power of two.
        """
        if not is_alignment(min_align):
            raise TilefoldError(Code.BUILD_VALUE, f"the alignment is {min_align!r}", "it is a power of two, in bytes")
        if self.alignment % min_align == 0:
            return self
        if self.memspace.name not in NUMBERED:
            message = f"the pointer is known to be aligned to {self.alignment} bytes, not to {min_align}"
            raise TilefoldError(Code.BUILD_VALUE, message, "allocate the fragment with that alignment")
        return tensor_at(self._start().number(), self.dtype, self.memspace.name, min_align).iterator

    def load(self) -> Any:
        """The element."""
        return self.raw_ptr().load()

    def store(self, value: object) -> None:
        """Writes the element."""
        self.raw_ptr().store(value)

    def __bool__(self) -> bool:
        refuse_presence("a pointer is neither true nor false", "p.load() is the element")

    def __add__(self, elements: object) -> "Pointer":
        tensor, type, swizzle, origin = self.tensor, self.tensor.ir_type, self.swizzle, self.origin
        if origin is None and is_allocated(tensor):
            origin = tensor
        if type.is_swizzled:
            held = type.layout.data
            swizzle = held.inner if isinstance(held, ComposedLayout) and isinstance(held.inner, Swizzle) else None
            if origin is None or swizzle is None:
                message, hint = "a pointer into a swizzle cannot be moved", "take a view: t[None, k], cute.local_tile"
                raise TilefoldError(Code.COMPOSED_UNSUPPORTED, message, hint)
            plain = type.with_layout(Layout(type.bytes * 8 // type.element_bits, 1))
            tensor = Tensor(emit(AliasOp(tensor.ssa, 0, plain)).results[0], tensor.element_type)
            type = plain
        count = index_of(elements)
        moved_type = type.with_layout(Layout(1, 0), aligned_after(type, count))
        moved = emit(ViewOp(tensor.ssa, count.ssa, moved_type)).results[0]
        bits = type.element_bits
        if origin is None or bits % 8:
            return Pointer(Tensor(moved, tensor.element_type))
        return Pointer(Tensor(moved, tensor.element_type), swizzle, origin, self.distance + elements * (bits // 8))

    __radd__ = __add__

    def toint(self) -> "PointerNumber | Int":
        """The address as a number: an Int64 in global memory, an Int32 in shared memory. The swizzle of a swizzled
        tensor's `type` is yet to be applied to it. On the host it serves only to make tensor maps.
        """
        if host() is not None:
            return PointerNumber(self)
        number, swizzle = self._start().number(), self.type.swizzle_type
        return swizzle(number) if self.tensor.ir_type.is_swizzled and not is_allocated(self.tensor) else number

    def _start(self) -> Address:
        """The address, which is that of a byte, as tensors of smaller elements begin with one."""
        packed = self.tensor.ir_type.is_packed and not self.tensor.ir_type.is_swizzled
        return RawPointer(self.tensor).recast(DTYPES["Uint8"]).address if packed else self.tensor.ptr()

    def to_llvm_ptr(self) -> "Pointer":
        """The pointer itself, as `llvm_ptr`."""
        return self

    @property
    def llvm_ptr(self) -> "Pointer":
        """The pointer itself, for programs that pass it to an operation of an IR."""
        return self

    def raw_ptr(self) -> RawPointer:
        """The address as a pointer with loads and stores. Raises TilefoldError (E0219) for a swizzled tensor."""
        if self.tensor.ir_type.is_swizzled:
            message = "the elements of a swizzled tensor do not follow each other"
            raise TilefoldError(Code.COMPOSED_UNSUPPORTED, message, "write t[i, j]")
        return RawPointer(self.tensor)

    def __repr__(self) -> str:
        return f"{self.memspace.name}_ptr[{self.tensor.ir_type.element_bits}b]"


def in_bytes(swizzle: Swizzle, dtype: DType) -> Swizzle:
    """A swizzle of elements of a type as one of addresses in bytes."""
    return Swizzle(swizzle.bits, swizzle.base + max(dtype.bits // 8, 1).bit_length() - 1, swizzle.shift)


def is_allocated(tensor: "Tensor") -> bool:
    """Whether a tensor is shared memory that the kernel allocates, from its beginning on."""
    return isinstance(tensor.ssa.owner, AllocOp | AliasOp) and tensor.ir_type.space.data is SMEM


@dataclass(frozen=True, slots=True)
class PointerNumber:
    """The address of a pointer as a number, which only the launch knows."""

    pointer: Pointer


def address_of(x: object) -> Address:
    """An address, or that of where a pointer points or an array begins. Raises TilefoldError (E5002) for anything
    else.
    """
    x = getattr(x, "address", x)
    if isinstance(x, Pointer):
        return x.tensor.ptr()
    if not isinstance(x, Address):
        hint = "write tensor.ptr(i, j) or tensor.iterator + n"
        raise TilefoldError(Code.BUILD_VALUE, f"expected the address of an element, got {type(x).__name__}", hint)
    return x


def remote(at: object) -> Address:
    """The address of a pointer or an address of a block of the cluster. Raises TilefoldError (E5002) for another."""
    address = address_of(at)
    if address.ssa.type != SHARED_CLUSTER:
        hint = "write cute.arch.mapa(tensor.ptr(i, j), rank)"
        raise TilefoldError(Code.BUILD_VALUE, "the address is not in the shared memory of a block of the cluster", hint)
    return address


def pointed(x: object) -> Any:
    """The pointer to a member of a structure; anything else as it is."""
    at = getattr(x, "address", x)
    return at if isinstance(at, Pointer) else x


class Tensor(Elements):
    """Elements in memory, with a layout.

    `t[i, j]` is an element, `t[i, j] = v` writes it; one number counts colexicographically. With `None` for a mode,
    `t[None, k]` is the tensor of the modes that are kept, and `t[None, k] = u` writes `u` there: a value, or a fragment
    in the shape of the kept modes.
    """

    __slots__ = ()

    @property
    def iterator(self) -> Pointer:
        """The start of the tensor."""
        return Pointer(self)

    def __setitem__(self, coord: object, value: object) -> None:
        if has_none(coord):
            slice_modes(self, coord).store(value)
            return
        if not is_scalar(value):
            is_place = hasattr(value, "ptr")
            hint = "read it by .ptr.load()" if is_place else "write t[None, k] = ... for several elements"
            message = f"an element is a value or a number, not {type(value).__name__}"
            raise TilefoldError(Code.BUILD_VALUE, message, hint)
        self.write(coord, value)

    def ptr(self, *coord: object) -> Address:
        """The address of the element at a coordinate, for atomic operations: `t.ptr(i, j)`; without a coordinate, of
        the first element.
        """
        attribute, operands = inside(*split_coordinate(coord or (0,)), self)
        return Address(emit(PtrOp.inferred([self.ssa, operands], {"coord": attribute})).results[0], self.element_type)

    @property
    def value(self) -> "Tensor":
        """The tensor itself, as functions of MLIR dialects take it."""
        return self

    def mark_layout_dynamic(self, leading_dim: int | None = None) -> "Tensor":
        """The tensor itself: its layout is that of the kernel. Tensors that a caller passes may be marked."""
        return self

    def mark_compact_shape_dynamic(
        self, mode: int, stride_order: Sequence[int] | None = None, divisibility: int = 1
    ) -> "Tensor":
        """The tensor itself; see `mark_layout_dynamic`."""
        return self

    def load(self) -> Vec:
        """All elements as a value in the tensor's shape, on which arithmetic works element by element; those of
        Float4E2M1FN can only be converted, by `to`.
        """
        return cast("Vec", load_packed(self)) if self.ir_type.is_packed else load(self)

    def store(self, value: object) -> None:
        """Writes a value of the tensor's shape, or the same number everywhere, with the conversions of `x.to`."""
        store(self, value)

    def __repr__(self) -> str:
        return f"{self.iterator!r} o {show_layout(self.ir_type.layout.data)}"


NUMBERED: Mapping[str, tuple[Space, PtrType, DType]] = MappingProxyType(
    {
        GMEM.name: (GMEM, GLOBAL, Int64),
        SMEM.name: (SMEM, SHARED, Int32),
        TMEM.name: (TMEM, PtrType(SpaceAttr(TMEM)), Int32),
    }
)
"""The memories whose addresses are numbers: their pointers, and the types of the numbers."""


def is_alignment(bytes: object) -> bool:
    """Whether it is a power of two."""
    return type(bytes) is int and bytes > 0 and bytes & (bytes - 1) == 0


_ONE = Layout(1, 0)


def tensor_at(number: Int, dtype: DType, memory: str, align: int, layout: LayoutLike = _ONE) -> Tensor:
    """The tensor, of one element by default, at an address that is a number."""
    space, pointer, _ = NUMBERED[memory]
    at = emit(IntToPtrOp(number.ssa, align, pointer)).results[0]
    type = TensorType(dtype.in_memory, SpaceAttr(space), IntAttr(align), LayoutAttr(layout))
    return Tensor(emit(TensorAtOp(at, type)).results[0], dtype)


class CoordTensor(AnyTensor):
    """A tensor whose elements are coordinates: `c[i, j]` is a coordinate, a tuple of integers.

    It has the views of the tensor whose elements it numbers. It takes no memory.
    """

    __slots__ = ()

    @property
    def iterator(self) -> "CoordPointer":
        """The coordinate from which it counts."""
        return CoordPointer(self)

    def __getitem__(self, coord: object) -> Any:
        if has_none(coord):
            return slice_modes(self, coord)
        attribute, operands = inside(*split_coordinate(as_tuple(counted_from_end(coord, self))), self)
        start = self.ir_type.start.data
        results = iter(emit(CoordinateOp.inferred([self.ssa, operands], {"coord": attribute})).results)

        def one(path: tuple[int, ...], leaf: object) -> Int:
            return Int(next(results), Index, range=(0, MOST))

        return replaced_leaves(start, one, every=True)

    def __repr__(self) -> str:
        return f"{show_layout(self.ir_type.start.data)} o {show_layout(self.ir_type.layout.data)}"


@dataclass(frozen=True, eq=False, slots=True)
class CoordPointer:
    """The coordinate from which a coordinate tensor counts; `make_tensor` takes it with a layout. `it[i]` is one of its
    integers.
    """

    tensor: CoordTensor

    def __getitem__(self, at: int) -> Any:
        return as_tuple(self.tensor[0])[at]
