# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the numbers that an instruction writes come about from those that it reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias, final

from ...base.errors import Code, LayoutError


def check_members(values: Sequence[object], kinds: Sequence[Any]) -> None:
    """Raises `LayoutError` (E0301) unless each value has its kind: packages make records, and no type checker has
    read them.
    """
    for value, kind in zip(values, kinds, strict=True):
        if not isinstance(value, kind):
            raise LayoutError(Code.ATOM_INVALID, f"a contract cannot have {value!r:.80} there")


Shape: TypeAlias = tuple[int, int, int]
"""M, N and K."""
Types: TypeAlias = tuple[str, str, str, str]
"""The element types of D, A, B and C by their PTX names."""


@final
@dataclass(frozen=True, slots=True)
class Copied:
    """Each bit of the destination is the bit of the source at the same place."""


@final
@dataclass(frozen=True, slots=True)
class Transposed:
    """Source and destination hold a matrix of 8x8 elements of 16 bits, whose rows become columns."""


@final
@dataclass(frozen=True, slots=True)
class Unpacked:
    """Elements of `bits` bits become bytes, whose upper bits are 0."""

    bits: int


@final
@dataclass(frozen=True, slots=True)
class Reduced:
    """Elements of the source are combined with those of the destination by `operation`, one by one and atomically."""

    operation: str


class MmaOperation(Enum):
    """How a matrix instruction combines elements; the value is the modifier of PTX."""

    MULTIPLY_ADD = ""
    SATURATE = ".satfinite"
    """The sum is clamped to 32 bits."""
    XOR_POPC = ".xor.popc"
    """Counts the bits in which A and B differ."""
    AND_POPC = ".and.popc"
    """Counts the bits that A and B share."""


class Summed(Enum):
    """Who sums the products of a matrix instruction, and therefore how (see `summation`)."""

    FUSED = "fused"
    """One rounding, in the type of D; integers modulo two to the power of its width."""
    WARP_UNIT = "warp"
    """The tensor core, for a warp."""
    WARPGROUP_UNIT = "warpgroup"
    """The tensor core, for a warpgroup."""
    TENSOR_MEMORY_UNIT = "tensor memory"
    """The tensor core, for a thread, into tensor memory."""
    QUAD_PAIR = "quad pair"
    """The tensor core of sm_70 and sm_75, for eight threads; other GPUs have a function for it."""
    UNMEASURED = "unmeasured"
    """A unit whose sums of floats nobody has measured."""


@final
@dataclass(frozen=True, slots=True)
class Products:
    """D = A * B + C, of matrices of this shape. Where there are scales, each is a factor of `scaled` neighbouring
    elements of a row of A or a column of B; 0 where there are none.
    """

    shape: Shape
    operation: MmaOperation
    summed: Summed
    scaled: int = 0

    def __post_init__(self) -> None:
        check_members((self.operation, self.summed, self.scaled), (MmaOperation, Summed, int))

    @property
    def factors(self) -> int:
        """The scales of a row of A along K."""
        return self.shape[2] // self.scaled if self.scaled else 0


Numbers: TypeAlias = Copied | Transposed | Unpacked | Reduced | Products
"""How the numbers of an instruction come about."""
