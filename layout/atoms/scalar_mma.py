# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MMA atoms of one thread: UniversalFMA, which is ordinary arithmetic on elements, and the dot product of bytes."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from ...base.errors import Code, LayoutError
from ...base.target import TargetFamily
from ..algebra.core import Layout
from .instructions import Dp4a, Fma
from .mma_atom import BITS, MmaAtom

CXX_TYPES: Mapping[str, str] = MappingProxyType({
    "half_t": "f16", "bfloat16_t": "bf16", "float": "f32", "double": "f64", "float_e4m3_t": "e4m3",
    "float_e5m2_t": "e5m2", "int8_t": "s8", "int16_t": "s16", "int32_t": "s32", "int64_t": "s64", "uint8_t": "u8",
    "uint16_t": "u16", "uint32_t": "u32", "uint64_t": "u64", "int": "s32", "unsigned": "u32",
})  # fmt: skip
"""The PTX names of the element types of CuTe C++ that are computed with."""

MAX_FMA_NAME = 200
"""How many characters of a name count."""
_FMA = re.compile(r"UniversalFMA<([a-z0-9_:,<>]{1,120})>")
_SIGNIFICAND: Mapping[str, tuple[int, int]] = {
    "f64": (11, 52), "f32": (8, 23), "f16": (5, 10), "bf16": (8, 7), "e4m3": (4, 3), "e5m2": (5, 2),
}  # fmt: skip
"""The bits of exponent and fraction of each floating-point type."""
_NEEDS: Mapping[str, tuple[int, int]] = {
    "f16": (53, 42), "bf16": (80, 70), "e4m3": (89, 81), "e5m2": (89, 81),
}  # fmt: skip
"""The oldest target and PTX version with arithmetic of a type, or, of 8-bit floats, with conversions (PTX ISA, cvt)."""
_ONE = Layout((1, 1), (0, 0))


def universal_fma(name: str) -> MmaAtom:
    """One thread multiplies and adds one element each: the atom `UniversalFMA<D,A,B,C>` of CuTe, where A, if it is left
    out, is D, B is A, and C is D.

    A, B and C are converted to D, which holds all their values, and multiplied and added in D: floats with one
    rounding, integers modulo two to the power of their width. Raises `LayoutError` (E0302) for types of which there is
    no such atom.
    """
    name = "".join(name[:MAX_FMA_NAME].split())
    match = _FMA.fullmatch(name)
    given = match[1].split(",") if match else []
    names = _all_four(given) if 1 <= len(given) <= 4 else given
    unknown = next((each for each in names if each not in CXX_TYPES), None)
    if unknown is not None or len(names) != 4:
        wrong = f"there is no type {unknown!r}" if unknown is not None else f"it has {len(names) or 'no'} types"
        raise LayoutError(
            Code.ATOM_UNKNOWN,
            f"{name[:80]!r} names no atom: {wrong}",
            f"UniversalFMA<D,A,B,C> takes one to four of {', '.join(CXX_TYPES)}"
            + ("; multiply views of real and imaginary parts" if "complex" in name else ""),
        )
    d, a, b, c = [CXX_TYPES[each] for each in names]
    if BITS[d] == 8 and d in _SIGNIFICAND:
        raise LayoutError(
            Code.ATOM_UNKNOWN,
            f"{name[:80]!r} names no atom: there is no arithmetic of 8-bit floats",
            f"accumulate in half_t or float: UniversalFMA<float,{given[0]}>",
        )
    for each in (a, b, c):
        if not _holds(d, each):
            raise LayoutError(
                Code.ATOM_UNKNOWN,
                f"{name[:80]!r} names no atom: it computes in the type of D, and {each} does not widen to {d}",
                "give D the widest of the types, all floats or all integers",
            )
    needs = [_NEEDS.get(each, (20, 20)) for each in (d, a, b, c) if each == d or BITS[each] == 8]
    return MmaAtom(
        name=name,
        thr_id=Layout(1, 0),
        instruction=Fma((d, a, b, c)),
        layout_a=_ONE,
        layout_b=_ONE,
        layout_c=_ONE,
        targets=TargetFamily(max(sm for sm, _ in needs), max(version for _, version in needs)),
        source="PTX ISA, Floating Point Instructions: fma; Integer Arithmetic Instructions: mad",
    )


def _all_four(given: list[str]) -> list[str]:
    """The types of D, A, B and C, of which the last ones may be left out."""
    d = given[0]
    a = given[1] if len(given) > 1 else d
    b = given[2] if len(given) > 2 else a
    return [d, a, b, given[3] if len(given) > 3 else d]


def _holds(d: str, name: str) -> bool:
    """Whether each number of type `name` is one of `d`; of integers, as numbers modulo two to the power of a width."""
    if d in _SIGNIFICAND and name in _SIGNIFICAND:
        return all(x <= y for x, y in zip(_SIGNIFICAND[name], _SIGNIFICAND[d], strict=True))
    return d not in _SIGNIFICAND and name not in _SIGNIFICAND and BITS[name] <= BITS[d]


def dp4a() -> MmaAtom:
    """One thread adds the products of four bytes to an integer (CuTe's SM61_DP4A)."""
    return MmaAtom(
        name="SM61_DP4A",
        thr_id=Layout(1, 0),
        instruction=Dp4a(),
        layout_a=Layout((1, 4), (0, 1)),
        layout_b=Layout((1, 4), (0, 1)),
        layout_c=_ONE,
        targets=TargetFamily(61, 50),
        source="PTX ISA, Integer Arithmetic Instructions: dp4a",
    )
