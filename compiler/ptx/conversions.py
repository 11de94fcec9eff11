# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions, of addresses too, and counts of bits (PTX ISA, cvt, cvta, isspacep, popc, clz)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, IntegerType, f32, i1, i32, i64
from xdsl.ir import SSAValue

from ...dialects import ptx
from ...dialects.ptx.base import LOCAL, SHARED, SHARED_CLUSTER, PtrType
from ...dialects.ptx.convert import CVT_FORMS
from .arithmetic import as_text
from .inference import GENERIC, SPACES
from .moves import Rule, address_of, flushed, is_float
from .registers import Registers, bits_of, type_of
from .syntax import TYPE_BITS, Instruction, Operand, Register, Symbol

_ROUND_TO_INTEGER = MappingProxyType(
    {"rni": math.RoundEvenOp, "rzi": math.TruncOp, "rmi": math.FloorOp, "rpi": math.CeilOp}
)


def _convert(r: Registers, i: Instruction) -> None:
    if as_text(r, i):
        return
    if len(i.modifiers) < 2:
        raise r.refuse("a conversion names two types")
    if ".".join(i.modifiers) in CVT_FORMS:
        form = CVT_FORMS[".".join(i.modifiers)]
        values = [r.read(x, type) for x, type in zip(i.operands[1:], form.operands, strict=True)]
        if form.operands == (type_of("f32"), type_of("f32")) and i.modifiers == ("rn", i.modifiers[1], "f32"):
            high, low = (r.emit(arith.TruncFOp(x, form.result.element_type)) for x in values)  # pyright: ignore
            r.write(i.operands[0], r.vector([low, high]))
            return
        r.write(i.operands[0], r.emit(ptx.CvtOp(".".join(i.modifiers), values)))
        return
    *words, target, source = i.modifiers
    if is_float(target) and is_float(source):
        value = _between_floats(r, i, words, target, source)
    elif is_float(source):
        value = _to_integer(r, i, words, target, source)
    elif is_float(target):
        if words != ["rn"] and (words, target) != (["rz"], "f32"):
            raise r.refuse("the rounding is not supported")
        kind = arith.SIToFPOp if source[0] == "s" else arith.UIToFPOp
        given = r.read(i.operands[1], type_of(source))
        value = r.emit(kind(given, cast(AnyFloat, type_of(target))))
        if words == ["rz"]:
            value = _toward_zero(r, value, given, signed=source[0] == "s")
    else:
        if words not in ([], ["sat"]):
            raise r.refuse(f"the modifier .{words[0]} is not supported")
        if isinstance(i.operands[1], Register) and i.operands[1].name in r.texts:
            assert isinstance(i.operands[0], Register)
            r.texts[i.operands[0].name] = r.texts[i.operands[1].name]
            return
        pointer = address_of(r, i.operands[1])
        if pointer is not None and pointer.type in (SHARED, SHARED_CLUSTER, LOCAL):
            r.write(i.operands[0], pointer)  # as wide as the window, or extended
            return
        value = r.read(i.operands[1], type_of(source))
        if words:
            value = _clamped(r, value, target, signed=source[0] == "s")
        value = r.resized(value, TYPE_BITS[target], signed=source[0] == "s")
    r.write(i.operands[0], value, signed=target[0] == "s")


def _clamped(r: Registers, value: SSAValue, target: str, *, signed: bool) -> SSAValue:
    """An integer, or the nearest to it that the type of the target has (.sat)."""
    bits = TYPE_BITS[target] - (target[0] == "s")
    least, most = -(1 << bits) if target[0] == "s" else 0, (1 << bits) - 1
    own = bits_of(value.type)
    if signed and least > -(1 << own - 1):
        value = r.emit(arith.MaxSIOp(value, r.constant(least, value.type)))
    if most < (1 << own - signed) - 1:
        limit = r.constant(most, value.type)
        value = r.emit((arith.MinSIOp if signed else arith.MinUIOp)(value, limit))
    return value


def _between_floats(r: Registers, i: Instruction, words: list[str], target: str, source: str) -> SSAValue:
    value = r.read(i.operands[1], type_of(source))
    if "ftz" in words and source == "f32":
        value = flushed(r, value)
        words = [word for word in words if word != "ftz"]
    if TYPE_BITS[target] == TYPE_BITS[source]:
        if len(words) != 1 or words[0] not in _ROUND_TO_INTEGER or target != source:
            raise r.refuse("the conversion is not supported")
        return r.emit(_ROUND_TO_INTEGER[words[0]](value))
    if TYPE_BITS[target] > TYPE_BITS[source]:
        if words:
            raise r.refuse(f"the modifier .{words[0]} is not supported")
        return r.emit(arith.ExtFOp(value, type_of(target)))
    if words != ["rn"]:
        raise r.refuse("the rounding is not supported")
    return r.emit(arith.TruncFOp(value, type_of(target)))


def _toward_zero(r: Registers, nearest: SSAValue, given: SSAValue, *, signed: bool) -> SSAValue:
    """The f32 toward zero from an integer, given the nearest: the one before it, where that is beyond the integer."""
    exact = r.resized(given, 64, signed=signed)
    back = r.emit((arith.FPToSIOp if signed else arith.FPToUIOp)(nearest, i64))
    limit = r.constant(2.0**63 if signed else 2.0**64, f32)  # there `back` is the greatest integer
    over = r.emit(arith.CmpfOp(nearest, limit, "oge"))
    over = r.emit(arith.OrIOp(over, r.emit(arith.CmpiOp(back, exact, "sgt" if signed else "ugt"))))
    if signed:
        below = r.emit(arith.CmpiOp(back, exact, "slt"))
        is_negative = r.emit(arith.CmpiOp(exact, r.constant(0, i64), "slt"))
        over = r.emit(arith.SelectOp(is_negative, below, over))
    bits = r.convert(nearest, i32)
    before = r.emit(arith.SubiOp(bits, r.constant(1, i32)))  # of either sign the next number toward zero
    return r.convert(r.emit(arith.SelectOp(over, before, bits)), f32)


def _to_integer(r: Registers, i: Instruction, words: list[str], target: str, source: str) -> SSAValue:
    value = r.read(i.operands[1], type_of(source))
    if "ftz" in words and source == "f32":
        value, words = flushed(r, value), [word for word in words if word != "ftz"]
    if len(words) != 1 or words[0] not in _ROUND_TO_INTEGER:
        raise r.refuse("the rounding is not supported")
    if words[0] != "rzi":
        value = r.emit(_ROUND_TO_INTEGER[words[0]](value))
    kind = arith.FPToSIOp if target[0] == "s" else arith.FPToUIOp
    return r.emit(kind(value, IntegerType(TYPE_BITS[target])))


def _count(r: Registers, i: Instruction) -> None:
    value = r.read(i.operands[1], type_of(i.modifiers[-1]))
    kind = math.CtPopOp if i.opcode == "popc" else math.CountLeadingZerosOp
    r.write(i.operands[0], r.resized(r.emit(kind(value)), 32))


def _to_space(r: Registers, i: Instruction) -> None:
    """cvta: the address does not change, since an address here knows its memory."""
    target, source = i.operands
    if isinstance(source, Register) and source.name in r.texts and isinstance(target, Register):
        r.texts[target.name] = r.texts[source.name]
        return
    pointer = address_of(r, source)
    if pointer is None:
        r.write(target, r.read(source, IntegerType(64 if i.modifiers[-1] == "u64" else 32)))
        return
    wanted = next((word for word in i.modifiers if word in ("global", "shared", "local", "param", "const")), "")
    if isinstance(pointer.type, PtrType) and wanted not in (pointer.type.space.data.keyword, "param"):
        raise r.refuse(f"the address is one of {pointer.type.space.data.keyword} memory")
    r.write(target, pointer)


def _in_space(r: Registers, i: Instruction) -> None:
    """isspacep: of an address that knows its memory, or of a number."""
    space = SPACES.get(i.modifiers[0])
    pointer = address_of(r, i.operands[1])
    if i.modifiers[0] in ("const", "param"):  # such an address has no number that others know
        holds = r.constant(int(_is_constant(r, i.operands[1])) if i.modifiers[0] == "const" else 0, i1)
    elif space is None:
        raise r.refuse("the state space is not supported")
    elif pointer is not None:
        holds = r.constant(int(pointer.type == space), i1)
    else:
        space = SHARED if space == SHARED_CLUSTER else space
        number = r.number(i.operands[1], 64)
        holds = r.emit(arith.CmpiOp(number, r.constant(GENERIC[space], i64), "uge"))
        for start in (begin for begin in GENERIC.values() if begin > GENERIC[space]):
            below = r.emit(arith.CmpiOp(number, r.constant(start, i64), "ult"))
            holds = r.emit(arith.AndIOp(holds, below))
    r.write(i.operands[0], holds)


def _is_constant(r: Registers, operand: Operand) -> bool:
    """Whether an operand is the address of a variable in constant memory."""
    return isinstance(operand, Register | Symbol) and r.texts.get(operand.name) in r.constants


CONVERSIONS: Mapping[str, Rule] = MappingProxyType({
    "cvt": _convert, "cvta": _to_space, "popc": _count, "clz": _count, "isspacep": _in_space,
})  # fmt: skip
"""The rules by opcode."""
