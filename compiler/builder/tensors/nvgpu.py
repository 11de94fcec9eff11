# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The instructions of NVIDIA's GPUs that atoms are made of, as `make_copy_atom` and `make_tiled_mma` take them.

Each stands for atoms by CuTe's names (docs/reference/atoms.md), which can be given directly as well.
"""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Literal

from ....base.element_types import BY_NAME, ElementType
from ....base.errors import Code, TilefoldError
from ....layout.atoms.mma_atom import MmaAtom
from ....layout.atoms.mma_table import mma_atom, warp_atoms
from ....layout.atoms.scalar_mma import fma_of
from ..scalars.dtypes import DTYPES, DType
from .fragments import ReductionOp


@dataclass(frozen=True, slots=True)
class CopyOp:
    """The base of copy instructions. Those without fields of their own are dataclasses by their base: each decorator
    would take half a millisecond of `import tilefold.cute`.
    """

    def atom_name(self, bits: int | None) -> str:
        """CuTe's name of the atom that moves `bits` bits by one execution; None leaves it to the instruction."""
        raise NotImplementedError


class CopyUniversalOp(CopyOp):
    """Loads and stores between any two memory spaces: of the requested width in bits, or by default as wide as layouts
    and alignment allow.
    """

    def atom_name(self, bits: int | None) -> str:
        return "AutoVectorizingCopy" if bits is None else f"UniversalCopy<uint{bits}_t>"


class CopyG2ROp(CopyUniversalOp):
    """`CopyUniversalOp` from global memory to registers, for which `make_copy_atom` takes attributes of the load."""


class CopyR2GOp(CopyUniversalOp):
    """`CopyUniversalOp` from registers to global memory, for which `make_copy_atom` takes attributes of the store."""


class CopyS2ROp(CopyUniversalOp):
    """`CopyUniversalOp` from shared memory to registers."""


class CopyR2SOp(CopyUniversalOp):
    """`CopyUniversalOp` from registers to shared memory."""


class LoadCacheMode(Enum):
    """The caches that keep the data of a load: all, or only L2."""

    ALWAYS = "CACHEALWAYS"
    GLOBAL = "CACHEGLOBAL"


@dataclass(frozen=True, slots=True)
class CopyG2SOp(CopyOp):
    """Asynchronous copies from global to shared memory (cp.async), of 4, 8 or 16 bytes, 16 by default and always with
    `LoadCacheMode.GLOBAL`. If a predicate is false, the copy writes zeros, unless `zfill` is False.
    """

    cache_mode: LoadCacheMode = LoadCacheMode.ALWAYS
    zfill: bool | None = None

    def atom_name(self, bits: int | None) -> str:
        mode = self.cache_mode
        if not isinstance(mode, LoadCacheMode):  # pyright: ignore[reportUnnecessaryIsInstance]
            hint = "write cute.nvgpu.LoadCacheMode.ALWAYS or GLOBAL"
            raise TilefoldError(Code.BUILD_VALUE, f"cp.async has no cache mode {mode!r}", hint)
        return f"SM80_CP_ASYNC_{mode.value}{'_ZFILL' if self.zfill else ''}<uint{bits or 128}_t>"


@dataclass(frozen=True, slots=True)
class _MatricesOp(CopyOp):
    """Matrices of 8 rows of 16 bytes, 1, 2 or 4 at once, perhaps transposed."""

    transpose: bool = False
    num_matrices: Literal[1, 2, 4] = 1

    def _suffix(self) -> str:
        return f"U16x{2 * self.num_matrices}" if self.transpose else f"U32x{self.num_matrices}"


class LdMatrix8x8x16bOp(_MatricesOp):
    """Loads matrices of 8 x 8 elements of 16 bits from shared memory into the registers of a warp (ldmatrix)."""

    def atom_name(self, bits: int | None) -> str:
        return f"SM75_{self._suffix()}_LDSM_{'T' if self.transpose else 'N'}"


class LdMatrix8x16x8bOp(LdMatrix8x8x16bOp):
    """Loads matrices of 8 x 16 elements of 8 bits from shared memory into the registers of a warp (ldmatrix), without
    transposing.
    """

    def atom_name(self, bits: int | None) -> str:
        if self.transpose:
            message = "ldmatrix does not transpose matrices of 8 x 16 elements"
            raise TilefoldError(Code.ATOM_OPERAND, message, "leave out transpose, or copy by CopyUniversalOp")
        return LdMatrix8x8x16bOp.atom_name(self, bits)


class StMatrix8x8x16bOp(_MatricesOp):
    """Stores matrices of 8 x 8 elements of 16 bits from the registers of a warp to shared memory (stmatrix, sm_90)."""

    def atom_name(self, bits: int | None) -> str:
        return f"SM90_{self._suffix()}_STSM_{'T' if self.transpose else 'N'}"


class MovMatrixOp(CopyOp):
    """Transposes a matrix of 8 x 8 elements of 16 bits in the registers of a warp (movmatrix)."""

    def atom_name(self, bits: int | None) -> str:
        return "SM75_U32x1_MOVM_T"


class TensorCopyOp(CopyOp):
    """The base of tensor copies (TMA, sm_90): one thread has a tile copied by a tensor map."""

    KIND: ClassVar[str]

    def atom_name(self, bits: int | None) -> str:
        return f"SM90_TMA_{self.KIND}"


class CopyBulkTensorTileG2SOp(TensorCopyOp):
    """Loads tiles of global memory to shared memory (cp.async.bulk.tensor); an mbarrier counts the bytes."""

    KIND: ClassVar[str] = "LOAD"


class CopyBulkTensorTileG2SMulticastOp(TensorCopyOp):
    """Like `CopyBulkTensorTileG2SOp`, to several blocks of a cluster at once."""

    KIND: ClassVar[str] = "LOAD_MULTICAST"


class CopyBulkTensorTileS2GOp(TensorCopyOp):
    """Stores tiles of shared memory to global memory (cp.async.bulk.tensor), as part of the thread's bulk group."""

    KIND: ClassVar[str] = "STORE"


@dataclass(frozen=True, slots=True)
class CopyReduceBulkTensorTileS2GOp(TensorCopyOp):
    """Combines tiles of shared memory with global memory (cp.reduce.async.bulk.tensor): adds by default."""

    reduction_kind: ReductionOp = ReductionOp.ADD

    def atom_name(self, bits: int | None) -> str:
        return f"SM90_TMA_REDUCE_{self.reduction_kind.name.upper()}"


class BulkCopyOp(CopyOp):
    """The base of bulk copies without a tensor map (sm_90): each thread has runs of elements copied."""

    DIRECTION: ClassVar[str]

    def atom_name(self, bits: int | None) -> str:
        return f"SM90_BULK_COPY_{self.DIRECTION}{'' if bits is None else f'<{bits}>'}"


class CopyBulkG2SOp(BulkCopyOp):
    """Loads contiguous elements from global to shared memory (cp.async.bulk); an mbarrier counts the bytes."""

    DIRECTION: ClassVar[str] = "G2S"


class CopyBulkS2GOp(BulkCopyOp):
    """Stores contiguous elements from shared to global memory (cp.async.bulk), as part of the thread's bulk group."""

    DIRECTION: ClassVar[str] = "S2G"


@dataclass(frozen=True, slots=True)
class MatrixOp:
    """The base of matrix instructions."""

    def atom(self) -> MmaAtom:
        """The instruction's record. Raises TilefoldError (E0302, E0304) for an unknown instruction."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class MmaOp(MatrixOp):
    """A matrix instruction of a warp (mma.sync) by its types and shape: `MmaOp(Float16, Float32, (16, 8, 16))`.

    `b_dtype` is the type of B, by default that of A; the accumulator's is that of C and D.
    """

    ab_dtype: DType
    acc_dtype: DType
    shape_mnk: tuple[int, int, int] = (16, 8, 16)
    b_dtype: DType | None = None
    BITS: ClassVar[int | None] = None

    def atom(self) -> MmaAtom:
        a_type, b_type, shape = self.ab_dtype, self.b_dtype or self.ab_dtype, self.shape_mnk
        if self.BITS is not None and (a_type.kind, a_type.bits) != ("float", self.BITS):
            message = f"{type(self).__name__} multiplies floats of {self.BITS} bits, not {a_type}"
            raise TilefoldError(Code.ATOM_UNKNOWN, message, "cute.nvgpu.MmaOp multiplies elements of every type")
        a, b, c = map(ptx_name, (a_type, b_type, self.acc_dtype))
        atoms = warp_atoms((c, a, b, c))
        if shape not in atoms:
            shapes = ", ".join(map(str, sorted(atoms)))
            raise TilefoldError(
                Code.ATOM_UNKNOWN,
                f"no matrix instruction has shape {shape} for {a_type}, {b_type} and {self.acc_dtype}",
                f"shapes of these types: {shapes}" if shapes else "look it up in the table of atoms, or name an atom",
            )
        return mma_atom(atoms[shape])


class MmaF16BF16Op(MmaOp):
    """Multiplies Float16 or BFloat16 by a warp: `MmaF16BF16Op(Float16, Float32, (16, 8, 16))`."""

    BITS: ClassVar[int | None] = 16


class MmaFP8Op(MmaOp):
    """Multiplies Float8E4M3FN or Float8E5M2 by a warp (sm_89): `MmaFP8Op(Float8E4M3FN, Float32, (16, 8, 32))`."""

    BITS: ClassVar[int | None] = 8


def MmaTF32Op(shape_mnk: tuple[int, int, int] = (16, 8, 8)) -> MmaOp:
    """Multiplies TFloat32 into Float32 by a warp: (16, 8, 8), or (16, 8, 4)."""
    return MmaOp(DTYPES["TFloat32"], DTYPES["Float32"], shape_mnk)


@dataclass(frozen=True, slots=True)
class MmaUniversalOp(MatrixOp):
    """One multiplication and addition of each thread, A * B + C in the type of D (CuTe's UniversalFMA).

    `abacc_dtype` is the type of D; `a`, by default the same, that of A, `b`, by default A's, that of B, and `c`, by
    default D's, that of C. D must hold all their numbers: all are floats, or all integers.
    """

    abacc_dtype: DType
    a: DType | None = None
    b: DType | None = None
    c: DType | None = None

    def atom(self) -> MmaAtom:
        d = self.abacc_dtype
        a = self.a or d
        return fma_of((_fma_type(d), _fma_type(a), _fma_type(self.b or a), _fma_type(self.c or d)))


def _fma_type(dtype: DType) -> ElementType:
    element = BY_NAME.get(dtype.name)
    if element is None or not element.has_fma:
        raise TilefoldError(Code.ATOM_UNKNOWN, f"UniversalFMA does not support {dtype}", "use floats or integers")
    return element


def ptx_name(dtype: DType) -> str:
    """The name of a type in PTX; for one that PTX lacks, its own, which no instruction has."""
    return BY_NAME[dtype.name].ptx if dtype.name in BY_NAME else str(dtype)
