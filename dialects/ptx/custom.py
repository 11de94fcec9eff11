# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions that packages define."""

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, i1, i32
from xdsl.ir import SSAValue
from xdsl.irdl import prop_def, traits_def, var_operand_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from ...base.target import Targets
from ...layout.atoms.contract import Operand
from ...layout.atoms.custom import CustomInstruction, Given, custom_instruction
from ..definitions import irdl_op_definition, refusing
from .base import PtrType, PtxOp

CUSTOM_FORMAT = "$instruction `(` ($args^ `:` type($args))? `)` attr-dict"


def check_operands(args: Sequence[SSAValue], instruction: CustomInstruction) -> list[tuple[Operand, SSAValue]]:
    """The operands of an operation beside those of its instruction. VerifyException where flags, counts and addresses
    differ; matrices are not looked at.
    """
    if len(args) != len(instruction.operands):
        roles = ", ".join(operand.role.value for operand in instruction.operands) or "none"
        raise VerifyException(f"{instruction.name} has {len(instruction.operands)} operands: {roles}")
    for operand, value in zip(instruction.operands, args, strict=True):
        match instruction.given(operand):
            case Given.MATRIX:
                continue
            case Given.ADDRESS:
                fits = isinstance(value.type, PtrType) and value.type.space.data in operand.spaces
                wanted = f"an address in {' or '.join(map(str, operand.spaces))}"
            case Given.FLAG:
                fits, wanted = value.type == i1, "an i1"
            case Given.COUNT:
                fits, wanted = value.type == i32, "an i32"
        if not fits:
            raise VerifyException(f"{operand.role.value} of {instruction.name} is {wanted}, not a {value.type}")
    return list(zip(instruction.operands, args, strict=True))


@irdl_op_definition
class CustomOp(PtxOp):
    """`ptx.instruction "acme.ld"(%cells, %fragment : !ptx.ptr<acme>, !ptx.ptr<local>)`: an instruction that a package
    defines. Fragments are addresses in local memory; the instruction has their registers.
    """

    name = "ptx.instruction"
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

    @property
    def targets(self) -> Targets:
        return self.record.contract.targets

    def mnemonic(self) -> str:
        return self.instruction.data

    def verify_(self) -> None:
        with refusing():
            record = self.record
        for operand, value in check_operands(self.args, record):
            if record.given(operand) is Given.MATRIX and not (
                isinstance(value.type, PtrType) and value.type.space.data in operand.spaces
            ):
                spaces = " or ".join(map(str, operand.spaces))
                raise VerifyException(f"{operand.role.value} of {record.name} is in {spaces}, not a {value.type}")
