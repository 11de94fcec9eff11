# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that a kernel allocates, of a block or of a thread, and filling it."""

from typing import Any

from ...base.spaces import RMEM, SMEM
from ...dialects.tile import MakeFragmentLikeOp
from ...dialects.tile.fragments import FRAGMENT_ALIGN
from ...layout.algebra.core import Layout, make_layout
from ...layout.algebra.product import make_fragment_like as layout_like
from ..scalars.dtypes import as_dtype
from .coordinates import as_layout
from .copying import emit_copy
from .fragments import Vec
from .tensor_base import allocate, emit_inferred, tensor_type
from .tensors import CoordTensor, Tensor


def make_rmem_tensor(layout_or_shape: Any, dtype: object) -> Tensor:
    """Registers of the thread, contents undefined: for a shape, compact, or in a layout. Both are static."""
    element = as_dtype(dtype)
    return Tensor(allocate(element, RMEM, FRAGMENT_ALIGN, as_layout(layout_or_shape)), element)


def make_rmem_tensor_like(src: "Tensor | Vec | Layout", dtype: object = None) -> Tensor:
    """Registers in the shape of a tensor, a fragment or a layout, compact, the first mode the fastest: one for each
    coordinate. By default the elements have the tensor's type.
    """
    element = dtype if dtype is not None or isinstance(src, Layout) else src.element_type
    return make_rmem_tensor(make_layout(src.shape), element)


def make_fragment_like(src: "Tensor | CoordTensor | Vec | Layout", dtype: object = None) -> Tensor:
    """Registers for the elements of a tensor, a fragment or a layout, compact, the modes in the order of the layout's
    strides, the first one contiguous (CuTe's make_fragment_like).

    Without `dtype` the elements are those of the tensor. An element at several coordinates, by modes of equal strides,
    may be one register, as in CuTe; `make_rmem_tensor_like` has a register for each. A fragment, or a tensor of
    coordinates, which takes a `dtype`, has no strides: the first mode is the fastest.
    """
    if isinstance(src, Vec):
        return make_rmem_tensor_like(src, dtype)
    if isinstance(src, CoordTensor):
        return make_rmem_tensor(src.shape, dtype)
    if isinstance(src, Layout):
        return make_rmem_tensor(layout_like(src), dtype)
    tensor_type(src)
    element = src.element_type if dtype is None else as_dtype(dtype)
    properties = {} if dtype is None else {"element": element.ir}
    return Tensor(emit_inferred(MakeFragmentLikeOp, [src.ssa], properties), element)


def make_smem_tensor(layout: object, dtype: object, alignment: int = 128) -> Tensor:
    """Shared memory of the block, contents undefined, in a layout that may be swizzled, or for a shape, compact.

    `alignment` is that of its first byte.
    """
    element = as_dtype(dtype)
    return Tensor(allocate(element, SMEM, alignment, as_layout(layout)), element)


def fill(tensor: Tensor, value: object) -> None:
    """Writes one value or number to every element."""
    tensor_type(tensor)
    tensor.fill(value)


def clear(tensor: Tensor) -> None:
    """Writes zero to every element."""
    fill(tensor, 0)


def basic_copy_if(pred: Tensor, src: Tensor, dst: Tensor) -> None:
    """Copies the elements of `src` to `dst` for which the predicates in `pred` hold."""
    emit_copy(src, dst, pred)
