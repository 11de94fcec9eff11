# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix instructions that multiply into tensor memory (tcgen05.mma, sm_100a): their operations and fields, and the
layouts of shared memory for their operands (CuTe's mma_sm100_umma.hpp and mma_traits_sm100.hpp)."""

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from ...base import spaces
from ...base.errors import Code, TilefoldError
from ...dialects.tile import MmaAtomAttr, TiledMmaType
from ...layout.algebra.core import LayoutLike
from ...layout.atoms import umma_smem
from ...layout.atoms.contract import Major
from ...layout.atoms.instructions import Umma
from ...layout.atoms.mma_atom import MmaAtom
from ...layout.atoms.umma import UmmaFacts
from ...layout.atoms.umma_names import make_umma, with_signs
from ..scalars.dtypes import DTYPES, DType, Float32, as_dtype
from ..tracing.state import checked
from .nvgpu import CtaGroup, MatrixOp, ptx_name
from .warpgroup import OperandMajorMode


class OperandSource(Enum):
    """The place of A: tensor memory, or shared memory."""

    TMEM = spaces.TMEM.name
    SMEM = spaces.SMEM.name


class Field(Enum):
    """The fields of `tiled_mma.set`: whether a multiplication adds D, whether A and B change their signs, and where the
    scale factors of A and B are in tensor memory.
    """

    ACCUMULATE = "accumulate"
    NEGATE_A = "negate_a"
    NEGATE_B = "negate_b"
    SFA = "sf_a"
    SFB = "sf_b"


class SmemLayoutAtomKind(Enum):
    """The layouts of shared memory for operands: the contiguous mode, and the bytes within which the hardware swizzles,
    none for INTER. SW128_32B swizzles units of 32 bytes, for TFloat32.
    """

    MN_INTER = "MN_INTER"
    MN_SW32 = "MN_SW32"
    MN_SW64 = "MN_SW64"
    MN_SW128 = "MN_SW128"
    MN_SW128_32B = "MN_SW128_32B"
    K_INTER = "K_INTER"
    K_SW32 = "K_SW32"
    K_SW64 = "K_SW64"
    K_SW128 = "K_SW128"


_K = OperandMajorMode.K


@dataclass(frozen=True, slots=True)
class UmmaOp(MatrixOp):
    """The base of matrix instructions that multiply into tensor memory."""

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """The shape (M,N,K) of one instruction, of a pair of blocks the whole."""
        return self.atom().shape

    def _make(
        self,
        kind: str,
        types: tuple[DType, DType, DType],
        shape: tuple[int, int, int],
        group: CtaGroup,
        source: OperandSource,
        majors: tuple[OperandMajorMode, OperandMajorMode] = (_K, _K),
        scale: tuple[DType, int] | None = None,
        ultra: bool = False,
    ) -> MmaAtom:
        """The record of the instruction of a kind with `types` of A, B and the accumulator, and scale factors of a type
        for a number of values.
        """
        m, n, k = shape
        a, b, d = map(ptx_name, types)
        facts = UmmaFacts(
            kind=kind, blocks=group.value, m=m, n=n, types=(d, a, b),
            majors=(Major(majors[0].value), Major(majors[1].value)),
            a_space=spaces.TMEM if source is OperandSource.TMEM else spaces.SMEM,
            scale="" if scale is None else _scale_name(scale[0]), scale_vector=0 if scale is None else scale[1],
            ultra=ultra,
        )  # fmt: skip
        made = make_umma(facts)
        if k != made.shape[2]:
            text = f"tcgen05.mma of kind {kind} has K = {made.shape[2]}, not {k}"
            raise TilefoldError(Code.ATOM_OPERAND, text, f"write the shape as {made.shape}")
        return made


def _scale_name(dtype: DType) -> str:
    """The name of scale factors of a type: those of e4m3 have no sign."""
    return {"e4m3": "ue4m3"}.get(name := ptx_name(dtype), name)


@dataclass(frozen=True, slots=True)
class MmaF16BF16Op(UmmaOp):
    """Multiplies Float16 or BFloat16 into Float32, or Float16 into Float16:
    `MmaF16BF16Op(Float16, Float32, (128, 256, 16), CtaGroup.ONE, OperandSource.SMEM, K, K)`.
    """

    ab_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = _K
    b_major_mode: OperandMajorMode = _K

    @property
    def a_dtype(self) -> DType:
        """The type of A, which is also that of B."""
        return self.ab_dtype

    b_dtype = a_dtype

    def atom(self) -> MmaAtom:
        types, majors = (self.ab_dtype, self.ab_dtype, self.acc_dtype), (self.a_major_mode, self.b_major_mode)
        return self._make("f16", types, self.instruction_shape, self.cta_group, self.a_src, majors)


@dataclass(frozen=True, slots=True)
class MmaTF32Op(UmmaOp):
    """Multiplies TFloat32 into Float32: `MmaTF32Op((128, 256, 8), CtaGroup.ONE, OperandSource.SMEM, K, K)`."""

    instruction_shape: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = _K
    b_major_mode: OperandMajorMode = _K

    def atom(self) -> MmaAtom:
        tf32, majors = DTYPES["TFloat32"], (self.a_major_mode, self.b_major_mode)
        types = (tf32, tf32, Float32)
        return self._make("tf32", types, self.instruction_shape, self.cta_group, self.a_src, majors)


@dataclass(frozen=True, slots=True)
class MmaI8Op(UmmaOp):
    """Multiplies Int8 or Uint8 into Int32: `MmaI8Op(Int8, (128, 256, 32), CtaGroup.ONE, OperandSource.SMEM, K, K)`.
    `b_dtype` is the type of B, by default that of A. sm_103a lacks it.
    """

    ab_dtype: DType
    instruction_shape: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = _K
    b_major_mode: OperandMajorMode = _K
    b_dtype: DType | None = None

    def atom(self) -> MmaAtom:
        types = (self.ab_dtype, self.b_dtype or self.ab_dtype, DTYPES["Int32"])
        majors = (self.a_major_mode, self.b_major_mode)
        return self._make("i8", types, self.instruction_shape, self.cta_group, self.a_src, majors)


@dataclass(frozen=True, slots=True)
class MmaF8F6F4Op(UmmaOp):
    """Multiplies floats of 8, 6 and 4 bits, which may be mixed, into Float32 or Float16; an element takes a byte.

    `MmaF8F6F4Op(Float8E4M3FN, Float8E5M2, Float32, (128, 256, 32), CtaGroup.ONE, OperandSource.SMEM, K, K)`.
    """

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, int, int]
    cta_group: CtaGroup = CtaGroup.ONE
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = _K
    b_major_mode: OperandMajorMode = _K

    def atom(self) -> MmaAtom:
        types, majors = (self.a_dtype, self.b_dtype, self.acc_dtype), (self.a_major_mode, self.b_major_mode)
        return self._make("f8f6f4", types, self.instruction_shape, self.cta_group, self.a_src, majors)


class MmaFP8Op(MmaF8F6F4Op):
    """`MmaF8F6F4Op` of A and B of one type."""

    __slots__ = ()

    def __init__(
        self,
        ab_dtype: DType,
        acc_dtype: DType,
        instruction_shape: tuple[int, int, int],
        cta_group: CtaGroup = CtaGroup.ONE,
        a_src: OperandSource = OperandSource.SMEM,
        a_major_mode: OperandMajorMode = _K,
        b_major_mode: OperandMajorMode = _K,
    ) -> None:
        given = acc_dtype, instruction_shape, cta_group, a_src, a_major_mode, b_major_mode
        super().__init__(ab_dtype, ab_dtype, *given)


def make_smem_layout_atom(kind: SmemLayoutAtomKind, element_type: object) -> LayoutLike:
    """The smallest layout of a kind, for `tile_to_mma_shape`: (8,K) or (MN,8). Raises `LayoutError` (E0213)."""
    major, _, mode = SmemLayoutAtomKind(kind).value.partition("_")
    made: LayoutLike = umma_smem.umma_smem_atom(major, mode, as_dtype(element_type).bits)
    return made


SIGNS = MappingProxyType({"negate_a": 0, "negate_b": 1})
"""The operands whose signs fields change, by the values of these."""
SCALES = MappingProxyType({"sf_a": "scales_a", "sf_b": "scales_b"})
"""The attributes that have the places of scale factors, by the values of fields."""


def adds_at_first(atom: MmaAtomAttr) -> bool:
    """Whether multiplications add C until a field says otherwise."""
    return not isinstance(atom.atom.instruction, Umma)


def with_sign(type: TiledMmaType, operand: int, negates: bool) -> TiledMmaType:
    """A tiled MMA of tcgen05 that changes the signs of an operand, A 0 or B 1, or does not."""
    atom = type.atom.atom
    assert isinstance(atom.instruction, Umma)
    signs = list(atom.instruction.negates)
    signs[operand] = negates
    with checked():
        return TiledMmaType(MmaAtomAttr(with_signs(atom, (signs[0], signs[1]))), type.atom_layout, type.permutation)
