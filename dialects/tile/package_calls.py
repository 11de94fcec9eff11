# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Executions of atoms whose instruction a package defines: `tile.instruction`, with operands in its order."""

from collections.abc import Mapping

from xdsl.ir import SSAValue

from ...base.errors import Code, LayoutError
from ...base.spaces import RMEM
from ...layout.algebra.core import LayoutLike
from ...layout.atoms.contract import Contract, Operand, Role
from ...layout.atoms.custom import CustomInstruction, custom_instruction
from ...layout.atoms.instructions import Custom
from .custom import InstructionOp, check_places
from .types import TensorType


def package_instruction(contract: Contract) -> CustomInstruction | None:
    """The instruction of an atom's contract, if a package defines it."""
    instruction = contract.instruction
    return custom_instruction(instruction.name) if isinstance(instruction, Custom) else None


def check_values(contract: Contract, operand: Operand, tensor: TensorType, values: LayoutLike) -> bool:
    """Whether a package's instruction has an operand in memory; then checks that the values of one execution, by their
    layout in a tensor, lie where the instruction has them. Raises `LayoutError` (E0310).
    """
    record = package_instruction(contract)
    if record is None or tensor.space.data is RMEM:
        return False
    check_places(record, operand, tensor.with_layout(values))
    return True


def call_instruction(contract: Contract, given: Mapping[Role, SSAValue | None]) -> InstructionOp:
    """One execution of the instruction of an atom, with these operands. Raises `LayoutError` (E0304) where one is
    missing.
    """
    assert isinstance(contract.instruction, Custom)
    args: list[SSAValue] = []
    for operand in contract.operands:
        value = given.get(operand.role)
        if value is None:
            name = contract.instruction.name
            raise LayoutError(Code.ATOM_OPERAND, f"{name} lacks its operand {operand.role.value}")
        args.append(value)
    return InstructionOp(contract.instruction.name, args)
