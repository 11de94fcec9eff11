# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MMA atoms by their CuTe names.

A name tells everything: `SM80_16x8x16_F32F16F16F32_TN` is the architecture, the shape, and the types of D, A,
B and C. Which combinations exist is listed here, after CuTe and the PTX ISA.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache, lru_cache, partial
from types import MappingProxyType

from ...base.element_types import BY_PTX, ELEMENT_TYPES
from ...base.errors import Code, LayoutError
from ...base.spaces import RMEM, SMEM
from ...base.target import TargetFamily
from .entry_points import installed_atom
from .instructions import MmaOperation
from .mma_atom import MmaAtom
from .mma_sync import mma_quad_pair, mma_sync
from .scalar_mma import MAX_FMA_NAME, dp4a, universal_fma
from .wgmma import wgmma

_F16, _F32 = ("F16F16F16F16",), ("F32F16F16F32",)
_S8 = tuple([f"S32{a}{b}S32" for a in ("S8", "U8") for b in ("S8", "U8")])
_S4 = tuple([f"S32{a}{b}S32" for a in ("S4", "U4") for b in ("S4", "U4")])
_FP8 = tuple([f"F32{a}{b}F32" for a in ("E4M3", "E5M2") for b in ("E4M3", "E5M2")])
_FP8_F16 = tuple([types.replace("F32", "F16") for types in _FP8])
_TF32, _F64, _B1 = ("F32TF32TF32F32",), ("F64F64F64F64",), ("S32U1U1S32",)

_WARP_WIDE: tuple[tuple[int, int, int, tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    # architecture of the name, oldest architecture that has it, PTX version, shapes, types, endings
    (75, 75, 65, ("16x8x8",), _F16 + _F32, ("",)),
    (75, 75, 65, ("8x8x16",), _S8[:1], ("",)),
    (80, 75, 65, ("16x8x8",), _F16 + _F32, ("",)),
    (80, 80, 70, ("16x8x8",), ("F32BF16BF16F32",), ("",)),
    (80, 80, 70, ("16x8x16",), (*_F16, *_F32, "F32BF16BF16F32"), ("",)),
    (80, 80, 70, ("16x8x4", "16x8x8"), _TF32, ("",)),
    (80, 80, 70, ("8x8x4",), _F64, ("",)),
    (80, 75, 65, ("8x8x16",), _S8, ("", "_SATURATE")),
    (80, 80, 70, ("16x8x16", "16x8x32"), _S8, ("", "_SATURATE")),
    (80, 75, 65, ("8x8x32",), _S4, ("", "_SATURATE")),
    (80, 80, 70, ("16x8x32", "16x8x64"), _S4, ("", "_SATURATE")),
    (80, 75, 70, ("8x8x128",), _B1, ("_XORPOPC",)),
    (80, 80, 70, ("16x8x128", "16x8x256"), _B1, ("_XORPOPC",)),
    (80, 80, 71, ("8x8x128", "16x8x128", "16x8x256"), _B1, ("_ANDPOPC",)),
    (89, 89, 84, ("16x8x32",), _FP8, ("",)),
    (89, 89, 87, ("16x8x32",), _FP8_F16, ("",)),
    (90, 90, 78, ("16x8x4", "16x8x8", "16x8x16"), _F64, ("",)),
)
_OPERATIONS = {
    "": MmaOperation.MULTIPLY_ADD,
    "_SATURATE": MmaOperation.SATURATE,
    "_XORPOPC": MmaOperation.XOR_POPC,
    "_ANDPOPC": MmaOperation.AND_POPC,
}
_ATOM_TYPES = {element.atom_name: element for element in BY_PTX.values()}
_TYPE = re.compile("|".join(sorted(_ATOM_TYPES, key=len, reverse=True)))
_WGMMA = re.compile(r"SM90_64x(\d{1,3})x(\d{1,2})_([A-Z0-9]+)_(SS|RS)(?:<Major::(K|MN),Major::(K|MN)>|_TN(_SATURATE)?)")
_REFUSED = (
    (
        re.compile(r"(SM70_8x8x4_F32F16F16)F16(_[NT]{2})"),
        r"PTX has the instruction, but its D and C lie differently in registers, and partition_C serves both; "
        r"use \1F32\2",
    ),
    (
        re.compile(r"(?:SM80_8x8x4_G?|(?:SM90|MMA)_16x8x(?:4|8|16)_)C64C64C64G?C64_TN"),
        "there are no complex elements; multiply views of their real and imaginary parts by an F64F64F64F64 atom, "
        "four times (docs/language.md, Multiplications)",
    ),
    (
        re.compile("SM61_DP2A"),
        "PTX multiplies two of the bytes of B with 16 bits of A (dp2a.lo, dp2a.hi), not 16 bits with 16 bits; "
        "use SM61_DP4A or UniversalFMA<int32_t,int16_t>",
    ),
)
"""Names that users may expect, and their substitutes."""


def _types(text: str) -> tuple[str, ...]:
    """The PTX names of concatenated CuTe types; empty if `text` holds anything else."""
    names = _TYPE.findall(text)
    return tuple([_ATOM_TYPES[name].ptx for name in names]) if "".join(names) == text else ()


def _all() -> Iterator[tuple[str, Callable[[], MmaAtom]]]:
    for element in ELEMENT_TYPES:
        if element.has_fma and (element.kind == "int" or element.bits > 8):
            name = f"UniversalFMA<{element.cxx[0]}>"
            yield name, partial(universal_fma, name)
    yield "SM61_DP4A", dp4a
    for c in ("F16", "F32"):
        for a, b in ("TN", "NT", "NN", "TT"):
            majors = ("row" if a == "T" else "col", "col" if b == "N" else "row")
            name = f"SM70_8x8x4_{c}F16F16{c}_{a}{b}"
            yield name, partial(mma_quad_pair, name, c.lower(), *majors)
    for sm, min_sm, version, shapes, types, endings in _WARP_WIDE:
        for shape in shapes:
            m, n, k = map(int, shape.split("x"))
            for text in types:
                d, a, b, c = _types(text)
                for ending in endings:
                    name = f"SM{sm}_{shape}_{text}_TN{ending}"
                    targets, operation = TargetFamily(min_sm, version), _OPERATIONS[ending]
                    yield name, partial(mma_sync, name, (m, n, k), (d, a, b, c), targets, operation)


MMA_ATOMS: Mapping[str, Callable[[], MmaAtom]] = MappingProxyType(dict(_all()))
"""How to make each MMA atom of a thread or a warp, by its CuTe name; `mma_atom` knows UniversalFMA of several types and
the atoms of warpgroups too.
"""


def mma_atom(name: str) -> MmaAtom:
    """The atom of this CuTe name, such as `SM90_64x128x16_F32F16F16_SS<Major::K,Major::K>`, or of an installed package.

    Raises `LayoutError` if there is none (E0302).
    """
    if name in MMA_ATOMS:
        return _make_cached(name)
    return _mixed_fma(name[:MAX_FMA_NAME]) if name.startswith("UniversalFMA<") else _warpgroup_atom(name)


@cache
def _make_cached(name: str) -> MmaAtom:
    """An atom of a thread or a warp, made once: an atom checks itself, which takes longer than to look it up."""
    return MMA_ATOMS[name]()


@lru_cache(maxsize=256)
def _mixed_fma(name: str) -> MmaAtom:
    """UniversalFMA of several types, or with spaces in its name."""
    return universal_fma(name)


def _find_installed(name: str) -> MmaAtom:
    """The atom of an installed package."""
    atom = installed_atom(name, MmaAtom)
    if atom is None:
        raise _unknown(name)
    return atom


def _unknown(name: str) -> LayoutError:
    hint = next((match.expand(text) for pattern, text in _REFUSED if (match := pattern.fullmatch(name))), "")
    if not hint:
        near = get_close_matches(name[:80], MMA_ATOMS, n=3, cutoff=0.7)
        hint = f"similar names: {', '.join(near)}" if near else "names are CuTe's, such as SM80_16x8x16_F32F16F16F32_TN"
    return LayoutError(Code.ATOM_UNKNOWN, f"there is no MMA atom {name[:80]!r}", hint)


def _warpgroup_atom(name: str) -> MmaAtom:
    match = _WGMMA.fullmatch(name.replace("GMMA::", "").replace(" ", ""))
    types = _types(match[3]) if match else ()
    if match is None or len(types) != 3 or not _warpgroup_has(types, match):
        return _find_installed(name)
    d, a, b = types
    space = SMEM if match[4] == "SS" else RMEM
    majors = match[5] or "K", match[6] or "K"
    return wgmma(name, int(match[1]), (d, a, b, d), space, majors, match[7] is not None)


def _warpgroup_has(types: tuple[str, ...], match: re.Match[str]) -> bool:
    """Whether wgmma multiplies these types with the K, majors and saturation of the name."""
    d, a, b = types
    k, with_majors, saturates = int(match[2]), match[5] is not None, match[7] is not None
    if a in ("f16", "bf16"):
        return b == a and k == 16 and with_majors and (d == "f32" or (d == "f16" and a == "f16"))
    if a == "tf32":
        return b == a and k == 8 and not with_majors and not saturates and d == "f32"
    if a in ("e4m3", "e5m2"):
        return b in ("e4m3", "e5m2") and k == 32 and not with_majors and not saturates and d in ("f16", "f32")
    return a in ("s8", "u8") and b in ("s8", "u8") and k == 32 and not with_majors and d == "s32"
