# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions that packages define, on tensors: `tile.instruction`, with operands in the instruction's order."""

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, prop_def, traits_def, var_operand_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from ...base.element_types import BY_PTX
from ...base.errors import Code, LayoutError
from ...base.spaces import RMEM
from ...layout.algebra.core import Layout, LayoutLike, size
from ...layout.atoms.contract import Contract, Operand, Role
from ...layout.atoms.custom import CustomInstruction, Given, custom_instruction
from ...layout.atoms.instructions import Custom
from ...layout.text.layouts import to_text
from ..definitions import irdl_op_definition, refusing
from ..element_types import ir_type
from ..ptx.custom import CUSTOM_FORMAT, check_operands
from .types import TensorType


@irdl_op_definition
class InstructionOp(IRDLOperation):
    """`tile.instruction "acme.ld.x8"(%cells, %fragment : !cells, !fragment)`: one execution of an instruction that a
    package defines. Tensors are its matrices: in memory whole ones whose elements lie where the instruction has them,
    in registers a thread's values in their order.
    """

    name = "tile.instruction"
    instruction = prop_def(StringAttr)
    args = var_operand_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = CUSTOM_FORMAT

    def __init__(self, instruction: str, args: Sequence[SSAValue]) -> None:
        super().__init__(operands=[args], properties={"instruction": StringAttr(instruction)})

    @property
    def record(self) -> CustomInstruction:
        """The instruction. Raises `LayoutError` (E0302) if no installed package has it."""
        return custom_instruction(self.instruction.data)

    def verify_(self) -> None:
        with refusing():
            record = self.record
            for operand, value in check_operands(self.args, record):
                if record.given(operand) is Given.MATRIX:
                    _check_tensor(record, operand, value)


def _check_tensor(record: CustomInstruction, operand: Operand, value: SSAValue) -> None:
    """Raises `LayoutError` unless a tensor is the matrix of an operand."""
    type, subject = value.type, f"{operand.role.value} of {record.name}"
    if not isinstance(type, TensorType) or type.space.data not in operand.spaces:
        where = f"in {type.space.data}" if isinstance(type, TensorType) else f"a {type}"
        spaces = " or ".join(map(str, operand.spaces))
        raise LayoutError(Code.ATOM_SPACE, f"{subject} is {where}; it must be a tensor in {spaces}")
    if type.element_type != ir_type(BY_PTX[operand.element]):
        wanted = ir_type(BY_PTX[operand.element])
        raise LayoutError(Code.ATOM_VALUE_WIDTH, f"{subject} holds {wanted}, the tensor holds {type.element_type}")
    check_places(record, operand, type)


def check_places(record: CustomInstruction, operand: Operand, type: TensorType) -> None:
    """Raises `LayoutError` unless the elements of a tensor lie where an instruction has those of its operand."""
    subject, place = f"{operand.role.value} of {record.name}", record.places.get(operand.role)
    wanted = Layout(size(operand.layout[1]), 1) if place is None else place
    layout, step = type.layout.data, type.step_bits
    if not isinstance(layout, Layout) or size(layout) != size(wanted):
        raise LayoutError(Code.ATOM_VALUES, f"{subject} has {size(wanted)} elements, the tensor is {to_text(layout)}")
    for index in range(size(wanted)):
        expected = wanted(index) if place is not None else index * type.step_bits // 8
        if layout(index) * step // 8 != expected:
            raise LayoutError(
                Code.ATOM_VALUES,
                f"{subject} has its elements at {to_text(wanted)}, the tensor is {to_text(layout)}",
                f"element {index} would be {layout(index) * step // 8} units after the first, not {expected}",
            )
    if place is not None and type.align.data < operand.align:
        text = f"{subject} must be aligned to {operand.align} bytes, the tensor is to {type.align.data}"
        raise LayoutError(Code.ATOM_OPERAND, text)


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
