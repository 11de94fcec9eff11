# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Warp-wide matrix loads (PTX ISA, section ldmatrix)."""

from typing import ClassVar

from xdsl.dialects.builtin import I64, IntegerAttr, UnitAttr, VectorType, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import MemoryReadEffect
from xdsl.utils.exceptions import VerifyException

from .base import PtxOp
from .types import SHARED


@irdl_op_definition
class LdMatrixOp(PtxOp):
    """`%r = ptx.ldmatrix x 4 trans %p : vector<4xi32>`: loads 1, 2 or 4 matrices of 8x8 16-bit elements.

    Lane 8*i + r gives the address of row r of matrix i (16 bytes, aligned to 16); lane t receives in register i the
    elements 2*(t % 4) and 2*(t % 4) + 1 of row t / 4 of matrix i, or of its transpose with `trans`.

    Preconditions: all lanes of the warp execute it; every row was written, and a barrier ordered the writes before it.
    """

    name = "ptx.ldmatrix"
    MIN_SM: ClassVar[int] = 75
    MIN_PTX: ClassVar[int] = 65

    num = prop_def(IntegerAttr[I64])
    trans = opt_prop_def(UnitAttr)
    ptr = operand_def(SHARED)
    result = result_def(VectorType)
    traits = traits_def(MemoryReadEffect())
    assembly_format = "`x` $num (`trans` $trans^)? $ptr attr-dict `:` type($result)"

    def __init__(self, num: int, trans: bool, ptr: SSAValue | Operation):
        super().__init__(
            operands=[ptr],
            properties={"num": IntegerAttr(num, i64), "trans": UnitAttr() if trans else None},
            result_types=[VectorType(i32, [num])],
        )

    def mnemonic(self) -> str:
        trans = ".trans" if self.trans is not None else ""
        return f"ldmatrix.sync.aligned.m8n8.x{self.num.value.data}{trans}.shared.b16"

    def verify_(self) -> None:
        num = self.num.value.data
        if num not in (1, 2, 4):
            raise VerifyException(f"ldmatrix loads 1, 2 or 4 matrices, not {num}")
        if self.result.type != VectorType(i32, [num]):
            raise VerifyException(f"the result of x{num} is vector<{num}xi32>, not {self.result.type}")
