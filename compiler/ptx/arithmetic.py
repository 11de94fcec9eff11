# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX arithmetic and logic as operations of `arith` and `math` (PTX ISA, Integer Arithmetic,
Floating Point, Half Precision, Logic and Shift Instructions).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32, f64, i32, i64
from xdsl.ir import Operation, SSAValue

from ...dialects import ptx
from .floats import TEXT_OPCODES, check_modifiers, extreme, with_forms
from .integers import INTEGERS, plain
from .moves import Binary, Rule, flushed, is_float, pointer_of
from .registers import Registers, type_of
from .syntax import TYPE_BITS, Instruction, Integer, Operand


def _binary(integers: Mapping[str, Binary], floats: Binary | None = None) -> Rule:
    """`op.type d, a, b`: by the first letter of the type, `s`, `u` or `b`, or of floats."""

    def rule(r: Registers, i: Instruction) -> None:
        type = i.modifiers[-1]
        if is_float(type):
            if floats is None:
                raise r.refuse(f"this instruction does not support the type .{type}")
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
            held = pointer_of(r, pointer)
            if held is not None and pointer_of(r, offset) is None:
                r.write(target, _moved(r, held, offset, type, subtracts=subtracts))
                return
        kind: Binary = arith.SubiOp if subtracts else arith.AddiOp
    else:
        check_modifiers(r, i, ("rn",))
        kind = arith.SubfOp if subtracts else arith.AddfOp
    value = type_of(type)
    r.write(target, r.emit(kind(r.read(a, value), r.read(b, value))))


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
        pointer = pointer_of(r, rest[0])
        if pointer is not None:
            r.write(target, r.emit(ptx.PtrAddOp(pointer, product)))
            return
        product = r.emit(arith.AddiOp(product, r.read(rest[0], product.type)))
    r.write(target, product)


def _fma(r: Registers, i: Instruction) -> None:
    type = i.modifiers[-1]
    if not is_float(type):
        raise r.refuse(f"this instruction does not support the type .{type}")
    check_modifiers(r, i, ("rn",))
    value = type_of(type)
    target, a, b, c = i.operands
    r.write(target, r.emit(math.FmaOp(r.read(a, value), r.read(b, value), r.read(c, value))))


def _division(r: Registers, i: Instruction) -> None:
    type = i.modifiers[-1]
    target, a, b = i.operands
    value = type_of(type)
    if is_float(type):
        check_modifiers(r, i, ("rn", "full", "approx", "ftz"))
        kind: Binary = arith.DivfOp
    else:
        check_modifiers(r, i, ())
        remains, signed = i.opcode == "rem", type[0] == "s"
        kind = (arith.RemSIOp if signed else arith.RemUIOp) if remains else (arith.DivSIOp if signed else arith.DivUIOp)
    left, right = r.read(a, value), r.read(b, value)
    if "ftz" in i.modifiers:
        left, right = flushed(r, left), flushed(r, right)
    if "approx" in i.modifiers or "full" in i.modifiers:
        quotient = _approximate_quotient(r, left, right, "full" in i.modifiers)
    else:
        quotient = r.emit(kind(left, right))
    r.write(target, flushed(r, quotient) if "ftz" in i.modifiers else quotient)


def _approximate_quotient(r: Registers, left: SSAValue, right: SSAValue, is_full: bool) -> SSAValue:
    """div.approx and div.full of f32, by the instructions that ptxas writes: a product with the reciprocal, which is 0
    of large numbers unless div.full makes them smaller.
    """
    size = r.emit(math.AbsFOp(right))
    scales = ((2.0**24, "olt", 2.0**-126), (0.25, "ogt", 2.0**126))
    for factor, comparison, limit in scales if is_full else scales[:1]:
        outside = r.emit(arith.CmpfOp(size, r.constant(limit, f32), comparison))
        by = r.emit(arith.SelectOp(outside, r.constant(factor, f32), r.constant(1.0, f32)))
        left, right = r.emit(arith.MulfOp(left, by)), r.emit(arith.MulfOp(right, by))
    return r.emit(arith.MulfOp(left, r.emit(ptx.RcpOp(right, True))))


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


def _approximation(
    approximate: Callable[[SSAValue, bool], Operation], exact: Callable[[Registers, SSAValue], SSAValue] | None
) -> Rule:
    def rule(r: Registers, i: Instruction) -> None:
        check_modifiers(r, i, ("approx", "ftz", "rn"))
        if i.modifiers[0] == "approx" and i.modifiers[-1] == "f64":
            _approximate_double(r, i)
            return
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


def _approximate_double(r: Registers, i: Instruction) -> None:
    """rcp and rsqrt of f64. With .ftz, from which a division begins, the result has its upper word, and zero below it;
    without .ftz there is rsqrt, with all digits.
    """
    if i.opcode not in ("rcp", "rsqrt") or (i.opcode == "rcp" and "ftz" not in i.modifiers):
        raise r.refuse("this instruction does not support the type .f64")
    if "ftz" not in i.modifiers:
        r.write(i.operands[0], _reciprocal(r, r.emit(math.SqrtOp(r.read(i.operands[1], f64)))))
        return
    bits = r.convert(r.read(i.operands[1], f64), i64)
    exponent = r.emit(arith.AndIOp(bits, r.constant(0x7FF << 52, i64)))
    flushed_bits = r.emit(arith.AndIOp(bits, r.constant(-1 << 63, i64)))
    is_small = r.emit(arith.CmpiOp(exponent, r.constant(0, i64), "eq"))
    value = r.convert(r.emit(arith.SelectOp(is_small, flushed_bits, bits)), f64)
    value = r.emit(math.SqrtOp(value)) if i.opcode == "rsqrt" else value
    made = r.convert(r.emit(arith.DivfOp(r.constant(1.0, f64), value)), i64)
    r.write(i.operands[0], r.convert(r.emit(arith.AndIOp(made, r.constant(-1 << 32, i64))), f64))


def _reciprocal(r: Registers, value: SSAValue) -> SSAValue:
    return r.emit(arith.DivfOp(r.constant(1.0, value.type), value))


def _root(r: Registers, value: SSAValue) -> SSAValue:
    return r.emit(math.SqrtOp(value))


def _copysign(r: Registers, i: Instruction) -> None:
    target, sign, size = i.operands
    type = type_of(i.modifiers[-1])
    r.write(target, r.emit(math.CopySignOp(r.read(size, type), r.read(sign, type))))


_RULES: Mapping[str, Rule] = MappingProxyType({
    "add": plain(_sum), "sub": plain(_sum), "mul": _product, "mad": plain(_product), "fma": _fma,
    "div": _division, "rem": _division,
    "neg": _negated, "abs": _absolute, "not": _not, "min": extreme, "max": extreme, "shl": _shift, "shr": _shift,
    **INTEGERS,
    "shf": _funnel_shift, "copysign": _copysign,
    "and": _binary({"s": arith.AndIOp}), "or": _binary({"s": arith.OrIOp}), "xor": _binary({"s": arith.XOrIOp}),
    "ex2": _approximation(ptx.Ex2Op, None), "lg2": _approximation(ptx.Lg2Op, None),
    "rcp": _approximation(ptx.RcpOp, _reciprocal), "sqrt": _approximation(ptx.SqrtOp, _root),
    "rsqrt": _approximation(ptx.RsqrtOp, None), "sin": _approximation(ptx.SinOp, None),
    "cos": _approximation(ptx.CosOp, None), "tanh": _approximation(ptx.TanhOp, None),
})  # fmt: skip
ARITHMETIC: Mapping[str, Rule] = MappingProxyType(
    {opcode: with_forms(rule) if opcode in TEXT_OPCODES else rule for opcode, rule in _RULES.items()}
)
"""The rules by opcode."""
