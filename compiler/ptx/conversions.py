# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions, of addresses too, and counts of bits (PTX ISA, cvt, cvta, isspacep, popc, clz)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, IntegerType, bf16, f32, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from ...dialects import ptx
from ...dialects.ptx.base import LOCAL, MAP, SHARED, SHARED_CLUSTER, PtrType
from ...dialects.ptx.convert import CVT_FORMS
from .floats import bounded, text
from .inference import GENERIC, SPACES
from .moves import Rule, address_of, flushed, is_float
from .registers import Registers, bits_of, type_of
from .syntax import TYPE_BITS, Instruction, Operand, Register, Symbol, Vector

_ROUND_TO_INTEGER = MappingProxyType(
    {"rni": math.RoundEvenOp, "rzi": math.TruncOp, "rmi": math.FloorOp, "rpi": math.CeilOp}
)


def _convert(r: Registers, i: Instruction) -> None:
    if len(i.modifiers) < 2:
        raise r.refuse("a conversion names two types")
    if ".".join(i.modifiers) in CVT_FORMS:
        form = CVT_FORMS[".".join(i.modifiers)]
        given = [part for x in i.operands[1:] for part in (x.items if isinstance(x, Vector) else (x,))]
        values = [r.read(x, type) for x, type in zip(given, form.operands, strict=True)]
        if form.operands == (type_of("f32"), type_of("f32")) and i.modifiers == ("rn", i.modifiers[1], "f32"):
            high, low = (r.emit(arith.TruncFOp(x, form.result.element_type)) for x in values)  # pyright: ignore
            r.write(i.operands[0], r.vector([low, high]))
            return
        r.write(i.operands[0], r.emit(ptx.CvtOp(".".join(i.modifiers), values)))
        return
    *words, target, source = i.modifiers
    if _through_floats(r, i, words):
        return
    if "pack" in words:
        value = _packed(r, i)
    elif target in ("f16x2", "bf16x2") and source == "f32" and len(i.operands) == 3:
        name = ".".join(("cvt", *words, target[:-2], source))
        high, low = (_as_text(r, name, words, r.read(x, f32), type_of(target[:-2])) for x in i.operands[1:])
        value = r.vector([low, high])
    elif target == "tf32" and source == "f32":
        value = r.convert(_as_text(r, i.name, words, r.read(i.operands[1], f32), f32), i32)
    elif is_float(target) and is_float(source):
        value = _between_floats(r, i, words, target, source)
    elif is_float(source):
        value = _to_integer(r, i, words, target, source)
    elif is_float(target):
        value = _from_integer(r, i, words, target, source)
    else:
        if words not in ([], ["sat"]):
            raise r.refuse(f"the modifier .{words[0]} is not supported")
        if isinstance(i.operands[1], Register) and i.operands[1].name in r.texts:
            r.write_address(i.operands[0], r.texts[i.operands[1].name])
            return
        pointer = address_of(r, i.operands[1])
        if pointer is not None and pointer.type in (SHARED, SHARED_CLUSTER, LOCAL):
            r.write(i.operands[0], pointer)  # as wide as the window, or extended
            return
        value = r.read(i.operands[1], type_of(source))
        if words:
            value = _clamped(r, value, TYPE_BITS[target], is_signed=target[0] == "s", signed=source[0] == "s")
        value = r.resized(value, TYPE_BITS[target], signed=source[0] == "s")
    r.write(i.operands[0], value, signed=target[0] == "s")


def _through_floats(r: Registers, i: Instruction, words: list[str]) -> bool:
    """Appends a conversion of pairs of 16 bits by that of f32 or f16, which hold the numbers exactly; False for another
    conversion.
    """
    target, source = i.modifiers[-2:]
    if source in _HALVES and ".".join((*words, target, "f32")) in CVT_FORMS:
        halves = r.read(i.operands[1], type_of(source))
        low, high = (r.emit(arith.ExtFOp(r.extract(halves, place), f32)) for place in range(2))
        r.write(i.operands[0], r.emit(ptx.CvtOp(".".join((*words, target, "f32")), [high, low])))
    elif target == "bf16x2" and (name := ".".join((*words, "f16x2", source))) in CVT_FORMS:
        halves = r.emit(ptx.CvtOp(name, [r.read(i.operands[1], CVT_FORMS[name].operands[0])]))
        wide = [r.emit(arith.ExtFOp(r.extract(halves, place), f32)) for place in range(2)]
        r.write(i.operands[0], r.vector([r.emit(arith.TruncFOp(value, bf16)) for value in wide]))
    else:
        return False
    return True


_HALVES = ("f16x2", "bf16x2")
_WORDS = frozenset(("rn", "rz", "rm", "rp", "rna", "ftz", "sat", "relu", "satfinite"))


def _as_text(r: Registers, name: str, words: list[str], value: SSAValue, result: Attribute) -> SSAValue:
    """A conversion to a float by its name, which the simulator knows."""
    if not _WORDS.issuperset(words):
        raise r.refuse("the rounding is not supported")
    return text(r, name, [value], result)


def _from_integer(r: Registers, i: Instruction, words: list[str], target: str, source: str) -> SSAValue:
    signed, given = source[0] == "s", r.read(i.operands[1], type_of(source))
    if words == ["rn"]:
        kind = arith.SIToFPOp if signed else arith.UIToFPOp
        return r.emit(kind(given, cast(AnyFloat, type_of(target))))
    bits = max(TYPE_BITS[source], 32)
    name = ".".join(("cvt", *words, target, f"{source[0]}{bits}"))
    return _as_text(r, name, words, r.resized(given, bits, signed=signed), type_of(target))


def _packed(r: Registers, i: Instruction) -> SSAValue:
    """cvt.pack: two integers, saturated, the second lowest; above them the low bits of a word, if it is given."""
    if i.modifiers[:2] != ("pack", "sat") or i.modifiers[3:] not in (("s32",), ("s32", "b32")):
        raise r.refuse("the form is not supported")
    type, signed = i.modifiers[2], i.modifiers[2][0] == "s"
    bits = int(type[1:])
    _, first, second, *rest = i.operands
    whole, mask = r.constant(0, i32), r.constant((1 << bits) - 1, i32)
    for place, operand in ((bits, first), (0, second)):
        value = _clamped(r, r.read(operand, i32), bits, is_signed=signed, signed=True)
        part = r.emit(arith.ShLIOp(r.emit(arith.AndIOp(value, mask)), r.constant(place, i32)))
        whole = r.emit(arith.OrIOp(whole, part))
    if rest:
        above = r.emit(arith.ShLIOp(r.read(rest[0], i32), r.constant(2 * bits, i32)))
        whole = r.emit(arith.OrIOp(whole, above))
    return whole


def _clamped(r: Registers, value: SSAValue, width: int, *, is_signed: bool, signed: bool) -> SSAValue:
    """An integer, or the nearest to it of those of this width (.sat): these are `is_signed`, the value is `signed`."""
    bits = width - is_signed
    least, most = -(1 << bits) if is_signed else 0, (1 << bits) - 1
    own = bits_of(value.type)
    if signed and least > -(1 << own - 1):
        value = r.emit(arith.MaxSIOp(value, r.constant(least, value.type)))
    if most < (1 << own - signed) - 1:
        limit = r.constant(most, value.type)
        value = r.emit((arith.MinSIOp if signed else arith.MinUIOp)(value, limit))
    return value


def _between_floats(r: Registers, i: Instruction, words: list[str], target: str, source: str) -> SSAValue:
    value, result = r.read(i.operands[1], type_of(source)), type_of(target)
    to_integer = [word for word in words if word in _ROUND_TO_INTEGER]
    if "ftz" in words and source == "f32" and (target == source or to_integer):
        value = flushed(r, value)
    if to_integer:
        value, words = r.emit(_ROUND_TO_INTEGER[to_integer[0]](value)), [x for x in words if x in ("sat", "relu")]
        if target != source:
            raise r.refuse("the conversion is not supported")
        return bounded(r, value, target, words[0]) if words else value
    plain = [word for word in words if word != "ftz"]
    if TYPE_BITS[target] > TYPE_BITS[source] and plain in ([], ["rn"]):
        return r.emit(arith.ExtFOp(value, result))  # 16 bits are never flushed (PTX ISA, cvt)
    if "ftz" in words and source == "f64":
        return flushed(r, _between_floats(r, i, plain, target, source))
    if words == ["rn"] and TYPE_BITS[target] < TYPE_BITS[source]:
        return r.emit(arith.TruncFOp(value, result))
    if target == source and plain in (["sat"], ["relu"], []):
        return bounded(r, value, target, plain[0]) if plain else value
    return _as_text(r, ".".join(("cvt", *words, target, source)), words, value, result)


def _to_integer(r: Registers, i: Instruction, words: list[str], target: str, source: str) -> SSAValue:
    value = r.read(i.operands[1], type_of(source))
    if "ftz" in words and source == "f32":
        value = flushed(r, value)
    words = [word for word in words if word not in ("ftz", "sat")]  # the result is clamped anyway
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
    if isinstance(source, Register) and source.name in r.texts:
        r.write_address(target, r.texts[source.name])
        return
    pointer = address_of(r, source)
    if pointer is None:
        r.write(target, r.read(source, IntegerType(64 if i.modifiers[-1] == "u64" else 32)))
        return
    wanted = next((word for word in i.modifiers if word in ("global", "shared", "local", "param", "const")), "")
    is_peer = pointer.type == SHARED_CLUSTER and wanted == "shared"  # a window that has the other blocks' memory
    if isinstance(pointer.type, PtrType) and not is_peer and wanted not in (pointer.type.space.data.keyword, "param"):
        raise r.refuse(f"the address is one of {pointer.type.space.data.keyword} memory")
    r.write(target, pointer)


def _in_space(r: Registers, i: Instruction) -> None:
    """isspacep, for an address that knows its memory, or a number."""
    name = i.modifiers[0].removesuffix("::entry")
    space = SPACES.get(name)
    pointer = address_of(r, i.operands[1])
    if name == "const":  # such an address has no number that others know, nor has one of a parameter
        holds = r.constant(int(_is_constant(r, i.operands[1])), i1)
    elif name == "param" or _is_parameter(r, pointer):
        holds = r.constant(int(name == "param" and _is_parameter(r, pointer)), i1)
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


def _is_parameter(r: Registers, pointer: SSAValue | None) -> bool:
    """Whether an address is one of a parameter: only structures and tensor maps have any here."""
    while pointer is not None and isinstance(pointer.owner, ptx.PtrAddOp):
        pointer = pointer.owner.ptr
    return pointer is not None and (pointer.type == MAP or pointer in r.structures.values())


def _is_constant(r: Registers, operand: Operand) -> bool:
    """Whether an operand is the address of a variable in constant memory."""
    return isinstance(operand, Register | Symbol) and r.texts.get(operand.name) in r.constants


CONVERSIONS: Mapping[str, Rule] = MappingProxyType({
    "cvt": _convert, "cvta": _to_space, "popc": _count, "clz": _count, "isspacep": _in_space,
})  # fmt: skip
"""The rules by opcode."""
