# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that a kernel allocates, of a block or of a thread, and filling it."""

from typing import Any

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import Attribute

from ....dialects.cute import LayoutAttr
from ....dialects.tile import AllocOp, Space, SpaceAttr, TensorType
from ....dialects.tile.fragments import FRAGMENT_ALIGN
from ....layout.algebra.core import LayoutLike
from ..scalars.dtypes import DType, as_dtype
from ..tracing.state import emit
from .coordinates import as_layout, check_static
from .tensors import Tensor, tensor_type


def allocate(dtype: DType, space: Space, align: int, layout: LayoutLike, held: Attribute | None = None) -> Tensor:
    """New memory of the block or the thread, contents undefined, for elements that the IR holds as `held`: as threads
    share them, by default, but of a fragment as they are computed with. Raises TilefoldError (E5003) unless it is
    static.
    """
    check_static(layout, "a kernel allocates memory of a static layout, but it is")
    element = held or (dtype.ir if space is Space.Rmem else dtype.in_memory)
    type = TensorType(element, SpaceAttr(space), IntAttr(align), LayoutAttr(layout))
    return Tensor(emit(AllocOp(type), is_settled=True).results[0], dtype)


def make_rmem_tensor(layout: Any, dtype: Any) -> Tensor:
    """Registers of the thread, contents undefined: for a shape, compact, or in a layout. Both are static."""
    return allocate(as_dtype(dtype), Space.Rmem, FRAGMENT_ALIGN, as_layout(layout))


def make_smem_tensor(layout: Any, dtype: Any, alignment: int = 128) -> Tensor:
    """Shared memory of the block, contents undefined, in a layout that may be swizzled, or for a shape, compact.

    `alignment` is that of its first byte.
    """
    return allocate(as_dtype(dtype), Space.Smem, alignment, as_layout(layout))


def fill(tensor: Tensor, value: Any) -> None:
    """Writes one value or number to every element."""
    tensor_type(tensor)
    tensor.fill(value)


def clear(tensor: Tensor) -> None:
    """Writes zero to every element."""
    fill(tensor, 0)
