# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX comparisons, selections and moves, also of addresses and of several registers at once (PTX ISA, Comparison and
Selection Instructions, mov).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import ptx
from ...dialects.ptx.base import PtrType, TensorMapType
from .inference import FLOAT_TYPES
from .registers import Registers, type_of
from .syntax import TYPE_BITS, Instruction, Operand, Pair, Register, Symbol, Vector

Rule: TypeAlias = Callable[[Registers, Instruction], None]
"""Appends the operations of an instruction, and gives the registers that it writes their values."""
Binary: TypeAlias = Callable[[SSAValue, SSAValue], Operation]


def is_float(type: str) -> bool:
    """Whether a type of PTX is a float, or a pair of them."""
    return type.removesuffix("x2") in FLOAT_TYPES


_LEAST_HALF = 2.0**-14


def flushed(r: Registers, value: SSAValue) -> SSAValue:
    """A number, f32 or f16, with zero for a subnormal one."""
    if value.type == FLOAT_TYPES["f16"]:
        zero, least = r.constant(0.0, value.type), r.constant(_LEAST_HALF, value.type)
        is_small = r.emit(arith.CmpfOp(r.emit(math.AbsFOp(value)), least, "olt"))
        return r.emit(arith.SelectOp(is_small, r.emit(math.CopySignOp(zero, value)), value))
    return r.emit(ptx.InlineOp("cvt.ftz.f32.f32 $0, $1;", "=f,f", [value], [value.type]))


_ORDERED = MappingProxyType({
    "eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "equ": "ueq", "neu": "une",
    "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge", "num": "ord", "nan": "uno",
})  # fmt: skip
_UNSIGNED = MappingProxyType({"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"})


def _compared(r: Registers, i: Instruction, a: Operand, b: Operand) -> SSAValue:
    comparison, type = i.modifiers[0], i.modifiers[-1]
    value = type_of(type)
    left, right = r.read(a, value), r.read(b, value)
    if "ftz" in i.modifiers and type in ("f16", "f32"):
        left, right = flushed(r, left), flushed(r, right)
    if is_float(type):
        if comparison not in _ORDERED or type.endswith("x2"):
            raise r.refuse("the comparison is not supported")
        return r.emit(arith.CmpfOp(left, right, _ORDERED[comparison]))
    if comparison in ("eq", "ne"):
        word = comparison
    elif comparison in _UNSIGNED:
        word = _UNSIGNED[comparison]
    elif comparison in ("lt", "le", "gt", "ge"):
        word = f"{'u' if type[0] == 'u' else 's'}{comparison}"
    else:
        raise r.refuse("the comparison is not supported")
    return r.emit(arith.CmpiOp(left, right, word))


def _compared_pairs(r: Registers, i: Instruction, a: Operand, b: Operand, rest: list[Operand]) -> list[SSAValue]:
    """The comparisons of both elements of pairs, combined with a predicate if one is given."""
    (comparison, *words), pair = i.modifiers[:-1], type_of(i.modifiers[-1])
    words = [word for word in words if word in _COMBINE]
    if comparison not in _ORDERED or len(words) != len(rest):
        raise r.refuse("the comparison is not supported")
    results: list[SSAValue] = []
    for place in (0, 1):
        left, right = (r.extract(r.read(x, pair), place) for x in (a, b))
        if "ftz" in i.modifiers:
            left, right = flushed(r, left), flushed(r, right)
        results.append(r.emit(arith.CmpfOp(left, right, _ORDERED[comparison])))
    return [r.emit(_COMBINE[words[0]](holds, r.read(rest[0], i1))) if rest else holds for holds in results]


def _set(r: Registers, i: Instruction) -> None:
    """set: a comparison whose result is all ones or zero, or 1.0 or 0.0."""
    target, a, b, *rest = i.operands
    *words, result, type = i.modifiers
    if type.endswith("x2"):
        if result not in (type, "u32"):
            raise r.refuse("the comparison is not supported")
        single = type_of(type[:-2] if result == type else "b16")
        one, zero = r.constant(1.0 if result == type else -1, single), r.constant(0, single)
        both = _compared_pairs(r, replace(i, modifiers=(*words, type)), a, b, rest)
        r.write(target, r.vector([r.emit(arith.SelectOp(holds, one, zero)) for holds in both]))
        return
    holds = _compared(r, replace(i, modifiers=(*words, type)), a, b)
    for word in words[1:]:
        if word in _COMBINE and rest:
            holds = r.emit(_COMBINE[word](holds, r.read(rest[0], i1)))
        elif word != "ftz":
            raise r.refuse(f"the modifier .{word} is not supported")
    kind = type_of(result)
    one = r.constant(1.0 if is_float(result) else -1, kind)
    zero = r.constant(0.0 if is_float(result) else 0, kind)
    r.write(target, r.emit(arith.SelectOp(holds, one, zero)))


_COMBINE: Mapping[str, Binary] = MappingProxyType({"and": arith.AndIOp, "or": arith.OrIOp, "xor": arith.XOrIOp})


def _setp(r: Registers, i: Instruction) -> None:
    target, a, b, *rest = i.operands
    if i.modifiers[-1].endswith("x2") and is_float(i.modifiers[-1]):
        if not isinstance(target, Pair):
            raise r.refuse("the comparison is not supported")
        for register, holds in zip((target.first, target.second), _compared_pairs(r, i, a, b, rest), strict=True):
            r.write(register, holds)
        return
    holds = _compared(r, i, a, b)
    targets = (target.first, target.second) if isinstance(target, Pair) else (target,)
    results = [holds]
    if len(targets) > 1:
        results.append(r.emit(arith.XOrIOp(holds, r.constant(1, i1))))
    middle = [word for word in i.modifiers[1:-1] if word != "ftz"]
    for word in middle:
        if word not in _COMBINE:
            raise r.refuse(f"the modifier .{word} is not supported")
    if rest:
        other, combine = r.read(rest[0], i1), _COMBINE[middle[0]]
        results = [r.emit(combine(result, other)) for result in results]
    for register, result in zip(targets, results, strict=True):
        r.write(register, result)


def _select(r: Registers, i: Instruction) -> None:
    target, a, b, chosen = i.operands
    type = i.modifiers[-1]
    first, second = pointer_of(r, a), pointer_of(r, b)
    if first is None or second is None or first.type != second.type:
        value = type_of(type)
        if not is_float(type) and isinstance(a, Register) and isinstance(b, Register):
            bits = TYPE_BITS[type]
            left, right = r.raw(a, bits), r.raw(b, bits)
            if left.type == right.type:
                value = left.type
        first, second = r.read(a, value), r.read(b, value)
    r.write(target, r.emit(arith.SelectOp(r.read(chosen, i1), first, second)))


def _move(r: Registers, i: Instruction) -> None:
    """mov: also of several registers to one and back, and of the address of a variable."""
    target, source = i.operands
    type = i.modifiers[-1]
    bits = TYPE_BITS[type]
    if isinstance(source, Register) and isinstance(target, Vector) and i.modifiers[0] in ("v2", "v4"):
        for part, letter in zip(target.items, "xyzw", strict=False):  # a special register; w of it is zero
            r.write(part, r.constant(0, type_of(type)) if letter == "w" else r.special(f"{source.name}.{letter}"))
    elif isinstance(source, Vector) and isinstance(target, Vector):
        for part, item in zip(target.items, source.items, strict=True):
            r.write(part, r.raw(item, bits // len(source.items)))
    elif bits == 128 and isinstance(source, Vector):
        r.write(target, r.vector([r.read(item, i64) for item in source.items]))
    elif bits == 128 and isinstance(target, Vector):
        whole = r.read(source, type_of(type))
        for index, item in enumerate(target.items):
            r.write(item, r.extract(whole, index))
    elif isinstance(source, Vector):
        r.write(target, packed(r, source.items, bits))
    elif isinstance(target, Vector):
        unpack(r, target.items, r.read(source, IntegerType(bits)), bits)
    elif isinstance(source, Register | Symbol) and source.name in r.texts and not getattr(source, "offset", 0):
        r.write_address(target, r.texts[source.name])
    elif (pointer := address_of(r, source)) is not None:
        r.write(target, pointer)
    elif isinstance(source, Register) and source.name not in r.types:
        r.write(target, r.special(source.name))
    else:
        hint = r.floats.get(target.name) if isinstance(target, Register) else None
        of_hint = hint is not None and bits == TYPE_BITS[str(hint)]
        wanted: Attribute = type_of(type)
        is_value = isinstance(source, Register) and not is_float(type)
        if of_hint and hint is not None and not is_value:
            wanted = hint
        r.write(target, r.raw(source, bits) if is_value and bits > 1 else r.read(source, wanted))


def address_of(r: Registers, operand: Operand) -> SSAValue | None:
    """The address that an operand is, also of a tensor map; None if it is a number."""
    if isinstance(operand, Register):
        if operand.name in r.texts:
            return r.memory_of(r.texts[operand.name])
        value = r.values.get(operand.name)
        return value if value is not None and isinstance(value.type, PtrType | TensorMapType) else None
    if isinstance(operand, Symbol) and operand.name in r.symbols:
        return r.shifted(r.symbols[operand.name], operand.offset)
    if isinstance(operand, Symbol) and operand.name in r.contents:
        return r.shifted(r.memory_of(operand.name), operand.offset)
    return None


def packed(r: Registers, items: tuple[Operand, ...], bits: int) -> SSAValue:
    """Registers as one integer, the first in its lowest bits."""
    width = bits // len(items)
    whole: SSAValue | None = None
    for index, item in enumerate(items):
        part = r.resized(r.read(item, IntegerType(width)), bits)
        if index:
            part = r.emit(arith.ShLIOp(part, r.constant(index * width, part.type)))
        whole = part if whole is None else r.emit(arith.OrIOp(whole, part))
    assert whole is not None
    return whole


def unpack(r: Registers, targets: tuple[Operand, ...], whole: SSAValue, bits: int) -> None:
    """Gives registers the parts of an integer, the first its lowest bits."""
    width = bits // len(targets)
    for index, target in enumerate(targets):
        if isinstance(target, Symbol) and target.name == "_":
            continue
        part = whole if not index else r.emit(arith.ShRUIOp(whole, r.constant(index * width, whole.type)))
        r.write(target, r.resized(part, width))


def pointer_of(r: Registers, operand: Operand) -> SSAValue | None:
    """The address that an operand holds; None if it holds a number."""
    value = address_of(r, operand)
    return value if value is not None and isinstance(value.type, PtrType) else None


MOVES: Mapping[str, Rule] = MappingProxyType({"setp": _setp, "selp": _select, "mov": _move, "set": _set})
"""The rules by opcode."""
