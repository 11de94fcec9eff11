# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX to operations: instructions that packages define. Their names are whole, `acme.load`, with all modifiers."""

from collections.abc import Collection
from dataclasses import replace

from xdsl.dialects.builtin import i1, i32
from xdsl.ir import SSAValue

from ...dialects import ptx
from ...dialects.ptx.base import PtrType, SpaceAttr
from ...layout.atoms.contract import Operand as ContractOperand
from ...layout.atoms.custom import CustomInstruction, Given, installed_instructions
from .accesses import address
from .registers import Registers
from .syntax import Address, Function, Instruction, Integer, Operand, Register, Vector


def custom_of(instruction: Instruction) -> CustomInstruction | None:
    """The instruction of a package that a statement names."""
    return installed_instructions().get(instruction.name)


def normalised(function: Function, known: Collection[str]) -> Function:
    """A function whose instructions with other opcodes than the `known` have their operands in one order: fragments,
    addresses, which are in brackets, and flags.
    """
    statements = function.body or ()
    if all(statement.opcode in known for statement in statements if isinstance(statement, Instruction)):
        return function
    body = [_normalised(s) if isinstance(s, Instruction) and s.opcode not in known else s for s in statements]
    return replace(function, body=tuple(body))


def _normalised(statement: Instruction) -> Instruction:
    record = custom_of(statement)
    if record is None:
        return statement
    marks = {operand.role: f"<{number}>" for number, operand in enumerate(record.operands)}
    text = record.text(marks)
    written = sorted((role for role in marks if marks[role] in text), key=lambda role: text.index(marks[role]))
    given = dict(zip(written, statement.operands, strict=True))
    operands = [given[operand.role] for operand in _ordered(record)]
    bare = [record.given(operand) in (Given.MATRIX, Given.ADDRESS) for operand in _ordered(record)]
    return replace(
        statement,
        operands=tuple(
            [
                Address(operand) if is_address and isinstance(operand, Register) else operand
                for operand, is_address in zip(operands, bare, strict=True)
            ]
        ),
    )


def _ordered(record: CustomInstruction) -> list[ContractOperand]:
    """The operands of an instruction in the order of normalised statements."""

    def key(operand: ContractOperand) -> tuple[bool, bool, bool]:
        given = record.given(operand)
        return given in (Given.FLAG, Given.COUNT), not record.is_in_registers(operand), not operand.writes

    return sorted(record.operands, key=key)


def custom_fragments(instruction: Instruction) -> list[Vector]:
    """The registers of an instruction that are in use while it runs asynchronously."""
    return [operand for operand in instruction.operands if isinstance(operand, Vector)]


def read_custom(r: Registers, i: Instruction) -> None:
    """Appends the operation of an instruction of a package."""
    record = custom_of(i)
    assert record is not None, "the caller has looked it up"
    given = {operand.role: x for operand, x in zip(_ordered(record), i.operands, strict=True)}
    r.add(ptx.CustomOp(record.name, [_operand(r, record, o, given[o.role]) for o in record.operands]))


def _operand(r: Registers, record: CustomInstruction, operand: ContractOperand, given: Operand) -> SSAValue:
    match record.given(operand):
        case Given.FLAG:
            return r.constant(given.value, i1) if isinstance(given, Integer) else r.read(given, i1)
        case Given.COUNT:
            return r.read(given, i32)
        case Given.MATRIX if isinstance(given, Vector):
            return r.fragment(given)
        case Given.MATRIX | Given.ADDRESS:
            pointer = PtrType(SpaceAttr(operand.spaces[0]))
            return address(r, given, operand.align, pointer)
