# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`convert-index`: on the way from stage `index` to stage `instr`."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerType, ModuleOp, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects import gpu
from ..dialects.arith.integer_range import limits
from ..dialects.arith.semantics import CHECKED, INTEGER_OPERATIONS, OVERFLOW, TOO_FAR, constant_of, int_width
from ..dialects.kernel import kernels_in
from ..dialects.ptx import EntryOp, SregOp
from .analysis.loop_hints import trip_values
from .analysis.ranges import Ranges
from .writing.emitter import Emitter, int_type


@dataclass(frozen=True)
class ConvertIndexPass(ModulePass):
    """Replaces `index` by i32 where ranges prove that it suffices, by i64 elsewhere; thread coordinates by registers.

    Values that a loop or branch carries follow the same rule, except in scf.while, where they are i64. A loop whose
    counter may leave its type at the end counts in i64, or counts its iterations.

    Before:

        %t = gpu.thread_id x
        %0 = arith.muli %t, %c4 : index

    After:

        %t = ptx.sreg "tid.x"
        %0 = arith.muli %t, %c4 : i32
    """

    name = "convert-index"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for entry in kernels_in(op, EntryOp):
            _Conversion(entry).run(entry)


class _Conversion:
    """The conversion of one kernel: and the replacement of each `index` value."""

    def __init__(self, entry: EntryOp) -> None:
        self.ranges = Ranges(entry)
        self.became: dict[SSAValue, SSAValue] = {}
        self.blocks: list[Block] = []

    def run(self, entry: EntryOp) -> None:
        ops = [op for op in entry.walk() if op is not entry and self._concerns(op)]
        for op in ops:  # all ranges first: they are those of the program as it was
            for value in (*op.operands, *op.results, *_block_arguments(op)):
                self.ranges.of(value)
        for op in ops:
            self._convert(op, Emitter(op))
        for op in reversed(ops):
            if op.parent is not None:
                Rewriter.erase_op(op)
        for block in self.blocks:
            for argument in [a for a in block.args if _is_index(a)]:
                block.erase_arg(argument)

    def _concerns(self, op: Operation) -> bool:
        return self._overruns(op) or any(
            _is_index(value) for value in (*op.operands, *op.results, *_block_arguments(op))
        )

    def _as(self, emitter: Emitter, value: SSAValue, width: int) -> SSAValue:
        """The replacement of `value` in `width` bits; a value that is not an index stays as it is."""
        if not _is_index(value):
            return value
        if (constant := constant_of(value)) is not None:
            return emitter.constant(constant, int_type(width))
        now = self.became[value]
        return resize(emitter, now, width)

    def _convert(self, op: Operation, emitter: Emitter) -> None:
        match op:
            case arith.ConstantOp():
                return  # created again where it is used
            case gpu.CoordinateOp():
                self._bind(op.results[0], emitter.value(SregOp(op.register)))
            case arith.IndexCastOp(input=inner):
                if _is_index(inner):
                    width = int_width(op.result.type)
                    assert width is not None
                    cast = self._as(emitter, inner, width)
                    if CHECKED in op.attributes and isinstance(cast.owner, arith.TruncIOp):
                        cast.owner.attributes[CHECKED] = op.attributes[CHECKED]
                    op.result.replace_all_uses_with(cast)
                else:
                    width = 32 if self.ranges.fits(op.result) else 64
                    self._bind(op.result, resize(emitter, inner, width))
            case scf.ForOp():
                self._loop(op, emitter)
            case scf.YieldOp():
                self._yield(op, emitter)
            case _:
                self._generic(op, emitter, self._width(op))

    def _bind(self, old: SSAValue, new: SSAValue) -> None:
        new.name_hint = new.name_hint or old.name_hint
        self.became[old] = new

    def _width(self, op: Operation) -> int:
        """The width in which an operation is computed: 32 where all its index operands and results fit."""
        if isinstance(op, scf.WhileOp | scf.ConditionOp):
            return 64
        values = [v for v in (*op.operands, *op.results) if _is_index(v)]
        narrow = all(self.ranges.fits(v) for v in values)
        operation = INTEGER_OPERATIONS.get(type(op))
        if narrow and operation is not None:
            (low, _), (least, most) = (self.ranges.of(operand) for operand in op.operands)
            differs = operation.unsigned and min(low, least) < 0
            # of 32 bits, fewer operands have a result
            overflows = OVERFLOW in operation.undefined and low == limits(32)[0] and least <= -1 <= most
            narrow = not (differs or overflows or (TOO_FAR in operation.undefined and most >= 32))
        return 32 if narrow else 64

    def _generic(self, op: Operation, emitter: Emitter, width: int) -> None:
        """The same operation on integers of a width."""
        operands = [self._as(emitter, value, width) for value in op.operands]
        widths = [self._own_width(r) if isinstance(op, scf.IfOp) else width for r in op.results]
        self._rebuild(op, emitter, operands, widths)

    def _own_width(self, value: SSAValue) -> int:
        """The width of a value that a loop or branch passes on: 32 if that always suffices."""
        return 32 if self.ranges.fits(value) else 64

    def _rebuild(self, op: Operation, emitter: Emitter, operands: Sequence[SSAValue], widths: Sequence[int]) -> None:
        for region in op.regions:
            for block in region.blocks:
                self._arguments(block, 64)
        new = type(op).create(
            operands=operands,
            result_types=[_sized(r.type, width) for r, width in zip(op.results, widths, strict=True)],
            properties=op.properties,
            attributes=op.attributes,
            regions=[op.detach_region(region) for region in list(op.regions)],
        )
        emitter.insert(new)
        for old, result in zip(op.results, new.results, strict=True):
            if _is_index(old):
                self._bind(old, result)
            else:
                result.name_hint = old.name_hint
                old.replace_all_uses_with(result)
        if isinstance(op, scf.YieldOp | scf.ConditionOp):
            Rewriter.erase_op(op)

    def _yield(self, op: scf.YieldOp, emitter: Emitter) -> None:
        """Hands on integers as wide as the loop or branch around has them, which is converted already."""
        around = op.parent_op()
        types = () if isinstance(around, scf.WhileOp) or around is None else around.result_types
        widths = [int_width(type) or 64 for type in types] or [64] * len(op.operands)
        operands = [self._as(emitter, v, width) for v, width in zip(op.operands, widths, strict=True)]
        self._rebuild(op, emitter, operands, ())

    def _arguments(self, block: Block, width: int) -> None:
        """Gives the block integer arguments beside its index ones, which are erased at the end."""
        self.blocks.append(block)
        for argument in [a for a in block.args if _is_index(a) and a not in self.became]:
            self._bind(argument, block.insert_arg(int_type(width), argument.index + 1))

    def _overruns(self, op: Operation) -> bool:
        """Whether the number after the last one of a loop may not be one of its type. A loop of 64 bits that begins
        below 2**62 and goes on by at most 2**30 is taken not to get there: that takes years.
        """
        if not isinstance(op, scf.ForOp) or self.ranges.of(op.step)[1] <= 1:
            return False
        width = int_width(op.lb.type) or 64
        beyond = self.ranges.of(op.ub)[1] + self.ranges.of(op.step)[1] - 1 > limits(width)[1]
        far = self.ranges.of(op.lb)[1] > 1 << 62 or self.ranges.of(op.step)[1] > 1 << 30
        return beyond and (width < 64 or far)

    def _counted(self, op: scf.ForOp, emitter: Emitter) -> list[SSAValue]:
        """New bounds, in i64, of a loop that overruns its type; its old counter is computed from the new one."""
        body, type = op.body.block, op.lb.type
        inside = Emitter(op)
        first = body.first_op
        assert first is not None
        inside.point = InsertPoint.before(first)
        counter = body.insert_arg(i64, 1)
        low, high, step = (
            self._as(emitter, v, 64) if _is_index(v) else resize(emitter, v, 64) for v in (op.lb, op.ub, op.step)
        )
        if (int_width(type) or 64) < 64:
            number, bounds = resize(inside, counter, int_width(type) or 64), [low, high, step]
        else:
            bounds = [emitter.constant(0, i64), self._trips(op, emitter, low, high, step), emitter.constant(1, i64)]
            number = inside.value(arith.AddiOp(low, inside.value(arith.MuliOp(counter, step))))
        self._bind(body.args[0], number)
        if not isinstance(type, IndexType):
            body.args[0].replace_all_uses_with(number)
            body.erase_arg(body.args[0])
        return bounds

    @staticmethod
    def _trips(op: scf.ForOp, emitter: Emitter, low: SSAValue, high: SSAValue, step: SSAValue) -> SSAValue:
        """How often a loop with these bounds runs."""
        if (known := trip_values(op)) is not None:
            return emitter.constant(len(known), i64)
        trips = emitter.value(arith.CeilDivUIOp(emitter.value(arith.SubiOp(high, low)), step))
        some = emitter.value(arith.CmpiOp(low, high, "slt"))
        return emitter.value(arith.SelectOp(some, trips, emitter.constant(0, i64)))

    def _loop(self, op: scf.ForOp, emitter: Emitter) -> None:
        bounds, body = (op.lb, op.ub, op.step), op.body.block
        operands = list(bounds)
        widths = [self._own_width(carried) for carried in body.args[1:]]
        for carried, width in zip(body.args[1:], widths, strict=True):
            if _is_index(carried):
                self._bind(carried, body.insert_arg(int_type(width), carried.index + 1))
        if self._overruns(op):
            operands = self._counted(op, emitter)
        elif _is_index(op.lb):
            after_last = self.ranges.of(op.ub)[1] + self.ranges.of(op.step)[1]
            width = 32 if all(self.ranges.fits(v) for v in bounds) and after_last < 2**31 else 64
            self._bind(body.args[0], body.insert_arg(int_type(width), 1))
            operands = [self._as(emitter, v, width) for v in bounds]
        operands += [self._as(emitter, v, width) for v, width in zip(op.iter_args, widths, strict=True)]
        self._rebuild(op, emitter, operands, widths)


def _block_arguments(op: Operation) -> list[SSAValue]:
    return [argument for region in op.regions for block in region.blocks for argument in block.args]


def _is_index(value: SSAValue) -> bool:
    return isinstance(value.type, IndexType)


def _sized(type: Attribute, width: int) -> Attribute:
    return int_type(width) if isinstance(type, IndexType) else type


def resize(emitter: Emitter, value: SSAValue, width: int) -> SSAValue:
    """An integer sign-extended or truncated to a width in bits."""
    now = int_width(value.type)
    assert now is not None
    if now == width:
        return value
    if (constant := constant_of(value)) is not None:
        return emitter.constant(constant, int_type(width))
    return emitter.value((arith.ExtSIOp if now < width else arith.TruncIOp)(value, IntegerType(width)))
