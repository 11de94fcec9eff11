# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The least and the greatest of numbers (PTX ISA, min and max)."""

from collections.abc import Callable

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue

from ...dialects import ptx
from .floats import check_modifiers, flushing
from .moves import is_float
from .registers import Registers, type_of
from .syntax import TYPE_BITS, Instruction


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
