# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX arithmetic, logic, comparisons and moves as operations of `arith` and `math` (PTX ISA, Integer Arithmetic,
Floating Point, Half Precision, Comparison and Selection, Logic and Shift Instructions).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import ptx
from ...dialects.ptx.base import PtrType, TensorMapType
from .inference import FLOAT_TYPES
from .registers import Registers, type_of
from .syntax import TYPE_BITS, Instruction, Integer, Operand, Pair, Register, Symbol, Vector

Rule: TypeAlias = Callable[[Registers, Instruction], None]
"""Appends the operations of an instruction, and gives the registers that it writes their values."""
Binary: TypeAlias = Callable[[SSAValue, SSAValue], Operation]

_ROUNDINGS = ("rn",)


def _element(type: str) -> str:
    return type.removesuffix("x2")


def is_float(type: str) -> bool:
    """Whether a type of PTX is a float, or a pair of them."""
    return _element(type) in FLOAT_TYPES


def check_modifiers(r: Registers, i: Instruction, allowed: tuple[str, ...]) -> None:
    """Refuses a modifier before the type that is not among these."""
    for modifier in i.modifiers[:-1]:
        if modifier not in allowed:
            raise r.refuse(f"the modifier .{modifier} is not supported")


_TEXT_MODIFIERS = frozenset(("rn", "rz", "rm", "rp", "ftz", "sat"))
_TEXT_OPCODES = ("add", "sub", "mul", "fma", "div", "sqrt", "rcp", "min", "max", "neg", "abs", "cvt")


def as_text(r: Registers, i: Instruction) -> bool:
    """Appends an instruction on f32 that rounds otherwise than to the nearest, flushes or saturates, for which `arith`
    has nothing, as text; False for another instruction.
    """
    words = i.modifiers[:-1] if i.opcode != "cvt" else i.modifiers[:-2]
    types = set(i.modifiers[len(words) :])
    if types != {"f32"} or i.opcode not in _TEXT_OPCODES or not _TEXT_MODIFIERS.issuperset(words):
        return False
    if not {"rz", "rm", "rp", "ftz", "sat"}.intersection(words):
        return False
    target, *sources = i.operands
    values = [r.read(source, FLOAT_TYPES["f32"]) for source in sources]
    places = ", ".join(f"${number}" for number in range(len(values) + 1))
    op = ptx.InlineOp(f"{i.name} {places};", ",".join(["=f", *["f"] * len(values)]), values, [FLOAT_TYPES["f32"]])
    r.write(target, r.emit(op))
    return True


def flushed(r: Registers, value: SSAValue) -> SSAValue:
    """A number with zero for a subnormal one."""
    return r.emit(ptx.InlineOp("cvt.ftz.f32.f32 $0, $1;", "=f,f", [value], [value.type]))


def _or_text(rule: Rule) -> Rule:
    """A rule for what is not text."""

    def either(r: Registers, i: Instruction) -> None:
        if not as_text(r, i):
            rule(r, i)

    return either


def _binary(integers: Mapping[str, Binary], floats: Binary | None = None) -> Rule:
    """`op.type d, a, b`: by the first letter of the type, `s`, `u` or `b`, or of floats."""

    def rule(r: Registers, i: Instruction) -> None:
        type = i.modifiers[-1]
        if is_float(type):
            if floats is None:
                raise r.refuse(f"there is no such instruction of .{type}")
            check_modifiers(r, i, ("rn",))
            made = floats
        else:
            check_modifiers(r, i, ())
            made = integers.get(type[0]) or integers["s"]
        target, a, b = i.operands
        value = type_of(type)
        r.write(target, r.emit(made(r.read(a, value), r.read(b, value))))

    return rule


def _sum(r: Registers, i: Instruction) -> None:
    """add and sub, of an address and a number too."""
    type, subtracts = i.modifiers[-1], i.opcode == "sub"
    target, a, b = i.operands
    if not is_float(type):
        check_modifiers(r, i, ())
        for pointer, offset in ((a, b), (b, a)) if not subtracts else ((a, b),):
            held = _pointer(r, pointer)
            if held is not None and _pointer(r, offset) is None:
                r.write(target, _moved(r, held, offset, type, subtracts=subtracts))
                return
        kind: Binary = arith.SubiOp if subtracts else arith.AddiOp
    else:
        check_modifiers(r, i, ("rn",))
        kind = arith.SubfOp if subtracts else arith.AddfOp
    value = type_of(type)
    r.write(target, r.emit(kind(r.read(a, value), r.read(b, value))))


def _pointer(r: Registers, operand: Operand) -> SSAValue | None:
    """The address that an operand holds; None if it holds a number."""
    value = address_of(r, operand)
    return value if value is not None and isinstance(value.type, PtrType) else None


def _moved(r: Registers, pointer: SSAValue, offset: Operand, type: str, *, subtracts: bool = False) -> SSAValue:
    if isinstance(offset, Integer):
        return r.shifted(pointer, -offset.value if subtracts else offset.value)
    distance = r.read(offset, type_of(type))
    if subtracts:
        distance = r.emit(arith.SubiOp(r.constant(0, distance.type), distance))
    return r.emit(ptx.PtrAddOp(pointer, distance))


def _product(r: Registers, i: Instruction) -> None:
    """mul and mad, of integers .lo, .hi and .wide."""
    type = i.modifiers[-1]
    target, a, b, *rest = i.operands
    if is_float(type):
        if rest:
            _fma(r, i)
            return
        check_modifiers(r, i, ("rn",))
        value = type_of(type)
        r.write(target, r.emit(arith.MulfOp(r.read(a, value), r.read(b, value))))
        return
    how, signed = i.modifiers[0], type[0] == "s"
    check_modifiers(r, i, ("lo", "hi", "wide"))
    value = type_of(type)
    left, right = r.read(a, value), r.read(b, value)
    if how == "hi":
        op = (arith.MulSIExtendedOp if signed else arith.MulUIExtendedOp)(left, right)
        product = r.add(op).results[1]
    else:
        if how == "wide":
            bits = 2 * TYPE_BITS[type]
            left, right = r.resized(left, bits, signed=signed), r.resized(right, bits, signed=signed)
        product = r.emit(arith.MuliOp(left, right))
    if rest:
        pointer = _pointer(r, rest[0])
        if pointer is not None:
            r.write(target, r.emit(ptx.PtrAddOp(pointer, product)))
            return
        product = r.emit(arith.AddiOp(product, r.read(rest[0], product.type)))
    r.write(target, product)


def _fma(r: Registers, i: Instruction) -> None:
    type = i.modifiers[-1]
    if not is_float(type):
        raise r.refuse(f"there is no such instruction of .{type}")
    check_modifiers(r, i, ("rn",))
    value = type_of(type)
    target, a, b, c = i.operands
    r.write(target, r.emit(math.FmaOp(r.read(a, value), r.read(b, value), r.read(c, value))))


def _division(r: Registers, i: Instruction) -> None:
    type = i.modifiers[-1]
    target, a, b = i.operands
    value = type_of(type)
    if is_float(type):
        check_modifiers(r, i, ("rn", "full", "approx"))
        kind: Binary = arith.DivfOp
    else:
        check_modifiers(r, i, ())
        remains, signed = i.opcode == "rem", type[0] == "s"
        kind = (arith.RemSIOp if signed else arith.RemUIOp) if remains else (arith.DivSIOp if signed else arith.DivUIOp)
    if i.opcode == "div" and "approx" in i.modifiers:
        quotient = r.emit(arith.MulfOp(r.read(a, value), r.emit(ptx.RcpOp(r.read(b, value)))))
        r.write(target, quotient)
        return
    r.write(target, r.emit(kind(r.read(a, value), r.read(b, value))))


def _negated(r: Registers, i: Instruction) -> None:
    type = i.modifiers[-1]
    check_modifiers(r, i, ())
    value = r.read(i.operands[1], type_of(type))
    made = arith.NegfOp(value) if is_float(type) else arith.SubiOp(r.constant(0, value.type), value)
    r.write(i.operands[0], r.emit(made))


def _absolute(r: Registers, i: Instruction) -> None:
    type = i.modifiers[-1]
    check_modifiers(r, i, ())
    value = r.read(i.operands[1], type_of(type))
    r.write(i.operands[0], r.emit(math.AbsFOp(value) if is_float(type) else math.AbsIOp(value)))


def _not(r: Registers, i: Instruction) -> None:
    value = r.read(i.operands[1], type_of(i.modifiers[-1]))
    r.write(i.operands[0], r.emit(arith.XOrIOp(value, r.constant(-1, value.type))))


def _extreme(r: Registers, i: Instruction) -> None:
    type, least = i.modifiers[-1], i.opcode == "min"
    value = type_of(type)
    if is_float(type):
        check_modifiers(r, i, ("NaN",))
        if "NaN" in i.modifiers:
            kind: Binary = arith.MinimumfOp if least else arith.MaximumfOp
        else:
            kind = arith.MinnumfOp if least else arith.MaxnumfOp
    else:
        check_modifiers(r, i, ())
        signed = type[0] == "s"
        kind = (arith.MinSIOp if signed else arith.MinUIOp) if least else (arith.MaxSIOp if signed else arith.MaxUIOp)
    target, *sources = i.operands
    total = r.read(sources[0], value)
    for source in sources[1:]:
        total = r.emit(kind(total, r.read(source, value)))
    r.write(target, total)


def _shift(r: Registers, i: Instruction) -> None:
    """shl and shr; a shift by the width or more leaves no bits but those of the sign."""
    type = i.modifiers[-1]
    check_modifiers(r, i, ())
    target, a, b = i.operands
    value, bits = r.read(a, type_of(type)), TYPE_BITS[type]
    signed = i.opcode == "shr" and type[0] == "s"
    kind: Binary = arith.ShLIOp if i.opcode == "shl" else arith.ShRSIOp if signed else arith.ShRUIOp
    if isinstance(b, Integer):
        by = min(b.value & 0xFFFFFFFF, bits - 1 if signed else bits)
        made = r.constant(0, value.type) if by == bits else r.emit(kind(value, r.constant(by, value.type)))
        r.write(target, made)
        return
    by = r.read(b, i32)
    inside = r.emit(arith.CmpiOp(by, r.constant(bits, i32), "ult"))
    least = r.emit(arith.MinUIOp(by, r.constant(bits - 1, i32)))
    moved = r.emit(kind(value, r.resized(least, bits)))
    r.write(target, moved if signed else r.emit(arith.SelectOp(inside, moved, r.constant(0, value.type))))


def _funnel_shift(r: Registers, i: Instruction) -> None:
    """shf: a shift of the 64 bits of two registers."""
    direction, mode = i.modifiers[0], i.modifiers[1]
    target, low, high, by = i.operands
    amount = r.read(by, i32)
    if mode == "wrap":
        amount = r.emit(arith.AndIOp(amount, r.constant(31, i32)))
    else:
        amount = r.emit(arith.MinUIOp(amount, r.constant(32, i32)))
    lower, upper = r.resized(r.read(low, i32), 64), r.resized(r.read(high, i32), 64)
    whole = r.emit(arith.OrIOp(r.emit(arith.ShLIOp(upper, r.constant(32, i64))), lower))
    wide = r.resized(amount, 64)
    if direction == "l":
        moved = r.emit(arith.ShRUIOp(r.emit(arith.ShLIOp(whole, wide)), r.constant(32, i64)))
    else:
        moved = r.emit(arith.ShRUIOp(whole, wide))
    r.write(target, r.resized(moved, 32))


_ORDERED = MappingProxyType({
    "eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "equ": "ueq", "neu": "une",
    "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge", "num": "ord", "nan": "uno",
})  # fmt: skip
_UNSIGNED = MappingProxyType({"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"})


def _compared(r: Registers, i: Instruction, a: Operand, b: Operand) -> SSAValue:
    comparison, type = i.modifiers[0], i.modifiers[-1]
    value = type_of(type)
    left, right = r.read(a, value), r.read(b, value)
    if "ftz" in i.modifiers and type == "f32":
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


_COMBINE: Mapping[str, Binary] = MappingProxyType({"and": arith.AndIOp, "or": arith.OrIOp, "xor": arith.XOrIOp})


def _setp(r: Registers, i: Instruction) -> None:
    target, a, b, *rest = i.operands
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
    first, second = _pointer(r, a), _pointer(r, b)
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
    if isinstance(source, Vector) and isinstance(target, Vector):
        for part, item in zip(target.items, source.items, strict=True):
            r.write(part, r.raw(item, bits // len(source.items)))
    elif isinstance(source, Vector):
        r.write(target, packed(r, source.items, bits))
    elif isinstance(target, Vector):
        unpack(r, target.items, r.read(source, IntegerType(bits)), bits)
    elif (isinstance(source, Register) and source.name in r.texts and isinstance(target, Register)) or (
        isinstance(source, Symbol) and source.name in r.texts and isinstance(target, Register)
    ):
        r.texts[target.name] = r.texts[source.name]
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


def _unary_float(made: Callable[[SSAValue], Operation], allowed: tuple[str, ...]) -> Rule:
    def rule(r: Registers, i: Instruction) -> None:
        check_modifiers(r, i, allowed)
        type = i.modifiers[-1]
        if not is_float(type):
            raise r.refuse(f"there is no such instruction of .{type}")
        r.write(i.operands[0], r.emit(made(r.read(i.operands[1], type_of(type)))))

    return rule


def _approximation(approximate: type[ptx.Ex2Op], exact: Callable[[Registers, SSAValue], SSAValue] | None) -> Rule:
    def rule(r: Registers, i: Instruction) -> None:
        check_modifiers(r, i, ("approx", "ftz", "rn"))
        value = r.read(i.operands[1], type_of(i.modifiers[-1]))
        if "rn" in i.modifiers:
            if exact is None or "ftz" in i.modifiers:
                raise r.refuse("the rounding is not supported")
            r.write(i.operands[0], exact(r, value))
            return
        # bf16 flushes anyway
        flushes = "ftz" in i.modifiers and i.modifiers[-1] == "f32"
        r.write(i.operands[0], r.emit(approximate(value, flushes)))

    return rule


def _reciprocal(r: Registers, value: SSAValue) -> SSAValue:
    return r.emit(arith.DivfOp(r.constant(1.0, value.type), value))


def _root(r: Registers, value: SSAValue) -> SSAValue:
    return r.emit(math.SqrtOp(value))


def _copysign(r: Registers, i: Instruction) -> None:
    target, sign, size = i.operands
    type = type_of(i.modifiers[-1])
    r.write(target, r.emit(math.CopySignOp(r.read(size, type), r.read(sign, type))))


_RULES: Mapping[str, Rule] = MappingProxyType({
    "add": _sum, "sub": _sum, "mul": _product, "mad": _product, "fma": _fma, "div": _division, "rem": _division,
    "neg": _negated, "abs": _absolute, "not": _not, "min": _extreme, "max": _extreme, "shl": _shift, "shr": _shift,
    "shf": _funnel_shift, "setp": _setp, "selp": _select, "mov": _move, "copysign": _copysign,
    "and": _binary({"s": arith.AndIOp}), "or": _binary({"s": arith.OrIOp}), "xor": _binary({"s": arith.XOrIOp}),
    "ex2": _approximation(ptx.Ex2Op, None), "lg2": _approximation(ptx.Lg2Op, None),
    "rcp": _approximation(ptx.RcpOp, _reciprocal), "sqrt": _approximation(ptx.SqrtOp, _root),
    "rsqrt": _approximation(ptx.RsqrtOp, None), "sin": _approximation(ptx.SinOp, None),
    "cos": _approximation(ptx.CosOp, None), "tanh": _approximation(ptx.TanhOp, None),
})  # fmt: skip
ARITHMETIC: Mapping[str, Rule] = MappingProxyType(
    {opcode: _or_text(rule) if opcode in _TEXT_OPCODES else rule for opcode, rule in _RULES.items()}
)
"""The rules by opcode."""
