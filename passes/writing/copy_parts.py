# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The part of a copy's operand that one execution of an instruction moves, at the indices of the loops around it."""

from xdsl.ir import SSAValue

from ...dialects.cute import CoordAttr, LayoutAttr
from ...dialects.cute.values import integers, typed
from ...dialects.tile import Crd2IdxOp, TensorType, ViewOp
from ...dialects.tile.view_base import infer_shifted_type
from ...layout.algebra.core import Layout, LayoutLike, plain_layout
from ...layout.algebra.integers import Unknown
from ...layout.algebra.inttuple import leaves
from ...layout.tiling.copy_loops import with_outer
from .emitter import Emitter, SsaInt
from .tensor_scalars import scalars_for


def make_part(
    emitter: Emitter, tensor: SSAValue, values: LayoutLike, indices: list[SSAValue], modes: list[Layout]
) -> SSAValue:
    """The view of `tensor` that one execution of the atom moves: `values`, at the current indices of the loops."""
    type = tensor.type
    assert isinstance(type, TensorType)
    moving = [(index, mode) for index, mode in zip(indices, modes, strict=True) if any(leaves(mode.stride))]
    offset, distance = None, 0
    if moving:
        layout = Layout(tuple([mode.shape for _, mode in moving]), tuple([mode.stride for _, mode in moving]))
        known, scalars = typed(layout), [x.value for x in integers(layout) if isinstance(x, SsaInt)]
        where = (Unknown(),) * len(moving)
        offset = emitter.value(Crd2IdxOp(CoordAttr(where), [index for index, _ in moving], LayoutAttr(known), scalars))
        distance = known(where)
    part = typed(plain_layout(values))
    if type.is_swizzled:
        view = type.with_layout(with_outer(type.layout.data, part, distance))
    else:
        view = infer_shifted_type(type, part, distance)
    if offset is None and view == type:
        return tensor
    return emitter.value(ViewOp(tensor, offset, view, scalars_for(emitter, part, values)))
