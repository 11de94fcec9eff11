# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix instructions of one warp on floats of 8, 6 and 4 bits, with and without scales (PTX ISA, mma with .kind;
CuTe's mma_sm120.hpp and mma_traits_sm120.hpp).

Without scales and with one for 32 elements (kinds f8f6f4 and mxf8f6f4) each element takes a byte in registers: one of 6
bits its low bits, one of 4 bits the bits 2 to 5. With scales and only e2m1 (kinds mxf4 and mxf4nvf4) eight elements
share a register. One thread of four has the scales of a row of A in its register: of row r in thread 4 (r mod 8) +
r / 8, and where the instruction selects the second pair, two threads on; of a column of B in thread 4n, or as many
threads on as the instruction selects. A register has up to four scales, from the byte on that it selects.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product

from ...base.spaces import RMEM
from ...base.target import WARP, TargetFamily, Targets
from ..algebra.core import Layout
from .contract import Act, AtOnce, Contract, Major, Named, Operand, Proxy, Role, Whose
from .instructions import MmaSync
from .mma_atom import MmaAtom
from .mma_names import MmaFacts, named
from .mma_sync import contract_of, fragment_layouts
from .numbers import MmaOperation, Products, Shape, Types

NARROW_TARGETS = Targets(frozenset((TargetFamily(120, 87, "f", 12),)))
"""The targets that have these instructions (Target ISA Notes): sm_120a, sm_121a, and their family."""
_LATE_TARGETS = NARROW_TARGETS.since(120, 91)
"""Those of four scales of ue8m0 (PTX ISA 9.1, which LLVM does not write)."""
NARROW = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
"""The types of A and B of kinds f8f6f4 and mxf8f6f4."""
_BYTES, _HALVES = (16, 8, 32), (16, 8, 64)
_MAJORS = (Major.K, Major.K)


def narrow_atoms() -> Iterator[tuple[MmaFacts, Callable[[], MmaAtom]]]:
    """Every atom of these kinds: its facts, and how to make it."""
    for c, (a, b) in product(("f32", "f16"), product(NARROW, NARROW)):
        yield narrow_facts(_BYTES, (c, a, b, c), "f8f6f4", "", 0), partial(narrow_mma, _BYTES, (c, a, b, c), "f8f6f4")
    for a, b in product(NARROW, NARROW):
        types = ("f32", a, b, "f32")
        yield narrow_facts(_BYTES, types, "mxf8f6f4", "ue8m0", 32), partial(scaled_mma, types, "mxf8f6f4", "ue8m0", 32)
    types = ("f32", "e2m1", "e2m1", "f32")
    pairs = (("mxf4", "ue8m0", 32), ("mxf4nvf4", "ue8m0", 32), ("mxf4nvf4", "e4m3", 16), ("mxf4nvf4", "ue8m0", 16))
    for kind, scale, scaled in pairs:
        yield narrow_facts(_HALVES, types, kind, scale, scaled), partial(scaled_mma, types, kind, scale, scaled)


def narrow_facts(shape: Shape, types: Types, kind: str, scale: str, scaled: int) -> MmaFacts:
    """The facts of an instruction of a kind, without scales or with one of type `scale` for `scaled` elements."""
    operation = MmaOperation.MULTIPLY_ADD
    return MmaFacts(120, MmaSync(kind), shape, types, _MAJORS, Named.VALUE, operation, scale, scaled)


def narrow_mma(shape: Shape, types: Types, kind: str) -> MmaAtom:
    """The atom of an instruction without scales; `types` are those of D, A, B and C."""
    return named(120, _contract(shape, types, kind))


def scaled_mma(types: Types, kind: str, scale: str, scaled: int) -> MmaAtom:
    """The atom of an instruction with scales of PTX type `scale`, "ue8m0" or "e4m3", whose sign is ignored; each is a
    factor of `scaled` elements.
    """
    shape = _BYTES if kind == "mxf8f6f4" else _HALVES
    plain = _contract(shape, types, kind)
    assert isinstance(plain.numbers, Products)
    k = shape[2]

    def held(role: Role, layout: Layout) -> Operand:
        return Operand(
            role, scale, (RMEM,), Named.VALUE, Major.FIXED, Act.READ, Whose.OWN, AtOnce(), Proxy.GENERIC, 4, layout
        )

    of_a = held(Role.SCALE_A, Layout(((2, 2, 8), k), ((8, 0, 1), 16)))
    of_b = held(Role.SCALE_B, Layout(((4, 8), k), ((0, 1), 8)))
    operands, numbers = (*plain.operands, of_a, of_b), replace(plain.numbers, scaled=scaled)
    having = _LATE_TARGETS if (scale, scaled) == ("ue8m0", 16) else NARROW_TARGETS
    return named(120, replace(plain, operands=operands, numbers=numbers, targets=having))


def _contract(shape: Shape, types: Types, kind: str) -> Contract:
    instruction = MmaSync(kind)
    bits = 8 if instruction.in_bytes else 4
    layouts = fragment_layouts(shape, (bits, bits))
    made = contract_of(shape, types, _MAJORS, layouts, Layout(WARP, 1), NARROW_TARGETS, MmaOperation.MULTIPLY_ADD)
    return replace(made, instruction=instruction)
