# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies in loops over the instructions of a tile: the part that one instruction moves, and the TMA copies."""

from math import prod

from xdsl.ir import SSAValue

from ...dialects.cute import CoordAttr, LayoutAttr
from ...dialects.cute.values import integers, typed
from ...dialects.tile import (
    CoordTensorOp,
    CoordTensorType,
    CopyOp,
    Crd2IdxOp,
    PrefetchOp,
    TensorType,
    TmaCallOp,
    TmaType,
    ViewOp,
)
from ...dialects.tile.assembly import AnyTensor
from ...dialects.tile.tma_rules import split_by_instructions
from ...dialects.tile.view_base import infer_shifted_type
from ...layout.algebra.axes import along
from ...layout.algebra.core import Layout, LayoutLike, cosize, join, plain_layout
from ...layout.algebra.integers import Unknown
from ...layout.algebra.inttuple import leaves, show
from ...layout.tiling.copy_loops import repeats, with_outer
from ...layout.tma.tensor_map import MAX_BOX
from .coordinate_folding import add_index, slice_index
from .emitter import Emitter, SsaInt, remark
from .tensor_scalars import scalars_for


def expand_tma_copy(op: CopyOp | PrefetchOp) -> None:
    """Replaces a TMA copy, or the prefetch of tiles, by its instructions. A remark says where a tile needs more of
    them than its extents do.
    """
    tma = op.tma
    assert tma is not None
    sides = [op.tiles] if isinstance(op, PrefetchOp) else [op.src, op.dst]
    coords = next((side for side in sides if side is not None and isinstance(side.type, CoordTensorType)), None)
    if coords is None:
        return  # the prefetch of a map
    assert isinstance(coords.owner, CoordTensorOp), "the stage's contract"
    emitter = Emitter(op)
    axes = range(len(coords.owner.start))
    _, modes = split_by_instructions(tma.type, _tensor(coords))
    operands = [[along(mode, (axis,)) for mode in modes] for axis in axes]
    smem = next((side for side in sides if side is not coords), None)
    part = None if smem is None else split_by_instructions(tma.type, _tensor(smem))
    if part is not None:
        operands.append(part[1])
    loops = repeats(*operands)
    indices = [emitter.loop(loop.extent) for loop in reversed(loops)][::-1]
    where: list[SSAValue] = []
    for axis, start in zip(axes, coords.owner.start, strict=True):
        layout = join([loop.modes[axis] for loop in loops])
        distance, constant = slice_index(emitter, tuple([SsaInt(emitter, index) for index in indices]), layout)
        moved = add_index(emitter, add_index(emitter, start, distance), constant)
        where.append(emitter.index(moved) if isinstance(moved, int) else moved)
    if isinstance(op, PrefetchOp):
        call = TmaCallOp(tma, where, policy=op.policy)
    else:
        assert smem is not None
        assert part is not None
        box = make_part(emitter, smem, part[0], indices, [loop.modes[-1] for loop in loops])
        call = TmaCallOp(tma, where, box, op.mbarrier, op.multicast, op.policy, op.descriptor)
    remark(call, _reason(tma.type, plain_layout(_tensor(coords).layout.data)[0]))
    emitter.insert(call)
    emitter.replace()


def _reason(type: TmaType, tile: Layout) -> str:
    """How many instructions move a tile, whose coordinates `tile` has; and the cause, where fewer could."""
    copy = type.tma_copy
    count, box = copy.instructions, copy.box
    text = f"{type.kind.data}: {count} instruction{'s' if count > 1 else ''} of {show(box)} a tile"
    row = (16 << copy.swizzle_bits) * 8 // copy.bits if copy.swizzle_bits else MAX_BOX
    extents = [cosize(along(tile, (axis,))) for axis in range(len(box))]
    least = prod(-(-extent // limit) for extent, limit in zip(extents, [row] + [MAX_BOX] * 4, strict=False))
    if count <= least * copy.multicast:
        return text
    return (
        f"{text}, where {least} would do: shared memory holds the tile in smaller pieces; tile its atom along the "
        "other mode first, as tile_to_shape does with the order (1,0)"
    )


def _tensor(value: SSAValue) -> AnyTensor:
    assert isinstance(value.type, TensorType | CoordTensorType)
    return value.type


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
