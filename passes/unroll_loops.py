# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`unroll-loops`: the first pass from stage `index` to stage `instr`."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ..dialects.ptx import LoadOp, StoreOp, value_bytes
from ..dialects.ptx.base import LOCAL
from ..dialects.ptx.effects import Act, NamedBarrier, does
from .analysis.loop_hints import trip_values, unroll_count
from .writing.emitter import Emitter


@dataclass(frozen=True)
class UnrollLoopsPass(ModulePass):
    """Unrolls short loops over single elements, so that `merge-accesses` can join their narrow loads and stores.

    A loop is unrolled if its bounds are constant, it has no hint for partial unrolling, no inner region and no barrier,
    it accesses global or shared memory less than 16 bytes at a time, and the result has at most `max_ops` operations.

    Before:

        scf.for %i = %c0 to %c4 step %c1 { ...  %v = ptx.ld %p align 4 : !ptx.ptr<global> -> f32 ... }

    After: the body four times, with %i a constant.
    """

    name = "unroll-loops"
    max_ops: int = 1024

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk(reverse=True)):
            if isinstance(inner, scf.ForOp) and self._is_narrow(inner):
                trips = trip_values(inner)
                if trips is not None and len(trips) * len(inner.body.block.ops) <= self.max_ops:
                    _unroll(inner, trips)

    def _is_narrow(self, loop: scf.ForOp) -> bool:
        ops = list(loop.body.block.ops)
        if unroll_count(loop) or any(op.regions or does(op, Act.WAITS, NamedBarrier) for op in ops):
            return False
        return any(_narrow(op.ptr, op.result) for op in ops if isinstance(op, LoadOp)) or any(
            _narrow(op.ptr, op.value) for op in ops if isinstance(op, StoreOp)
        )


def _narrow(pointer: SSAValue, value: SSAValue) -> bool:
    return pointer.type != LOCAL and (value_bytes(value.type) or 16) < 16


def _unroll(loop: scf.ForOp, trips: range) -> None:
    emitter = Emitter(loop)
    carried = list(loop.iter_args)
    body = loop.body.block
    for trip in trips:
        known: dict[SSAValue, SSAValue] = dict(zip(body.args[1:], carried, strict=True))
        known[body.args[0]] = emitter.constant_like(trip, body.args[0])
        for op in body.ops:
            if isinstance(op, scf.YieldOp):
                carried = [known.get(value, value) for value in op.operands]
                continue
            copy = op.clone(known)
            emitter.insert(copy)
            copy.location = op.location
    emitter.replace(carried)
