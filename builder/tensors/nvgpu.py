# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The instructions of NVIDIA's GPUs that atoms are made of, as `make_copy_atom` and `make_tiled_mma` take them.

Each stands for atoms by CuTe's names (docs/reference/atoms.md), which can be given directly as well.
"""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Literal

from ...base.element_types import BY_NAME, ElementType
from ...base.errors import Code, TilefoldError
from ...layout.atoms.bulk_copy import bulk_copy, cp_async
from ...layout.atoms.copy_atom import CopyAtom
from ...layout.atoms.ldmatrix import ldmatrix, ldmatrix_columns, ldmatrix_unpacked, movmatrix, stmatrix
from ...layout.atoms.mma_atom import MmaAtom
from ...layout.atoms.mma_table import mma_atom_of, warp_atoms
from ...layout.atoms.scalar_mma import fma_of
from ...layout.atoms.tma import TmaFacts
from ...layout.atoms.universal import WIDE_BITS, auto_vectorizing_copy, universal_copy
from ..scalars.dtypes import DTYPES, DType
from .fragments import ReductionOp


@dataclass(frozen=True, slots=True)
class CopyOp:
    """The base of copy instructions. Those without fields of their own are dataclasses by their base: each decorator
    would take half a millisecond of `import tilefold.cute`.
    """

    def atom(self, bits: int | None) -> CopyAtom:
        """The record of the atom that moves `bits` bits by one execution; None leaves it to the instruction."""
        raise NotImplementedError


class CopyUniversalOp(CopyOp):
    """Loads and stores between any two memory spaces: of the requested width in bits, or by default as wide as layouts
    and alignment allow. 256 bits, which only sm_100 loads at once, are two copies of 128 bits.
    """

    def atom(self, bits: int | None) -> CopyAtom:
        if bits == WIDE_BITS:
            bits //= 2
        return auto_vectorizing_copy() if bits is None else universal_copy(bits)


class CopyG2ROp(CopyUniversalOp):
    """`CopyUniversalOp` from global memory to registers, for which `make_copy_atom` takes attributes of the load."""


class CopyR2GOp(CopyUniversalOp):
    """`CopyUniversalOp` from registers to global memory, for which `make_copy_atom` takes attributes of the store."""


class CopyS2ROp(CopyUniversalOp):
    """`CopyUniversalOp` from shared memory to registers."""


class CopyR2SOp(CopyUniversalOp):
    """`CopyUniversalOp` from registers to shared memory."""


class CopyDsmemStoreOp(CopyUniversalOp):
    """Asynchronous stores from registers to the shared memory of a block of the cluster, where an mbarrier counts their
    bytes (st.async): of 4, 8 or 16 bytes, by default of an element.
    """


class LoadCacheMode(Enum):
    """The caches that keep the data of a load: all, also where `NONE` are named, or only L2. `STREAMING` and `LAST_USE`
    are those of plain loads; cp.async has neither (PTX ISA, cp.async).
    """

    ALWAYS = NONE = "ca"
    GLOBAL = "cg"
    STREAMING = "cs"
    LAST_USE = "lu"


@dataclass(frozen=True, slots=True)
class CopyG2SOp(CopyOp):
    """Asynchronous copies from global to shared memory (cp.async), of 4, 8 or 16 bytes, 16 by default and always with
    `LoadCacheMode.GLOBAL`. If a predicate is false, the copy writes zeros, unless `zfill` is False.
    """

    cache_mode: LoadCacheMode = LoadCacheMode.ALWAYS
    zfill: bool | None = None

    def atom(self, bits: int | None) -> CopyAtom:
        mode = self.cache_mode
        if mode not in (LoadCacheMode.ALWAYS, LoadCacheMode.GLOBAL):
            hint = "write cute.nvgpu.LoadCacheMode.ALWAYS or GLOBAL"
            raise TilefoldError(Code.BUILD_VALUE, f"cp.async has no cache mode {mode!r}", hint)
        size, rest = divmod(bits or 128, 8)
        return cp_async(mode.value, 0 if rest else size, bool(self.zfill))


@dataclass(frozen=True, slots=True)
class _MatricesOp(CopyOp):
    """Matrices of 8 rows of 16 bytes, 1, 2 or 4 at once, perhaps transposed."""

    transpose: bool = False
    num_matrices: Literal[1, 2, 4] = 1


class LdMatrix8x8x16bOp(_MatricesOp):
    """Loads matrices of 8 x 8 elements of 16 bits from shared memory into the registers of a warp (ldmatrix)."""

    def atom(self, bits: int | None) -> CopyAtom:
        return ldmatrix(self.num_matrices, self.transpose)


@dataclass(frozen=True, slots=True)
class LdMatrix8x16x8bOp(_MatricesOp):
    """Loads matrices of 8 x 16 elements of 8 bits from shared memory into the registers of a warp (ldmatrix), without
    transposing. Elements of 4 or 6 bits (`unpack_bits`), 16 of which begin each 16 bytes, become bytes (sm_100).
    """

    unpack_bits: Literal[4, 6] | None = None

    def atom(self, bits: int | None) -> CopyAtom:
        if self.transpose:
            message = "ldmatrix does not transpose matrices of 8 x 16 elements"
            raise TilefoldError(Code.ATOM_OPERAND, message, "leave out transpose, or copy by CopyUniversalOp")
        if self.unpack_bits is None:
            return ldmatrix(self.num_matrices)
        return ldmatrix_unpacked(self.unpack_bits, self.num_matrices)


@dataclass(frozen=True, slots=True)
class LdMatrix16x16x8bOp(_MatricesOp):
    """Loads 1 or 2 matrices of 16 x 16 elements of 8 bits from shared memory into the registers of a warp, transposed
    (ldmatrix, sm_100).
    """

    num_matrices: Literal[1, 2] = 1  # pyright: ignore[reportIncompatibleVariableOverride]
    unpack_bits: Literal[4, 6] | None = None

    def atom(self, bits: int | None) -> CopyAtom:
        if not self.transpose:
            message = "ldmatrix transposes matrices of 16 x 16 elements"
            raise TilefoldError(Code.ATOM_OPERAND, message, "add transpose=True, or copy by LdMatrix8x16x8bOp")
        if self.unpack_bits is not None:
            message = f"no atom transposes matrices of 16 x 16 elements of {self.unpack_bits} bits"
            raise TilefoldError(Code.ATOM_OPERAND, message, "keep elements of 8 bits in shared memory")
        return ldmatrix_columns(self.num_matrices)


class StMatrix8x8x16bOp(_MatricesOp):
    """Stores matrices of 8 x 8 elements of 16 bits from the registers of a warp to shared memory (stmatrix, sm_90)."""

    def atom(self, bits: int | None) -> CopyAtom:
        return stmatrix(self.num_matrices, self.transpose)


class MovMatrixOp(CopyOp):
    """Transposes a matrix of 8 x 8 elements of 16 bits in the registers of a warp (movmatrix)."""

    def atom(self, bits: int | None) -> CopyAtom:
        return movmatrix()


class CtaGroup(Enum):
    """The number of blocks that an instruction works for: one, or the two of a pair."""

    ONE = 1
    TWO = 2


class TmaCopyOp(CopyOp):
    """The base of TMA copies (sm_90): one thread has a tile copied by a tensor map."""

    FACTS: ClassVar[TmaFacts]

    @property
    def facts(self) -> TmaFacts:
        """The action of the copy."""
        return self.FACTS

    def _to_ir(self) -> "TmaCopyOp":
        """The copy itself, as functions of MLIR dialects take it."""
        return self


@dataclass(frozen=True, slots=True)
class CopyBulkTensorTileG2SOp(TmaCopyOp):
    """Loads tiles of global memory to shared memory (cp.async.bulk.tensor); an mbarrier counts the bytes: that of the
    block, or with `CtaGroup.TWO` that of the even block of the pair (sm_100a).
    """

    cta_group: CtaGroup = CtaGroup.ONE
    MULTICAST: ClassVar[bool] = False

    @property
    def facts(self) -> TmaFacts:
        return TmaFacts(True, self.MULTICAST, "", CtaGroup(self.cta_group) is CtaGroup.TWO)


class CopyBulkTensorTileG2SMulticastOp(CopyBulkTensorTileG2SOp):
    """Like `CopyBulkTensorTileG2SOp`, to several blocks of a cluster at once."""

    MULTICAST: ClassVar[bool] = True


class CopyBulkTensorTileS2GOp(TmaCopyOp):
    """Stores tiles of shared memory to global memory (cp.async.bulk.tensor), as part of the thread's bulk group."""

    FACTS: ClassVar[TmaFacts] = TmaFacts(loads=False, multicast=False, reduction="")


class CopyBulkTensorGather4G2SOp(TmaCopyOp):
    """Loads four rows of a matrix by their numbers to shared memory (cp.async.bulk.tensor, tile::gather4, sm_100a), for
    `gather4`.
    """

    FACTS: ClassVar[TmaFacts] = TmaFacts(loads=True, multicast=False, reduction="", by_rows=True)


class CopyBulkTensorScatter4S2GOp(TmaCopyOp):
    """Stores four rows of shared memory as rows of a matrix by their numbers (cp.async.bulk.tensor, tile::scatter4,
    sm_100a), for `scatter4`.
    """

    FACTS: ClassVar[TmaFacts] = TmaFacts(loads=False, multicast=False, reduction="", by_rows=True)


@dataclass(frozen=True, slots=True)
class CopyReduceBulkTensorTileS2GOp(TmaCopyOp):
    """Combines tiles of shared memory with global memory (cp.reduce.async.bulk.tensor): adds by default."""

    reduction_kind: ReductionOp = ReductionOp.ADD

    @property
    def facts(self) -> TmaFacts:
        return TmaFacts(loads=False, multicast=False, reduction=self.reduction_kind.name.lower())


class BulkCopyOp(CopyOp):
    """The base of bulk copies without a tensor map (sm_90): each thread has runs of elements copied."""

    LOADS: ClassVar[bool]

    def atom(self, bits: int | None) -> CopyAtom:
        return bulk_copy(self.LOADS, bits)


class CopyBulkG2SOp(BulkCopyOp):
    """Loads contiguous elements from global to shared memory (cp.async.bulk); an mbarrier counts the bytes."""

    LOADS: ClassVar[bool] = True


class CopyBulkS2GOp(BulkCopyOp):
    """Stores contiguous elements from shared to global memory (cp.async.bulk), as part of the thread's bulk group."""

    LOADS: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class MatrixOp:
    """The base of matrix instructions."""

    def atom(self) -> MmaAtom:
        """The instruction's record. Raises TilefoldError (E0302, E0304) for an unknown instruction."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class MmaOp(MatrixOp):
    """A matrix instruction of a warp (mma.sync) by its types and shape: `MmaOp(Float16, Float32, (16, 8, 16))`.

    `b_dtype` is the type of B, by default A's type; C and D have the accumulator's type.
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
        return mma_atom_of(atoms[shape])


class MmaF16BF16Op(MmaOp):
    """Multiplies Float16 or BFloat16 by a warp: `MmaF16BF16Op(Float16, Float32, (16, 8, 16))`."""

    BITS: ClassVar[int | None] = 16


class MmaFP8Op(MmaOp):
    """Multiplies Float8E4M3FN or Float8E5M2 by a warp (sm_89): `MmaFP8Op(Float8E4M3FN, Float32, (16, 8, 32))`."""

    BITS: ClassVar[int | None] = 8


class MmaTF32Op(MmaOp):
    """Multiplies TFloat32 into Float32 by a warp: (16, 8, 8), or (16, 8, 4)."""

    def __init__(self, shape_mnk: tuple[int, int, int] = (16, 8, 8)) -> None:
        super().__init__(DTYPES["TFloat32"], DTYPES["Float32"], shape_mnk)


class WarpMmaOp(MatrixOp):
    """The base of a program's own matrix instructions of a warp. Its `_make_trait()` returns the `Trait` of an atom
    that `make_atom` has made.
    """

    def _make_trait(self) -> "Trait":
        raise NotImplementedError

    def atom(self) -> MmaAtom:
        return self._make_trait().value.atom()


@dataclass
class Trait:
    """An atom of a program's own instruction: `value` is what `make_atom` has made."""

    value: MatrixOp


def make_atom(ty: MatrixOp) -> MatrixOp:
    """An atom of a type, `MmaAtomSM80Type.get(...)`: the instruction itself."""
    return ty


@dataclass(frozen=True, slots=True)
class MmaUniversalOp(MatrixOp):
    """One multiplication and addition of each thread, A * B + C in the type of D (CuTe's UniversalFMA).

    `abacc_dtype` is the type of D, `a` of A (by default D's), `b` of B (by default A's), and `c` of C (by default D's).
    D must hold all their numbers: all are floats, or all integers.
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
