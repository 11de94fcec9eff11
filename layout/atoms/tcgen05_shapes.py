# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which cells of tensor memory the instructions of tcgen05 reach, as lanes and columns relative to an address (PTX ISA,
tcgen05: Load, Store, Copy; Data path layout organization).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import final

from ...base.target import WARP

REGISTER_BITS = 32
"""The bits of a register."""
Cell = tuple[int, int]
"""A lane and a column."""


@final
@dataclass(frozen=True, slots=True)
class AccessShape:
    """A shape of tcgen05.ld and tcgen05.st: the registers of a unit, how many units there can be, the lanes that it
    spans, and the cell of a register j of lane t.
    """

    name: str
    registers: int
    most: int
    lanes: int
    cell: Callable[[int, int], Cell]

    @property
    def width(self) -> int:
        """The bits of a lane in a unit."""
        return self.registers * WARP * REGISTER_BITS // self.lanes

    @property
    def word(self) -> str:
        """CuTe's word."""
        return f"{self.lanes}dp{self.width // 2 if self.has_offset else self.width}b"

    @property
    def has_offset(self) -> bool:
        """Whether the upper 16 lanes of the warp have columns at a distance."""
        return self.name == "16x32bx2"


ACCESS_SHAPES: Mapping[str, AccessShape] = MappingProxyType({
    shape.name: shape
    for shape in (
        AccessShape("32x32b", 1, 128, 32, lambda t, j: (t, j)),
        AccessShape("16x64b", 1, 128, 16, lambda t, j: (8 * (t & 1) + (t >> 2), 2 * j + (t >> 1 & 1))),
        AccessShape("16x128b", 2, 64, 16, lambda t, j: ((t >> 2) + 8 * (j & 1), 4 * (j >> 1) + (t & 3))),
        AccessShape(
            "16x256b", 4, 32, 16,
            lambda t, j: ((t >> 2) + 8 * (j >> 1 & 1), 8 * (j >> 2) + 2 * (t & 3) + (j & 1)),
        ),
        AccessShape("16x32bx2", 1, 128, 16, lambda t, j: (t % 16, j)),
    )
})  # fmt: skip
"""The shapes by name. Columns of 16x32bx2 are those of the lower 16 lanes."""


def shape_named(name: str) -> AccessShape:
    """The shape of a name. KeyError if there is none."""
    return ACCESS_SHAPES[name]


@final
@dataclass(frozen=True, slots=True)
class CopyShape:
    """A shape of tcgen05.cp: the rows of the matrix, the columns that a row takes, and the lanes of a row."""

    name: str
    rows: int
    columns: int
    lanes: Callable[[int], tuple[int, ...]]

    @property
    def bytes(self) -> int:
        """The bytes of the matrix."""
        return self.rows * self.columns * 4

    @property
    def copies(self) -> int:
        """How many lanes get a row."""
        return len(self.lanes(0))


COPY_SHAPES: Mapping[str, CopyShape] = MappingProxyType({
    shape.name: shape
    for shape in (
        CopyShape("128x256b", 128, 8, lambda r: (r,)),
        CopyShape("128x128b", 128, 4, lambda r: (r,)),
        CopyShape("4x256b", 4, 8, lambda r: (32 * r,)),
        CopyShape("64x128b.warpx2::02_13", 64, 4, lambda r: (r, r + 64)),
        CopyShape("64x128b.warpx2::01_23", 64, 4, lambda r: (r, r + 32) if r < 32 else (r + 32, r + 64)),
        CopyShape("32x128b.warpx4", 32, 4, lambda r: (r, r + 32, r + 64, r + 96)),
    )
})  # fmt: skip
"""The shapes of copies from shared memory by name."""

UNPACKED: Mapping[str, int] = MappingProxyType({"b6x16_p32": 6, "b4x16_p64": 4})
"""The bits of elements that tcgen05.cp unpacks to bytes."""


@final
@dataclass(frozen=True, slots=True)
class Quadrants:
    """Where a block's part of D is: its rows from `first` on, `rows` of them; and for each the lane, and the column of
    each n, as the layouts A to G of the PTX ISA have them.
    """

    first: int
    rows: int
    cell: Callable[[int, int], Cell]
    columns: int


@lru_cache(maxsize=256)
def places_of_d(m: int, n: int, blocks: int, *, ws: bool = False, sparse: bool = False) -> tuple[Quadrants, ...]:
    """The places of D (m, n) in the block, or in the two blocks of a pair; those of M are counted from the block's."""
    rows = m // blocks
    folds = 1
    if blocks == 2 and m == 128 and not sparse:
        folds = 2
    elif blocks == 1 and ws:
        folds = 128 // m
    is_spread = not ws and rows == 64 and folds == 1
    width = n // folds

    def cell(i: int, j: int) -> Cell:
        return (32 * (i // 16) + i % 16, j) if is_spread else (i + rows * (j // width), j % width)

    return tuple([Quadrants(rows * number, rows, cell, width) for number in range(blocks)])
