# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix instructions of a warpgroup (wgmma, sm_90a): operations, their order, and layouts of shared memory."""

from dataclasses import dataclass
from enum import Enum

from ...base import spaces
from ...base.errors import Code, TilefoldError
from ...dialects.ptx import WgmmaCommitGroupOp, WgmmaFenceOp, WgmmaWaitGroupOp
from ...layout.algebra.core import LayoutLike
from ...layout.atoms.contract import Major
from ...layout.atoms.mma_atom import MmaAtom
from ...layout.atoms.numbers import MmaOperation
from ...layout.atoms.wgmma import wgmma
from ...layout.atoms.wgmma_smem import wgmma_smem_atom
from ..scalars.dtypes import DTYPES, DType, as_dtype
from ..tracing.cuda_names import NamedEnum
from ..tracing.state import emit
from .nvgpu import MatrixOp, ptx_name


class OperandMajorMode(NamedEnum):
    """The contiguous mode of an operand in shared memory: K, or M of A and N of B."""

    K = "K"
    MN = "MN"


class OperandSource(Enum):
    """The place of A: registers, or shared memory."""

    RMEM = spaces.RMEM.name
    SMEM = spaces.SMEM.name


class Field(Enum):
    """The fields of `tiled_mma.set`: whether a multiplication adds C, or its product replaces C."""

    ACCUMULATE = "accumulate"


class SmemLayoutAtomKind(Enum):
    """The layouts of shared memory for wgmma and TMA copies: the contiguous mode, and the bytes within which the
    hardware swizzles, none for INTER.
    """

    MN_INTER = "MN_INTER"
    MN_SW32 = "MN_SW32"
    MN_SW64 = "MN_SW64"
    MN_SW128 = "MN_SW128"
    K_INTER = "K_INTER"
    K_SW32 = "K_SW32"
    K_SW64 = "K_SW64"
    K_SW128 = "K_SW128"


@dataclass(frozen=True, slots=True)
class WarpgroupOp(MatrixOp):
    """The base of matrix instructions of a warpgroup."""

    def _atom(self, types: tuple[DType, DType, DType], shape: tuple[int, int, int], source: OperandSource,
              majors: tuple[OperandMajorMode, OperandMajorMode]) -> MmaAtom:  # fmt: skip
        """The record of the instruction with `types` of A, B and the accumulator. Registers have no contiguous mode, so
        A in them has that of any fragment (PTX ISA, wgmma.mma_async, has imm-trans-a for A in shared memory only).
        """
        m, n, k = shape
        if source is OperandSource.RMEM:
            majors = (OperandMajorMode.K, majors[1])
        if m != 64:
            hint = "take more of them by the atom layout of the tiled MMA, such as (2, 1, 1)"
            raise TilefoldError(Code.ATOM_OPERAND, f"matrix instructions of a warpgroup have M = 64, not {m}", hint)
        if types[0].bits != 16 and OperandMajorMode.MN in majors:
            raise TilefoldError(
                Code.ATOM_OPERAND,
                f"operands of type {types[0]} must be K-major",
                "only 16-bit operands in shared memory may be MN-major",
            )
        a, b, c = map(ptx_name, types)
        space = spaces.SMEM if source is OperandSource.SMEM else spaces.RMEM
        made = wgmma(n, (c, a, b), space, (Major(majors[0].value), Major(majors[1].value)), MmaOperation.MULTIPLY_ADD)
        if k != made.shape[2]:
            text = f"matrix instructions of a warpgroup have K = {made.shape[2]} for {types[0]}, not {k}"
            raise TilefoldError(Code.ATOM_OPERAND, text, f"write the shape as {made.shape}")
        return made


@dataclass(frozen=True, slots=True)
class MmaF16BF16Op(WarpgroupOp):
    """Multiplies Float16 or BFloat16: `MmaF16BF16Op(Float16, Float32, (64, 128, 16), OperandSource.SMEM, K, K)`.

    The mode of A has a meaning in shared memory only.
    """

    ab_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, int, int]
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K

    @property
    def a_dtype(self) -> DType:
        """The type of A, which is also that of B."""
        return self.ab_dtype

    b_dtype = a_dtype

    def atom(self) -> MmaAtom:
        types = (self.ab_dtype, self.ab_dtype, self.acc_dtype)
        return self._atom(types, self.instruction_shape, self.a_src, (self.a_major_mode, self.b_major_mode))


@dataclass(frozen=True, slots=True)
class MmaTF32Op(WarpgroupOp):
    """Multiplies TFloat32 with K-major operands: `MmaTF32Op(Float32, (64, 128, 8), OperandSource.SMEM)`."""

    acc_dtype: DType
    instruction_shape: tuple[int, int, int]
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K

    def atom(self) -> MmaAtom:
        types = (DTYPES["TFloat32"], DTYPES["TFloat32"], self.acc_dtype)
        return self._atom(types, self.instruction_shape, self.a_src, (self.a_major_mode, self.b_major_mode))


@dataclass(frozen=True, slots=True)
class _BytesOp(WarpgroupOp):
    """Multiplies elements of 8 bits, of K-major operands."""

    a_dtype: DType
    b_dtype: DType
    acc_dtype: DType
    instruction_shape: tuple[int, int, int]
    a_src: OperandSource = OperandSource.SMEM
    a_major_mode: OperandMajorMode = OperandMajorMode.K
    b_major_mode: OperandMajorMode = OperandMajorMode.K

    def atom(self) -> MmaAtom:
        types = (self.a_dtype, self.b_dtype, self.acc_dtype)
        return self._atom(types, self.instruction_shape, self.a_src, (self.a_major_mode, self.b_major_mode))


class MmaF8Op(_BytesOp):
    """Multiplies Float8E4M3FN or Float8E5M2, which may be mixed, into Float32 or Float16."""


class MmaI8Op(_BytesOp):
    """Multiplies Int8 or Uint8, which may be mixed, into Int32."""


def make_smem_layout_atom(kind: SmemLayoutAtomKind, element_type: object) -> LayoutLike:
    """The smallest layout of a kind, for `tile_to_shape`: (8,K) or (MN,8). Raises `LayoutError` (E0213)."""
    major, mode = SmemLayoutAtomKind(kind).value.split("_")
    return wgmma_smem_atom(major, mode, as_dtype(element_type).bits)


def fence() -> None:
    """Orders the threads' accesses to accumulators and registers of A before the following multiplications (PTX ISA,
    wgmma.fence). Call it before the first multiplication, and again after the threads have changed these registers.
    """
    emit(WgmmaFenceOp())


def commit_group() -> None:
    """Commits the warpgroup's multiplications since the last commit to a group (PTX ISA, wgmma.commit_group)."""
    emit(WgmmaCommitGroupOp())


def wait_group(group: int) -> None:
    """Waits until at most the latest `group` of the warpgroup's groups are running (PTX ISA, wgmma.wait_group)."""
    emit(WgmmaWaitGroupOp(group))
