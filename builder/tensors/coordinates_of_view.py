# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The coordinates of a view's elements in the tensor that it is a view of."""

from ...dialects.tile.view_base import LayoutViewOp
from ..tracing.state import emit
from .tensors import CoordTensor, Tensor
from .views import bounds, make_identity_tensor


def inside(view: Tensor) -> Tensor | None:
    """For each element of a view whether it is one of the tensor that the view was made from, a fragment of predicates;
    None where all are, as no tile reaches beyond the tensor.
    """
    whole = whole_of(view)
    if not any("ragged" in step.properties for step in _steps(view)):
        return None
    return bounds(on_coordinates(view, make_identity_tensor(whole)), whole.shape)


def whole_of(view: Tensor) -> Tensor:
    """The tensor that a view was made from."""
    steps = _steps(view)
    return Tensor(steps[-1].source, view.element_type) if steps else view


def on_coordinates(view: Tensor, coords: CoordTensor) -> CoordTensor:
    """The same view of coordinates of the tensor that a view was made from."""
    value = coords.ssa
    for step in reversed(_steps(view)):
        operands = [value if operand is step.source else operand for operand in step.operands]
        types = step.infer([operand.type for operand in operands], step.properties)
        made = type(step).create(operands=operands, result_types=types, properties=dict(step.properties))
        value = emit(made).results[0]
    return CoordTensor(value)


def _steps(view: Tensor) -> list[LayoutViewOp]:
    """The views between a tensor and a view of it, the last one first."""
    steps: list[LayoutViewOp] = []
    value = view.ssa
    while isinstance(step := value.owner, LayoutViewOp):
        steps.append(step)
        value = step.source
    return steps
