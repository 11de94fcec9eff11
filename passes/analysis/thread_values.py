# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which values of a kernel of tensors the threads of a warp may have different ones of, and so where its warps branch
apart.
"""

from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Operation, SSAValue

from ...base.target import WARP
from ...dialects.arith.integer_range import wrap_signed
from ...dialects.arith.semantics import INTEGER_OPERATIONS, compare, constant_of, int_width
from ...dialects.gpu import BlockDimOp, ThreadIdOp
from ...dialects.ptx import ElectSyncOp, ReduxSyncOp, ShflSyncOp, VoteSyncOp
from ...dialects.tile import TileKernelOp

_RESIZED = (arith.ExtSIOp, arith.TruncIOp, arith.IndexCastOp)


class ThreadValues:
    """The integers that follow only from the threads' coordinates, by thread, and of the other values those that
    depend on the thread within its warp. Loads depend on it where their address does.
    """

    def __init__(self, kernel: TileKernelOp) -> None:
        self._block = kernel.block
        self._threads = range(prod(kernel.block))
        self._known: dict[SSAValue, tuple[int, ...]] = {}
        self._apart: set[SSAValue] = set()
        operations = list(kernel.walk())
        count = -1
        while count != len(self._apart):
            count = len(self._apart)
            for op in operations:
                self._visit(op)

    def execute_uniformly(self, op: Operation) -> bool:
        """Whether warps execute an operation as a whole, as far as the branches around it show: no condition selects
        threads of a warp.
        """
        outer = op.parent_op()
        while outer is not None and not isinstance(outer, TileKernelOp):
            if isinstance(outer, scf.IfOp) and self._differs(outer.cond):
                return False
            outer = outer.parent_op()
        return True

    def chosen(self, op: Operation) -> bool:
        """Whether a condition around an operation selects threads of a warp by their numbers, or an elected one. Other
        conditions are of data, and usually of data that the threads of a warp share, though nothing shows it.
        """
        outer = op.parent_op()
        while outer is not None and not isinstance(outer, TileKernelOp):
            if isinstance(outer, scf.IfOp) and self._differs(outer.cond) and self._is_of_number(outer.cond):
                return True
            outer = outer.parent_op()
        return False

    def _is_of_number(self, value: SSAValue) -> bool:
        """Whether a value is computed of the thread's number, or of an election, by arithmetic."""
        pending, seen = [value], set[SSAValue]()
        while pending:
            value = pending.pop()
            owner = value.owner
            if isinstance(owner, ElectSyncOp) or (value in self._known and self._differs(value)):
                return True
            if value in seen:
                continue
            seen.add(value)
            if isinstance(owner, Operation) and owner.name.startswith("arith."):
                pending += owner.operands
            elif isinstance(owner, scf.IfOp) and value.type == i1:  # `and` and `or`
                place = owner.results.index(value)
                pending += [owner.cond, *(_last(region.block).operands[place] for region in owner.regions)]
        return False

    def executing(self, op: Operation) -> set[int]:
        """The threads that may execute an operation, as far as the branches around it show."""
        threads = set(self._threads)
        inner, outer = op, op.parent_op()
        while outer is not None and not isinstance(outer, TileKernelOp):
            known = self._of(outer.cond) if isinstance(outer, scf.IfOp) else None
            if isinstance(outer, scf.IfOp) and known is not None:
                wanted = inner.parent_region() is outer.true_region
                threads = {t for t in threads if bool(known[t] & 1) == wanted}
            inner, outer = outer, outer.parent_op()
        return threads

    def _differs(self, value: SSAValue) -> bool:
        """Whether a value may differ between threads of a warp."""
        known = self._known.get(value, ())
        warps = (known[start : start + WARP] for start in range(0, len(known), WARP))
        return value in self._apart or any(len(set(warp)) > 1 for warp in warps)

    def _of(self, value: SSAValue) -> tuple[int, ...] | None:
        number = constant_of(value)
        return self._known.get(value) if number is None else (number,) * len(self._threads)

    def _visit(self, op: Operation) -> None:
        match op:
            case scf.ForOp():
                body = op.body.block
                counted = [op.lb, op.ub, op.step]
                self._joined(body.args[0], *counted)
                for result, argument, *given in zip(
                    op.results, body.args[1:], op.iter_args, _last(body).operands, strict=True
                ):
                    self._joined(argument, *given)
                    self._joined(result, argument, *counted)
            case scf.WhileOp():
                before, after = op.before_region.block, op.after_region.block
                for argument, *given in zip(before.args, op.arguments, _last(after).operands, strict=True):
                    self._joined(argument, *given)
                condition, *passed = _last(before).operands
                for result, argument, given in zip(op.results, after.args, passed, strict=True):
                    self._joined(argument, given)
                    self._joined(result, given, condition)
            case scf.IfOp():
                sides = [region.block for region in op.regions if region.blocks]
                for index, result in enumerate(op.results):
                    given = [_last(side).operands[index] for side in sides]
                    if (exact := self._selected(op.cond, *given)) is not None:
                        self._known[result] = exact
                    else:
                        self._joined(result, op.cond, *given)
            case ElectSyncOp():
                self._apart.update(op.results)
            case VoteSyncOp() | ReduxSyncOp():
                pass
            case ShflSyncOp():
                if (exact := self._shuffled(op)) is not None:
                    self._known[op.result] = exact
                else:
                    self._joined(op.result, op.lane)
            case _ if not op.regions and op.results:
                self._computed(op)
            case _:
                pass

    def _joined(self, target: SSAValue, *sources: SSAValue) -> None:
        if any(map(self._differs, sources)):
            self._apart.add(target)

    def _computed(self, op: Operation) -> None:
        result = op.results[0]
        if result in self._known or result in self._apart:
            return
        exact = self._exact(op)
        if exact is not None:
            self._known[result] = exact
        elif any(map(self._differs, op.operands)):
            self._apart.update(op.results)

    def _selected(self, condition: SSAValue, *sides: SSAValue) -> tuple[int, ...] | None:
        """One of two values by thread, as a condition says."""
        chosen, then, other = (self._of(value) for value in (condition, *sides))
        if chosen is None or then is None or other is None:
            return None
        return tuple(a if c & 1 else b for c, a, b in zip(chosen, then, other, strict=True))

    def _shuffled(self, op: ShflSyncOp) -> tuple[int, ...] | None:
        """The value of one lane in all lanes."""
        values, lanes = self._of(op.value), self._of(op.lane)
        if values is None or lanes is None or op.mode.data != "idx" or op.segment != WARP or op.mask is not None:
            return None
        sources = [t // WARP * WARP + lanes[t] % WARP for t in self._threads]
        return tuple(values[place] for place in sources) if max(sources) < len(values) else None

    def _exact(self, op: Operation) -> tuple[int, ...] | None:
        """The result of an operation by thread, where it follows from the threads' coordinates."""
        x, y, _ = self._block
        if isinstance(op, ThreadIdOp | BlockDimOp):
            axis = "xyz".index(op.register[-1])
            if isinstance(op, BlockDimOp):
                return (self._block[axis],) * len(self._threads)
            return tuple((t % x, t // x % y, t // (x * y))[axis] for t in self._threads)
        if isinstance(op, arith.SelectOp):
            return self._selected(op.cond, op.lhs, op.rhs)
        operands = [self._of(operand) for operand in op.operands]
        known = [operand for operand in operands if operand is not None]
        if not known or len(known) < len(operands):
            return None
        width = int_width(op.operands[0].type) or 64
        values: list[int | None]
        if isinstance(op, arith.CmpiOp):
            predicate = op.predicate.value.data
            values = [-int(compare(predicate, a, b, width)) for a, b in zip(*known, strict=True)]
        elif isinstance(op, arith.ExtUIOp):
            values = [a & ((1 << width) - 1) for a in known[0]]
        elif isinstance(op, _RESIZED):
            values = [wrap_signed(a, int_width(op.results[0].type) or 64) for a in known[0]]
        elif type(op) in INTEGER_OPERATIONS:
            operation = INTEGER_OPERATIONS[type(op)]
            values = [operation.result(a, b, width) for a, b in zip(*known, strict=True)]
        else:
            return None
        exact = tuple(value for value in values if value is not None)
        return exact if len(exact) == len(values) else None


def _last(block: Block) -> Operation:
    end = block.last_op
    assert end is not None
    return end
