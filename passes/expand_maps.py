# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`expand-maps`: stage `folded` to stage `atoms`."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..dialects.cute import CoordAttr
from ..dialects.tile import FillOp, LoadOp, MapOp, StoreOp, TensorType, YieldOp
from ..layout.algebra.core import size
from ..layout.algebra.integers import Unknown
from .writing.emitter import Emitter


@dataclass(frozen=True)
class ExpandMapsPass(ModulePass):
    """Expands `tile.map` and `tile.fill` into loops over single elements, one loop per mode, the first mode innermost.

    Before:

        tile.map %d, %a (%x: f32) { %h = arith.truncf %x : f32 to f16  tile.yield %h : f16 }

    After:

        scf.for %j = %c0 to %c8 step %c1 {
          scf.for %i = %c0 to %c4 step %c1 {
            %x = tile.load %a(%i, %j)
            %h = arith.truncf %x : f32 to f16
            tile.store %h, %d(%i, %j)
          } {unroll}
        } {unroll}
    """

    name = "expand-maps"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, FillOp):
                emitter = Emitter(inner)
                coord = _loops(emitter, inner.tensor.type)
                emitter.insert(_store(inner.value, inner.tensor, *coord))
                emitter.replace()
            elif isinstance(inner, MapOp):
                _expand(inner)


def _expand(op: MapOp) -> None:
    emitter = Emitter(op)
    coord = _loops(emitter, op.types[0])
    block = op.body.block
    for argument, tensor in zip(block.args, (*op.srcs, op.dst), strict=False):
        element = emitter.value(_load(tensor, *coord))
        element.name_hint = argument.name_hint
        argument.replace_all_uses_with(element)
    for inner in list(block.ops):
        inner.detach()
        if isinstance(inner, YieldOp):
            store = _store(inner.value, op.dst, *coord)
            store.location = inner.location
            inner.erase()
            inner = store
        Rewriter.insert_op(inner, emitter.point)
    emitter.replace()


def _loops(emitter: Emitter, type: TensorType) -> tuple[CoordAttr, list[SSAValue]]:
    """Opens the loops over a tensor's modes; the coordinate of the element in the innermost one."""
    layout = type.layout.data
    extents = [size(layout[mode]) for mode in range(len(layout))]
    loops = [emitter.loop(extent) if extent > 1 else None for extent in reversed(extents)][::-1]
    return CoordAttr(tuple(0 if index is None else Unknown() for index in loops)), [i for i in loops if i is not None]


def _load(tensor: SSAValue, coord: CoordAttr, indices: list[SSAValue]) -> Operation:
    assert isinstance(tensor.type, TensorType)
    return LoadOp.build(
        operands=[tensor, indices], result_types=[tensor.type.element_type], properties={"coord": coord}
    )


def _store(value: SSAValue, tensor: SSAValue, coord: CoordAttr, indices: list[SSAValue]) -> Operation:
    return StoreOp.build(operands=[value, tensor, indices], properties={"coord": coord})
