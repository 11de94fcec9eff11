# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the integers and addresses of a kernel differ between the lanes of a warp, found without running it."""

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue

from ..dialects.ptx import EntryOp, LoadOp, PtrAddOp, SmemAddrOp, SregOp
from ..dialects.ptx.types import integer_bits
from . import lane_values as lv
from .constants import constant_of
from .fold_constants import compare
from .lane_values import WARP, LaneValue
from .loop_hints import trip_values

_MAX_TRIPS = 4096
"""Iterations of a loop that are gone through for the values of its counter."""
_MAX_ROUNDS = 16
"""Attempts to find what a value that a loop carries has in common in all iterations."""


_UNDER_WAY = LaneValue(())
"""Stands for a value that is being computed."""


class WarpValues:
    """The values of one warp of a block at stage `instr`. `of` is None for one whose lanes differ in ways that are not
    known before the kernel runs.
    """

    def __init__(self, entry: EntryOp, warp: int) -> None:
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
        self._values: dict[SSAValue, LaneValue | None] = {}

    def of(self, value: SSAValue) -> LaneValue | None:
        """What is known of a value."""
        if value not in self._values:
            self._values[value] = _UNDER_WAY
            self._values[value] = self._compute(value)
        found = self._values[value]
        return None if found is _UNDER_WAY else found

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
            elif not self._together(outer):
                return None
            inner, outer = outer, outer.parent_op()
        return tuple(lanes)

    def _together(self, loop: Operation) -> bool:
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
        return all((value := self.of(each)) is not None and value.is_uniform for each in deciding)

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
                operands = [self.of(operand) for operand in owner.operands]
                if owner.regions or None in operands:
                    return None
                return _computed(owner, [operand for operand in operands if operand is not None])

    def _argument(self, value: SSAValue, block: Block) -> LaneValue | None:
        parent, index = block.parent_op(), block.args.index(value)  # pyright: ignore[reportArgumentType]
        match parent:
            case EntryOp():
                return lv.uniform()
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
        return lv.add(low, lv.uniform(step.known[0] if step.is_exact else 1))

    def _carried(self, initial: SSAValue, argument: SSAValue, body: Block, index: int) -> LaneValue | None:
        """What a loop carries: the value that it starts with, joined with what each iteration hands on."""
        end = body.last_op
        assert end is not None
        assumed = self.of(initial)
        before = {each: known for each, known in self._values.items() if known is not _UNDER_WAY}
        for _ in range(_MAX_ROUNDS):
            if assumed is None:
                break
            self._values = {**before, argument: assumed}
            following = self.of(end.operands[index])
            joined = None if following is None else lv.joined(assumed, following)
            if joined == assumed:
                return assumed
            assumed = joined
        self._values = before  # without what followed from an assumption that does not hold
        return None

    def _merged(self, op: scf.IfOp, index: int) -> LaneValue | None:
        """A result of a branch: by lane where the condition is known, one of both where all lanes go one way."""
        condition = self.of(op.cond)
        sides = [region.block.last_op for region in (op.true_region, op.false_region)]
        values = [None if side is None else self.of(side.operands[index]) for side in sides]
        return _selected(condition, values[0], values[1])


def _selected(condition: LaneValue | None, a: LaneValue | None, b: LaneValue | None) -> LaneValue | None:
    if condition is None or a is None or b is None:
        return None
    if condition.is_exact and (condition.is_uniform or (a.is_exact and b.is_exact)):
        if condition.is_uniform:
            return a if condition.known[0] & 1 else b
        return lv.exact([x if c & 1 else y for c, x, y in zip(condition.known, a.known, b.known, strict=True)])
    return lv.joined(a, b) if condition.is_uniform else None


def _computed(op: Operation, operands: Sequence[LaneValue]) -> LaneValue | None:
    """The result of arithmetic on integers of a warp."""
    match op:
        case arith.SelectOp():
            return _selected(*operands)
        case arith.CmpiOp():
            predicate, width = op.predicate.value.data, integer_bits(op.lhs.type) or 64
            return lv.elementwise(lambda a, b: int(compare(predicate, a, b, width)), *operands)
        case arith.ExtSIOp() | arith.ExtUIOp() | arith.IndexCastOp() | arith.TruncIOp():
            bits = min(integer_bits(v.type) or 64 for v in (op.operands[0], op.results[0]))
            return operands[0] if bits >= 32 else lv.masked(operands[0], (1 << bits) - 1)
        case PtrAddOp() | arith.AddiOp():
            return lv.add(*operands)
        case arith.SubiOp():
            negative = lv.negated(operands[1])
            return None if negative is None else lv.add(operands[0], negative)
        case arith.MuliOp():
            return lv.multiply(*operands)
        case arith.XOrIOp():
            return lv.xor(*operands)
        case arith.AndIOp() | arith.ShLIOp() | arith.ShRUIOp() | arith.ShRSIOp() | arith.DivUIOp() | arith.RemUIOp():
            return _by_constant(op, *operands)
        case arith.SignlessIntegerBinaryOperation() if type(op) in _EXACT:
            return lv.elementwise(_EXACT[type(op)], *operands)
        case _:
            return lv.uniform() if op.operands and all(operand.is_uniform for operand in operands) else None


def _by_constant(op: Operation, a: LaneValue, b: LaneValue) -> LaneValue | None:
    """Operations that take bits apart, which need a known right operand (or left, of `and`)."""
    if isinstance(op, arith.AndIOp) and a.is_exact and a.is_uniform:
        a, b = b, a
    number = b.known[0] if b.is_exact and b.is_uniform else None
    power = number.bit_length() - 1 if number is not None and number > 0 and number & (number - 1) == 0 else None
    match op:
        case arith.AndIOp() if number is not None:
            return lv.masked(a, number)
        case arith.ShLIOp() if number is not None and 0 <= number < 64:
            return lv.multiply(a, lv.constant(1 << number))
        case arith.ShRUIOp() | arith.ShRSIOp() if number is not None and 0 <= number < 64:
            return lv.shifted_right(a, number)
        case arith.DivUIOp() if power is not None:
            return lv.shifted_right(a, power)
        case arith.RemUIOp() if number is not None and power is not None:
            return lv.masked(a, number - 1)
        case _:
            return lv.elementwise(_EXACT[type(op)], a, b)


def _natural(function: Callable[[int, int], int]) -> Callable[[int, int], int | None]:
    """A function of integers that are not negative, the second not 0; None for others."""
    return lambda a, b: function(a, b) if a >= 0 and b > 0 else None


_EXACT: Mapping[type[Operation], Callable[[int, int], int | None]] = {
    arith.AndIOp: lambda a, b: a & b,
    arith.OrIOp: lambda a, b: a | b,
    arith.ShLIOp: lambda a, b: a << b if 0 <= b < 64 else None,
    arith.ShRUIOp: lambda a, b: a >> b if a >= 0 and 0 <= b < 64 else None,
    arith.ShRSIOp: lambda a, b: a >> b if 0 <= b < 64 else None,
    arith.DivUIOp: _natural(lambda a, b: a // b),
    arith.DivSIOp: _natural(lambda a, b: a // b),
    arith.CeilDivUIOp: _natural(lambda a, b: -(-a // b)),
    arith.CeilDivSIOp: _natural(lambda a, b: -(-a // b)),
    arith.FloorDivSIOp: _natural(lambda a, b: a // b),
    arith.RemUIOp: _natural(lambda a, b: a % b),
    arith.RemSIOp: _natural(lambda a, b: a % b),
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
}
"""Operations on integers that are known, a non-negative divisor and dividend where there is one."""
