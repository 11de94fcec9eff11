# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MMA atoms of one thread: UniversalFMA, which is ordinary arithmetic on elements, and the dot product of bytes."""

import re

from ...base.element_types import BY_CXX, ElementType
from ...base.errors import Code, LayoutError
from ...base.spaces import RMEM
from ...base.target import Targets, targets
from ..algebra.core import Layout
from .contract import Act, Agent, AtOnce, Contract, Counted, Major, Named, Operand, Proxy, Role, Whose
from .instructions import Dp4a, Fma
from .mma_atom import MmaAtom
from .mma_names import named
from .numbers import MmaOperation, Products, Summed, Types

MAX_FMA_NAME = 200
"""How many characters of a name count."""
_FMA = re.compile(r"UniversalFMA<([a-z0-9_:,<>]{1,120})>")
_FMA_TYPES = {name: element for name, element in BY_CXX.items() if element.has_fma}
_ONE = Layout((1, 1), (0, 0))


def universal_fma(name: str) -> MmaAtom:
    """One thread multiplies and adds one element each: the atom `UniversalFMA<D,A,B,C>` of CuTe, where A, if it is left
    out, is D, B is A, and C is D.

    A, B and C are converted to D, which holds all their values, and multiplied and added in D: floats with one
    rounding, integers modulo two to the power of their width. Raises `LayoutError` (E0302) for types without
    such an atom.
    """
    name = "".join(name[:MAX_FMA_NAME].split())
    match = _FMA.fullmatch(name)
    given = match[1].split(",") if match else []
    names = _all_four(given) if 1 <= len(given) <= 4 else given
    unknown = next((x for x in names if x not in _FMA_TYPES), None)
    if unknown is not None or len(names) != 4:
        problem = f"there is no type {unknown!r}" if unknown is not None else f"it has {len(names) or 'no'} types"
        raise LayoutError(
            Code.ATOM_UNKNOWN,
            f"there is no atom {name[:80]!r}: {problem}",
            f"UniversalFMA<D,A,B,C> takes one to four of {', '.join(_FMA_TYPES)}"
            + ("; multiply views of real and imaginary parts" if "complex" in name else ""),
        )
    d, a, b, c = [_FMA_TYPES[x] for x in names]
    return fma_of((d, a, b, c))


def fma_of(elements: tuple[ElementType, ElementType, ElementType, ElementType]) -> MmaAtom:
    """The atom UniversalFMA of these types of D, A, B and C. Raises `LayoutError` (E0302) for types without one."""
    d, a, b, c = elements
    written = f"UniversalFMA<{','.join(element.cxx[0] for element in elements)}>"
    if d.kind == "float" and d.bits == 8:
        raise LayoutError(
            Code.ATOM_UNKNOWN,
            f"there is no atom {written!r}: 8-bit floats have no arithmetic",
            f"accumulate in half_t or float: UniversalFMA<float,{d.cxx[0]}>",
        )
    for element in (a, b, c):
        if not _holds(d, element):
            raise LayoutError(
                Code.ATOM_UNKNOWN,
                f"there is no atom {written!r}: {element.ptx} does not widen to {d.ptx}, the type of D",
                "give D the widest of the types, all floats or all integers",
            )
    needs = [element.needs for element in elements if element == d or element.bits == 8]
    return _of_thread(
        Fma(),
        1,
        (d.ptx, a.ptx, b.ptx, c.ptx),
        targets(max(sm for sm, _ in needs), max(version for _, version in needs)),
        "PTX ISA, Floating Point Instructions: fma; Integer Arithmetic Instructions: mad",
    )


def _of_thread(instruction: Fma | Dp4a, k: int, types: Types, having: Targets, section: str) -> MmaAtom:
    """The atom of a thread that multiplies `k` elements of A and B in its registers."""
    several = Layout((1, k), (0, 1)) if k > 1 else _ONE

    def held(role: Role, element: str, act: Act, layout: Layout) -> Operand:
        return Operand(
            role, element, (RMEM,), Named.VALUE, Major.FIXED, act, Whose.OWN, AtOnce(), Proxy.GENERIC, 1, layout
        )

    d, a, b, c = types
    contract = Contract(
        agent=Agent.THREAD,
        counts=Counted.THREADS,
        ids=Layout(1, 0),
        operands=(
            held(Role.D, d, Act.WRITE, _ONE),
            held(Role.A, a, Act.READ, several),
            held(Role.B, b, Act.READ, several),
            held(Role.C, c, Act.READ, _ONE),
        ),
        numbers=Products((1, 1, k), MmaOperation.MULTIPLY_ADD, Summed.FUSED),
        targets=having,
        instruction=instruction,
        section=section,
    )
    return named(having.oldest.min_sm, contract)


def _all_four(given: list[str]) -> list[str]:
    """The types of D, A, B and C; the last ones may be left out."""
    d = given[0]
    a = given[1] if len(given) > 1 else d
    b = given[2] if len(given) > 2 else a
    return [d, a, b, given[3] if len(given) > 3 else d]


def _holds(d: ElementType, other: ElementType) -> bool:
    """Whether each number of a type is one of `d`; of integers, as numbers modulo two to the power of a width."""
    if d.kind != other.kind:
        return False
    if d.kind == "int":
        return other.bits <= d.bits
    return other.exponent <= d.exponent and other.fraction <= d.fraction


def dp4a() -> MmaAtom:
    """One thread adds the products of four bytes to an integer (CuTe's SM61_DP4A)."""
    types, section = ("s32", "s8", "s8", "s32"), "PTX ISA, Integer Arithmetic Instructions: dp4a"
    return _of_thread(Dp4a(), 4, types, targets(61, 50), section)
