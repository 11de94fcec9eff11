# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The swizzle function, which permutes indices by exclusive or (CuTe's swizzle.hpp)."""

from dataclasses import dataclass
from typing import Any, final

from ...base.errors import Code, LayoutError


@final
@dataclass(frozen=True, slots=True)
class Swizzle:
    """S<bits,base,shift>: xors the `bits` bits of an index from bit `base + shift` up into those from bit
    `base` up.

    With a negative shift, the bits from `base` up are xored into those from `base - shift` up. The fields Y
    (read) and Z (changed) must not overlap: |shift| >= bits. Raises `LayoutError` (E0210) otherwise.
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if not all(type(number) is int for number in (self.bits, self.base, self.shift)):
            raise LayoutError(Code.SWIZZLE_INVALID, f"the three numbers of {self} must be static integers")
        if self.bits < 0 or self.base < 0 or abs(self.shift) < self.bits:
            raise LayoutError(
                Code.SWIZZLE_INVALID,
                f"{self} is not a swizzle: its bit fields overlap or a count is negative",
                "use bits >= 0, base >= 0 and |shift| >= bits",
            )
        if self.bits + self.base + abs(self.shift) > 63:
            raise LayoutError(Code.SWIZZLE_INVALID, f"{self} reaches beyond the bits of a 64-bit index")

    @property
    def num_bits(self) -> int:
        """CuTe's name of `bits`."""
        return self.bits

    @property
    def num_base(self) -> int:
        """CuTe's name of `base`."""
        return self.base

    @property
    def num_shift(self) -> int:
        """CuTe's name of `shift`."""
        return self.shift

    @property
    def y_mask(self) -> int:
        """The bits that are read."""
        return ((1 << self.bits) - 1) << (self.base + max(self.shift, 0))

    @property
    def z_mask(self) -> int:
        """The bits that are changed."""
        return ((1 << self.bits) - 1) << (self.base + max(-self.shift, 0))

    def __call__(self, index: Any) -> Any:
        """`index` with its Z bits changed; any integer type with &, ^, << and >>."""
        if self.bits == 0:
            return index
        y = index & self.y_mask
        return index ^ (y >> self.shift if self.shift >= 0 else y << -self.shift)

    def reach(self, count: int) -> int:
        """A bound of the indices to which those below `count` are mapped. It is a multiple of the blocks that the
        swizzle permutes: blocks shorter than its period if no index has the upper bits that it reads.
        """
        block = (self.y_mask | self.z_mask).bit_length()
        if self.shift >= 0:
            changed = min(self.base + self.bits, (count - 1).bit_length() - self.shift)
            block = changed if changed > self.base else 0
        return -(-count >> block) << block

    @staticmethod
    def from_name(name: str) -> "Swizzle":
        """The swizzle of byte addresses by which TMA copies write shared memory (CUtensorMapSwizzle): `none`,
        `s32b`, `s64b` or `s128b`. Raises `LayoutError` (E0210) for another name.
        """
        names = ("none", "s32b", "s64b", "s128b")
        if name not in names:
            raise LayoutError(Code.SWIZZLE_INVALID, f"unknown swizzle '{name}'", f"write one of {', '.join(names)}")
        return Swizzle(names.index(name), 4, 3)

    def __str__(self) -> str:
        return f"S<{self.bits},{self.base},{self.shift}>"


def make_swizzle(y_mask: int, z_mask: int) -> Swizzle:
    """The swizzle that reads the bits of `y_mask` and changes those of `z_mask`.

    Raises `LayoutError` (E0210) unless both masks are runs of equally many bits.
    """
    if not y_mask and not z_mask:
        return Swizzle(0, 4, 3)  # CuTe's name for the identity
    bits = y_mask.bit_count()
    y_low, z_low = (y_mask & -y_mask).bit_length() - 1, (z_mask & -z_mask).bit_length() - 1
    run = (1 << bits) - 1
    if y_low < 0 or z_low < 0 or y_mask != run << y_low or z_mask != run << z_low:
        raise LayoutError(
            Code.SWIZZLE_INVALID,
            f"the bits {y_mask:#x} and {z_mask:#x} are not two runs of equal length, as a swizzle needs",
        )
    return Swizzle(bits, min(y_low, z_low), y_low - z_low)
