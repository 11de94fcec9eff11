# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integer instructions that `arith` has no operation of, and fields of bits (PTX ISA, Integer Arithmetic, Extended
Precision Integer Arithmetic, bfe, bfi, bfind, brev, prmt, lop3, sad, dp4a, dp2a, slct, testp).
"""

from collections.abc import Mapping
from types import MappingProxyType

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType, i1, i32, i64
from xdsl.ir import SSAValue

from ...base.element_types import BY_PTX
from ...dialects import ptx
from .moves import Binary, Rule, is_float
from .operands import CARRY
from .registers import Registers, type_of
from .syntax import TYPE_BITS, Instruction, Integer, Operand, Pair, Register, Symbol


def _const(r: Registers, value: int, like: SSAValue) -> SSAValue:
    return r.constant(value, like.type)


def _compare(r: Registers, a: SSAValue, b: SSAValue, how: str) -> SSAValue:
    return r.emit(arith.CmpiOp(a, b, how))


def _select(r: Registers, chosen: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
    return r.emit(arith.SelectOp(chosen, a, b))


def _not(r: Registers, value: SSAValue) -> SSAValue:
    return r.emit(arith.XOrIOp(value, r.constant(1, i1)))


def with_carry(r: Registers, i: Instruction) -> bool:
    """Appends an addition, a subtraction or a product with a sum that reads or writes the carry; False for another
    instruction. A subtraction adds the complement: its carry says that nothing was borrowed, which also an addition
    that follows reads so.
    """
    sets, reads = "cc" in i.modifiers, i.opcode in ("addc", "subc", "madc")
    if not sets and not reads:
        return False
    type = i.modifiers[-1]
    value = IntegerType(TYPE_BITS[type])
    target, *sources = i.operands
    if i.opcode in ("mad", "madc"):
        a, b, last = sources
        left, right = r.read(a, value), r.read(b, value)
        if "hi" in i.modifiers:
            op = (arith.MulSIExtendedOp if type[0] == "s" else arith.MulUIExtendedOp)(left, right)
            first = r.add(op).results[1]
        else:
            first = r.emit(arith.MuliOp(left, right))
        second = r.read(last, value)
    else:
        first, second = (r.read(source, value) for source in sources)
    subtracts = i.opcode in ("sub", "subc")
    kind: Binary = arith.SubiOp if subtracts else arith.AddiOp
    total = r.emit(kind(first, second))
    wraps = _compare(r, first, second, "ult") if subtracts else _compare(r, total, first, "ult")
    if reads:
        given = r.read(Register(CARRY), i1)
        given = r.resized(_not(r, given) if subtracts else given, TYPE_BITS[type])
        again = r.emit(kind(total, given))
        more = _compare(r, total, given, "ult") if subtracts else _compare(r, again, total, "ult")
        total, wraps = again, r.emit(arith.OrIOp(wraps, more))
    r.write(target, total)
    if sets:
        r.write(Register(CARRY), _not(r, wraps) if subtracts else wraps)
    return True


def saturated(r: Registers, i: Instruction) -> bool:
    """Appends add.sat.s32, sub.sat.s32 or mad.hi.sat.s32; False for another instruction."""
    form = (i.opcode, *i.modifiers)
    if form not in (("add", "sat", "s32"), ("sub", "sat", "s32"), ("mad", "hi", "sat", "s32")):
        return False
    kind: Binary = arith.SubiOp if i.opcode == "sub" else arith.AddiOp
    target, *sources = i.operands
    a, b, *more = (r.resized(r.read(source, i32), 64, signed=True) for source in sources)
    if more:
        a, b = r.emit(arith.ShRSIOp(r.emit(arith.MuliOp(a, b)), r.constant(32, i64))), more[0]
    total = r.emit(kind(a, b))
    least = r.emit(arith.MaxSIOp(total, _const(r, -(2**31), total)))
    r.write(target, r.resized(r.emit(arith.MinSIOp(least, _const(r, 2**31 - 1, total))), 32))
    return True


def _byte(r: Registers, operand: Operand, most: int) -> SSAValue:
    """The lowest byte of an operand, at most `most`, as i64."""
    if isinstance(operand, Integer):
        return r.constant(min(operand.value & 0xFF, most), i64)
    low = r.emit(arith.AndIOp(r.read(operand, i32), r.constant(0xFF, i32)))
    return r.resized(r.emit(arith.MinUIOp(low, r.constant(most, i32))), 64)


def _field(r: Registers, i: Instruction) -> None:
    """bfe: bits beyond a signed register repeat its sign, beyond an unsigned one they are zero."""
    type = i.modifiers[-1]
    bits, signed = TYPE_BITS[type], type[0] == "s"
    target, source, at, length = i.operands
    if isinstance(at, Integer) and isinstance(length, Integer) and 0 < length.value <= bits - at.value <= bits:
        value = r.read(source, IntegerType(bits))
        if left := bits - at.value - length.value:
            value = r.emit(arith.ShLIOp(value, _const(r, left, value)))
        right = _const(r, bits - length.value, value)
        r.write(target, r.emit((arith.ShRSIOp if signed else arith.ShRUIOp)(value, right)))
        return
    value = r.resized(r.read(source, IntegerType(bits)), 64, signed=signed)
    place, width = _byte(r, at, 64), _byte(r, length, 64)
    zero, most = r.constant(0, i64), r.constant(63, i64)
    inside = r.emit(arith.MinUIOp(place, most))
    moved = r.emit((arith.ShRSIOp if signed else arith.ShRUIOp)(value, inside))
    if not signed:
        moved = _select(r, _compare(r, place, most, "ugt"), zero, moved)
    # the field goes to the top and back; one without bits is zero
    left = r.emit(arith.MinUIOp(r.emit(arith.SubiOp(r.constant(64, i64), width)), most))
    top = r.emit(arith.ShLIOp(moved, left))
    field = r.emit((arith.ShRSIOp if signed else arith.ShRUIOp)(top, left))
    r.write(target, r.resized(_select(r, _compare(r, width, zero, "eq"), zero, field), bits))


def _insert_field(r: Registers, i: Instruction) -> None:
    """bfi: bits beyond the register are lost."""
    bits = TYPE_BITS[i.modifiers[-1]]
    target, source, into, at, length = i.operands
    if isinstance(at, Integer) and isinstance(length, Integer) and 0 < length.value <= bits - at.value <= bits:
        mask = ((1 << length.value) - 1) << at.value
        a, b = (r.read(operand, IntegerType(bits)) for operand in (source, into))
        new = r.emit(arith.AndIOp(r.emit(arith.ShLIOp(a, _const(r, at.value, a))), _const(r, mask, a)))
        r.write(target, r.emit(arith.OrIOp(new, r.emit(arith.AndIOp(b, _const(r, ~mask, b))))))
        return
    a, b = (r.resized(r.read(operand, IntegerType(bits)), 64) for operand in (source, into))
    place, width = _byte(r, at, 64), _byte(r, length, 64)
    zero, most, ones = r.constant(0, i64), r.constant(63, i64), r.constant(-1, i64)
    fits = _compare(r, width, most, "ule")
    one = r.emit(arith.ShLIOp(r.constant(1, i64), r.emit(arith.MinUIOp(width, most))))
    mask = _select(r, fits, r.emit(arith.SubiOp(one, r.constant(1, i64))), ones)
    inside = r.emit(arith.MinUIOp(place, most))
    moved_mask, moved = r.emit(arith.ShLIOp(mask, inside)), r.emit(arith.ShLIOp(a, inside))
    moved_mask = _select(r, _compare(r, place, most, "ule"), moved_mask, zero)
    new = r.emit(arith.AndIOp(moved, moved_mask))
    old = r.emit(arith.AndIOp(b, r.emit(arith.XOrIOp(moved_mask, ones))))
    r.write(target, r.resized(r.emit(arith.OrIOp(new, old)), bits))


def _find_bit(r: Registers, i: Instruction) -> None:
    """bfind: the place of the highest bit that is not one of the sign; -1 without one."""
    type = i.modifiers[-1]
    bits = TYPE_BITS[type]
    value = r.read(i.operands[1], IntegerType(bits))
    if type[0] == "s":
        value = r.emit(arith.XOrIOp(value, r.emit(arith.ShRSIOp(value, _const(r, bits - 1, value)))))
    zeros = r.resized(r.emit(math.CountLeadingZerosOp(value)), 32)
    place = r.emit(arith.SubiOp(r.constant(bits - 1, i32), zeros))
    if "shiftamt" in i.modifiers:
        place = _select(r, _compare(r, value, _const(r, 0, value), "eq"), r.constant(-1, i32), zeros)
    r.write(i.operands[0], place)


def _reverse(r: Registers, i: Instruction) -> None:
    bits = TYPE_BITS[i.modifiers[-1]]
    value = r.read(i.operands[1], IntegerType(bits))
    step = bits // 2
    while step:
        mask = sum(((1 << step) - 1) << place for place in range(0, bits, 2 * step))
        up = r.emit(arith.ShLIOp(r.emit(arith.AndIOp(value, _const(r, mask, value))), _const(r, step, value)))
        down = r.emit(arith.ShRUIOp(value, _const(r, step, value)))
        value = r.emit(arith.OrIOp(up, r.emit(arith.AndIOp(down, _const(r, mask, value)))))
        step //= 2
    r.write(i.operands[0], value)


_MODES: Mapping[str, tuple[int, int, int, int]] = MappingProxyType({
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543), "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333), "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210), "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
})  # fmt: skip
"""The selectors of the modes of prmt, by the lowest two bits of the control."""


def _permute(r: Registers, i: Instruction) -> None:
    target, *sources = i.operands
    a, b, selector = (r.read(source, i32) for source in sources)
    mode = next((word for word in i.modifiers if word in _MODES), None)
    if mode is not None:
        low = r.emit(arith.AndIOp(selector, r.constant(3, i32)))
        selector = r.constant(_MODES[mode][0], i32)
        for number in (1, 2, 3):
            chosen = _compare(r, low, r.constant(number, i32), "eq")
            selector = _select(r, chosen, r.constant(_MODES[mode][number], i32), selector)
    r.write(target, r.emit(ptx.PrmtOp(a, b, selector)))


def _lop3(r: Registers, i: Instruction) -> None:
    """Any function of three bits, as a sum of the products that the table names; with a predicate, whether any bit is
    set.
    """
    target, *sources, table = i.operands[: 5 if i.modifiers == ("b32",) else -1]
    if i.modifiers[-1] != "b32" or not isinstance(table, Integer):
        raise r.refuse("the form is not supported")
    values = [r.read(source, i32) for source in sources]
    negated = [r.emit(arith.XOrIOp(value, r.constant(-1, i32))) for value in values]
    total = r.constant(0, i32)
    for row in range(8):
        if table.value >> row & 1:
            chosen = [values[k] if row >> (2 - k) & 1 else negated[k] for k in range(3)]
            product = r.emit(arith.AndIOp(r.emit(arith.AndIOp(chosen[0], chosen[1])), chosen[2]))
            total = r.emit(arith.OrIOp(total, product))
    if len(i.modifiers) > 1:
        combine = {"and": arith.AndIOp, "or": arith.OrIOp}[i.modifiers[0]]
        assert isinstance(target, Pair)
        is_set = _compare(r, total, r.constant(0, i32), "ne")
        r.write(target.second, r.emit(combine(is_set, r.read(i.operands[-1], i1))))
        target = target.first if target.first.name != "_" else Symbol("_")
    r.write(target, total)


def _difference(r: Registers, i: Instruction) -> None:
    """sad: the third operand plus the distance of the others."""
    type = i.modifiers[-1]
    target, *sources = i.operands
    a, b, c = (r.read(source, type_of(type)) for source in sources)
    signed = type[0] == "s"
    most = r.emit((arith.MaxSIOp if signed else arith.MaxUIOp)(a, b))
    least = r.emit((arith.MinSIOp if signed else arith.MinUIOp)(a, b))
    r.write(target, r.emit(arith.AddiOp(c, r.emit(arith.SubiOp(most, least)))))


def _dot_product(r: Registers, i: Instruction) -> None:
    """dp4a of four bytes each, dp2a of two halves and two bytes."""
    target, *sources = i.operands
    a, b, c = (r.read(source, i32) for source in sources)
    first, second = i.modifiers[-2:]
    if i.opcode == "dp4a":
        r.write(target, r.emit(ptx.Dp4aOp(f"{first}.{second}", a, b, c)))
        return
    begin = 16 if "hi" in i.modifiers else 0
    for index in (0, 1):
        half = _part(r, a, 16 * index, 16, signed=first[0] == "s")
        byte = _part(r, b, begin + 8 * index, 8, signed=second[0] == "s")
        c = r.emit(arith.AddiOp(c, r.emit(arith.MuliOp(half, byte))))
    r.write(target, c)


def _part(r: Registers, value: SSAValue, at: int, bits: int, *, signed: bool) -> SSAValue:
    """Some bits of a register, extended."""
    if left := 32 - at - bits:
        value = r.emit(arith.ShLIOp(value, r.constant(left, i32)))
    return r.emit((arith.ShRSIOp if signed else arith.ShRUIOp)(value, r.constant(32 - bits, i32)))


def _choose(r: Registers, i: Instruction) -> None:
    """slct: the first operand if the third is not negative; -0 is not, and NaN is."""
    *_, type, control = i.modifiers
    target, a, b, c = i.operands
    if control == "s32":
        chosen = _compare(r, r.read(c, i32), r.constant(0, i32), "sge")
    else:
        given = r.read(c, type_of(control))
        chosen = r.emit(arith.CmpfOp(given, r.constant(0.0, given.type), "oge"))
    value = type_of(type)
    r.write(target, _select(r, chosen, r.read(a, value), r.read(b, value)))


def _product_of_24_bits(r: Registers, i: Instruction) -> None:
    """mul24 and mad24: the low or the high 32 bits of a product of 48."""
    how, type = i.modifiers[-2:]
    target, a, b, *rest = i.operands
    signed = type[0] == "s"
    left, right = (r.resized(_part(r, r.read(x, i32), 0, 24, signed=signed), 64, signed=signed) for x in (a, b))
    product = r.emit(arith.MuliOp(left, right))
    if how == "hi":
        product = r.emit(arith.ShRUIOp(product, r.constant(16, i64)))
    low = r.resized(product, 32)
    r.write(target, r.emit(arith.AddiOp(low, r.read(rest[0], i32))) if rest else low)


def _test_property(r: Registers, i: Instruction) -> None:
    """testp: of the bits of a float."""
    kind, type = i.modifiers
    bits, fraction = TYPE_BITS[type], BY_PTX[type].fraction
    whole = r.convert(r.read(i.operands[1], type_of(type)), IntegerType(bits))
    size = r.emit(arith.AndIOp(whole, _const(r, (1 << (bits - 1)) - 1, whole)))
    infinite = _const(r, ((1 << (bits - 1 - fraction)) - 1) << fraction, whole)
    smallest = _const(r, 1 << fraction, whole)
    if kind in ("normal", "subnormal"):
        least, end = (smallest, infinite) if kind == "normal" else (_const(r, 1, whole), smallest)
        above, below = _compare(r, size, least, "uge"), _compare(r, size, end, "ult")
        r.write(i.operands[0], r.emit(arith.AndIOp(above, below)))
        return
    how = {"finite": "ult", "infinite": "eq", "number": "ule", "notanumber": "ugt"}[kind]
    r.write(i.operands[0], _compare(r, size, infinite, how))


def _carried(r: Registers, i: Instruction) -> None:
    if not with_carry(r, i):
        raise r.refuse("the form is not supported")


def plain(rule: Rule) -> Rule:
    """A rule for instructions that neither use the carry nor saturate."""

    def either(r: Registers, i: Instruction) -> None:
        if is_float(i.modifiers[-1]) or not (with_carry(r, i) or saturated(r, i)):
            rule(r, i)

    return either


def _find_nth(r: Registers, i: Instruction) -> None:
    """fns: the place of the n-th one of a word, counted from a place up, or down."""
    target, *operands = i.operands
    values = [r.read(operand, i32) for operand in operands]
    r.write(target, r.emit(ptx.InlineOp("fns.b32 $0, $1, $2, $3;", "=r,r,r,r", values, [i32])))


INTEGERS: Mapping[str, Rule] = MappingProxyType({
    "bfe": _field, "bfi": _insert_field, "bfind": _find_bit, "brev": _reverse, "prmt": _permute, "lop3": _lop3,
    "sad": _difference, "dp4a": _dot_product, "dp2a": _dot_product, "slct": _choose, "testp": _test_property,
    "fns": _find_nth, "addc": _carried, "subc": _carried, "madc": _carried,
    "mul24": _product_of_24_bits, "mad24": _product_of_24_bits,
})  # fmt: skip
"""The rules by opcode."""
