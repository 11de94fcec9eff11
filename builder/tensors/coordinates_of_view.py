# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The coordinates of a view's elements in the tensor that it is a view of."""

from ...dialects.tile.view_base import LayoutViewOp
from ..tracing.state import emit
from .tensors import CoordTensor, Tensor
from .views import bounds, make_identity_tensor


def inside(view: Tensor) -> Tensor | None:
    """For each element of a view whether it is one of the tensor that the view was made from, a fragment of predicates;
    None where all are, as no tile reaches beyond the tensor.

    The views between the tensor and this one are taken of its coordinates, too.
    """
    steps: list[LayoutViewOp] = []
    value = view.ssa
    while isinstance(step := value.owner, LayoutViewOp):
        steps.append(step)
        value = step.source
    if not any("ragged" in step.properties for step in steps):
        return None
    whole = Tensor(value)
    coords = make_identity_tensor(whole).ssa
    for step in reversed(steps):
        operands = [coords if operand is step.source else operand for operand in step.operands]
        types = step.infer([operand.type for operand in operands], step.properties)
        made = type(step).create(operands=operands, result_types=types, properties=dict(step.properties))
        coords = emit(made).results[0]
    return bounds(CoordTensor(coords), whole.shape)
