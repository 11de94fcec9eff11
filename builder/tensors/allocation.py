# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that a kernel allocates for a block or a thread, and filling it."""

from typing import Any

from ...base.spaces import RMEM, SMEM
from ...dialects.tile import CopyOp, MakeFragmentLikeOp
from ...dialects.tile.fragments import FRAGMENT_ALIGN
from ...layout.algebra.core import Layout, make_layout, size
from ...layout.algebra.inttuple import rank
from ...layout.algebra.product import make_fragment_like as layout_like
from ..scalars.dtypes import Boolean, as_dtype
from ..tracing.state import emit
from .coordinates import as_layout
from .fragments import Vec, load, store
from .modes import group_modes
from .tensor_base import Elements, allocate, emit_inferred, registers, tensor_type
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
    held = as_layout(layout)
    return Tensor(allocate(element, SMEM, alignment, held), element).swizzled_by(held)


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


def emit_copy(src: Tensor, dst: Tensor, pred: "Tensor | Vec | None", **by: Any) -> None:
    """A copy; fragments of predicates are copied as the bytes that they are in memory. Without an atom, only the
    numbers of elements have to agree: tensors of other shapes are copied in the order of their coordinates.
    """
    source, target = _in_bytes(src), _in_bytes(dst)
    predicates = None if pred is None else _predicates(pred)
    if source is not src:
        store(source, load(src))
    if target is not dst and pred is not None:
        store(target, load(dst))  # where nothing is copied, it stays
    read, written, where = (source, target, predicates) if by else of_one_rank(source, target, predicates)
    emit(CopyOp(read.ssa, written.ssa, pred=None if where is None else where.ssa, **by))
    if target is not dst:
        store(dst, load(target))


def of_one_rank(src: Tensor, dst: Tensor, pred: Any) -> tuple[Tensor, Tensor, Any]:
    """Two tensors, and predicates if there are any, with one mode each if they have different numbers of modes, but as
    many elements: a copy takes them in the order of their coordinates.
    """
    source, target = tensor_type(src).layout.data, tensor_type(dst).layout.data
    if rank(source.shape) == rank(target.shape) or size(source) != size(target):
        return src, dst, pred
    return group_modes(src, 0), group_modes(dst, 0), None if pred is None else group_modes(pred, 0)


def _in_bytes(tensor: Tensor) -> Tensor:
    """A tensor itself; for a fragment of predicates, registers of that layout with its elements as bytes."""
    type = tensor_type(tensor)
    if not type.is_predicate:
        return tensor
    element = tensor.element_type
    return Tensor(registers(element, type.layout.data, element.in_memory).ssa, element)


def _predicates(pred: "Tensor | Vec") -> Elements:
    """A fragment of predicates as a copy takes it."""
    if isinstance(pred, Tensor) and tensor_type(pred).is_predicate:
        return pred
    fragment = (pred if isinstance(pred, Vec) else load(pred)).to(Boolean)
    materialized = fragment.materialize()
    if not tensor_type(materialized).is_predicate:
        materialized = registers(Boolean, make_layout(fragment.shape))
        store(materialized, fragment)
    return materialized
