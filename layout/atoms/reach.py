# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which instructions reach a memory space: computed from the operands of atoms and of the instructions of packages."""

from collections.abc import Iterator

from ...base.spaces import RMEM, SMEM, Space
from .contract import Major
from .copy_atom import CopyAtom
from .copy_names import copy_atom
from .copy_table import COPY_ATOMS
from .custom import installed_instructions
from .mma_atom import MmaAtom
from .mma_table import MMA_ATOMS, mma_atom
from .numbers import MmaOperation
from .ptx_text import mma_mnemonic, mnemonic
from .tensor_copy import TENSOR_COPIES, tensor_copy_atom
from .wgmma import wgmma


def instructions_of(space: Space) -> tuple[str, ...]:
    """The instructions that read or write elements in a space, by the first words of their names, sorted."""
    found: set[str] = set()
    for atom in _copies():
        if atom.instruction is not None and space in (*atom.src_spaces, *atom.dst_spaces):
            found |= {part.split(".")[0] for part in mnemonic(atom.instruction).split(" / ")}
    for mma in _multiplications():
        if any(space in operand.spaces for operand in mma.contract.operands):
            found.add(mma_mnemonic(mma).split(".")[0])
    for record in installed_instructions().values():
        if any(space in operand.spaces for operand in record.operands):
            found.add(record.name)
    return tuple(sorted(found))


def _copies() -> Iterator[CopyAtom]:
    yield from (copy_atom(name) for name in COPY_ATOMS)
    yield from (tensor_copy_atom(instruction, 128) for instruction in TENSOR_COPIES.values())


def _multiplications() -> Iterator[MmaAtom]:
    yield from (mma_atom(name) for name in MMA_ATOMS)
    for place in (RMEM, SMEM):
        yield wgmma(8, ("f32", "f16", "f16"), place, (Major.K, Major.K), MmaOperation.MULTIPLY_ADD)
