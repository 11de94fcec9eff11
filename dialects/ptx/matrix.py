# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Warp-wide loads, stores and transpositions of matrices (PTX ISA, sections ldmatrix, stmatrix, movmatrix)."""

from abc import abstractmethod
from typing import ClassVar

from xdsl.dialects.builtin import I32, I64, IntegerAttr, StringAttr, UnitAttr, VectorType, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.utils.exceptions import VerifyException

from ...base.target import TargetFamily, Targets
from ...layout.atoms.instructions import UNPACKED_BITS, LdMatrix, StMatrix
from ...layout.atoms.ldmatrix import BYTE_TARGETS, LDMATRIX_TARGETS, MOVMATRIX_TARGETS, STMATRIX_TARGETS
from ...layout.atoms.ptx_text import MOVMATRIX, matrix_mnemonic
from ..definitions import irdl_op_definition, operand, row
from .base import SHARED, PtxOp
from .effects import EXCHANGES, by_warp, reads, writes


class _MatrixOp(PtxOp):
    """The base of ldmatrix and stmatrix: how many matrices, their shape, and whether they are transposed."""

    SHAPES: ClassVar[dict[str, tuple[int, ...]]]
    """The registers of a matrix and how many there can be, by shape and elements."""
    TRANSPOSES: ClassVar[dict[str, bool]] = {"m16n16": True, "m16n8": True, "m8n16": False}
    """Whether matrices of a shape are always transposed, or never; others may be."""

    num = prop_def(IntegerAttr[I64])
    trans = opt_prop_def(UnitAttr)
    shape = opt_prop_def(StringAttr)

    @property
    def shape_text(self) -> str:
        """Shape and element, such as `m8n8.b16`."""
        return "m8n8.b16" if self.shape is None else self.shape.data

    @property
    def registers(self) -> int:
        """How many 32-bit registers of each lane hold the matrices."""
        return self.num.value.data * self.SHAPES[self.shape_text][0]

    @property
    def moved(self) -> int:
        """The bytes of the rows that the warp accesses, 16 of each."""
        return self.num.value.data * (16 if self.shape_text.startswith("m16n16") else 8) * 16

    @property
    @abstractmethod
    def instruction(self) -> LdMatrix | StMatrix:
        """The instruction's record."""

    @property
    def targets(self) -> TargetFamily | Targets:
        return super().targets if self.shape is None else BYTE_TARGETS

    def mnemonic(self) -> str:
        return matrix_mnemonic(self.instruction)

    def check(self, fragment: Attribute) -> None:
        """Checks the form, and the type of the registers."""
        num, shapes = self.num.value.data, self.SHAPES
        instruction = self.name.removeprefix("ptx.")
        if self.shape_text not in shapes:
            raise VerifyException(f'{instruction} moves matrices {", ".join(shapes)}, not "{self.shape_text}"')
        _, *numbers = shapes[self.shape_text]
        if num not in numbers:
            allowed = ", ".join(map(str, numbers))
            raise VerifyException(f"{instruction} moves {allowed} matrices of this shape, not {num}")
        always = self.TRANSPOSES.get(self.shape_text.split(".", 1)[0])
        if always is not None and always != (self.trans is not None):
            how = "only transposed; add 'trans'" if always else "only as they are; drop 'trans'"
            raise VerifyException(f"{instruction} moves matrices of this shape {how}")
        if fragment != VectorType(i32, [self.registers]):
            raise VerifyException(f"the registers of x{num} are vector<{self.registers}xi32>, not {fragment}")


def _properties(num: int, trans: bool, shape: str) -> dict[str, Attribute | None]:
    given = None if shape == "m8n8.b16" else StringAttr(shape)
    return {"num": IntegerAttr(num, i64), "trans": UnitAttr() if trans else None, "shape": given}


@irdl_op_definition
class LdMatrixOp(_MatrixOp):
    """`%r = ptx.ldmatrix x 4 trans %p : vector<4xi32>`: loads 1, 2 or 4 matrices of 8x8 16-bit elements.

    Lane 8*i + r gives the address of row r of matrix i (16 bytes, aligned to 16); lane t receives in register i the
    elements 2*(t % 4) and 2*(t % 4) + 1 of row t / 4 of matrix i, or of its transpose with `trans`.
    `ptx.ldmatrix x 2 trans "m16n16.b8" %p : vector<4xi32>` loads 1 or 2 matrices of 16x16 bytes, transposed: lane
    16*i + r gives row r, and lane t receives in register 2*i + h the elements 4*(t % 4) and the three after it of row
    t / 4 + 8*h of the transpose.

    Elements of 4 or 6 bits are unpacked to bytes, whose upper bits become 0: `ptx.ldmatrix x 4 "m8n16.b8x16.b4x16_p64"
    %p : vector<4xi32>` loads 1, 2 or 4 matrices of 8x16, of which lane t receives in register i the elements
    4*(t % 4) and the three after it of row t / 4 of matrix i; `trans "m16n16.b8x16.b4x16_p64"` is as `m16n16.b8`. The
    16 elements of a row are its first 8 bytes, those of `b6x16_p32` its first 12, the lowest bits first; the rest of
    its 16 bytes is padding.

    Preconditions: all lanes of the warp execute it; every row was written, and a barrier ordered the writes before it.
    """

    name = "ptx.ldmatrix"
    TARGETS: ClassVar[Targets | None] = LDMATRIX_TARGETS
    SHAPES: ClassVar[dict[str, tuple[int, ...]]] = {
        "m8n8.b16": (1, 1, 2, 4),
        "m16n16.b8": (2, 1, 2),
        **{f"m8n16.{elements}": (1, 1, 2, 4) for elements in UNPACKED_BITS},
        **{f"m16n16.{elements}": (2, 1, 2) for elements in UNPACKED_BITS},
    }

    ptr = operand_def(SHARED)
    result = result_def(VectorType)
    traits = traits_def(by_warp(reads("ptr", "moved")))
    assembly_format = "`x` $num (`trans` $trans^)? ($shape^)? $ptr attr-dict `:` type($result)"

    @property
    def instruction(self) -> LdMatrix:
        shape, element = self.shape_text.split(".", 1)
        return LdMatrix(self.num.value.data, self.trans is not None, shape, element)

    def __init__(self, num: int, trans: bool, ptr: SSAValue | Operation, shape: str = "m8n8.b16"):
        super().__init__(
            operands=[ptr],
            properties=_properties(num, trans, shape),
            result_types=[VectorType(i32, [num * self.SHAPES[shape][0]])],
        )

    def verify_(self) -> None:
        self.check(self.result.type)


@irdl_op_definition
class StMatrixOp(_MatrixOp):
    """`ptx.stmatrix x 4 trans %r, %p : vector<4xi32>`: stores 1, 2 or 4 matrices of 8x8 16-bit elements.

    Registers and addresses are those of `ptx.ldmatrix`. `ptx.stmatrix x 4 trans "m16n8.b8" %r, %p : vector<4xi32>`
    stores 1, 2 or 4 matrices of 16x8 bytes, transposed: lane 8*i + r gives the address of 16 bytes, where column r of
    matrix i goes, and register i of lane t holds the elements 2*(t % 4) and 2*(t % 4) + 1 of its rows t / 4 and
    t / 4 + 8.

    Preconditions: all lanes of the warp execute it.
    """

    name = "ptx.stmatrix"
    TARGETS: ClassVar[Targets | None] = STMATRIX_TARGETS
    SHAPES: ClassVar[dict[str, tuple[int, ...]]] = {"m8n8.b16": (1, 1, 2, 4), "m16n8.b8": (1, 1, 2, 4)}

    value = operand_def(VectorType)
    ptr = operand_def(SHARED)
    traits = traits_def(by_warp(writes("ptr", "moved")))
    assembly_format = "`x` $num (`trans` $trans^)? ($shape^)? $value `,` $ptr attr-dict `:` type($value)"

    @property
    def instruction(self) -> StMatrix:
        return StMatrix(self.num.value.data, self.trans is not None, *self.shape_text.split(".", 1))

    def __init__(
        self, num: int, trans: bool, value: SSAValue | Operation, ptr: SSAValue | Operation, shape: str = "m8n8.b16"
    ):
        super().__init__(operands=[value, ptr], properties=_properties(num, trans, shape))

    def verify_(self) -> None:
        self.check(self.value.type)


@row
class MovMatrixOp(PtxOp):
    """`%d = ptx.movmatrix trans %a`: transposes a matrix of 8x8 16-bit elements that a warp holds in registers.

    Lane t gives elements 2*(t % 4) and 2*(t % 4) + 1 of row t / 4, and receives those of the transpose.
    Preconditions: all lanes of the warp execute it.
    """

    name = "ptx.movmatrix"
    TARGETS: ClassVar[Targets | None] = MOVMATRIX_TARGETS

    value: SSAValue = operand(I32)
    result = result_def(I32)
    traits = traits_def(EXCHANGES)
    assembly_format = "`trans` $value attr-dict"

    def mnemonic(self) -> str:
        return MOVMATRIX
