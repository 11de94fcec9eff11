# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the integers and addresses of a kernel differ between the lanes of a warp, found without running it."""

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue

from ...base.parameters import TENSOR_MAP
from ...base.target import SECTOR_BYTES, WARP
from ...dialects.arith.integer_range import wrap_signed
from ...dialects.arith.semantics import INTEGER_OPERATIONS, compare, constant_of, int_width
from ...dialects.cute.values import unknowns
from ...dialects.kernel import Parameter
from ...dialects.ptx import EntryOp, LoadOp, PtrAddOp, PtrType, SmemAddrOp, SregOp
from . import lane_values as lv
from .lane_values import LaneValue
from .loop_hints import trip_values
from .ranges import Memoised, Ranges

_MAX_TRIPS = 4096
"""Iterations of a loop that are gone through for the values of its counter."""
_MAX_ROUNDS = 16
"""Attempts to find a property of a loop-carried value that holds in all iterations."""
MOST_ROUNDS = 4096
"""Attempts for all loops of a warp together; loops within loops are tried again with each."""


class WarpValues(Memoised[LaneValue | None]):
    """The values of one warp of a block at stage `instr`. `of` is None for one whose lanes differ in ways that are not
    known before the kernel runs.

    A tensor in global memory is assumed to begin at a sector, as allocations do.
    """

    def __init__(self, entry: EntryOp, warp: int, ranges: Ranges) -> None:
        super().__init__()
        x, y, z = entry.block
        self.threads = range(warp * WARP, min((warp + 1) * WARP, x * y * z))
        lanes = range(warp * WARP, (warp + 1) * WARP)
        self._registers = {
            "tid.x": lv.exact([t % x for t in lanes]),
            "tid.y": lv.exact([t // x % y for t in lanes]),
            "tid.z": lv.exact([t // (x * y) for t in lanes]),
            "ntid.x": lv.constant(x),
            "ntid.y": lv.constant(y),
            "ntid.z": lv.constant(z),
        }
        self._divisors = [divisor for parameter in entry.parameters() for divisor in _divisors(parameter)]
        self._divisors += [TENSOR_MAP.align] * len(entry.maps)
        self._under_way: set[SSAValue] = set()
        self._rounds = MOST_ROUNDS
        self._ranges = ranges

    def of(self, value: SSAValue) -> LaneValue | None:
        """The lanes of a value; None if unknown."""
        return None if value in self._under_way else super().of(value)

    def _find(self, value: SSAValue) -> None:
        self._under_way.add(value)
        result = self._compute(value)
        self._under_way.discard(value)
        self._known[value] = result

    def active(self, op: Operation) -> tuple[int, ...] | None:
        """The lanes that execute an operation whenever the warp does; None where that is not known."""
        lanes = list(range(len(self.threads)))
        inner, outer = op, op.parent_op()
        while outer is not None and not isinstance(outer, EntryOp):
            if isinstance(outer, scf.IfOp):
                condition = self.of(outer.cond)
                if condition is None:
                    return None
                if condition.is_exact:
                    wanted = inner.parent_region() is outer.true_region
                    known = condition.known
                    lanes = [lane for lane in lanes if bool(known[lane] & 1) == wanted]
                elif not condition.is_uniform:
                    return None
            elif not self._exits_uniformly(outer):
                return None
            inner, outer = outer, outer.parent_op()
        return tuple(lanes)

    def _exits_uniformly(self, loop: Operation) -> bool:
        """Whether all lanes leave a loop at the same time."""
        match loop:
            case scf.ForOp():
                deciding = [loop.lb, loop.ub, loop.step]
            case scf.WhileOp():
                condition = loop.before_region.block.last_op
                assert isinstance(condition, scf.ConditionOp)
                deciding = [condition.condition]
            case _:
                return False
        return all((lanes := self.of(value)) is not None and lanes.is_uniform for value in deciding)

    def _compute(self, value: SSAValue) -> LaneValue | None:
        if (number := constant_of(value)) is not None:
            return lv.constant(number)
        owner = value.owner
        if isinstance(owner, Block):
            return self._argument(value, owner)
        match owner:
            case SregOp():
                return self._registers.get(owner.register.data, lv.uniform())
            case SmemAddrOp():
                return lv.constant(owner.offset.value.data)
            case LoadOp():  # one address, one value
                pointer = self.of(owner.ptr)
                return lv.uniform() if pointer is not None and pointer.is_uniform else None
            case scf.ForOp():
                index = owner.results.index(value)
                return self._carried(owner.iter_args[index], owner.body.block.args[index + 1], owner.body.block, index)
            case scf.IfOp():
                return self._merged(owner, owner.results.index(value))
            case scf.WhileOp():
                condition = owner.before_region.block.last_op
                assert isinstance(condition, scf.ConditionOp)
                return self.of(condition.args[owner.results.index(value)])
            case _:
                counted = owner.operands[:2] if isinstance(owner, PtrAddOp) else owner.operands
                operands = [self.of(operand) for operand in counted]
                if owner.regions or None in operands:
                    return None
                return self._computed(owner, [operand for operand in operands if operand is not None])

    def _computed(self, op: Operation, operands: Sequence[LaneValue]) -> LaneValue | None:
        """The result of arithmetic on integers of a warp. Unless ranges prove that it does not wrap, only the low bits
        of its type's width are known.
        """
        match op:
            case arith.SelectOp():
                return _selected(*operands)
            case arith.CmpiOp():
                predicate, width = op.predicate.value.data, int_width(op.lhs.type) or 64
                return lv.elementwise(lambda a, b: -int(compare(predicate, a, b, width)), *operands)
            case arith.ExtSIOp() | arith.ExtUIOp() | arith.IndexCastOp() | arith.TruncIOp():
                return self._resized(op, operands[0])
            case PtrAddOp():
                return operands[0] + operands[1]
            case arith.SignlessIntegerBinaryOperation():
                a, b = operands
                width = int_width(op.result.type) or 64
                operation = INTEGER_OPERATIONS[type(op)]
                if (a.is_exact and b.is_exact) or not operation.algebraic:
                    return lv.elementwise(lambda x, y: operation.result(x, y, width), a, b)
                if operation.unsigned and self._ranges.of(op.lhs)[0] < 0 and not a.is_uniform:
                    a = a.modulo(width)
                result = operation.value(a, b)
                return result.wrapped(width) if result is not None and self._ranges.wraps(op) else result
            case _:
                return _uniform(*operands)

    def _resized(self, op: Operation, a: LaneValue) -> LaneValue | None:
        """An integer in another width."""
        inner, result = op.operands[0], op.results[0]
        bits, width = int_width(inner.type) or 64, int_width(result.type) or 64
        is_unsigned = isinstance(op, arith.ExtUIOp)
        if a.is_exact:
            return lv.exact([x & ((1 << bits) - 1) if is_unsigned else wrap_signed(x, width) for x in a.known])
        same = self._ranges.of(inner)[0] >= 0 if is_unsigned else self._ranges.fits(inner, width)
        return a if same else a.wrapped(min(bits, width))

    def _argument(self, value: SSAValue, block: Block) -> LaneValue | None:
        parent, index = block.parent_op(), block.args.index(value)  # pyright: ignore[reportArgumentType]
        match parent:
            case EntryOp():
                return lv.uniform(self._divisors[index])
            case scf.ForOp() if index == 0:
                return self._counter(parent)
            case scf.ForOp():
                return self._carried(parent.iter_args[index - 1], value, block, index - 1)
            case scf.WhileOp() if block is parent.before_region.block:
                return self._carried(parent.arguments[index], value, parent.after_region.block, index)
            case scf.WhileOp():
                condition = parent.before_region.block.last_op
                assert isinstance(condition, scf.ConditionOp)
                return self.of(condition.args[index])
            case _:
                return None

    def _counter(self, loop: scf.ForOp) -> LaneValue | None:
        trips = trip_values(loop)
        if trips is not None and 0 < len(trips) <= _MAX_TRIPS:
            return lv.bits_of(trips)
        low, step = self.of(loop.lb), self.of(loop.step)
        if low is None or step is None or not step.is_uniform:
            return None
        return low + lv.uniform(step.known[0] if step.is_exact else 1)

    def _carried(self, initial: SSAValue, argument: SSAValue, body: Block, index: int) -> LaneValue | None:
        """The lanes of a loop-carried value: the initial value joined with that of each iteration."""
        end = body.last_op
        assert end is not None
        assumed = self.of(initial)
        under_way, self._under_way = self._under_way, set[SSAValue]()
        size = len(self._known)
        for _ in range(_MAX_ROUNDS):
            if assumed is None or self._rounds == 0:
                break
            self._rounds -= 1
            self._forget(size)
            self._known[argument] = assumed
            following = self.of(end.operands[index])
            joined = None if following is None else lv.joined(assumed, following)
            if joined == assumed:
                self._under_way = under_way
                return assumed
            assumed = joined
        self._under_way = under_way
        self._forget(size)  # without the conclusions from an assumption that does not hold
        return None

    def _merged(self, op: scf.IfOp, index: int) -> LaneValue | None:
        """A result of a branch: by lane where the condition is known, one of both where all lanes go one way."""
        condition = self.of(op.cond)
        sides = [region.block.last_op for region in (op.true_region, op.false_region)]
        values = [None if side is None else self.of(side.operands[index]) for side in sides]
        return _selected(condition, values[0], values[1])


def _divisors(parameter: Parameter) -> list[int]:
    """Known divisors of the arguments of a parameter: a pointer, and the integers of its layout."""
    scalars = [] if parameter.layout is None else unknowns(parameter.layout)
    first = SECTOR_BYTES if isinstance(parameter.type, PtrType) else 1
    return [max(first, parameter.align), *(unknown.div for unknown in scalars)]


def _selected(condition: LaneValue | None, a: LaneValue | None, b: LaneValue | None) -> LaneValue | None:
    if condition is None or a is None or b is None:
        return None
    if condition.is_exact and (condition.is_uniform or (a.is_exact and b.is_exact)):
        if condition.is_uniform:
            return a if condition.known[0] & 1 else b
        return lv.exact([x if c & 1 else y for c, x, y in zip(condition.known, a.known, b.known, strict=True)])
    return lv.joined(a, b) if condition.is_uniform else None


def _uniform(*operands: LaneValue) -> LaneValue | None:
    """The default for an operation: uniform operands have a uniform result."""
    return lv.uniform() if operands and all(operand.is_uniform for operand in operands) else None
