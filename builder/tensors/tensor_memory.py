# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies between tensor memory and registers, and from shared to tensor memory (tcgen05.ld, st and cp, sm_100a): their
operations, and the tiled copies that they make (CuTe's copy_traits_sm100.hpp).

Four warps execute a load or a store; each of them reaches its quarter of the lanes.
"""

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, ClassVar

from ...base import spaces
from ...base.errors import Code, TilefoldError
from ...dialects.tile import TensorType
from ...layout.algebra.core import LayoutLike
from ...layout.atoms import umma_smem
from ...layout.atoms.copy_atom import CopyAtom as CopyRecord
from ...layout.atoms.instructions import TmemLoad, TmemStore
from ...layout.atoms.tmem_copy import tmem_cp, tmem_load, tmem_store
from ...layout.tiling import tiled_copy as algebra
from ...layout.tiling import tmem_copies
from ...layout.tmem.cells import count_columns
from ..scalars.dtypes import dtype_of
from .coordinates import as_layout, tuples
from .copies import ThrCopy, TiledCopy, as_tiled_copy, wrap_tiled
from .copy_atoms import CopyAtom
from .nvgpu import CopyOp, CtaGroup
from .pointers import recast_tensor
from .tensor_base import tensor_type
from .tensors import Tensor


class Repetition(Enum):
    """How often an instruction repeats its shape along the columns."""

    x1 = 1
    x2 = 2
    x4 = 4
    x8 = 8
    x16 = 16
    x32 = 32
    x64 = 64
    x128 = 128


class Pack(Enum):
    """Whether a register has the lower halves of two cells."""

    NONE = 0
    PACK_16b_IN_32b = 1


class Unpack(Enum):
    """Whether a register fills the lower halves of two cells."""

    NONE = 0
    UNPACK_32b_IN_16b = 1


@dataclass(frozen=True, slots=True)
class _LoadOp(CopyOp):
    """A load of a warp from tensor memory."""

    repeat: Repetition = Repetition.x1
    pack: Pack = Pack.NONE
    SHAPE: ClassVar[str] = ""

    def atom(self, bits: int | None) -> CopyRecord:
        return tmem_load(self.SHAPE, Repetition(self.repeat).value, Pack(self.pack) is not Pack.NONE)


@dataclass(frozen=True, slots=True)
class _StoreOp(CopyOp):
    """A store of a warp to tensor memory."""

    repeat: Repetition = Repetition.x1
    unpack: Unpack = Unpack.NONE
    SHAPE: ClassVar[str] = ""

    def atom(self, bits: int | None) -> CopyRecord:
        return tmem_store(self.SHAPE, Repetition(self.repeat).value, Unpack(self.unpack) is not Unpack.NONE)


class Ld32x32bOp(_LoadOp):
    """Loads columns of 32 lanes, a lane to each thread: `Ld32x32bOp(Repetition.x32, Pack.NONE)`."""

    SHAPE: ClassVar[str] = "32x32b"


class Ld16x64bOp(_LoadOp):
    """Loads 16 lanes with units of 64 bits."""

    SHAPE: ClassVar[str] = "16x64b"


class Ld16x128bOp(_LoadOp):
    """Loads 16 lanes with units of 128 bits."""

    SHAPE: ClassVar[str] = "16x128b"


class Ld16x256bOp(_LoadOp):
    """Loads 16 lanes with units of 256 bits: the registers of an accumulator of mma.m16n8."""

    SHAPE: ClassVar[str] = "16x256b"


class Ld16x32bx2Op(_LoadOp):
    """Loads 16 lanes with two units of 32 bits."""

    SHAPE: ClassVar[str] = "16x32bx2"


LOADS = MappingProxyType(
    {kind.SHAPE: kind for kind in (Ld32x32bOp, Ld16x64bOp, Ld16x128bOp, Ld16x256bOp, Ld16x32bx2Op)}
)
"""The operations of loads by their shapes in PTX."""


class TmemLoadRedOp(Enum):
    """How a load reduces the values of a lane to one."""

    MAX = "max"
    MAXABS = "max.abs"
    MIN = "min"
    MINABS = "min.abs"


@dataclass(frozen=True, slots=True)
class _ReducingLoadOp(_LoadOp):
    """A load of two repetitions or more that also reduces the values of each lane (sm_103a)."""

    redOp: TmemLoadRedOp = TmemLoadRedOp.MAX  # noqa: N815 as programs spell it
    nan: bool = False

    @property
    def reduction(self) -> str:
        """PTX's words for the reduction; with `nan` it is NaN where a value is."""
        return f"{TmemLoadRedOp(self.redOp).value}{'.NaN' if self.nan else ''}"


class LdRed32x32bOp(_ReducingLoadOp):
    """Loads as `Ld32x32bOp`, and reduces a lane's values: `LdRed32x32bOp(Repetition.x32, redOp=TmemLoadRedOp.MAX)`;
    then `cute.copy(tiled, src, (values, reduced))`.
    """

    SHAPE: ClassVar[str] = "32x32b"


class LdRed16x32bx2Op(_ReducingLoadOp):
    """Loads as `Ld16x32bx2Op`, and reduces a lane's values; see `LdRed32x32bOp`."""

    SHAPE: ClassVar[str] = "16x32bx2"


class St32x32bOp(_StoreOp):
    """Stores columns of 32 lanes, a lane from each thread: `St32x32bOp(Repetition.x32, Unpack.NONE)`."""

    SHAPE: ClassVar[str] = "32x32b"


class St16x64bOp(_StoreOp):
    """Stores 16 lanes with units of 64 bits."""

    SHAPE: ClassVar[str] = "16x64b"


class St16x128bOp(_StoreOp):
    """Stores 16 lanes with units of 128 bits."""

    SHAPE: ClassVar[str] = "16x128b"


class St16x256bOp(_StoreOp):
    """Stores 16 lanes with units of 256 bits."""

    SHAPE: ClassVar[str] = "16x256b"


class St16x32bx2Op(_StoreOp):
    """Stores 16 lanes with two units of 32 bits."""

    SHAPE: ClassVar[str] = "16x32bx2"


@dataclass(frozen=True, slots=True)
class _CpOp(CopyOp):
    """A copy by one thread from shared memory to the tensor memory of its block, or of each block of its pair."""

    cta_group: CtaGroup = CtaGroup.ONE
    WORD: ClassVar[str] = ""

    def atom(self, bits: int | None) -> CopyRecord:
        return tmem_cp(self.WORD, CtaGroup(self.cta_group).value)


class Cp128x256bOp(_CpOp):
    """Copies 128 rows of 256 bits, a row to each lane."""

    WORD: ClassVar[str] = "128dp256bit"


class Cp128x128bOp(_CpOp):
    """Copies 128 rows of 128 bits, a row to each lane."""

    WORD: ClassVar[str] = "128dp128bit"


class Cp4x256bOp(_CpOp):
    """Copies 4 rows of 256 bits, one to each quarter of the lanes."""

    WORD: ClassVar[str] = "4dp256bit"


class Cp4x32x128bOp(_CpOp):
    """Copies 32 rows of 128 bits to all four quarters of the lanes, as scale factors need it."""

    WORD: ClassVar[str] = "4x32dp128bit"


class Cp2x64x128b0213Op(_CpOp):
    """Copies 64 rows of 128 bits to lanes 0 to 63 and 64 to 127."""

    WORD: ClassVar[str] = "2x64dp128bitlw0213"


class Cp2x64x128b0123Op(_CpOp):
    """Copies 64 rows of 128 bits, each half of them to two neighbouring quarters of the lanes."""

    WORD: ClassVar[str] = "2x64dp128bitlw0123"


def make_tmem_copy(atom: CopyAtom, tmem_tensor: object) -> TiledCopy:
    """The copy of four warps between registers and a tensor in tensor memory, of one operation's values or of several
    (CuTe's make_tmem_copy).

    Raises `LayoutError` (E0304, E0308) for another atom, or a tensor whose lanes the warps do not share.
    """
    return _tiled(tmem_copies.make_tmem_copy, atom, tmem_tensor)


def make_s2t_copy(atom: CopyAtom, tmem_tensor: object) -> TiledCopy:
    """The copies of a thread from shared memory to a tensor in tensor memory (CuTe's make_utccp_copy). Raises
    `LayoutError` as `make_tmem_copy` does.
    """
    return _tiled(tmem_copies.make_utccp_copy, atom, tmem_tensor)


def _tiled(make: Any, atom: CopyAtom, tensor: object) -> TiledCopy:
    if not isinstance(atom, CopyAtom):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TilefoldError(Code.BUILD_VALUE, f"expected a copy atom, got {atom!r}", "see cute.make_copy_atom")
    layout = _in_tensor_memory(tensor).layout.data if isinstance(tensor, Tensor) else as_layout(tensor)
    made: algebra.TiledCopy = make(atom.attribute.atom, layout)
    return wrap_tiled(made, atom)


def _in_tensor_memory(tensor: Any) -> TensorType:
    """The type of a tensor in tensor memory. Raises TilefoldError (E5002) for another."""
    type = tensor_type(tensor)
    if type.space.data is not spaces.TMEM:
        text = f"expected a tensor in tensor memory, and this one is in {type.space.data}"
        raise TilefoldError(Code.BUILD_VALUE, text, "make it by make_fragment_C of a tiled MMA of tcgen05")
    return type


def get_s2t_smem_desc_tensor(atom: TiledCopy, smem_tensor: Tensor) -> Tensor:
    """The part of a tensor in shared memory that a copy reads: the part itself, since each execution takes its
    descriptor (CuTe's get_utccp_smem_desc_tensor). A descriptor has no element type: other elements of as many bits
    are taken for those of the copy.
    """
    element = dtype_of(as_tiled_copy(atom).atom.attribute.value_type)
    if smem_tensor.element_type != element and smem_tensor.element_type.bits == element.bits:
        return recast_tensor(smem_tensor, element)
    return smem_tensor


def find_tmem_tensor_col_offset(tmem_tensor: Tensor) -> int:
    """The columns that a tensor in tensor memory reaches, from that of its address on."""
    type = _in_tensor_memory(tmem_tensor)
    return count_columns(type.layout.data, type.element_bits)


def is_tmem_load(atom: CopyAtom | TiledCopy) -> bool:
    """Whether a copy loads from tensor memory."""
    return isinstance(_record(atom).instruction, TmemLoad)


def is_tmem_store(atom: CopyAtom | TiledCopy) -> bool:
    """Whether a copy stores to tensor memory."""
    return isinstance(_record(atom).instruction, TmemStore)


def get_tmem_copy_properties(atom: CopyAtom | TiledCopy | ThrCopy) -> tuple[int, int, int, Pack | Unpack]:
    """The lanes, the bits of a lane, the repetitions, and the packing of a load or a store.

    Raises TilefoldError (E5002) for another copy.
    """
    found = _record(atom).instruction
    match found:
        case TmemLoad(shape, num, packs):
            packing: Pack | Unpack = Pack.PACK_16b_IN_32b if packs else Pack.NONE
        case TmemStore(shape, num, packs):
            packing = Unpack.UNPACK_32b_IN_16b if packs else Unpack.NONE
        case _:
            text = f"{_record(atom).name} neither loads from tensor memory nor stores to it"
            raise TilefoldError(Code.BUILD_VALUE, text, "such as Ld32x32bOp and St32x32bOp")
    lanes, _, bits = shape.removesuffix("x2").removesuffix("b").partition("x")
    return int(lanes), int(bits), num, packing


def _record(atom: CopyAtom | TiledCopy | ThrCopy) -> CopyRecord:
    return (atom if isinstance(atom, CopyAtom) else as_tiled_copy(atom).atom).attribute.atom


def tile_to_mma_shape(atom: LayoutLike, mma_tile_shape: object, order: object = None) -> LayoutLike:
    """A layout of shared memory for a part of an operand, ((MMA_MN,MMA_K),RestMN,RestK,...) as `partition_shape_A` has
    it, tiled from the layout of `make_smem_layout_atom` in an order of the modes (MN,K,...).

    Raises `LayoutError` where the atom does not divide the part.
    """
    made: LayoutLike = umma_smem.tile_to_mma_shape(atom, tuples(mma_tile_shape), order and tuples(order))
    return made
