# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which instructions reach a memory space: computed from the operands of atoms and of the instructions of packages."""

from collections.abc import Iterator

from tilefold.base.spaces import Space
from tilefold.layout.atoms.contract import Contract, Role
from tilefold.layout.atoms.copy_atom import CopyAtom
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.atoms.copy_table import COPY_ATOMS, TMEM_COPIES
from tilefold.layout.atoms.custom import installed_instructions
from tilefold.layout.atoms.instructions import Absent
from tilefold.layout.atoms.mma_atom import MmaAtom
from tilefold.layout.atoms.mma_table import MMA_ATOMS, mma_atom
from tilefold.layout.atoms.ptx_text import copy_mnemonic, mma_mnemonic
from tilefold.layout.atoms.tma import TMA_ATOMS, tma_copy_atom

WARPGROUP_EXAMPLES = (
    "SM90_64x8x16_F32F16F16_SS<Major::K,Major::K>",
    "SM90_64x8x16_F32F16F16_RS<Major::K,Major::K>",
)
"""Atoms of warpgroups with A in each of its places; the others differ in shapes and types."""


def instructions_of(space: Space) -> tuple[str, ...]:
    """The instructions that read or write elements in a space, by the first words of their names, sorted."""
    found: set[str] = set()
    for atom in (*_copies(), *_multiplications()):
        if not isinstance(atom.instruction, Absent) and _reaches(atom.contract, space):
            text = copy_mnemonic(atom) if isinstance(atom, CopyAtom) else mma_mnemonic(atom)
            found |= {part.split(".")[0] for part in text.split(" / ")}
    found |= {record.name for record in installed_instructions().values() if _reaches(record.contract, space)}
    return tuple(sorted(found))


def _reaches(contract: Contract, space: Space) -> bool:
    beside = (Role.COUNT, Role.ACCUMULATE)  # numbers, not elements
    return any(space in operand.spaces for operand in contract.operands if operand.role not in beside)


def _copies() -> Iterator[CopyAtom]:
    yield from (copy_atom(name) for name in (*COPY_ATOMS, *TMEM_COPIES))
    yield from (tma_copy_atom(instruction, 128) for instruction in TMA_ATOMS.values())


def _multiplications() -> Iterator[MmaAtom]:
    yield from (mma_atom(name) for name in (*MMA_ATOMS, *WARPGROUP_EXAMPLES))
