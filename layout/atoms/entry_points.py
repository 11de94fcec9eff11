# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atoms that other packages define: the entry points of the group `tilefold.atoms`.

Each entry point is a function without arguments that returns `MmaAtom` and `CopyAtom` records. They are looked up when
a name is in no table of tilefold, so they neither cost anything nor change the meaning of a known name.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TypeVar, assert_never, cast

from ...base.errors import Code, LayoutError, TilefoldError
from ...base.packages import installed_records
from .copy_atom import CopyAtom
from .copy_table import COPY_ATOMS, TMEM_COPIES
from .custom import custom_instruction
from .instructions import (
    Absent,
    AutoMove,
    BulkCopy,
    CpAsync,
    Custom,
    Dp4a,
    Fma,
    LdMatrix,
    MmaSync,
    Move,
    MovMatrix,
    StMatrix,
    TmaInstruction,
    TmemCp,
    TmemLoad,
    TmemStore,
    Umma,
    WgMma,
    WideMove,
)
from .mma_atom import MmaAtom
from .ptx_text import mma_mnemonic

GROUP = "tilefold.atoms"
"""The group of the entry points (Python Packaging User Guide, Entry points specification)."""

_AtomT = TypeVar("_AtomT", MmaAtom, CopyAtom)


def installed_atom(name: str, kind: type[_AtomT]) -> _AtomT | None:
    """The atom of this name and kind that an installed package defines; None if none does.

    Raises `LayoutError` (E0320) if the atoms of a package cannot be had.
    """
    atom = installed_atoms().get(name)
    return atom if isinstance(atom, kind) else None


@cache
def installed_atoms() -> Mapping[str, MmaAtom | CopyAtom]:
    """All atoms of installed packages by their names. Raises `LayoutError` (E0320), which names the package."""
    atoms: dict[str, MmaAtom | CopyAtom] = {}
    for where, atom in _records():
        _check(atom, where)
        if atoms.setdefault(atom.name, atom) != atom:
            raise LayoutError(Code.ATOM_PACKAGE, f"{where}: another package also has an atom {atom.name}")
    return MappingProxyType(atoms)


def _records() -> Iterator[tuple[str, MmaAtom | CopyAtom]]:
    try:
        yield from installed_records(GROUP, MmaAtom, CopyAtom)
    except LayoutError:
        raise
    except TilefoldError as error:
        raise LayoutError(Code.ATOM_PACKAGE, error.message, error.hint) from error


def _check(atom: MmaAtom | CopyAtom, where: str) -> None:
    """Refuses atoms whose instruction nobody can write: neither tilefold nor a package defines it."""
    match atom.instruction:
        case Custom(name):
            if custom_instruction(name).contract != atom.contract:
                raise LayoutError(
                    Code.ATOM_PACKAGE,
                    f"{where}: the instruction {name} has another contract than its atom {atom.name}",
                    "make both of one contract",
                )
        case MmaSync():
            pass
        case WgMma() | Dp4a() | Fma() | Umma():
            raise LayoutError(
                Code.ATOM_PACKAGE,
                f"{where}: {atom.name} is {mma_mnemonic(cast('MmaAtom', atom))}, whose forms tilefold has",
                "a matrix instruction of a package is an MmaSync, or one that the package defines",
            )
        case (
            Absent()
            | Move()
            | AutoMove()
            | WideMove()
            | CpAsync()
            | LdMatrix()
            | StMatrix()
            | MovMatrix()
            | TmaInstruction()
            | BulkCopy()
            | TmemLoad()
            | TmemStore()
            | TmemCp()
        ):
            if not any(
                atom.instruction == make().instruction for make in (*COPY_ATOMS.values(), *TMEM_COPIES.values())
            ):
                raise LayoutError(
                    Code.ATOM_PACKAGE,
                    f"{where}: {atom.name} has an instruction that no copy atom has, {atom.instruction!r:.80}",
                    "take the instruction of one of tilefold's copy atoms, or define one",
                )
        case _:
            assert_never(atom.instruction)
