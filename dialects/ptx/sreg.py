# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Special registers: where a thread is in its block, and its block in the grid (PTX ISA, Special Registers)."""

from xdsl.dialects.builtin import I32, StringAttr, i32
from xdsl.irdl import irdl_op_definition, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .base import PtxOp

REGISTERS = tuple(f"{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz")
"""The special registers that hold coordinates and sizes."""


@irdl_op_definition
class SregOp(PtxOp):
    """`%t = ptx.sreg "tid.x"`: a special register: tid, ntid (block size), ctaid (block) or nctaid (grid size), by
    axis.

    LLVM may read it several times or not at all, so it is not counted as an instruction.
    """

    name = "ptx.sreg"
    register = prop_def(StringAttr)
    result = result_def(I32)
    traits = traits_def(Pure())
    assembly_format = "$register attr-dict"

    def __init__(self, register: str):
        super().__init__(properties={"register": StringAttr(register)}, result_types=[i32])

    def verify_(self) -> None:
        if self.register.data not in REGISTERS:
            raise VerifyException(f"unknown special register '{self.register.data}'; known: {', '.join(REGISTERS)}")
