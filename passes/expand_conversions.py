# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`expand-conversions`: on the way from stage `index` to stage `instr`."""

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import FloatAttr, ModuleOp, VectorType, f16, f32, i8, i16
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from ..base.errors import Code
from ..dialects.element_types import FLOATS
from ..dialects.ptx import CvtOp
from ..dialects.ptx.types import float_bits, split_vector
from .errors import LoweringError
from .writing.emitter import Emitter


@dataclass(frozen=True)
class ExpandConversionsPass(ModulePass):
    """Replaces conversions from and to 8-bit floats by `cvt`, two numbers at a time in vectors.

    Numbers beyond the greatest become the greatest (satfinite). 8-bit floats have no other arithmetic.

    Before:

        %e = arith.truncf %x : vector<2xf32> to vector<2xf8E4M3FN>

    After:

        %p = ptx.cvt "rn.satfinite.e4m3x2.f32" %x1, %x0 : (f32, f32) -> i16
        %v = vector.insert %p, ... : i16 into vector<1xi16>
        %e = vector.bitcast %v : vector<1xi16> to vector<2xf8E4M3FN>
    """

    name = "expand-conversions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, arith.TruncFOp) and _is_narrow(inner.result.type):
                _narrow(inner)
            elif isinstance(inner, arith.ExtFOp) and _is_narrow(inner.input.type):
                _widen(inner)
            elif _computes(inner) and any(_is_narrow(value.type) for value in (*inner.operands, *inner.results)):
                raise LoweringError(
                    Code.EMIT_UNSUPPORTED,
                    f"'{inner.name}' of 8-bit floats",
                    inner,
                    "8-bit floats can only be converted: extend them with arith.extf and compute in f32 or f16",
                )


def _is_narrow(type: Attribute) -> bool:
    return float_bits(split_vector(type)[0]) == 8


def _computes(op: Operation) -> bool:
    """Whether an operation does more with a value than move it."""
    moves = (arith.ConstantOp, arith.SelectOp, arith.BitcastOp)
    return op.name.startswith(("arith.", "math.")) and not isinstance(op, moves)


def _pair(type: Attribute) -> str:
    """Two numbers of an 8-bit type as PTX spells them."""
    return f"{FLOATS[type.__class__].ptx}x2"


def _check_even(op: Operation, count: int) -> None:
    if count % 2:
        raise LoweringError(
            Code.EMIT_UNSUPPORTED, f"'{op.name}' of a vector of {count} elements", op, "convert an even number of them"
        )


def _narrow(op: arith.TruncFOp) -> None:
    """From f32, f16 or bf16; from f64 it would be rounded twice."""
    emitter = Emitter(op)
    source, count = split_vector(op.input.type)
    element, _ = split_vector(op.result.type)
    if float_bits(source) == 64:
        raise LoweringError(Code.EMIT_UNSUPPORTED, f"'{op.name}' from f64 to {element}", op, "round to f32 first")
    form = f"rn.satfinite.{_pair(element)}.f32"
    numbers = [_as_f32(emitter, value) for value in _elements(emitter, op.input, source, count)]
    if not count:
        zero = emitter.value(arith.ConstantOp(FloatAttr(0.0, f32)))
        low = emitter.value(arith.TruncIOp(emitter.value(CvtOp(form, [zero, numbers[0]])), i8))
        emitter.replace([emitter.value(arith.BitcastOp(low, element))])
        return
    _check_even(op, count)
    pairs = [emitter.value(CvtOp(form, [high, low])) for low, high in zip(numbers[::2], numbers[1::2], strict=True)]
    emitter.replace([emitter.value(vector.BitcastOp(_join_vector(emitter, pairs, i16), op.result.type))])


def _widen(op: arith.ExtFOp) -> None:
    emitter = Emitter(op)
    source, count = split_vector(op.input.type)
    element, _ = split_vector(op.result.type)
    form, pair = f"rn.f16x2.{_pair(source)}", VectorType(f16, [2])
    if not count:
        byte = emitter.value(arith.BitcastOp(op.input, i8))
        both = emitter.value(CvtOp(form, [emitter.value(arith.ExtUIOp(byte, i16))]))
        half = emitter.value(vector.ExtractOp(both, [0], f16))
        emitter.replace([_from_f16(emitter, half, element)])
        return
    _check_even(op, count)
    words = emitter.value(vector.BitcastOp(op.input, VectorType(i16, [count // 2])))
    numbers: list[SSAValue] = []
    for index in range(count // 2):
        both = emitter.value(CvtOp(form, [emitter.value(vector.ExtractOp(words, [index], i16))]))
        assert both.type == pair
        numbers += [emitter.value(vector.ExtractOp(both, [half], f16)) for half in (0, 1)]
    emitter.replace([_join_vector(emitter, [_from_f16(emitter, number, element) for number in numbers], element)])


def _elements(emitter: Emitter, value: SSAValue, element: Attribute, count: int) -> list[SSAValue]:
    """The elements of a vector, or the scalar itself."""
    if not count:
        return [value]
    return [emitter.value(vector.ExtractOp(value, [index], element)) for index in range(count)]


def _as_f32(emitter: Emitter, value: SSAValue) -> SSAValue:
    return value if value.type == f32 else emitter.value(arith.ExtFOp(value, f32))


def _from_f16(emitter: Emitter, value: SSAValue, type: Attribute) -> SSAValue:
    """A number that every wider type holds, in that type."""
    if type == f16:
        return value
    if float_bits(type) == 16:
        return emitter.value(arith.TruncFOp(emitter.value(arith.ExtFOp(value, f32)), type))
    return emitter.value(arith.ExtFOp(value, type))


def _join_vector(emitter: Emitter, values: Sequence[SSAValue], element: Attribute) -> SSAValue:
    """A vector of the values."""
    whole = emitter.value(vector.BroadcastOp(values[0], VectorType(element, [len(values)])))
    for index, value in enumerate(values[1:], 1):
        whole = emitter.value(vector.InsertOp(value, whole, [index]))
    return whole
