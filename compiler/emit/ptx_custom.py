# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: instructions that packages define, as inline assembly."""

from xdsl.ir import Operation, SSAValue

from ...base.element_types import BY_PTX
from ...dialects import ptx
from ...dialects.kernel import kernel_of
from ...dialects.ptx.base import make_constraint
from ...layout.algebra.core import size
from ...layout.atoms.contract import AtWait, Role
from ...layout.atoms.custom import Given, Waits
from .inline_assembly import call_ordered, effect
from .ptx_wgmma import Words
from .writer import FunctionWriter, Rule, rule


def _custom(w: FunctionWriter, op: ptx.CustomOp) -> None:
    record, held, names = op.record, Words(w), dict[Role, str]()
    if isinstance(record.effect, Waits):
        _tie_awaited(w, op, held)
    pairs = list(zip(record.operands, op.args, strict=True))
    for operand, value in pairs:
        if record.is_in_registers(operand):
            element, first = BY_PTX[operand.element], len(held.values)
            held.add(w.ref(value), size(operand.layout[1]) * element.bits // 32, element, element.llvm == "float")
            names[operand.role] = "{" + ", ".join(f"${n}" for n in range(first, len(held.values))) + "}"
    letters, given, lines = list[str](), list[str](), list[str]()
    for operand, value in pairs:
        place = f"${2 * len(held.values) + len(given)}"
        match record.given(operand):
            case Given.MATRIX if record.is_in_registers(operand):
                continue
            case Given.MATRIX | Given.ADDRESS | Given.COUNT:
                letters.append(make_constraint(value.type) or "")
                given.append(w.typed(value))
                names[operand.role] = place
            case Given.FLAG:
                letters.append("r")
                given.append(f"i32 {w.temp(f'zext {w.typed(value)} to i32')}")
                names[operand.role] = f"p{len(lines)}"
                lines += [f".reg .pred p{len(lines)};", f"setp.ne.b32 p{len(lines)}, {place}, 0;"]
    lines.append(f"{record.text(names)};")
    text = "\n\t".join(["{", *lines, "}"] if len(lines) > 1 else lines)
    if held.values:
        held.tie(text, letters, given)
    else:
        w.emit(f"{effect(text, letters, given)} convergent nounwind" if given else _alone(w, text))


def _tie_awaited(w: FunctionWriter, op: ptx.CustomOp, held: Words) -> None:
    """Adds the fragments that instructions write until this one has waited, so that LLVM does not read them before."""
    kernel, seen = kernel_of(op), set[SSAValue]()
    for other in kernel.walk() if kernel is not None else ():
        if not isinstance(other, ptx.CustomOp):
            continue
        for operand, value in zip(other.record.operands, other.args, strict=True):
            if operand.completion != AtWait(op.record.name) or not other.record.is_in_registers(operand):
                continue
            if value not in seen and w.has(value):  # else a fragment that is not in use here
                seen.add(value)
                element = BY_PTX[operand.element]
                held.add(w.ref(value), size(operand.layout[1]) * element.bits // 32, element, element.llvm == "float")


def _alone(w: FunctionWriter, text: str) -> str:
    return f"{call_ordered(w, text, '', ())} convergent nounwind"


PTX_CUSTOM: tuple[tuple[type[Operation], Rule], ...] = (rule(ptx.CustomOp, _custom),)
