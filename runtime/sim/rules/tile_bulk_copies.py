# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bulk copies and prefetches of tensors, and single executions of their atoms: an instruction of `ptx` for each run."""

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from ....dialects import tile
from ....dialects.ptx import GLOBAL, SHARED, BulkLoadOp, BulkPrefetchOp, BulkStoreOp, PtrType
from ...arrays.storage import distances
from ..events import Step
from ..memory.ragged_guard import check_all
from ..memory.tensors import port, tensor_value
from ..translate import Rules, Translator
from ..values import TensorValue
from ..values.scalars import actual, for_each_layout
from ..warp import Warp
from .tile_tma import as_instruction


class BulkMove:
    """The bulk copies of an operation, whose runs begin at places that are known when it is executed."""

    def __init__(self, op: tile.CopyOp | tile.AtomCallOp, bytes: int, t: Translator) -> None:
        t.launch.leave_lockstep()
        src, dst = op.src.type, op.dst.type
        assert isinstance(src, tile.TensorType | PtrType)
        assert isinstance(dst, tile.TensorType | PtrType)
        self._source, self._target = port(op, src, "bulk", t), port(op, dst, "bulk", t)
        self._bytes, mbarrier, policy = bytes, op.mbarrier, op.policy

        def instruction(values: Sequence[SSAValue]) -> Operation:
            to, start, size = values
            if mbarrier is None:
                return BulkStoreOp(to, start, size, policy)
            return BulkLoadOp(to, start, size, mbarrier, policy=policy)

        types = [GLOBAL, SHARED, i32] if mbarrier is None else [SHARED, GLOBAL, i32]
        self._step, self._slots = as_instruction(op, t, types, instruction)

    def at(self, starts: Sequence[tuple[int, int]]) -> Callable[[Warp, TensorValue, TensorValue, object], None]:
        """Starts the copies of the active lanes, from and to elements of these indices on; no predicates apply."""
        to, start, size = self._slots

        def move(warp: Warp, source: TensorValue, target: TensorValue, _: object) -> None:
            for first, second in starts:
                warp.registers[to] = self._target.address(target, second)
                warp.registers[start] = self._source.address(source, first)
                warp.registers[size] = self._bytes
                self._step(warp)

        return move


def _prefetch(op: tile.PrefetchTensorOp, t: Translator) -> Step:
    type, (run, starts) = op.tensor.type, op.runs()
    source, tensor, begins = port(op, type, "bulk", t), t.slot(op.tensor), distances(starts)
    types = [GLOBAL, i32]
    step, (at, size) = as_instruction(op, t, types, lambda values: BulkPrefetchOp(values[0], values[1], op.policy))

    def prefetch(warp: Warp) -> None:
        given = tensor_value(warp.registers[tensor])
        if given.guard is not None:
            check_all(warp, op, given.guard, None)
        warp.registers[size] = run.size * type.element_bits // 8

        def start(scalars: tuple[int, ...]) -> None:
            for first in distances(actual(type.layout.data, scalars))[begins].tolist():
                warp.registers[at] = source.address(given, first)
                step(warp)

        for_each_layout(warp, given.scalars, start)

    return prefetch


TILE_BULK_COPIES: Rules = {tile.PrefetchTensorOp: _prefetch}
