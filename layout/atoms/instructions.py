# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The instructions that atoms execute: one record for each kind, with the modifiers that operands do not tell. Lowering
matches on the kind; `ptx_text` spells it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias, final


@final
@dataclass(frozen=True, slots=True)
class Custom:
    """An instruction that a package defines (see `custom`), by its name."""

    name: str


@final
@dataclass(frozen=True, slots=True)
class Absent:
    """PTX has no such instruction."""


@final
@dataclass(frozen=True, slots=True)
class Move:
    """A load and a store, or a move between registers (PTX ISA, ld, st and mov)."""


@final
@dataclass(frozen=True, slots=True)
class AutoMove:
    """Loads and stores as wide as layouts and alignment allow, up to `max_bits` bits; None moves value by value."""

    max_bits: int | None


@final
@dataclass(frozen=True, slots=True)
class WideMove:
    """A load or a store of 256 bits of global memory (PTX ISA, ld and st with .v8.b32)."""


CP_ASYNC_BYTES: Mapping[str, tuple[int, ...]] = MappingProxyType({"ca": (4, 8, 16), "cg": (16,)})
"""The sizes of cp.async by its cache operator."""


@final
@dataclass(frozen=True, slots=True)
class CpAsync:
    """An asynchronous copy from global to shared memory (PTX ISA, cp.async). `cache` is "ca" or "cg"."""

    cache: str


UNPACKED_BITS = {"b8x16.b6x16_p32": 6, "b8x16.b4x16_p64": 4}
"""The bits of elements in memory that ldmatrix unpacks to bytes: the first ones of a row of 16 bytes."""


@final
@dataclass(frozen=True, slots=True)
class LdMatrix:
    """A warp loads `num` matrices from shared memory, transposed with `trans` (PTX ISA, ldmatrix).

    `shape` and `element` are those of one matrix, "m8n8" and "b16". Bytes that are `exchanged` stand in registers as
    those of an accumulator: the first halves of two registers, then the last ones.
    """

    num: int
    trans: bool = False
    shape: str = "m8n8"
    element: str = "b16"
    exchanged: bool = False

    @property
    def registers(self) -> int:
        """How many 32-bit registers of each lane hold the matrices."""
        return self.num * (2 if self.shape == "m16n16" else 1)

    @property
    def unpacked_bits(self) -> int | None:
        """The bits of an element in memory, where elements are unpacked to bytes."""
        return UNPACKED_BITS.get(self.element)


@final
@dataclass(frozen=True, slots=True)
class StMatrix:
    """A warp stores `num` matrices to shared memory, transposed with `trans` (PTX ISA, stmatrix)."""

    num: int
    trans: bool = False
    shape: str = "m8n8"
    element: str = "b16"


@final
@dataclass(frozen=True, slots=True)
class MovMatrix:
    """A warp transposes a matrix of 8x8 16-bit elements in registers (PTX ISA, movmatrix)."""


@final
@dataclass(frozen=True, slots=True)
class TmaInstruction:
    """A thread has a box of a tensor copied between global and shared memory (PTX ISA, cp.async.bulk.tensor and
    cp.reduce.async.bulk.tensor). An mbarrier of either block of a `pair` may count the bytes of a load. It moves four
    rows of a matrix `by_rows`.
    """

    pair: bool = False
    by_rows: bool = False


ROWS, MATRIX = 4, 2
"""The rows that a TMA copy by rows moves, and the dimensions of its map."""


@final
@dataclass(frozen=True, slots=True)
class BulkCopy:
    """A thread has contiguous bytes copied between global and shared memory (PTX ISA, cp.async.bulk)."""


@final
@dataclass(frozen=True, slots=True)
class TmemLoad:
    """A warp loads cells of tensor memory to registers (PTX ISA, tcgen05.ld): `num` times the shape, "32x32b". With
    `pack` a register has the lower halves of two cells.
    """

    shape: str
    num: int
    pack: bool = False


@final
@dataclass(frozen=True, slots=True)
class TmemStore:
    """A warp stores registers to cells of tensor memory (PTX ISA, tcgen05.st). With `unpack` a register fills the lower
    halves of two cells.
    """

    shape: str
    num: int
    unpack: bool = False


@final
@dataclass(frozen=True, slots=True)
class TmemCp:
    """A thread has a matrix copied from shared to tensor memory, of one block or of a pair (PTX ISA, tcgen05.cp).
    `multicast` is the word for copies to several quarters of the lanes, or empty.
    """

    shape: str
    multicast: str = ""


CopyInstruction: TypeAlias = (
    Custom
    | Absent
    | Move
    | AutoMove
    | WideMove
    | CpAsync
    | LdMatrix
    | StMatrix
    | MovMatrix
    | TmaInstruction
    | BulkCopy
    | TmemLoad
    | TmemStore
    | TmemCp
)
"""The instructions of copy atoms."""


@final
@dataclass(frozen=True, slots=True)
class MmaSync:
    """A matrix multiplication by a warp, or an equal part of one, on registers (PTX ISA, mma).

    `kind` is the word of PTX of instructions on floats of 8, 6 and 4 bits, "f8f6f4"; empty where there is none. Of a
    sparse A, registers have the elements that its metadata name (PTX ISA, mma.sp).
    """

    kind: str = ""
    is_sparse: bool = False

    @property
    def in_bytes(self) -> bool:
        """Whether each element of A and B takes a byte in registers, whatever its bits."""
        return self.kind in ("f8f6f4", "mxf8f6f4")


@final
@dataclass(frozen=True, slots=True)
class WgMma:
    """A matrix multiplication by a warpgroup (PTX ISA, wgmma.mma_async); of a `sparse` A, registers or shared memory
    have the elements that its metadata name.
    """

    is_sparse: bool = False


@final
@dataclass(frozen=True, slots=True)
class Dp4a:
    """A thread adds the products of four bytes to an integer (PTX ISA, dp4a)."""


@final
@dataclass(frozen=True, slots=True)
class Fma:
    """A thread multiplies and adds single elements in the type of D (PTX ISA, fma and mad)."""


@final
@dataclass(frozen=True, slots=True)
class Umma:
    """A thread has matrices multiplied into tensor memory, of one block or of a pair (PTX ISA, tcgen05.mma).

    `kind` is the word of PTX.
    `negates` are the signs that the instruction descriptor changes, of A and of B. `is_stationary` is `.ws`.
    """

    kind: str
    negates: tuple[bool, bool] = (False, False)
    is_sparse: bool = False
    is_stationary: bool = False


MmaInstruction: TypeAlias = Custom | MmaSync | WgMma | Dp4a | Fma | Umma
"""The instructions of MMA atoms."""


Instruction: TypeAlias = CopyInstruction | MmaInstruction
"""The instructions that have contracts."""
