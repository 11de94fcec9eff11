# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How passes write operations: at a place, with the source location of the replaced operation, and with remarks: the
decisions of passes and their reasons.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, StringAttr, UnitAttr, i1, i8, i32, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.arith.integer_range import wrap_signed
from ...dialects.arith.semantics import CHECKED
from ...dialects.ptx import LoadOp, PtrAddOp
from ...dialects.ptx.base import integer_bits
from ...dialects.tile import TensorType
from ..analysis.loop_hints import UNROLL

if TYPE_CHECKING:
    from ..analysis.ranges import Ranges

REMARK = "remark"
"""The attribute that keeps a remark. It changes nothing; a pass that replaces the operation drops it."""


def remark(op: Operation, text: str) -> None:
    """Says `text` of an operation that a pass has made."""
    op.attributes[REMARK] = StringAttr(text)


def remarks_in(program: Operation) -> Iterator[tuple[Operation, str]]:
    """The operations of a program that carry remarks, in its order."""
    for op in program.walk():
        text = op.attributes.get(REMARK)
        if isinstance(text, StringAttr):
            yield op, text.data


class Emitter:
    """Inserts operations before `op`, giving each its location.

    The insertion point can be moved into a new loop with `loop`; `op` stays the operation that is being replaced.
    """

    def __init__(self, op: Operation) -> None:
        self.op = op
        self.point = InsertPoint.before(op)

    def insert(self, op: Operation) -> Operation:
        """Inserts `op` at the current point, with the location of the operation that is being replaced."""
        op.location = self.op.location
        Rewriter.insert_op(op, self.point)
        return op

    def value(self, op: Operation) -> SSAValue:
        """Inserts `op` and returns its only result."""
        return self.insert(op).results[0]

    def constant(self, value: int, type: IntegerType | IndexType) -> SSAValue:
        """An integer constant: `value` modulo the width of its type, as a signed integer."""
        attribute = _integer(wrap_signed(value, integer_bits(type) or 64), type)
        return self.value(arith.ConstantOp.create(properties={"value": attribute}, result_types=[type]))

    def constant_like(self, value: int, like: SSAValue) -> SSAValue:
        """An integer constant of the type of `like`."""
        bits = integer_bits(like.type)
        return self.constant(value, IndexType() if bits is None else IntegerType(bits))

    def index(self, value: int) -> SSAValue:
        """A constant of type `index`."""
        return self.constant(value, IndexType())

    def moved(self, pointer: SSAValue, bytes: int) -> SSAValue:
        """The pointer moved by a number of bytes; itself for 0."""
        return self.value(PtrAddOp(pointer, self.constant(bytes, i32))) if bytes else pointer

    def element(self, pointer: SSAValue, type: TensorType) -> SSAValue:
        """The element of a tensor of this type at `pointer`; a predicate is a byte in memory, 0 or 1."""
        if not type.is_predicate:
            return self.value(LoadOp(pointer, type.element_type, type.element_bytes))
        return self.value(arith.TruncIOp(self.value(LoadOp(pointer, i8, 1)), i1))

    def loop(self, extent: int) -> SSAValue:
        """Opens a fully unrolled loop over 0 .. extent-1 and moves the insertion point into it; the induction
        variable.
        """
        body = Block(arg_types=[IndexType()])
        loop = scf.ForOp(self.index(0), self.index(extent), self.index(1), (), Region(body))
        loop.attributes[UNROLL] = UnitAttr()
        self.insert(loop)
        end = scf.YieldOp()
        end.location = self.op.location
        body.add_op(end)
        self.point = InsertPoint.before(end)
        return body.args[0]

    def branch(self, condition: SSAValue) -> None:
        """Opens an `scf.if` without an else and moves the insertion point into it."""
        body = Block()
        self.insert(scf.IfOp(condition, (), Region(body), Region()))
        end = scf.YieldOp()
        end.location = self.op.location
        body.add_op(end)
        self.point = InsertPoint.before(end)

    def replace(self, results: Sequence[SSAValue] = ()) -> None:
        """Replaces the operation's results by `results` and erases it."""
        for old, new in zip(self.op.results, results, strict=True):
            if new.name_hint is None:
                new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        Rewriter.erase_op(self.op)


def check(op: Operation) -> Operation:
    """Marks an operation as one whose exact result must fit its type; returns it."""
    op.attributes[CHECKED] = UnitAttr()
    return op


class CheckedEmitter(Emitter):
    """Inserts operations where another emitter stands, and marks those whose results may not fit their types."""

    def __init__(self, emitter: Emitter, ranges: "Ranges") -> None:
        self.op, self.point = emitter.op, emitter.point
        self._ranges = ranges

    def insert(self, op: Operation) -> Operation:
        super().insert(op)
        return check(op) if self._ranges.wraps(op) else op


def insert_behind(value: SSAValue, op: Operation) -> None:
    """Inserts `op` behind the definition of a value, with its location: of an argument, where its block begins."""
    owner = value.owner
    if isinstance(owner, Block):
        first = owner.first_op
        assert first is not None
        op.location = first.location
        Rewriter.insert_op(op, InsertPoint.before(first))
    else:
        op.location = owner.location
        Rewriter.insert_op(op, InsertPoint.after(owner))


@lru_cache(maxsize=4096, typed=True)
def _integer(value: int, type: IntegerType | IndexType) -> IntegerAttr[Any]:
    """The attribute of an integer; kept, since verifying one takes longer than the rest of making a constant."""
    return IntegerAttr(value, type)


def int_type(width: int) -> IntegerType:
    """The signless integer type of a width."""
    return {32: i32, 64: i64}.get(width) or IntegerType(width)


INDEX_ARITHMETIC = (arith.SignlessIntegerBinaryOperation, arith.ConstantOp, arith.IndexCastOp)
"""Operations of index arithmetic, which are erased where nothing uses their results."""


def erase_unused(ops: list[Operation]) -> None:
    """Erases those of `ops`, in reverse order, whose results nothing uses."""
    for op in reversed(ops):
        if not any(result.uses for result in op.results):
            Rewriter.erase_op(op)
