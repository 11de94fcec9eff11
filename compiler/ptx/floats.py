# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Forms of floating-point instructions that `arith` and `math` do not have: other roundings, `.ftz`, `.sat`, `.relu`,
operands of two types, and pairs (PTX ISA, Floating Point, Half Precision and Mixed Precision Instructions).

The least and the greatest of numbers are here, also of integers (PTX ISA, min and max).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType, f32
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import ptx
from ...dialects.ptx.base import make_constraint
from ...dialects.ptx.packed import PAIR
from .inference import FLOAT_TYPES
from .moves import Rule, flushed, is_float
from .registers import Registers, type_of
from .syntax import TYPE_BITS, Instruction, Operand, Register

_ROUNDINGS = ("rn", "rz", "rm", "rp")
_AS_TEXT = frozenset((*_ROUNDINGS, "ftz", "sat"))
TEXT_OPCODES = ("add", "sub", "mul", "mad", "fma", "div", "sqrt", "rcp", "min", "max", "neg", "abs")
"""The instructions that have such forms."""


def check_modifiers(r: Registers, i: Instruction, allowed: tuple[str, ...]) -> None:
    """Refuses a modifier before the type that is not among these."""
    for modifier in i.modifiers[:-1]:
        if modifier not in allowed:
            raise r.refuse(f"the modifier .{modifier} is not supported")


def text(r: Registers, name: str, values: Sequence[SSAValue], result: Attribute) -> SSAValue:
    """The result of an instruction by its name, which the simulator knows."""
    places = ", ".join(f"${number}" for number in range(len(values) + 1))
    letters = [f"={make_constraint(result)}", *(str(make_constraint(value.type)) for value in values)]
    return r.emit(ptx.InlineOp(f"{name} {places};", ",".join(letters), list(values), [result]))


_BY_ELEMENTS = ("f32x2", "u16x2", "s16x2")

Extract = Callable[[SSAValue], SSAValue]


def with_parts(
    r: Registers, i: Instruction, parts: Sequence[Extract], sources: Sequence[SSAValue], rule: Rule
) -> list[SSAValue]:
    """The results of an instruction for each of some functions of its operands."""
    made: list[SSAValue] = []
    for part in parts:
        names = [f"operand {number}" for number in range(len(sources))]
        r.values |= {name: part(source) for name, source in zip(names, sources, strict=True)}
        operands: tuple[Operand, ...] = (Register("result"), *map(Register, names))
        rule(r, replace(i, operands=operands))
        made.append(r.values.pop("result"))
        for name in names:
            r.values.pop(name, None)
    return made


def _as_text(r: Registers, i: Instruction) -> bool:
    """Appends an instruction on f32 or f64 that rounds otherwise than to the nearest, flushes or saturates, as text;
    False for another instruction.
    """
    *words, type = i.modifiers
    if type not in FLOAT_TYPES or TYPE_BITS[type] < 32 or not _AS_TEXT.issuperset(words) or not set(words) - {"rn"}:
        return False
    target, *sources = i.operands
    r.write(target, text(r, i.name, [r.read(source, type_of(type)) for source in sources], type_of(type)))
    return True


def _by_elements(r: Registers, i: Instruction, rule: Rule) -> None:
    """An instruction on pairs, for each of the two elements."""
    single, pair = i.modifiers[-1][:-2], type_of(i.modifiers[-1])
    target, *sources = i.operands
    given = [r.read(source, pair) for source in sources]

    def part(place: int) -> Extract:
        return lambda value: r.extract(value, place)

    one = replace(i, modifiers=(*i.modifiers[:-1], single))
    r.write(target, r.vector(with_parts(r, one, [part(0), part(1)], given, rule)))


def _mixed(r: Registers, i: Instruction, rule: Rule) -> None:
    """An instruction whose operands but the last are narrower than the result, `add.rn.f32.f16`: that on f32."""
    *words, _, narrow = i.modifiers
    target, *sources, last = i.operands
    wide = [r.emit(arith.ExtFOp(r.read(source, type_of(narrow)), f32)) for source in sources]
    given = [*wide, r.read(last, f32)]
    (made,) = with_parts(r, replace(i, modifiers=(*words, "f32")), [lambda value: value], given, rule)
    r.write(target, made)


def flushing(r: Registers, i: Instruction, rule: Rule) -> None:
    """An instruction with `.ftz` on f32 or f16: operands and results that are subnormal count as zero."""
    type = i.modifiers[-1]
    target, *sources = i.operands
    given = [r.read(source, type_of(type)) for source in sources]
    plain = replace(i, modifiers=tuple(word for word in i.modifiers if word != "ftz"))
    (made,) = with_parts(r, plain, [lambda value: flushed(r, value)], given, rule)
    r.write(target, flushed(r, made))


def _out_of_bounds(r: Registers, i: Instruction) -> None:
    """fma.oob: 0 where a factor is the NaN that a copy leaves outside a tensor."""
    type = i.modifiers[-1]
    check_modifiers(r, i, ("rn", "oob", "relu"))
    if i.opcode != "fma" or not _is_narrow(type):
        raise r.refuse("the modifier .oob is one of fma of 16 bits")
    if type.endswith("x2"):
        _by_elements(r, i, _out_of_bounds)
        return
    target, *sources = i.operands
    held = type_of(type)
    r.write(target, text(r, i.name, [r.read(source, held) for source in sources], held))


def _is_narrow(type: str) -> bool:
    """Whether a type is one of floats of 16 bits, or a pair of them."""
    return is_float(type) and TYPE_BITS[type.removesuffix("x2")] == 16


def bounded(r: Registers, value: SSAValue, type: str, bound: str) -> SSAValue:
    """A result that is bounded: with `.sat` to 0 and 1, NaN to 0, with `.relu` from 0 on."""
    zero, one = (_filled(r, number, type) for number in (0, 1))
    if not is_float(type):
        return r.emit(arith.MaxSIOp(value, zero))
    if bound == "relu":
        return r.emit(arith.MaximumfOp(value, zero))
    return r.emit(arith.MinnumfOp(r.emit(arith.MaxnumfOp(value, zero)), one))


def _filled(r: Registers, number: int, type: str) -> SSAValue:
    """A number in a type, in each element of a pair."""
    single = type.removesuffix("x2")
    value = r.constant(float(number) if is_float(type) else number, type_of(single))
    return r.vector([value, value]) if single != type else value


def with_forms(rule: Rule) -> Rule:
    """A rule for operands of one type to the nearest, as one for all these forms."""

    def either(r: Registers, i: Instruction) -> None:
        if i.modifiers[-1:] in (("relu",), ("sat",)):  # headers of CUDA write them behind the type
            i = replace(i, modifiers=(*i.modifiers[:-2], i.modifiers[-1], i.modifiers[-2]))
        *words, type = i.modifiers
        bound = next((word for word in ("sat", "relu") if word in words), None)
        if i.opcode == "mad" and is_float(type):  # the same, but for the first GPUs
            i = replace(i, opcode="fma")
        if "oob" in words:
            _out_of_bounds(r, i)
        elif words[-1:] == ["f32"] and TYPE_BITS.get(type) == 16:
            _mixed(r, i, either)
        elif type == "f32x2" and words in ([], ["rn"]):
            target, *sources = i.operands
            r.write(target, r.emit(ptx.F32x2Op(f"{i.opcode}.rn", [r.read(source, PAIR) for source in sources])))
        elif type in _BY_ELEMENTS or (type.endswith("x2") and {"ftz", "xorsign"}.intersection(words)):
            _by_elements(r, i, either)
        elif bound and (_is_narrow(type) or (bound == "relu" and not is_float(type))):
            either(r, replace(i, modifiers=tuple(word for word in i.modifiers if word != bound)))
            r.write(i.operands[0], bounded(r, r.read(i.operands[0], type_of(type)), type, bound))
        elif "ftz" in words and type == "f16":
            flushing(r, i, either)
        elif not _as_text(r, i):
            rule(r, i)

    return either


def extreme(r: Registers, i: Instruction) -> None:
    """min and max, of two operands or of three."""
    type, least = i.modifiers[-1], i.opcode == "min"
    if not is_float(type):
        check_modifiers(r, i, ())
        signed = type[0] == "s"
        kind = (arith.MinSIOp if signed else arith.MinUIOp) if least else (arith.MaxSIOp if signed else arith.MaxUIOp)
        r.write(i.operands[0], _folded(r, [r.read(source, type_of(type)) for source in i.operands[1:]], kind))
    elif "ftz" in i.modifiers:
        flushing(r, i, extreme)
    else:
        _of_floats(r, i, least=least)


def _of_floats(r: Registers, i: Instruction, *, least: bool) -> None:
    """Minimum or maximum of floats. `.NaN` gives a NaN where an operand is one, `.abs` compares magnitudes, and
    `.xorsign.abs` gives the result the sign of the product.
    """
    type = i.modifiers[-1]
    check_modifiers(r, i, ("NaN", "xorsign", "abs"))
    target, *sources = i.operands
    values = [r.read(source, type_of(type)) for source in sources]
    whole, sign = IntegerType(TYPE_BITS[type]), None
    if "xorsign" in i.modifiers:
        differing = r.emit(arith.XOrIOp(r.convert(values[0], whole), r.convert(values[1], whole)))
        sign = r.emit(arith.AndIOp(differing, r.constant(1 << (whole.width.data - 1), whole)))
    if "abs" in i.modifiers:
        values = [r.emit(math.AbsFOp(value)) for value in values]
    if type == "f32" and len(values) == 3:
        form = f"{i.opcode}.NaN" if "NaN" in i.modifiers else i.opcode
        made = r.emit(ptx.MinMax3Op(form, *values))
    elif "NaN" in i.modifiers:
        made = _folded(r, values, arith.MinimumfOp if least else arith.MaximumfOp)
    else:
        made = _folded(r, values, arith.MinnumfOp if least else arith.MaxnumfOp)
    if sign is not None:
        made = r.convert(r.emit(arith.OrIOp(r.convert(made, whole), sign)), type_of(type))
    r.write(target, made)


def _folded(r: Registers, values: list[SSAValue], kind: Callable[[SSAValue, SSAValue], Operation]) -> SSAValue:
    total = values[0]
    for value in values[1:]:
        total = r.emit(kind(total, value))
    return total
