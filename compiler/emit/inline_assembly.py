# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inline assembly of PTX instructions on registers."""

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.ptx import PtxOp
from ...dialects.ptx.base import PtrType, TensorMapType, make_constraint, value_bytes
from .types import llvm_type, quote
from .writer import FunctionWriter, Rule


def effect(text: str, letters: Sequence[str], given: Sequence[str], returned: str = "void") -> str:
    """A call of assembly that LLVM neither drops nor moves accesses to memory across.

    `letters` are the constraints of its registers, and `given` its operands with their types.
    """
    constraints = ",".join((*letters, "~{memory}"))
    return f'call {returned} asm sideeffect {quote(text)}, "{constraints}"({", ".join(given)})'


def register(type: Attribute, op: Operation) -> tuple[str, str]:
    """The LLVM type in which a value is in a register, and the constraint that asks for it.

    Pointers and scalar f32 and f64 are themselves; everything else is the integer of its size, and a byte that of 16
    bits.
    """
    if value_bytes(type) == 1:
        return "i16", "h"
    letter = make_constraint(type)
    assert letter is not None, "the verifiers of the instructions check their types"
    if isinstance(type, PtrType | TensorMapType) or letter in "fd":
        return llvm_type(type, op), letter
    return f"i{8 * (value_bytes(type) or 0)}", letter


def in_register(w: FunctionWriter, value: SSAValue, op: Operation) -> str:
    """A value in its register, with the register's type."""
    type, _ = register(value.type, op)
    if type == w.type(value):
        return w.typed(value)
    if value_bytes(value.type) == 1:
        return f"{type} {w.temp(f'zext {w.typed(value)} to {type}')}"
    return f"{type} {w.temp(f'bitcast {w.typed(value)} to {type}')}"


def from_register(w: FunctionWriter, result: SSAValue, text: str, op: Operation) -> None:
    """Binds a result to the value of a register."""
    type, _ = register(result.type, op)
    kind = "trunc" if value_bytes(result.type) == 1 else "bitcast"
    w.bind(result, text if type == w.type(result) else w.temp(f"{kind} {type} {text} to {w.type(result)}"))


def call_ordered(
    w: FunctionWriter, lines: str | Sequence[str], letters: str, operands: Sequence[SSAValue], result: str = "void"
) -> str:
    """A call of instructions with registers of these letters, across which LLVM moves no access to memory."""
    text = lines if isinstance(lines, str) else "\n\t".join(lines)
    return effect(text, letters.split(",") if letters else (), [w.typed(operand) for operand in operands], result)


def ordered(form: str = "", convergent: bool = False) -> Rule:
    """The rule of an instruction without a result, across which LLVM moves no access to memory: its name, and its
    operands in the order of `form`, `[$0], $1`; an operand that the form lacks is a cache policy, the last of all.
    """

    def write(w: FunctionWriter, op: Operation) -> None:
        assert isinstance(op, PtxOp)
        places = [form] if form else []
        places += [f"${index}" for index in range(form.count("$"), len(op.operands))]
        letters = ",".join(make_constraint(operand.type) or "" for operand in op.operands)
        text = f"{op.mnemonic()}{' ' if places else ''}{', '.join(places)};"
        w.emit(call_ordered(w, text, letters, op.operands) + (" convergent nounwind" if convergent else ""))

    return write


def compute(w: FunctionWriter, mnemonic: str, op: Operation, operands: Sequence[SSAValue]) -> None:
    """Writes an instruction without side effects: its only result, then its operands."""
    (result,) = op.results
    type, constraint = register(result.type, op)
    places = ", ".join(f"${index}" for index in range(len(operands) + 1))
    constraints = ",".join([f"={constraint}", *(register(operand.type, op)[1] for operand in operands)])
    given = ", ".join(in_register(w, operand, op) for operand in operands)
    from_register(w, result, w.temp(f'call {type} asm "{mnemonic} {places};", "{constraints}"({given})'), op)
