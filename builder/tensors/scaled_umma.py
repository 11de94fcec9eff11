# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix instructions that multiply floats of 8, 6 and 4 bits with scale factors into tensor memory (PTX ISA,
tcgen05.mma, block scaling).
"""

from dataclasses import dataclass
from typing import ClassVar

from ...layout.atoms.mma_atom import MmaAtom
from ..scalars.dtypes import DTYPES, DType, Float32
from .nvgpu import CtaGroup
from .umma import OperandSource, UmmaOp
from .warpgroup import OperandMajorMode

_K, _SMEM = OperandMajorMode.K, OperandSource.SMEM
_FP4, _E8M0 = DTYPES["Float4E2M1FN"], DTYPES["Float8E8M0FNU"]


@dataclass(frozen=True, slots=True)
class BlockScaledMmaOp(UmmaOp):
    """The base of those instructions: `sf_vec_size` elements along K share a scale factor of type `sf_dtype`. Two
    elements of 4 bits take a byte where both operands have them, which are K-major then.
    """

    KIND: ClassVar[str]
    ULTRA: ClassVar[bool] = False
    """Whether K is 96 (sm_103a)."""

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType
    sf_dtype: DType
    sf_vec_size: int
    instruction_shape: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = _SMEM
    a_major_mode: OperandMajorMode = _K
    b_major_mode: OperandMajorMode = _K

    def atom(self) -> MmaAtom:
        types, majors = (self.a_dtype, self.b_dtype, self.acc_dtype), (self.a_major_mode, self.b_major_mode)
        scale, given = (self.sf_dtype, self.sf_vec_size), (self.instruction_shape, self.cta_group, self.a_src)
        return self._make(self.KIND, types, *given, majors, scale, self.ULTRA)

    def _verify(self) -> None:
        """Raises `LayoutError` where there is no such instruction; classes of programs call it."""
        self.atom()


class MmaMXF8F6F4Op(BlockScaledMmaOp):
    """Multiplies floats of 8, 6 and 4 bits, 32 of which along K share a scale factor of Float8E8M0FNU, into Float32:
    `MmaMXF8F6F4Op(Float8E4M3FN, Float8E4M3FN, (128, 256, 32), CtaGroup.ONE, OperandSource.SMEM, K, K)`.
    """

    __slots__ = ()
    KIND = "mxf8f6f4"

    def __init__(
        self,
        a_dtype: DType,
        b_dtype: DType,
        instruction_shape: tuple[int, int, int],
        cta_group: CtaGroup = CtaGroup.ONE,
        a_src: OperandSource = _SMEM,
        a_major_mode: OperandMajorMode = _K,
        b_major_mode: OperandMajorMode = _K,
    ) -> None:
        given = instruction_shape, cta_group, a_src, a_major_mode, b_major_mode
        super().__init__(a_dtype, b_dtype, Float32, _E8M0, 32, *given)


class MmaMXF8Op(MmaMXF8F6F4Op):
    """`MmaMXF8F6F4Op` of A and B of one type."""

    __slots__ = ()

    def __init__(
        self,
        ab_dtype: DType,
        instruction_shape: tuple[int, int, int],
        cta_group: CtaGroup = CtaGroup.ONE,
        a_src: OperandSource = _SMEM,
        a_major_mode: OperandMajorMode = _K,
        b_major_mode: OperandMajorMode = _K,
    ) -> None:
        super().__init__(ab_dtype, ab_dtype, instruction_shape, cta_group, a_src, a_major_mode, b_major_mode)


class MmaMXF4Op(BlockScaledMmaOp):
    """Multiplies Float4E2M1FN, 32 of which along K share a scale factor of Float8E8M0FNU, into Float32:
    `MmaMXF4Op((128, 256, 64), CtaGroup.ONE, OperandSource.SMEM)`.
    """

    __slots__ = ()
    KIND = "mxf4"

    def __init__(
        self,
        instruction_shape: tuple[int, int, int],
        cta_group: CtaGroup = CtaGroup.ONE,
        a_src: OperandSource = _SMEM,
    ) -> None:
        super().__init__(_FP4, _FP4, Float32, _E8M0, 32, instruction_shape, cta_group, a_src)


class MmaMXF4NVF4Op(BlockScaledMmaOp):
    """Multiplies Float4E2M1FN, 16 of which along K share a scale factor of Float8E4M3FN or Float8E8M0FNU, into Float32:
    `MmaMXF4NVF4Op(Float8E4M3FN, (128, 256, 64), CtaGroup.ONE, OperandSource.SMEM)`.
    """

    __slots__ = ()
    KIND = "mxf4nvf4"

    def __init__(
        self,
        sf_dtype: DType,
        instruction_shape: tuple[int, int, int],
        cta_group: CtaGroup = CtaGroup.ONE,
        a_src: OperandSource = _SMEM,
    ) -> None:
        super().__init__(_FP4, _FP4, Float32, sf_dtype, 16, instruction_shape, cta_group, a_src)


class SM103MmaMXF4Op(MmaMXF4Op):
    """`MmaMXF4Op` with K = 96 (sm_103a)."""

    __slots__ = ()
    KIND = "mxf4nvf4"
    ULTRA = True


class SM103MmaMXF4NVF4Op(MmaMXF4NVF4Op):
    """`MmaMXF4NVF4Op` with K = 96 (sm_103a)."""

    __slots__ = ()
    ULTRA = True
