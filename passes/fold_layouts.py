# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fold-layouts`: stage `cute` to stage `folded`."""

from dataclasses import dataclass
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ..dialects.cute import CoordAttr, LayoutAttr
from ..dialects.tile import CopyOp, Crd2IdxOp, TiledCopyOp, ViewOp
from ..dialects.tile.view_base import LayoutViewOp
from ..layout.coordinates import crd2idx
from ..layout.core import ComposedLayout, Layout
from ..layout.inttuple import dice_tuple
from ..layout.unknown import Unknown
from .emitter import Emitter


@dataclass(frozen=True)
class FoldLayoutsPass(ModulePass):
    """Folds every static layout operation: views become an index and a shifted view, tiled copies their atoms.

    Before:

        %g = tile.local_tile %A, "(128,32)", (%m, %k) : !A -> !tile.tensor<f16, gmem, align<16>, "(128,32):(1,1024)">
        tile.copy %copy, %src, %dst : !copy, !S, !D

    After:

        %o = tile.crd2idx (%m, %k) in "(8,32):(128,32768)"
        %g = tile.view %A at %o : !A -> !tile.tensor<f16, gmem, align<16>, "(128,32):(1,1024)">
        tile.copy #tile.copy_atom<"SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", f16> %src, %dst : !S, !D
    """

    name = "fold-layouts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in list(op.walk()):
            if isinstance(each, LayoutViewOp):
                _fold_view(each)
            elif isinstance(each, CopyOp) and each.tiled_copy is not None:
                emitter = Emitter(each)
                emitter.insert(CopyOp(each.src, each.dst, atom=each.copy_atom))
                emitter.replace()
        for each in list(op.walk()):
            if isinstance(each, TiledCopyOp) and not each.result.uses:
                each.detach()
                each.erase()


def _fold_view(op: LayoutViewOp) -> None:
    emitter = Emitter(op)
    whole = op.relayout(op.source_type.layout.data)
    coord = op.coordinate(whole, tuple(op.coords))
    offset = None
    if coord is not None:
        inner = whole.inner if isinstance(whole, ComposedLayout) else whole
        offset = _offset(emitter, coord, inner)
    if offset is None and op.result_type == op.source_type:
        emitter.replace([op.source])
    else:
        emitter.replace([emitter.value(ViewOp(op.source, offset, op.result_type))])


def _offset(emitter: Emitter, coord: Any, layout: Layout) -> SSAValue | None:
    """The index of the fixed part of `coord`, whose run-time leaves are SSA values; None where it is 0."""
    fixed: list[tuple[SSAValue, Any, Any]] = []
    constant = _split(
        dice_tuple(coord, coord), dice_tuple(coord, layout.shape), dice_tuple(coord, layout.stride), fixed
    )
    offset = None
    if fixed:
        values, shapes, strides = zip(*fixed, strict=True)
        where = CoordAttr((Unknown(),) * len(fixed))
        offset = emitter.value(Crd2IdxOp(where, values, LayoutAttr(Layout(shapes, strides))))
    if constant:
        step = emitter.constant(constant, IndexType())
        offset = step if offset is None else emitter.value(arith.AddiOp(offset, step))
    return offset


def _split(coord: Any, shape: Any, stride: Any, fixed: list[tuple[SSAValue, Any, Any]]) -> int:
    """Collects the run-time leaves of `coord` with the modes they index; returns the index of the static leaves."""
    if isinstance(coord, SSAValue):
        fixed.append((cast("SSAValue", coord), shape, stride))
        return 0
    if type(coord) is tuple:
        modes = zip(cast("tuple[Any, ...]", coord), shape, stride, strict=True)
        return sum(_split(c, s, d, fixed) for c, s, d in modes)
    return crd2idx(coord, shape, stride)
