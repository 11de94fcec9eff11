# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared memory by the names of the public programs: an allocator, the memory of the launch, and how much there is."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any

from xdsl.dialects.builtin import IntAttr, StringAttr

from ...base.errors import Code, TilefoldError
from ...base.spaces import SMEM
from ...base.target import Target
from ...dialects.cute import LayoutAttr
from ...dialects.ptx import SpaceAttr
from ...dialects.tile import AllocOp, TensorType
from ...layout.algebra.core import ComposedLayout, Layout
from ...layout.algebra.swizzle import Swizzle
from ..scalars.dtypes import DTYPES, DType, as_dtype
from ..tensors.allocation import make_smem_tensor
from ..tensors.pointers import in_elements, recast_ptr
from ..tensors.structs import Struct
from ..tensors.tensor_base import check_shared
from ..tensors.tensors import Pointer, Tensor, is_alignment
from ..tracing.state import current

Int8 = DTYPES["Int8"]


class SmemPartition(Enum):
    """The part of shared memory that a program asks for. The compiler places all of it, so that they are one."""

    USER = "user"
    RESERVED = "reserved"


class SmemAllocator:
    """Allocates shared memory of the block; the compiler places it, whatever partition a program names."""

    @staticmethod
    def capacity_in_bytes(compute_capability: str = "sm_90") -> int:
        """The bytes that a block can have on a target; see `get_smem_capacity_in_bytes`."""
        return get_smem_capacity_in_bytes(compute_capability)

    def allocate(
        self, size_or_type: object, byte_alignment: int = 16, *, partition: SmemPartition = SmemPartition.USER
    ) -> Any:
        """Allocates a number of bytes, an element of a type, or a structure (`cute.struct`), at a multiple of at least
        `byte_alignment` bytes, and returns the start, or the structure.
        """
        _take_by("SmemAllocator")
        if isinstance(size_or_type, Struct):
            align = max(byte_alignment, size_or_type.alignment)
            memory = make_smem_tensor(max(size_or_type.size_in_bytes(), 1), Int8, align)
            return size_or_type(memory.iterator)
        is_size = type(size_or_type) is int
        shape, dtype = (size_or_type, Int8) if is_size else (1, as_dtype(size_or_type))
        return make_smem_tensor(shape, dtype, _aligned(dtype, byte_alignment)).iterator

    def allocate_tensor(
        self,
        element_type: object,
        layout: object,
        byte_alignment: int = 128,
        swizzle: Any = None,
        *,
        partition: SmemPartition = SmemPartition.USER,
    ) -> Tensor:
        """A tensor in a layout at a multiple of at least `byte_alignment` bytes. `swizzle` swizzles its addresses; it
        counts bytes, or elements like the swizzle of a composed layout. Such a tensor begins where the swizzle does.
        """
        _take_by("SmemAllocator")
        element = as_dtype(element_type)
        placed = in_elements(swizzle, layout, element)
        align = _aligned(element, byte_alignment)
        if isinstance(placed, ComposedLayout) and isinstance(placed.inner, Swizzle):
            align = max(align, element.bits * (1 << placed.inner.base + placed.inner.shift + placed.inner.bits) // 8)
        return make_smem_tensor(placed, element, align).swizzled_by(layout)

    def allocate_array(
        self,
        element_type: object,
        num_elems: int = 1,
        byte_alignment: int = 128,
        *,
        partition: SmemPartition = SmemPartition.USER,
    ) -> Pointer:
        """Allocates an array of `num_elems` elements, and returns its start."""
        _take_by("SmemAllocator")
        return alloc_smem(element_type, num_elems, byte_alignment)


def _aligned(dtype: DType, bytes: int) -> int:
    """An alignment of at least one element."""
    return max(bytes, dtype.bits // 8)


def alloc_smem(element_type: object, size_in_elems: int, alignment: int | None = None) -> Pointer:
    """Allocates shared memory for a number of elements, and returns its start."""
    element = as_dtype(element_type)
    return make_smem_tensor(size_in_elems, element, _aligned(element, alignment or 128)).iterator


_ALIGNMENT = 1024
"""That of the launch's memory in bytes: the strictest that an instruction asks for."""


def get_dyn_smem(element_type: object, alignment: int | None = None) -> Pointer:
    """The start of the shared memory that the launch gives by `smem`, as elements of a type, at a multiple of
    `alignment` bytes. It is the same in every call, and apart from memory that the kernel allocates by
    `make_smem_tensor` and `alloc_smem`.

    A kernel is built for the launch's `smem` as it is for the block. In CuTe, `SmemAllocator` begins there too, so a
    kernel that has both is rejected. Raises TilefoldError (E5002) for this, for an alignment that is not a power of two
    up to 1024, and where the launch gives less than one element; E2103 where it gives more than a block has.
    """
    element, bytes = as_dtype(element_type), current().smem or 0
    if alignment is not None and not (is_alignment(alignment) and alignment <= _ALIGNMENT):
        hint = f"it is a power of two, in bytes, up to {_ALIGNMENT}"
        raise TilefoldError(Code.BUILD_VALUE, f"the alignment is {alignment!r}", hint)
    if bytes * 8 < element.bits:
        message = f"the launch gives {bytes} bytes of shared memory, less than an element of {element}"
        raise TilefoldError(Code.BUILD_VALUE, message, "write .launch(..., smem=bytes)")
    check_shared("the launch gives", bytes)
    _take_by("get_dyn_smem")
    type = TensorType(Int8.in_memory, SpaceAttr(SMEM), IntAttr(_ALIGNMENT), LayoutAttr(Layout(bytes, 1)))
    memory = current().shared(StringAttr("the launch's shared memory"), lambda: AllocOp(type))
    return recast_ptr(Tensor(memory, Int8).iterator, dtype=element)


def _take_by(function: str) -> None:
    """Notes the function by which the kernel takes the memory at the start of what the launch gives. Raises
    TilefoldError (E5002) for a second one.
    """
    builder = current()
    if builder.smem_by not in ("", function):
        message = f"the kernel takes shared memory by {builder.smem_by} and by {function}"
        hint = "both begin at the same address in CuTe: take all of it by one of them, or by cute.make_smem_tensor"
        raise TilefoldError(Code.BUILD_VALUE, message, hint)
    builder.smem_by = function


def get_smem_capacity_in_bytes(compute_capability: str = "sm_90") -> int:
    """The bytes of shared memory that a block can have on a target, by default Hopper's. Raises TargetError for an
    unknown one.
    """
    return Target(compute_capability).max_shared_bytes


SMEM_CAPACITY: Mapping[str, int] = MappingProxyType(
    {name: get_smem_capacity_in_bytes(f"sm_{name[2:]}") for name in ("sm80", "sm86", "sm89", "sm90", "sm100", "sm120")}
)
"""What `get_smem_capacity_in_bytes` returns, by the names of before."""
