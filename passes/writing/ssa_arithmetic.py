# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arithmetic of `math`'s functions on SSA values: computing writes operations."""

from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f32, i1, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint

from ...dialects import ptx
from ...dialects.math.arithmetic import Arithmetic, Number
from .emitter import Emitter

_INSTRUCTIONS = {
    kind.FUNCTION: kind
    for kind in (ptx.Ex2Op, ptx.Lg2Op, ptx.RcpOp, ptx.RsqrtOp, ptx.SqrtOp, ptx.SinOp, ptx.CosOp, ptx.TanhOp)
}


class SsaNumber:
    """An SSA value of f32, i32, i64 or i1 with the operators of `Arithmetic`."""

    __slots__ = ("emitter", "value")

    def __init__(self, emitter: Emitter, value: SSAValue) -> None:
        self.emitter, self.value = emitter, value

    def of(self, op: Operation) -> "SsaNumber":
        """The result of an operation, which is inserted."""
        return SsaNumber(self.emitter, self.emitter.value(op))

    def like(self, x: Any, type: Attribute | None = None) -> SSAValue:
        """A number as a constant of a type, by default that of this value."""
        if isinstance(x, SsaNumber):
            return x.value
        type = type or self.value.type
        if type == f32:
            return self.emitter.value(arith.ConstantOp(FloatAttr(float(x), f32)))
        bits = 64 if type == i64 else 32
        wrapped = (x + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        return self.emitter.value(arith.ConstantOp(IntegerAttr(wrapped, i64 if bits == 64 else i32)))

    def _binary(self, left: Any, right: Any, of_floats: Any, of_integers: Any) -> "SsaNumber":
        operation = of_floats if self.value.type == f32 else of_integers
        return self.of(operation(self.like(left), self.like(right)))

    def __add__(self, other: object) -> "SsaNumber":
        return self._binary(self, other, arith.AddfOp, arith.AddiOp)

    def __sub__(self, other: object) -> "SsaNumber":
        return self._binary(self, other, arith.SubfOp, arith.SubiOp)

    def __rsub__(self, other: object) -> "SsaNumber":
        return self._binary(other, self, arith.SubfOp, arith.SubiOp)

    def __mul__(self, other: object) -> "SsaNumber":
        return self._binary(self, other, arith.MulfOp, arith.MuliOp)

    def __neg__(self) -> "SsaNumber":
        return self.of(arith.NegfOp(self.value))

    def __lshift__(self, other: object) -> "SsaNumber":
        return self.of(arith.ShLIOp(self.value, self.like(other)))

    def __rshift__(self, other: object) -> "SsaNumber":
        return self.of(arith.ShRUIOp(self.value, self.like(other)))

    def __and__(self, other: object) -> "SsaNumber":
        return self.of(arith.AndIOp(self.value, self.like(other)))

    def __or__(self, other: object) -> "SsaNumber":
        return self.of(arith.OrIOp(self.value, self.like(other)))

    def __xor__(self, other: object) -> "SsaNumber":
        return self.of(arith.XOrIOp(self.value, self.like(other)))

    def __lt__(self, other: object) -> "SsaNumber":
        return self.of(arith.CmpfOp(self.value, self.like(other), "olt"))

    def __gt__(self, other: object) -> "SsaNumber":
        return self.of(arith.CmpfOp(self.value, self.like(other), "ogt"))


class SsaArithmetic(Arithmetic):
    """Writes operations of `arith`, `math`, `scf` and `ptx` where an emitter stands."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter

    def fma(self, a: Number, b: Number, c: Number) -> Number:
        return a.of(math.FmaOp(a.value, a.like(b), a.like(c)))

    def absolute(self, x: Number) -> Number:
        return x.of(math.AbsFOp(x.value))

    def with_sign(self, x: Number, of: Number) -> Number:
        return x.of(math.CopySignOp(x.value, of.value))

    def least(self, x: Number, bound: float) -> Number:
        return x.of(arith.MinimumfOp(x.value, x.like(bound)))

    def greatest(self, x: Number, bound: float) -> Number:
        return x.of(arith.MaximumfOp(x.value, x.like(bound)))

    def where(self, condition: Number, a: Number, b: Number) -> Any:
        typed = next((one.value.type for one in (a, b) if isinstance(one, SsaNumber)), None)
        type = typed or (f32 if isinstance(a, float) else i32)
        return condition.of(arith.SelectOp(condition.value, condition.like(a, type), condition.like(b, type)))

    def is_set(self, x: Number, bit: int) -> Number:
        return x.of(arith.TruncIOp((x >> bit).value, i1))

    def bits(self, x: Number) -> Number:
        return x.of(arith.BitcastOp(x.value, i32))

    def from_bits(self, x: Number) -> Number:
        return x.of(arith.BitcastOp(x.value, f32))

    def to_float(self, x: Number) -> Number:
        return x.of(arith.SIToFPOp(x.value, f32))

    def to_i64(self, x: Number) -> Number:
        return x.of(arith.FPToSIOp(x.value, i64))

    def extended(self, x: Number) -> Number:
        return x.of(arith.ExtUIOp(x.value, i64))

    def truncated(self, x: Number) -> Number:
        return x.of(arith.TruncIOp(x.value, i32))

    def halved(self, x: Number) -> Number:
        return x.of(arith.ShRSIOp(x.value, x.like(1)))

    def approximate(self, name: str, x: Number, ftz: bool) -> Number:
        return x.of(_INSTRUCTIONS[name](x.value, ftz))

    def rarely(
        self, condition: Number, compute: Callable[[], tuple[Number, ...]], usual: tuple[Number, ...]
    ) -> tuple[SsaNumber, ...]:
        values = [one.value for one in usual]
        then, otherwise = Block(), Block()
        choice = scf.IfOp(condition.value, [value.type for value in values], Region(then), Region(otherwise))
        self.emitter.insert(choice)
        after = self.emitter.point
        self.emitter.point = InsertPoint.at_end(then)
        self.emitter.insert(scf.YieldOp(*[one.value for one in compute()]))
        self.emitter.point = InsertPoint.at_end(otherwise)
        self.emitter.insert(scf.YieldOp(*values))
        self.emitter.point = after
        return tuple(SsaNumber(self.emitter, result) for result in choice.results)
