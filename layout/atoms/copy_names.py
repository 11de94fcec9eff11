# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copy atoms by name: those of tilefold, and those of installed packages."""

import re
from dataclasses import replace
from difflib import get_close_matches
from functools import cache, lru_cache

from ...base.element_types import BY_CXX
from ...base.errors import Code, LayoutError
from .bulk_copy import bulk_copy_of_size
from .copy_atom import CopyAtom
from .copy_table import COPY_ATOMS, TMEM_COPIES
from .entry_points import installed_atom


def copy_atom(name: str, val_bits: int = 1) -> CopyAtom:
    """The atom of this CuTe name, such as `SM75_U32x4_LDSM_N`, or of an installed package, for values of `val_bits`
    bits.

    An atom of a width can be named by any type of that width, `UniversalCopy<double>`, a bulk copy with the bits that
    it moves, `SM90_BULK_COPY_G2S<4096>`. Raises `LayoutError` if there is none (E0302, E0304), or it cannot move such
    values (E0303).
    """
    make = COPY_ATOMS.get(name) or TMEM_COPIES.get(name)
    if make is None and (known := _by_width(name)) is not None:
        return _rename(known, val_bits, name)
    if make is None and (sized := bulk_copy_of_size(name)) is not None:
        return sized.with_value_bits(val_bits)
    if make is None and (installed := installed_atom(name, CopyAtom)) is not None:
        return installed.with_value_bits(val_bits)
    if make is None:
        near = get_close_matches(name[:80], (*COPY_ATOMS, *TMEM_COPIES), n=3, cutoff=0.4)
        raise LayoutError(
            Code.ATOM_UNKNOWN,
            f"unknown copy atom {name[:80]!r}",
            f"similar names: {', '.join(near)}" if near else "",
        )
    return _make_cached(name, val_bits)


_OF_TYPE = re.compile(r"([A-Za-z0-9_]{1,80})<([a-z0-9_]{1,40})(?:,\2)?>")


def _by_width(name: str) -> str | None:
    """The name in the table of an atom that is named by a type of C++, or by source and destination of one type."""
    match = _OF_TYPE.fullmatch(name)
    if match is None:
        return None
    element = BY_CXX.get(match[2])
    known_name = f"{match[1]}<{match[2] if element is None else f'uint{element.bits}_t'}>"
    return known_name if known_name in COPY_ATOMS else None


@lru_cache(maxsize=256)
def _rename(known: str, val_bits: int, name: str) -> CopyAtom:
    """An atom of tilefold's under the name that it was given, which is one of `_OF_TYPE`."""
    return replace(_make_cached(known, val_bits), name=name)


@cache
def _make_cached(name: str, val_bits: int) -> CopyAtom:
    """An atom of tilefold's, made once: an atom checks itself, which takes longer than to look it up."""
    return (COPY_ATOMS.get(name) or TMEM_COPIES[name])().with_value_bits(val_bits)
