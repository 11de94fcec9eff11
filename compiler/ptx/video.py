# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions on parts of words and on fields (PTX ISA, Scalar Video Instructions, SIMD Video Instructions, bmsk,
szext, cnot).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from .moves import Rule
from .registers import Registers, type_of
from .syntax import Instruction, Operand, Subword

_NAME = re.compile(r"v(add|sub|absdiff|min|max|shl|shr|mad|set|avrg)([24]?)")
_OF_PARTS = ("add", "sub", "absdiff", "min", "max", "set", "avrg")
_OF_WORDS = ("add", "sub", "absdiff", "min", "max", "shl", "shr", "mad", "set")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def _field(r: Registers, whole: SSAValue, index: int, bits: int, *, signed: bool) -> SSAValue:
    """A part of a word as an i64."""
    left = r.emit(arith.ShLIOp(r.resized(whole, 64), r.constant(64 - bits * (index + 1), i64)))
    return r.emit((arith.ShRSIOp if signed else arith.ShRUIOp)(left, r.constant(64 - bits, i64)))


def _clamp_to(r: Registers, value: SSAValue, bits: int, *, signed: bool) -> SSAValue:
    """A value saturated to a number of bits."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    least = r.emit(arith.MinSIOp(value, r.constant(high, i64)))
    return r.emit(arith.MaxSIOp(least, r.constant(low, i64)))


@dataclass(frozen=True, slots=True)
class _Form:
    """The modifiers of an instruction: its operation, the number of parts, whether the result and the operands are
    signed, whether it saturates, the second operation, and other words: of a shift, a comparison or a product.
    """

    kind: str
    count: int
    result: bool
    signs: tuple[bool, bool]
    saturates: bool
    then: str
    words: tuple[str, ...]


def _form(r: Registers, i: Instruction) -> _Form:
    match = _NAME.fullmatch(i.opcode)
    if match is None:
        raise r.refuse("the form is not supported")
    kind, count = match[1], int(match[2] or 1)
    types, words = list(i.modifiers[: 2 if kind == "set" else 3]), list(i.modifiers[2 if kind == "set" else 3 :])
    result, first, second = ["u32", *types] if kind == "set" else types
    saturates = "sat" in words
    rest = [word for word in words if word != "sat"]
    allowed = ("add",) if count > 1 else ("add", "min", "max")
    then = rest.pop() if rest and rest[-1] in allowed else ""
    own = {"shl": ("clamp", "wrap"), "shr": ("clamp", "wrap"), "set": _COMPARISONS, "mad": ("po", "shr7", "shr15")}
    if any(word not in own.get(kind, ()) for word in rest) or {result, first, second} - {"u32", "s32"}:
        raise r.refuse("the form is not supported")
    return _Form(kind, count, result == "s32", (first == "s32", second == "s32"), saturates, then, tuple(rest))


def _combined(r: Registers, form: _Form, a: SSAValue, b: SSAValue, c: SSAValue | None = None) -> SSAValue:
    """The result of an operation on i64s, before it saturates."""
    match form.kind:
        case "add":
            return r.emit(arith.AddiOp(a, b))
        case "sub":
            return r.emit(arith.SubiOp(a, b))
        case "min" | "max":
            return r.emit((arith.MinSIOp if form.kind == "min" else arith.MaxSIOp)(a, b))
        case "absdiff":
            return r.emit(math.AbsIOp(r.emit(arith.SubiOp(a, b))))
        case "avrg":  # halves are rounded up, those of negative sums down
            total = r.emit(arith.AddiOp(a, b))
            is_positive = r.emit(arith.CmpiOp(total, r.constant(0, i64), "sge"))
            total = r.emit(arith.AddiOp(total, r.resized(is_positive, 64)))
            return r.emit(arith.ShRSIOp(total, r.constant(1, i64)))
        case "set":
            how = form.words[0] if form.words[0] in ("eq", "ne") else f"s{form.words[0]}"
            return r.resized(r.emit(arith.CmpiOp(a, b, how)), 64)
        case "shl" | "shr":
            is_wrapped = "wrap" in form.words
            most = r.constant(31 if is_wrapped else 32, i64)
            by = r.emit((arith.AndIOp if is_wrapped else arith.MinUIOp)(b, most))
            return r.emit((arith.ShLIOp if form.kind == "shl" else arith.ShRSIOp)(a, by))
        case _:
            assert c is not None
            product = r.emit(arith.AddiOp(r.emit(arith.MuliOp(a, b)), c))
            if "po" in form.words:
                product = r.emit(arith.AddiOp(product, r.constant(1, i64)))
            by = next((int(word[3:]) for word in form.words if word.startswith("shr")), 0)
            shift = arith.ShRSIOp if any(form.signs) else arith.ShRUIOp
            return r.emit(shift(product, r.constant(by, i64))) if by else product


def _of_word(r: Registers, operand: Operand, *, signed: bool) -> SSAValue:
    """An operand, or a byte or a half of it, as an i64."""
    if not isinstance(operand, Subword):
        return _field(r, r.read(operand, i32), 0, 32, signed=signed)
    bits, index = _selected(operand.parts) if operand.parts else (32, 0)
    value = _field(r, r.read(operand.register, i32), index, bits, signed=signed)
    return r.emit(arith.SubiOp(r.constant(0, i64), value)) if operand.is_negated else value


def _selected(parts: str) -> tuple[int, int]:
    """The bits and the number of a part, `b0` to `b3`, or `h0` and `h1`."""
    bits = 8 if parts[0] == "b" else 16
    if len(parts) != 2 or int(parts[1]) >= 32 // bits:
        raise ValueError("a part of a word is .b0 to .b3, .h0 or .h1")
    return bits, int(parts[1])


def _words(r: Registers, i: Instruction, form: _Form) -> None:
    target, a, b, *more = i.operands
    chosen = _selected(target.parts) if isinstance(target, Subword) else None
    into = target.register if isinstance(target, Subword) else target
    if form.kind not in _OF_WORDS or len(more) != (form.kind == "mad" or bool(form.then) or chosen is not None):
        raise r.refuse("the form is not supported")
    left, right = (_of_word(r, x, signed=signed) for x, signed in zip((a, b), form.signs, strict=True))
    third = _of_word(r, more[0], signed=form.result) if more else None
    made = _combined(r, form, left, right, third)
    if form.saturates:
        made = _clamp_to(r, made, 32 if chosen is None else chosen[0], signed=form.result)
    if chosen is not None:
        assert third is not None
        bits, index = chosen
        mask = ((1 << bits) - 1) << bits * index
        moved = r.emit(arith.ShLIOp(made, r.constant(bits * index, i64)))
        kept = r.emit(arith.AndIOp(third, r.constant(~mask, i64)))
        made = r.emit(arith.OrIOp(r.emit(arith.AndIOp(moved, r.constant(mask, i64))), kept))
    elif form.then:
        assert third is not None
        made = _field(r, made, 0, 32, signed=form.result)
        made = _combined(r, replace(form, kind=form.then), third, made)
    r.write(into, r.resized(made, 32))


def _taken(operand: Operand, default: Sequence[int], letter: str) -> Sequence[int]:
    """The parts of the operands that an operand of parts takes, from the lowest on; or that a destination writes."""
    if not isinstance(operand, Subword):
        return default
    if operand.parts[:1] != letter or operand.is_negated:
        raise ValueError("the operands' selectors do not fit the instruction")
    return [int(digit) for digit in operand.parts[:0:-1]]


def _parts(r: Registers, i: Instruction, form: _Form) -> None:
    target, a, b, c = i.operands
    if form.kind not in _OF_PARTS:
        raise r.refuse("the form is not supported")
    count, bits, letter = form.count, 32 // form.count, "h" if form.count == 2 else "b"
    words = [r.read(x.register if isinstance(x, Subword) else x, i32) for x in (a, b)]
    lefts, rights = _taken(a, range(count), letter), _taken(b, range(count, 2 * count), letter)
    written = _taken(target, range(count), letter)
    if len(lefts) != count or len(rights) != count:
        raise r.refuse("the form is not supported")
    total = whole = _field(r, r.read(c, i32), 0, 32, signed=form.result)
    for index in sorted(written):
        left, right = (
            _field(r, words[part // count], part % count, bits, signed=signed)
            for part, signed in zip((lefts[index], rights[index]), form.signs, strict=True)
        )
        made = _combined(r, form, left, right)
        if form.saturates:
            made = _clamp_to(r, made, bits, signed=form.result)
        total = r.emit(arith.AddiOp(total, made))
        mask = ((1 << bits) - 1) << bits * index
        moved = r.emit(arith.AndIOp(r.emit(arith.ShLIOp(made, r.constant(bits * index, i64))), r.constant(mask, i64)))
        whole = r.emit(arith.OrIOp(r.emit(arith.AndIOp(whole, r.constant(~mask, i64))), moved))
    into = target.register if isinstance(target, Subword) else target
    r.write(into, r.resized(total if form.then else whole, 32))


def video_rule(r: Registers, i: Instruction) -> None:
    """vadd, vsub, vabsdiff, vmin, vmax, vset of words, and of two or four parts of them, vavrg of parts, vshl, vshr and
    vmad of words: with saturation, parts that are selected, and a second operation on the result; of parts, it adds
    all results.
    """
    form = _form(r, i)
    (_words if form.count == 1 else _parts)(r, i, form)


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
    **{f"v{kind}": video_rule for kind in _OF_WORDS},
    **{f"v{kind}{count}": video_rule for kind in _OF_PARTS for count in (2, 4)},
    "bmsk": _bit_mask, "szext": _extend, "cnot": _is_zero,
})  # fmt: skip
"""The rules by opcode."""
