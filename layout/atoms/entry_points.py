# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atoms that other packages define: the entry points of the group `tilefold.atoms`.

Each entry point is a function without arguments that returns `MmaAtom` and `CopyAtom` records. They are looked up when
a name is in no table of tilefold, so they neither cost anything nor change the meaning of a known name.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar, cast

from ...base.errors import Code, LayoutError
from .copy_atom import CopyAtom
from .copy_table import COPY_ATOMS
from .instructions import MmaSync
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
    from importlib.metadata import entry_points  # it takes longer to import than most commands

    atoms: dict[str, MmaAtom | CopyAtom] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        where = f"the atoms {point.name!r} of {point.dist.name if point.dist else point.value}"
        for atom in _load(point.load, where):
            if not isinstance(atom, MmaAtom | CopyAtom):
                raise LayoutError(Code.ATOM_PACKAGE, f"{where}: {type(atom).__name__} is not an MmaAtom or a CopyAtom")
            _check(atom, where)
            if atoms.setdefault(atom.name, atom) != atom:
                raise LayoutError(Code.ATOM_PACKAGE, f"{where}: another package also has an atom {atom.name}")
    return MappingProxyType(atoms)


def _load(load: Any, where: str) -> Iterable[object]:
    try:
        return list(cast("Iterable[object]", load()()))
    except LayoutError as error:
        raise LayoutError(Code.ATOM_PACKAGE, f"{where}: {error.message}", error.hint) from error
    except Exception as error:  # whatever a package does when it is imported
        text = f"{where} cannot be loaded: {type(error).__name__}: {error}"
        raise LayoutError(Code.ATOM_PACKAGE, text, "update the package or uninstall it") from error


def _check(atom: MmaAtom | CopyAtom, where: str) -> None:
    """Refuses atoms whose instruction tilefold cannot write, since it knows nothing of its operands."""
    if isinstance(atom, MmaAtom):
        if not isinstance(atom.instruction, MmaSync):
            raise LayoutError(
                Code.ATOM_PACKAGE,
                f"{where}: {atom.name} is {mma_mnemonic(atom)}",
                "a matrix instruction of a package is an MmaSync",
            )
        return
    if not any(atom.instruction == make().instruction for make in COPY_ATOMS.values()):
        raise LayoutError(
            Code.ATOM_PACKAGE,
            f"{where}: {atom.name} has an instruction that no copy atom of tilefold has, {atom.instruction!r:.80}",
            "a copy atom of a package must use the instruction of one of tilefold's copy atoms",
        )
