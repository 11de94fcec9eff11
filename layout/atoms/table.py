# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All copy atoms by their CuTe names."""

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType

from ..errors import Code, LayoutError
from .copy_atom import CopyAtom
from .cp_async import cp_async_layouts
from .ldmatrix import ldmatrix, movmatrix, stmatrix
from .universal import auto_vectorizing_copy, universal_copy


def _all() -> list[CopyAtom]:
    atoms = [universal_copy(bits) for bits in (8, 16, 32, 64, 128)]
    atoms += [auto_vectorizing_copy(bits) for bits in (None, 8, 16, 32, 64, 128)]
    atoms += [cp_async_layouts(c, n, z) for c in ("ca", "cg") for n in (4, 8, 16) for z in (False, True)]
    atoms += [ldmatrix(n, t) for t in (False, True) for n in (1, 2, 4)]
    atoms += [stmatrix(n, t) for t in (False, True) for n in (1, 2, 4)]
    return [*atoms, movmatrix()]


COPY_ATOMS: Mapping[str, CopyAtom] = MappingProxyType({atom.name: atom for atom in _all()})
"""Every copy atom, for values of one bit, by its CuTe name."""


def copy_atom(name: str, val_bits: int = 1) -> CopyAtom:
    """The atom of this CuTe name, such as `SM75_U32x4_LDSM_N`, for values of `val_bits` bits.

    Raises `LayoutError` if there is none (E0302), or it cannot move such values (E0303).
    """
    atom = COPY_ATOMS.get(name)
    if atom is None:
        near = get_close_matches(name[:80], COPY_ATOMS, n=3, cutoff=0.4)
        raise LayoutError(
            Code.ATOM_UNKNOWN,
            f"there is no copy atom {name[:80]!r}",
            f"similar names: {', '.join(near)}" if near else "",
        )
    return atom if atom.val_bits == val_bits else atom.with_value_bits(val_bits)
