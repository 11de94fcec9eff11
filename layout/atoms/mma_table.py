# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MMA atoms by their CuTe names.

A name tells everything: `SM80_16x8x16_F32F16F16F32_TN` is the architecture, the shape, and the types of D, A,
B and C. Which combinations exist is listed here, after CuTe and the PTX ISA; `mma_names` derives their names, and no
name is taken apart, except that of UniversalFMA, whose types are the user's.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache, lru_cache, partial
from itertools import product
from types import MappingProxyType
from typing import TypeAlias

from ...base.element_types import BY_PTX, ELEMENT_TYPES
from ...base.errors import Code, LayoutError
from ...base.spaces import RMEM, SMEM
from ...base.target import targets
from .contract import Major, Named
from .entry_points import installed_atom
from .instructions import Dp4a, Fma, MmaSync, WgMma
from .mma_atom import MmaAtom
from .mma_names import MmaFacts, mma_name
from .mma_narrow import narrow_atoms
from .mma_sparse import sparse_mma
from .mma_sync import mma_quad_pair, mma_sync
from .numbers import MmaOperation, Shape, Types
from .scalar_mma import MAX_FMA_NAME, dp4a, fma_of, universal_fma
from .umma_names import umma_atom
from .wgmma import INPUTS, sizes_n, wgmma

_Types: TypeAlias = tuple[Types, ...]


def _inputs(d: str, *inputs: str) -> _Types:
    """The types D, A, B and C of sums of type `d`, with each of `inputs` for A and for B."""
    return tuple([(d, a, b, d) for a in inputs for b in inputs])


_F16, _F32, _BF16 = _inputs("f16", "f16"), _inputs("f32", "f16"), _inputs("f32", "bf16")
_S8, _S4, _FP8 = _inputs("s32", "s8", "u8"), _inputs("s32", "s4", "u4"), _inputs("f32", "e4m3", "e5m2")
_FP8_F16 = _inputs("f16", "e4m3", "e5m2")
_TF32, _F64, _B1 = _inputs("f32", "tf32"), _inputs("f64", "f64"), _inputs("s32", "b1")
_PLAIN, _SATURATING = (MmaOperation.MULTIPLY_ADD,), (MmaOperation.MULTIPLY_ADD, MmaOperation.SATURATE)
_XOR, _AND = (MmaOperation.XOR_POPC,), (MmaOperation.AND_POPC,)

_WARP_WIDE: tuple[tuple[int, int, int, tuple[Shape, ...], _Types, tuple[MmaOperation, ...]], ...] = (
    # architecture of the name, oldest architecture that has it, PTX version, shapes, types, operations
    (75, 75, 65, ((16, 8, 8),), _F16 + _F32, _PLAIN),
    (75, 75, 65, ((8, 8, 16),), _S8[:1], _PLAIN),
    (80, 75, 65, ((16, 8, 8),), _F16 + _F32, _PLAIN),
    (80, 80, 70, ((16, 8, 8),), _BF16, _PLAIN),
    (80, 80, 70, ((16, 8, 16),), _F16 + _F32 + _BF16, _PLAIN),
    (80, 80, 70, ((16, 8, 4), (16, 8, 8)), _TF32, _PLAIN),
    (80, 80, 70, ((8, 8, 4),), _F64, _PLAIN),
    (80, 75, 65, ((8, 8, 16),), _S8, _SATURATING),
    (80, 80, 70, ((16, 8, 16), (16, 8, 32)), _S8, _SATURATING),
    (80, 75, 65, ((8, 8, 32),), _S4, _SATURATING),
    (80, 80, 70, ((16, 8, 32), (16, 8, 64)), _S4, _SATURATING),
    (80, 75, 70, ((8, 8, 128),), _B1, _XOR),
    (80, 80, 70, ((16, 8, 128), (16, 8, 256)), _B1, _XOR),
    (80, 80, 71, ((8, 8, 128), (16, 8, 128), (16, 8, 256)), _B1, _AND),
    (89, 89, 84, ((16, 8, 32),), _FP8, _PLAIN),
    (89, 89, 87, ((16, 8, 32),), _FP8_F16, _PLAIN),
    (89, 89, 87, ((16, 8, 16),), _FP8 + _FP8_F16, _PLAIN),
    (90, 90, 78, ((16, 8, 4), (16, 8, 8), (16, 8, 16)), _F64, _PLAIN),
)
_WITH_SPARSE_A: tuple[tuple[int, int, int, tuple[int, ...], _Types, tuple[MmaOperation, ...]], ...] = (
    # architecture of the name, oldest architecture that has it, PTX version, extents K, types, operations
    (80, 80, 71, (16, 32), _F16 + _F32 + _BF16, _PLAIN),
    (80, 80, 71, (8, 16), _TF32, _PLAIN),
    (80, 80, 71, (32, 64), _S8, _SATURATING),
    (80, 80, 71, (64, 128), _S4, _SATURATING),
    (89, 89, 84, (64,), _FP8, _PLAIN),
)
"""The instructions of a warp with a sparse A (PTX ISA, mma.sp)."""
_REFUSED = (
    (
        re.compile(r"(SM70_8x8x4_F32F16F16)F16(_[NT]{2})"),
        r"PTX has the instruction, but its D and C have different layouts in registers, and partition_C serves both; "
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


def _all() -> Iterator[tuple[MmaFacts, Callable[[], MmaAtom]]]:
    k_k, operation, registers = (Major.K, Major.K), MmaOperation.MULTIPLY_ADD, Named.VALUE
    for element in ELEMENT_TYPES:
        if element.has_fma and (element.kind == "int" or element.bits > 8):
            one, name = element, element.ptx
            types, fixed = (name, name, name, name), (Major.FIXED, Major.FIXED)
            facts = MmaFacts(0, Fma(), (1, 1, 1), types, fixed, registers, operation)
            yield facts, partial(fma_of, (one, one, one, one))
    facts = MmaFacts(61, Dp4a(), (1, 1, 4), ("s32", "s8", "s8", "s32"), k_k, registers, operation)
    yield facts, dp4a
    for c in ("f16", "f32"):
        for majors in ((Major.K, Major.K), (Major.MN, Major.MN), (Major.MN, Major.K), (Major.K, Major.MN)):
            facts = MmaFacts(70, MmaSync(), (8, 8, 4), (c, "f16", "f16", c), majors, registers, operation)
            yield facts, partial(mma_quad_pair, c, *majors)
    for sm, min_sm, version, shapes, several, operations in _WARP_WIDE:
        for shape, types, operation in product(shapes, several, operations):
            facts = MmaFacts(sm, MmaSync(), shape, types, k_k, registers, operation)
            yield facts, partial(mma_sync, sm, shape, types, targets(min_sm, version), operation)
    yield from narrow_atoms()


_BY_FACTS: Mapping[MmaFacts, Callable[[], MmaAtom]] = MappingProxyType(dict(_all()))
MMA_ATOMS: Mapping[str, Callable[[], MmaAtom]] = MappingProxyType(
    {mma_name(facts): make for facts, make in _BY_FACTS.items()}
)
"""How to make each MMA atom of a thread or a warp, by its CuTe name; `mma_atom` knows UniversalFMA of several types and
the atoms of warpgroups too.
"""


def _sparse() -> Iterator[tuple[str, Callable[[], MmaAtom]]]:
    k_k, instruction = (Major.K, Major.K), MmaSync(is_sparse=True)
    for sm, min_sm, version, extents, several, operations in _WITH_SPARSE_A:
        for k, types, operation in product(extents, several, operations):
            facts = MmaFacts(sm, instruction, (16, 8, k), types, k_k, Named.VALUE, operation)
            yield mma_name(facts), partial(sparse_mma, sm, (16, 8, k), types, targets(min_sm, version), operation)


SPARSE_ATOMS: Mapping[str, Callable[[], MmaAtom]] = MappingProxyType(dict(_sparse()))
"""How to make each MMA atom of a warp with a sparse A, by its name."""


def mma_atom_of(facts: MmaFacts) -> MmaAtom:
    """The atom of a thread or a warp with these facts, A not sparse. Raises `LayoutError` if there is none (E0302)."""
    name = mma_name(facts)
    if facts not in _BY_FACTS:
        raise _unknown(name)
    return _make_cached(name)


def mma_atom(name: str) -> MmaAtom:
    """The atom of this CuTe name, such as `SM90_64x128x16_F32F16F16_SS<Major::K,Major::K>`, or of an installed package.

    Raises `LayoutError` if there is none (E0302).
    """
    if name in MMA_ATOMS or name in SPARSE_ATOMS:
        return _make_cached(name)
    if name.startswith("UniversalFMA<"):
        return _mixed_fma(name[:MAX_FMA_NAME])
    plain = name.replace(" ", "").removeprefix("SM120::BLOCKSCALED::")
    if plain in MMA_ATOMS:
        return _make_cached(plain)
    if name.startswith(("SM100_MMA_", "SM103")) and (multiplies := umma_atom(name)) is not None:
        return multiplies
    make = _warpgroup_atoms().get(plain.replace("GMMA::", "").replace("SM90::SPARSE::", "SM90_SPARSE_"))
    return _find_installed(name) if make is None else make()


def warp_atoms(types: Types) -> Mapping[Shape, MmaFacts]:
    """The facts of the instructions of a warp that multiply and add K-major operands of these types, by shape; the
    oldest of each.
    """
    found: dict[Shape, MmaFacts] = {}
    for facts in _BY_FACTS:
        plain = facts.operation is MmaOperation.MULTIPLY_ADD and facts.majors == (Major.K, Major.K)
        if isinstance(facts.instruction, MmaSync) and plain and facts.types == types:
            found.setdefault(facts.shape, facts)
    return found


@cache
def _warpgroup_atoms() -> Mapping[str, Callable[[], MmaAtom]]:
    """How to make each atom of a warpgroup, by its CuTe name."""
    atoms: dict[str, Callable[[], MmaAtom]] = {}
    for ((d, a), inputs), sparse in product(INPUTS.items(), (False, True)):
        k, either = 256 // BY_PTX[a].bits * (1 + sparse), (Major.K, Major.MN) if BY_PTX[a].bits == 16 else (Major.K,)
        for n, b, space, operation in product(sizes_n(d), inputs, (SMEM, RMEM), _SATURATING if d == "s32" else _PLAIN):
            a_named = Named.VALUE if space is RMEM else Named.DESCRIPTOR
            for majors in product(either if space is SMEM else (Major.K,), either):
                facts = MmaFacts(90, WgMma(sparse), (64, n, k), (d, a, b, d), majors, a_named, operation)
                atoms[mma_name(facts)] = partial(wgmma, n, (d, a, b), space, majors, operation, sparse)
    return atoms


@cache
def _make_cached(name: str) -> MmaAtom:
    """An atom of a thread or a warp, made once: an atom checks itself, which takes longer than to look it up."""
    return (SPARSE_ATOMS if name in SPARSE_ATOMS else MMA_ATOMS)[name]()


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
        known = (*MMA_ATOMS, *_warpgroup_atoms()) if name.startswith("SM90_") else (*MMA_ATOMS,)
        near = get_close_matches(name[:80], known, n=3, cutoff=0.7)
        hint = f"similar names: {', '.join(near)}" if near else "names are CuTe's, such as SM80_16x8x16_F32F16F16F32_TN"
    return LayoutError(Code.ATOM_UNKNOWN, f"unknown MMA atom {name[:80]!r}", hint)
