# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How passes write operations: at a place, with the source location of the replaced operation, and with remarks: the
decisions of passes and their reasons. SSA values are integers of the layout algebra: computing with them writes `arith`
operations.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    VectorType,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.arith.integer_range import wrap_signed
from ...dialects.arith.semantics import CHECKED, INTEGER_OPERATIONS, int_width
from ...dialects.ptx import LoadOp, PtrAddOp
from ...dialects.ptx.base import integer_bits, split_vector
from ...dialects.tile import TensorType
from ...layout.algebra.integers import Unknown
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
    """Inserts `op` after the definition of a value, with its location; for an argument, at the start of its block."""
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


Binary: TypeAlias = type[arith.SignlessIntegerBinaryOperation]
Operand: TypeAlias = "int | SsaInt"


def _operators(op: Binary) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """An operator, with the integer on the left and on the right."""
    return lambda self, other: self.binary(op, self, other), lambda self, other: self.binary(op, other, self)


class SsaOperators(ABC):
    """The operators of an integer of the layout algebra. The other operand may be a number."""

    __slots__ = ()
    DIVISION: ClassVar[Binary]
    REMAINDER: ClassVar[Binary]

    @abstractmethod
    def binary(self, op: Binary, left: object, right: object) -> Self:
        """The result of an operation on this integer and another one or a number."""

    __add__, __radd__ = _operators(arith.AddiOp)
    __sub__, __rsub__ = _operators(arith.SubiOp)
    __mul__ = __rmul__ = _operators(arith.MuliOp)[0]
    __and__ = __rand__ = _operators(arith.AndIOp)[0]
    __xor__ = __rxor__ = _operators(arith.XOrIOp)[0]
    __rshift__, __lshift__ = _operators(arith.ShRUIOp)[0], _operators(arith.ShLIOp)[0]

    def __floordiv__(self, other: int | Self) -> Self:
        return self.binary(self.DIVISION, self, other)

    def __rfloordiv__(self, other: int) -> Self:
        return self.binary(self.DIVISION, other, self)

    def __mod__(self, other: int | Self) -> Self:
        return self.binary(self.REMAINDER, self, other)

    def __rmod__(self, other: int) -> Self:
        return self.binary(self.REMAINDER, other, self)

    def minimum(self, other: int | Self) -> Self:
        """The smaller of two integers, which may be negative."""
        return self.binary(arith.MinSIOp, self, other)


class SsaInt(SsaOperators):
    """A run-time integer that is not negative, held by an SSA value of type i32, i64 or index.

    Division and remainder are those of unsigned integers: coordinates and offsets are never negative. `known` holds the
    facts that a type can express; it follows the arithmetic, so that types need not be inferred a second time.
    """

    __slots__ = ("emitter", "known", "value")
    DIVISION: ClassVar[Binary] = arith.DivUIOp
    REMAINDER: ClassVar[Binary] = arith.RemUIOp

    def __init__(self, emitter: Emitter, value: SSAValue, known: Unknown | None = None) -> None:
        self.emitter = emitter
        self.value = value
        self.known = Unknown(int_width(value.type) or 64) if known is None else known

    def binary(self, op: Binary, left: Any, right: Any) -> Self:
        result = self.emitter.value(op(self._ssa(left), self._ssa(right)))
        return type(self)(self.emitter, result, INTEGER_OPERATIONS[op].value(facts_of(left), facts_of(right)))

    def _ssa(self, operand: Operand) -> SSAValue:
        if isinstance(operand, SsaInt):
            return operand.value
        return self.emitter.constant_like(operand, self.value)

    def maximum(self, other: int | Self) -> Self:
        """The larger of two integers, which may be negative."""
        return self.binary(arith.MaxSIOp, self, other)


def facts_of(x: Operand) -> int | Unknown:
    """An integer of the algebra as it stands in a type: its value, or the facts about it."""
    return x.known if isinstance(x, SsaInt) else x


def join_vector(emitter: Emitter, values: Sequence[SSAValue]) -> SSAValue:
    """A vector of values of one type."""
    whole = emitter.value(vector.BroadcastOp(values[0], VectorType(values[0].type, [len(values)])))
    for index, value in enumerate(values[1:], 1):
        whole = emitter.value(vector.InsertOp(value, whole, [index]))
    return whole


def extract_elements(emitter: Emitter, value: SSAValue) -> list[SSAValue]:
    """The elements of a vector, or the scalar itself."""
    element, count = split_vector(value.type)
    return [emitter.value(vector.ExtractOp(value, [index], element)) for index in range(count)] if count else [value]
