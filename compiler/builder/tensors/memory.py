# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that a kernel allocates, of a block or of a thread, and filling it."""

from typing import Any

from ....dialects.tile import Space
from ....dialects.tile.fragments import FRAGMENT_ALIGN
from ..scalars.dtypes import as_dtype
from .coordinates import as_layout
from .tensor_base import allocate, tensor_type
from .tensors import Tensor


def make_rmem_tensor(layout: Any, dtype: Any) -> Tensor:
    """Registers of the thread, contents undefined: for a shape, compact, or in a layout. Both are static."""
    element = as_dtype(dtype)
    return Tensor(allocate(element, Space.Rmem, FRAGMENT_ALIGN, as_layout(layout)), element)


def make_smem_tensor(layout: Any, dtype: Any, alignment: int = 128) -> Tensor:
    """Shared memory of the block, contents undefined, in a layout that may be swizzled, or for a shape, compact.

    `alignment` is that of its first byte.
    """
    element = as_dtype(dtype)
    return Tensor(allocate(element, Space.Smem, alignment, as_layout(layout)), element)


def fill(tensor: Tensor, value: Any) -> None:
    """Writes one value or number to every element."""
    tensor_type(tensor)
    tensor.fill(value)


def clear(tensor: Tensor) -> None:
    """Writes zero to every element."""
    fill(tensor, 0)
