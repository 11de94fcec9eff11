# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The instructions that atoms execute: one record for each kind, with the modifiers that change its effect.

Verifier, lowering and simulator match on the type of a record. Its text is in `ptx_text`.
"""

from dataclasses import dataclass
from typing import TypeAlias, final

from ...base.errors import Code, LayoutError


@final
@dataclass(frozen=True, slots=True)
class Move:
    """A load and a store of `bits` bits, or a move between registers (PTX ISA, ld, st and mov)."""

    bits: int


@final
@dataclass(frozen=True, slots=True)
class AutoMove:
    """Loads and stores as wide as layouts and alignment allow, up to `max_bits` bits; None moves value by value."""

    max_bits: int | None = None


@final
@dataclass(frozen=True, slots=True)
class CpAsync:
    """An asynchronous copy of 4, 8 or 16 bytes from global to shared memory (PTX ISA, cp.async).

    `cache` is "ca" or "cg". With `zfill` a thread may copy only its first bytes and fill the others with zeros.
    """

    cache: str
    bytes: int
    zfill: bool = False

    @property
    def bits(self) -> int:
        """The width of the copy."""
        return 8 * self.bytes


UNPACKED_BITS = {"b8x16.b6x16_p32": 6, "b8x16.b4x16_p64": 4}
"""The bits of elements in memory that ldmatrix unpacks to bytes: the first ones of a row of 16 bytes."""


@final
@dataclass(frozen=True, slots=True)
class LdMatrix:
    """A warp loads `num` matrices from shared memory, transposed with `trans` (PTX ISA, ldmatrix).

    `shape` and `element` are those of one matrix, "m8n8" and "b16".
    """

    num: int
    trans: bool = False
    shape: str = "m8n8"
    element: str = "b16"

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
class TensorCopy:
    """A thread has a box of a tensor copied between global and shared memory (PTX ISA, cp.async.bulk.tensor).

    `to_shared` tells loads from stores. A load may be a `multicast` to the blocks of a cluster, a store may combine
    elements with those in memory by `reduction`: "add", "min", "max", "and", "or" or "xor", of the type that the tensor
    map has (PTX ISA, cp.reduce.async.bulk.tensor). Raises `LayoutError` (E0301) for other combinations.
    """

    to_shared: bool = True
    multicast: bool = False
    reduction: str = ""

    def __post_init__(self) -> None:
        if (
            self.reduction not in ("", *REDUCTIONS)
            or (self.multicast and not self.to_shared)
            or (self.reduction and self.to_shared)
        ):
            raise LayoutError(
                Code.ATOM_INVALID,
                f"PTX has no tensor copy {self}",
                f"loads may multicast, stores may reduce: {', '.join(REDUCTIONS)}",
            )


@final
@dataclass(frozen=True, slots=True)
class BulkCopy:
    """A thread has contiguous bytes copied between global and shared memory (PTX ISA, cp.async.bulk).

    `to_shared` tells loads from stores; None leaves it to the operands. `bits` is the size of a copy; None copies all
    bits that are contiguous on both sides.
    """

    to_shared: bool | None = None
    bits: int | None = None


REDUCTIONS = ("add", "min", "max", "and", "or", "xor")
"""How a tensor copy to global memory may combine elements."""

CopyInstruction: TypeAlias = Move | AutoMove | CpAsync | LdMatrix | StMatrix | MovMatrix | TensorCopy | BulkCopy
"""The instructions of copy atoms."""


@final
@dataclass(frozen=True, slots=True)
class MmaSync:
    """A matrix multiplication by a warp, or an equal part of one, on registers (PTX ISA, mma)."""


@final
@dataclass(frozen=True, slots=True)
class WgMma:
    """A matrix multiplication by a warpgroup (PTX ISA, wgmma.mma_async)."""


@final
@dataclass(frozen=True, slots=True)
class Dp4a:
    """A thread adds the products of four bytes to an integer (PTX ISA, dp4a)."""


@final
@dataclass(frozen=True, slots=True)
class Fma:
    """A thread multiplies and adds single elements in the type of D (PTX ISA, fma and mad)."""


MmaInstruction: TypeAlias = MmaSync | WgMma | Dp4a | Fma
"""The instructions of MMA atoms."""


@final
@dataclass(frozen=True, slots=True)
class Custom:
    """An instruction that a package defines (see `custom`), by its name."""

    name: str


Instruction: TypeAlias = CopyInstruction | MmaInstruction | Custom
"""The instructions that have contracts."""
