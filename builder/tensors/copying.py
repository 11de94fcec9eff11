# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operation of a copy, with fragments of predicates as the bytes that memory has for them."""

from typing import Any

from ...dialects.tile import CopyOp
from ...layout.algebra.core import make_layout, size
from ...layout.algebra.inttuple import rank
from ..scalars.dtypes import Boolean
from ..tracing.state import emit
from .fragments import Vec, load, store
from .modes import group_modes
from .tensor_base import Elements, registers, tensor_type
from .tensors import Tensor


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
    moved: list[Elements] = [source, target] if predicates is None else [source, target, predicates]
    if not by and _differ_in_rank(source, target):
        moved = [group_modes(tensor, 0) for tensor in moved]
    emit(CopyOp(moved[0].ssa, moved[1].ssa, pred=moved[2].ssa if predicates is not None else None, **by))
    if target is not dst:
        store(dst, load(target))


def _differ_in_rank(src: Tensor, dst: Tensor) -> bool:
    """Whether two tensors of the same size have different numbers of modes."""
    source, target = tensor_type(src).layout.data, tensor_type(dst).layout.data
    return rank(source.shape) != rank(target.shape) and size(source) == size(target)


def _in_bytes(tensor: Tensor) -> Tensor:
    """A tensor itself, or, of a fragment of predicates, registers of that layout for its elements as bytes."""
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
