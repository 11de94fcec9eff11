# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions on parts of words and on fields (PTX ISA, Scalar Video Instructions, SIMD Video Instructions, bmsk,
szext, cnot).
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from .moves import Rule
from .registers import Registers, type_of
from .syntax import Instruction, Operand

_NAME = re.compile(r"v(add|sub|absdiff|min|max)([24]?)")
_BOUNDS: Mapping[tuple[str, int], tuple[int, int]] = MappingProxyType({
    (sign, bits): (0, 2**bits - 1) if sign == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for sign in "us" for bits in (8, 16, 32)
})  # fmt: skip


def _field(r: Registers, whole: SSAValue, index: int, bits: int, *, signed: bool) -> SSAValue:
    """A part of a word as an i64."""
    left = r.emit(arith.ShLIOp(r.resized(whole, 64), r.constant(64 - bits * (index + 1), i64)))
    return r.emit((arith.ShRSIOp if signed else arith.ShRUIOp)(left, r.constant(64 - bits, i64)))


def _combined(r: Registers, kind: str, a: SSAValue, b: SSAValue) -> SSAValue:
    match kind:
        case "add":
            return r.emit(arith.AddiOp(a, b))
        case "min":
            return r.emit(arith.MinSIOp(a, b))
        case "max":
            return r.emit(arith.MaxSIOp(a, b))
        case "sub":
            return r.emit(arith.SubiOp(a, b))
        case _:
            return r.emit(math.AbsIOp(r.emit(arith.SubiOp(a, b))))


def video_rule(r: Registers, i: Instruction) -> None:
    """vadd, vsub, vabsdiff, vmin and vmax of words, and of two or four parts of them: with saturation, and with a
    second operation on the result; of parts, it adds all results.
    """
    match = _NAME.fullmatch(i.opcode)
    if match is None or len(i.operands) not in (3, 4):
        raise r.refuse("the form is not supported")
    kind, count = match[1], int(match[2] or 1)
    result, first, second, *more = i.modifiers
    saturates = more[:1] == ["sat"]
    then = more[saturates:]
    allowed = ("add",) if count > 1 else ("add", "min", "max")
    if len(then) > 1 or (then and then[0] not in allowed):
        raise r.refuse("the form is not supported")
    target, *sources = i.operands
    a, b = (r.read(source, i32) for source in sources[:2])
    bits = 32 // count
    results: list[SSAValue] = []
    for index in range(count):
        left, right = (_field(r, x, index, bits, signed=t[0] == "s") for x, t in ((a, first), (b, second)))
        made = _combined(r, kind, left, right)
        if saturates:
            low, high = _BOUNDS[result[0], bits]
            made = r.emit(arith.MaxSIOp(r.emit(arith.MinSIOp(made, r.constant(high, i64))), r.constant(low, i64)))
        results.append(made)
    if then:
        total = _field(r, r.read(sources[2], i32), 0, 32, signed=result[0] == "s")
        for made in results:
            total = _combined(r, then[0], total, made)
        r.write(target, r.resized(total, 32))
        return
    if len(sources) != (3 if count > 1 else 2):  # the third replaces parts that a mask leaves out
        raise r.refuse("the operands are not supported")
    whole = r.constant(0, i64)
    for index, made in enumerate(results):
        part = r.emit(arith.AndIOp(made, r.constant(2**bits - 1, i64)))
        whole = r.emit(arith.OrIOp(whole, r.emit(arith.ShLIOp(part, r.constant(bits * index, i64)))))
    r.write(target, r.resized(whole, 32))


def _clamped(r: Registers, i: Instruction, operand: Operand) -> SSAValue:
    """A place or a length of a field: at most 32, or, with `.wrap`, its lowest 5 bits."""
    value = r.read(operand, i32)
    if i.modifiers[0] == "wrap":
        return r.resized(r.emit(arith.AndIOp(value, r.constant(31, i32))), 64)
    return r.resized(r.emit(arith.MinUIOp(value, r.constant(32, i32))), 64)


def _bit_mask(r: Registers, i: Instruction) -> None:
    """bmsk: ones at a place, of a length."""
    target, place, length = i.operands
    one, at = r.constant(1, i64), _clamped(r, i, place)
    ones = r.emit(arith.SubiOp(r.emit(arith.ShLIOp(one, _clamped(r, i, length))), one))
    r.write(target, r.resized(r.emit(arith.ShLIOp(ones, at)), 32))


def _extend(r: Registers, i: Instruction) -> None:
    """szext: the lowest bits, extended."""
    target, value, length = i.operands
    left = r.emit(arith.SubiOp(r.constant(32, i64), _clamped(r, i, length)))
    whole = r.emit(arith.ShLIOp(r.resized(r.read(value, i32), 64), r.constant(32, i64)))
    shift = arith.ShRSIOp if i.modifiers[-1] == "s32" else arith.ShRUIOp
    highest = r.emit(arith.ShLIOp(whole, left))
    r.write(target, r.resized(r.emit(shift(r.emit(shift(highest, left)), r.constant(32, i64))), 32))


def _is_zero(r: Registers, i: Instruction) -> None:
    """cnot: 1 of zero, 0 of other numbers."""
    type = type_of(i.modifiers[-1])
    holds = r.emit(arith.CmpiOp(r.read(i.operands[1], type), r.constant(0, type), "eq"))
    r.write(i.operands[0], r.emit(arith.SelectOp(holds, r.constant(1, type), r.constant(0, type))))


VIDEO: Mapping[str, Rule] = MappingProxyType({
    **{f"v{kind}{count}": video_rule for kind in ("add", "sub", "absdiff", "min", "max") for count in ("", "2", "4")},
    "bmsk": _bit_mask, "szext": _extend, "cnot": _is_zero,
})  # fmt: skip
"""The rules by opcode."""
