# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions from and to 8-bit floats by `cvt`, two numbers at a time in vectors; part of `expand-conversions`."""

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import FloatAttr, VectorType, f16, f32, i8, i16
from xdsl.ir import Attribute, Operation, SSAValue

from ...base.errors import Code
from ...dialects.element_types import FLOATS
from ...dialects.ptx import CvtOp
from ...dialects.ptx.base import float_bits, split_vector
from ..errors import LoweringError
from .emitter import Emitter, extract_elements, join_vector


def _pair(type: Attribute) -> str:
    """Two numbers of an 8-bit type as PTX spells them."""
    return f"{FLOATS[type.__class__].ptx}x2"


def _check_even(op: Operation, count: int) -> None:
    if count % 2:
        raise LoweringError(
            Code.EMIT_UNSUPPORTED, f"'{op.name}' of a vector of {count} elements", op, "convert an even number of them"
        )


def narrow(op: arith.TruncFOp) -> None:
    """Replaces a conversion to 8-bit floats: from f32, f16 or bf16; from f64 it would be rounded twice."""
    emitter = Emitter(op)
    source, count = split_vector(op.input.type)
    element, _ = split_vector(op.result.type)
    if float_bits(source) == 64:
        raise LoweringError(Code.EMIT_UNSUPPORTED, f"'{op.name}' from f64 to {element}", op, "round to f32 first")
    form = f"rn.satfinite.{_pair(element)}.f32"
    numbers = [_as_f32(emitter, value) for value in extract_elements(emitter, op.input)]
    if not count:
        zero = emitter.value(arith.ConstantOp(FloatAttr(0.0, f32)))
        low = emitter.value(arith.TruncIOp(emitter.value(CvtOp(form, [zero, numbers[0]])), i8))
        emitter.replace([emitter.value(arith.BitcastOp(low, element))])
        return
    _check_even(op, count)
    pairs = [emitter.value(CvtOp(form, [high, low])) for low, high in zip(numbers[::2], numbers[1::2], strict=True)]
    emitter.replace([emitter.value(vector.BitcastOp(join_vector(emitter, pairs), op.result.type))])


def widen(op: arith.ExtFOp) -> None:
    """Replaces a conversion from 8-bit floats."""
    emitter = Emitter(op)
    source, count = split_vector(op.input.type)
    element, _ = split_vector(op.result.type)
    form = f"rn.f16x2.{_pair(source)}"
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
        numbers += extract_elements(emitter, both)
    emitter.replace([join_vector(emitter, [_from_f16(emitter, number, element) for number in numbers])])


def _as_f32(emitter: Emitter, value: SSAValue) -> SSAValue:
    return value if value.type == f32 else emitter.value(arith.ExtFOp(value, f32))


def _from_f16(emitter: Emitter, value: SSAValue, type: Attribute) -> SSAValue:
    """A number that every wider type holds, in that type."""
    if type == f16:
        return value
    if float_bits(type) == 16:
        return emitter.value(arith.TruncFOp(emitter.value(arith.ExtFOp(value, f32)), type))
    return emitter.value(arith.ExtFOp(value, type))
