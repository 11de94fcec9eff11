# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operation of a copy, with fragments of predicates as the bytes that memory has for them."""

from typing import Any

from xdsl.ir import SSAValue

from ....dialects.tile import CopyOp
from ....layout.algebra.core import make_layout
from ..scalars.dtypes import Boolean
from ..tracing.state import emit
from .fragments import Vec, load, store
from .tensor_base import registers, tensor_type
from .tensors import Tensor


def emit_copy(src: Tensor, dst: Tensor, pred: "Tensor | Vec | None", **by: Any) -> None:
    """A copy; fragments of predicates are copied as the bytes that they are in memory."""
    source, target = _in_bytes(src), _in_bytes(dst)
    predicates = None if pred is None else _predicates(pred)
    if source is not src:
        store(source, load(src))
    if target is not dst and pred is not None:
        store(target, load(dst))  # where nothing is copied, it stays
    emit(CopyOp(source.ssa, target.ssa, pred=predicates, **by))
    if target is not dst:
        store(dst, load(target))


def _in_bytes(tensor: Tensor) -> Tensor:
    """A tensor itself, or, of a fragment of predicates, registers of that layout for its elements as bytes."""
    type = tensor_type(tensor)
    if not type.is_predicate:
        return tensor
    element = tensor.element_type
    return Tensor(registers(element, type.layout.data, element.in_memory).ssa, element)


def _predicates(pred: "Tensor | Vec") -> SSAValue:
    """A fragment of predicates as a copy takes it."""
    if isinstance(pred, Tensor) and tensor_type(pred).is_predicate:
        return pred.ssa
    fragment = (pred if isinstance(pred, Vec) else load(pred)).to(Boolean)
    settled = fragment.settle()
    if not tensor_type(settled).is_predicate:
        settled = registers(Boolean, make_layout(fragment.shape))
        store(settled, fragment)
    return settled.ssa
