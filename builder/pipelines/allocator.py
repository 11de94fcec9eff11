# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared memory by the names of the public programs: an allocator, and how much there is."""

from enum import Enum
from typing import Any

from ...base.target import Target
from ...layout.algebra.core import ComposedLayout
from ...layout.algebra.swizzle import Swizzle
from ..scalars.dtypes import DTYPES, DType, as_dtype
from ..tensors.allocation import make_smem_tensor
from ..tensors.pointers import in_elements
from ..tensors.structs import Struct
from ..tensors.tensors import Pointer, Tensor

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
        layout: Any,
        byte_alignment: int = 128,
        swizzle: Any = None,
        *,
        partition: SmemPartition = SmemPartition.USER,
    ) -> Tensor:
        """A tensor in a layout at a multiple of at least `byte_alignment` bytes. `swizzle` swizzles its addresses; it
        counts bytes, or elements like the swizzle of a composed layout. Such a tensor begins where the swizzle does.
        """
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
        element = as_dtype(element_type)
        return make_smem_tensor(num_elems, element, _aligned(element, byte_alignment)).iterator


def _aligned(dtype: DType, bytes: int) -> int:
    """An alignment of at least one element."""
    return max(bytes, dtype.bits // 8)


def alloc_smem(element_type: object, size_in_elems: int, alignment: int | None = None) -> Pointer:
    """Allocates shared memory for a number of elements, and returns its start."""
    return SmemAllocator().allocate_array(element_type, size_in_elems, alignment or 128)


def get_smem_capacity_in_bytes(compute_capability: str = "sm_90") -> int:
    """The bytes of shared memory that a block can have on a target, by default Hopper's. Raises TargetError for an
    unknown one.
    """
    return Target(compute_capability).max_shared_bytes
