# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Registers for instructions that move several values, where the values lie apart in their fragment.

An instruction names each of its registers. Its operation moves a run of them, so values that lie apart are moved to
or from such a run, which takes no instruction.
"""

from xdsl.dialects.builtin import IntAttr
from xdsl.ir import SSAValue

from ...base.spaces import RMEM
from ...dialects.cute import LayoutAttr
from ...dialects.tile import AllocOp, CopyAtomAttr, CopyOp, TensorType, ViewOp
from ...dialects.tile.copy_rules import register_align
from ...dialects.tile.fragments import FRAGMENT_ALIGN
from ...layout.algebra.coalesce import contiguous_values
from ...layout.algebra.core import Layout, make_layout, plain_layout, size
from ...layout.atoms.universal import auto_vectorizing_copy
from .emitter import Emitter


def adjacent(emitter: Emitter, part: SSAValue, atom: CopyAtomAttr) -> SSAValue:
    """The registers that an atom moves: `part` itself, or new ones where the values of `part` lie apart in its
    fragment.
    """
    type = part.type
    assert isinstance(type, TensorType)
    layout = type.layout.data
    count = size(layout)
    if type.space.data is not RMEM or count == 1:
        return part
    together = contiguous_values(layout) % count == 0
    if together and type.align.data * 8 % register_align(atom, count * type.element_bits) == 0:
        return part
    run = TensorType(type.element_type, type.space, IntAttr(FRAGMENT_ALIGN), LayoutAttr(make_layout(count)))
    return emitter.value(AllocOp(run))


def move_registers(emitter: Emitter, src: SSAValue, dst: SSAValue) -> CopyOp:
    """A copy between fragments, a register at a time, so that LLVM sees no wider values that it must take apart."""
    views = [emitter.value(ViewOp(side, None, _in_one_mode(side))) for side in (src, dst)]
    assert isinstance(src.type, TensorType)
    by_register = CopyAtomAttr.of(auto_vectorizing_copy(32), src.type.element_type)
    copy = CopyOp(views[0], views[1], atom=by_register)
    emitter.insert(copy)
    return copy


def _in_one_mode(tensor: SSAValue) -> TensorType:
    """The type of a fragment whose modes are taken as one."""
    type = tensor.type
    assert isinstance(type, TensorType)
    layout = plain_layout(type.layout.data)
    return type.with_layout(Layout((layout.shape,), (layout.stride,)))
