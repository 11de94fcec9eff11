# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix instructions of a warp with scales, on floats of 8, 6 and 4 bits (sm_120)."""

from dataclasses import dataclass
from typing import ClassVar

from ...base.errors import Code, TilefoldError
from ...layout.atoms.mma_atom import MmaAtom
from ...layout.atoms.mma_narrow import narrow_facts
from ...layout.atoms.mma_table import mma_atom_of
from ...layout.atoms.numbers import Shape
from ..scalars.dtypes import DTYPES, DType
from .nvgpu import MatrixOp, ptx_name

MXF8F6F4_SUPPORTED_PAIRS = tuple(
    pair
    for name in ("Float8E4M3FN", "Float8E5M2")
    for pair in ((DTYPES["Float4E2M1FN"], DTYPES[name]), (DTYPES[name], DTYPES["Float4E2M1FN"]))
)
"""Types of A and B of different widths that programs multiply by `MmaMXF8F6F4Op`."""


def scaled_atom(shape: Shape, a: DType, b: DType, acc: DType, scale: DType, each: int, kind: str) -> MmaAtom:
    """The atom of an instruction with a scale for `each` elements. Raises `LayoutError` (E0302) where there is none."""
    of_a, of_b, of_c = map(ptx_name, (a, b, acc))
    return mma_atom_of(narrow_facts(shape, (of_c, of_a, of_b, of_c), kind, ptx_name(scale), each))


@dataclass(frozen=True, slots=True)
class _Fp4Op(MatrixOp):
    """An instruction that multiplies 16x8x64 elements of 4 bits."""

    ab_dtype: DType
    acc_dtype: DType
    sf_type: DType
    KIND: ClassVar[str]

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """(M,N,K)."""
        return 16, 8, 64

    @property
    def sf_vec_size(self) -> int:
        """The elements that share a scale."""
        return 16 if self.KIND == "mxf4nvf4" and self.sf_type.name == "Float8E4M3FN" else 32

    def atom(self) -> MmaAtom:
        of_ab = self.ab_dtype
        return scaled_atom(self.shape_mnk, of_ab, of_ab, self.acc_dtype, self.sf_type, self.sf_vec_size, self.KIND)


class MmaMXF4Op(_Fp4Op):
    """Multiplies Float4E2M1FN, each 32 with a scale of Float8E8M0FNU: `MmaMXF4Op(Float4E2M1FN, Float32,
    Float8E8M0FNU)`.
    """

    KIND: ClassVar[str] = "mxf4"


class MmaMXF4NVF4Op(_Fp4Op):
    """Multiplies Float4E2M1FN, each 16 with a scale of Float8E4M3FN, whose sign is ignored, or each 32 with one of
    Float8E8M0FNU.
    """

    KIND: ClassVar[str] = "mxf4nvf4"


@dataclass(frozen=True, slots=True)
class MmaMXF8F6F4Op(MatrixOp):
    """Multiplies floats of 8, 6 or 4 bits, 16x8x32 of them, each 32 with a scale of Float8E8M0FNU. Each takes a byte in
    registers: of 4 bits the bits 2 to 5.
    """

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType
    sf_type: DType

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """(M,N,K)."""
        return 16, 8, 32

    @property
    def sf_vec_size(self) -> int:
        """The elements that share a scale."""
        return 32

    def atom(self) -> MmaAtom:
        types = self.a_dtype, self.b_dtype, self.acc_dtype, self.sf_type
        return scaled_atom(self.shape_mnk, *types, self.sf_vec_size, "mxf8f6f4")


class MmaMXF8Op(MmaMXF8F6F4Op):
    """Multiplies Float8E4M3FN or Float8E5M2, each 32 with a scale of Float8E8M0FNU."""

    __slots__ = ()

    def __init__(self, ab_dtype: DType, acc_dtype: DType, sf_type: DType) -> None:
        if ab_dtype.name not in ("Float8E4M3FN", "Float8E5M2"):
            raise TilefoldError(Code.ATOM_UNKNOWN, f"MmaMXF8Op multiplies floats of 8 bits, not {ab_dtype}")
        super().__init__(ab_dtype, ab_dtype, acc_dtype, sf_type)
