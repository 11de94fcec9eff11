# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared memory by the names of the public programs: an allocator, and how much there is."""

from typing import Any

from ....base.target import Target
from ..tensors.layouts import make_composed_layout
from ..tensors.memory import make_smem_tensor
from ..tensors.tensors import Pointer, Tensor


class SmemAllocator:
    """Allocates shared memory of the block; the compiler places it."""

    def allocate_tensor(self, element_type: Any, layout: Any, byte_alignment: int = 128, swizzle: Any = None) -> Tensor:
        """A tensor in a layout, whose offsets are swizzled by `swizzle`, at a multiple of `byte_alignment` bytes."""
        whole = layout if swizzle is None else make_composed_layout(swizzle, 0, layout)
        return make_smem_tensor(whole, element_type, byte_alignment)

    def allocate_array(self, element_type: Any, num_elems: int = 1, byte_alignment: int = 128) -> Pointer:
        """Where an array of `num_elems` elements begins."""
        return make_smem_tensor(num_elems, element_type, byte_alignment).iterator


def get_smem_capacity_in_bytes(target: str) -> int:
    """The bytes of shared memory that a block can have on a target such as "sm_90". Raises TargetError for another."""
    return Target(target).max_shared_bytes
