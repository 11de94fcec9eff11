# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the registers of a matrix instruction hold its operands' values (PTX ISA, Matrix Fragments for mma)."""

from dataclasses import dataclass
from typing import final

from .mma_atom import MmaAtom

OPERANDS = ("D", "A", "B", "C")
"""The operands of D = A * B + C in the order of `MmaAtom.types`."""


@final
@dataclass(frozen=True, slots=True)
class Registers:
    """The registers of one operand in each thread: `count` of type `kind`, each with `values` neighbouring values.

    `kind` is "f32", "f64" or "b32"; the first value of a b32 register is in its lowest bits.
    """

    kind: str
    count: int
    values: int

    @property
    def bytes(self) -> int:
        """The width of one register."""
        return 8 if self.kind == "f64" else 4


def registers(atom: MmaAtom, operand: str) -> Registers:
    """The registers of operand "D", "A", "B" or "C" of an instruction.

    f32 and f64 accumulators have registers of their own types; whatever else is packed into b32, tf32 and s32 one in
    each.
    """
    given, values = atom.operand(operand), thread_values(atom, operand)
    if given.element in ("f32", "f64"):
        return Registers(given.element, values, 1)
    packed = max(1, min(32 // atom.held_bits(given), values))  # UniversalFMA has one value
    return Registers("b32", values // packed, packed)


def thread_values(atom: MmaAtom, operand: str) -> int:
    """How many values of an operand each thread has."""
    return atom.operand(operand).layout[1].size
