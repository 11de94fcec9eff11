# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix instructions of a thread that multiply into tensor memory, for one block or for a pair (PTX ISA, TensorCore
5th Generation Instructions: tcgen05.mma; CuTe's mma_sm100_umma.hpp and mma_traits_sm100.hpp).

D is in tensor memory, B in shared memory, A in either. Each block of a pair has half of the rows of A and D and half of
the columns of B; layouts count the blocks. Shapes are those of CuTe, which has some N fewer than PTX.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import final

from ...base.errors import Code, LayoutError
from ...base.spaces import RMEM, SMEM, TMEM, Space
from ...base.target import Targets, targets
from ..algebra.core import Layout
from .contract import (
    ANY_BITS,
    FLAG,
    Act,
    Agent,
    AtOnce,
    Contract,
    Counted,
    Major,
    Named,
    Operand,
    Proxy,
    Role,
    Whose,
)
from .instructions import Umma
from .mma_atom import MmaAtom
from .numbers import MmaOperation, Products, Summed
from .tmem_copy import TCGEN05_TARGETS, UMMA_COMMIT
from .umma_descriptors import MmaKind
from .wgmma_smem import UNIT

_K_MAJOR = frozenset(("mxf4", "mxf4nvf4"))
"""The kinds whose operands are K-major (PTX ISA, Instruction descriptor: Transpose)."""


@final
@dataclass(frozen=True, slots=True)
class UmmaKind:
    """A kind of tcgen05.mma with CuTe's word for it. Scale factors, if it has them, have the values along K and the
    types of `scales`.
    """

    kind: MmaKind
    family: str
    scales: tuple[tuple[int, str], ...] = ()

    @property
    def name(self) -> str:
        """The word of PTX."""
        return self.kind.value

    @property
    def k(self) -> int:
        """The elements of K of a dense multiplication."""
        return self.kind.k

    @property
    def inputs(self) -> Mapping[str, tuple[str, ...]]:
        """The types of B by those of A."""
        known = tuple(self.kind.inputs.values())
        return {a: (a,) if self.kind is MmaKind.F16 else known for a in known}

    @property
    def results(self) -> tuple[str, ...]:
        """The types of D."""
        return tuple(self.kind.outputs.values())


_ALL = (
    UmmaKind(MmaKind.F16, "F16BF16"),
    UmmaKind(MmaKind.TF32, "TF32"),
    UmmaKind(MmaKind.I8, "S8"),
    UmmaKind(MmaKind.F8F6F4, "F8F6F4"),
    UmmaKind(MmaKind.MXF8F6F4, "MXF8F6F4", ((32, "ue8m0"),)),
    UmmaKind(MmaKind.MXF4, "MXF4", ((32, "ue8m0"),)),
    UmmaKind(MmaKind.MXF4NVF4, "MXF4", ((16, "ue4m3"), (16, "ue8m0"), (32, "ue8m0"))),
)
UMMA_KINDS: Mapping[str, UmmaKind] = MappingProxyType({kind.name: kind for kind in _ALL})
"""The kinds by the words of PTX."""
ULTRA_K = 96
"""The elements of K of the long form of mxf4nvf4 (sm_103a)."""
SCALE_ELEMENTS: Mapping[str, str] = MappingProxyType({"ue8m0": "ue8m0", "ue4m3": "e4m3"})
"""The element types of scale factors: ue4m3 are numbers of e4m3 without a sign."""


@final
@dataclass(frozen=True, slots=True)
class UmmaFacts:
    """The facts of a multiplication into tensor memory: its kind, the blocks that share it, M and N, the types of D, A
    and B, the contiguous modes of A and B, and the memory of A.

    Scale factors are of type `scale`, one for `scale_vector` values along K. `negates` says whether A and B change
    their signs, `saturates` whether integers are clamped. `ultra` has K = 96.
    """

    kind: str
    blocks: int
    m: int
    n: int
    types: tuple[str, str, str]
    majors: tuple[Major, Major] = (Major.K, Major.K)
    a_space: Space = SMEM
    scale: str = ""
    scale_vector: int = 0
    negates: tuple[bool, bool] = (False, False)
    saturates: bool = False
    is_sparse: bool = False
    is_stationary: bool = False
    ultra: bool = False

    @property
    def k(self) -> int:
        """The elements of K; a sparse A stores half of them."""
        return ULTRA_K if self.ultra else UMMA_KINDS[self.kind].k * (2 if self.is_sparse else 1)


@lru_cache(maxsize=256)
def umma(facts: UmmaFacts, name: str) -> MmaAtom:
    """The atom of these facts under a name (see `umma_names`).

    Raises `LayoutError` (E0304) for types, extents or majors that the instruction does not have.
    """
    kind = UMMA_KINDS[facts.kind]
    _check_types(facts, kind)
    _check_majors(facts)
    _check_shape(facts)
    m, n, k, blocks = facts.m, facts.n, facts.k, facts.blocks
    d, _, b = facts.types
    rows, columns = m // blocks, n // blocks
    operands = [
        _cells(Role.D, d, Act.UPDATE, _halves(m, n, blocks)),
        _a_operand(facts, Layout((blocks, (rows, k)), (rows if blocks > 1 else 0, (1, m)))),
        _shared(Role.B, b, facts.majors[1], Layout((blocks, (columns, k)), (columns if blocks > 1 else 0, (1, n)))),
    ]
    if facts.is_sparse:
        operands.append(_cells(Role.METADATA, ANY_BITS, Act.READ, _halves(m, k, blocks)))
    if facts.scale_vector:
        element, factors = SCALE_ELEMENTS[facts.scale], k // facts.scale_vector
        every = Layout((blocks, (n, factors)), (0, (1, n)))  # of a pair, each block has the factors of all of B
        operands.append(_cells(Role.SCALE_A, element, Act.READ, _halves(m, factors, blocks)))
        operands.append(_cells(Role.SCALE_B, element, Act.READ, every))
    operands.append(_flag())
    pair = blocks == 2
    operation = MmaOperation.SATURATE if facts.saturates else MmaOperation.MULTIPLY_ADD
    contract = Contract(
        agent=Agent.BLOCK_PAIR if pair else Agent.ELECTED,
        counts=Counted.BLOCKS if pair else Counted.THREADS,
        ids=Layout(2, 1) if pair else Layout(1, 0),
        operands=tuple(operands),
        numbers=Products((m, n, k), operation, Summed.TENSOR_MEMORY_UNIT, facts.scale_vector),
        targets=_targets(facts),
        instruction=Umma(facts.kind, facts.negates, facts.is_sparse, facts.is_stationary),
        section="PTX ISA, TensorCore 5th Generation Instructions: tcgen05.mma",
    )
    return MmaAtom(name, contract)


def _halves(m: int, other: int, blocks: int) -> Layout:
    """(block, value) to a place in a matrix of which each block of a pair has half of the rows."""
    rows = m // blocks
    return Layout((blocks, (rows, other)), (rows if blocks > 1 else 0, (1, m)))


def _cells(role: Role, element: str, act: Act, layout: Layout) -> Operand:
    return Operand(
        role, element, (TMEM,), Named.CELL, Major.FIXED, act, Whose.OWN, UMMA_COMMIT, Proxy.TENSOR, 4, layout
    )


def _shared(role: Role, element: str, major: Major, layout: Layout) -> Operand:
    return Operand(
        role, element, (SMEM,), Named.DESCRIPTOR, major, Act.READ, Whose.OWN, UMMA_COMMIT, Proxy.ASYNC, UNIT, layout
    )


def _a_operand(facts: UmmaFacts, layout: Layout) -> Operand:
    if facts.a_space is TMEM:
        return _cells(Role.A, facts.types[1], Act.READ, layout)
    return _shared(Role.A, facts.types[1], facts.majors[0], layout)


def _flag() -> Operand:
    return Operand(
        Role.ACCUMULATE, FLAG, (RMEM,), Named.VALUE, Major.FIXED, Act.READ, Whose.OWN, AtOnce(), Proxy.GENERIC, 1,
        Layout(1, 0),
    )  # fmt: skip


def _targets(facts: UmmaFacts) -> Targets:
    if facts.ultra:
        return targets(103, 88, "a")
    if facts.kind == "i8":
        return targets(100, 86, "a")
    return TCGEN05_TARGETS


def _check_types(facts: UmmaFacts, kind: UmmaKind) -> None:
    d, a, b = facts.types
    given = f"tcgen05.mma of kind {kind.name}"
    if b not in kind.inputs.get(a, ()) or d not in kind.results or (kind.name == "f16" and d == "f16" and a != "f16"):
        raise LayoutError(Code.ATOM_OPERAND, f"{given} has no types {d}, {a}, {b}", "see docs/reference/atoms.md")
    vector = facts.scale_vector // (2 if facts.is_sparse and kind.name.startswith("mxf4") else 1)
    scales = (vector, facts.scale)
    if (scales not in kind.scales) if kind.scales else scales != (0, ""):
        raise LayoutError(
            Code.ATOM_OPERAND,
            f"{given} has no scale factors of type {facts.scale or 'none'} for {facts.scale_vector} values",
            f"it has {', '.join(f'{x} for {n}' for n, x in kind.scales) or 'none'}",
        )
    if facts.saturates and kind.name != "i8":
        raise LayoutError(Code.ATOM_OPERAND, f"{given} does not saturate", "only integers are clamped")
    if any(facts.negates) and kind.name == "i8":
        raise LayoutError(Code.ATOM_OPERAND, f"{given} does not negate operands", "only floats change their signs")
    if facts.ultra and kind.name != "mxf4nvf4":
        raise LayoutError(Code.ATOM_OPERAND, f"{given} has no K = {ULTRA_K}")


def _check_majors(facts: UmmaFacts) -> None:
    for operand, element, major in zip("AB", facts.types[1:], facts.majors, strict=True):
        if major is Major.MN and (facts.kind in _K_MAJOR or (operand == "A" and facts.a_space is TMEM)):
            raise LayoutError(
                Code.ATOM_OPERAND,
                f"operand {operand} of {element} of tcgen05.mma must be K-major",
                "operands in shared memory may be MN-major, but for packed elements of 4 bits",
            )


def _check_shape(facts: UmmaFacts) -> None:
    rows, columns = _rows(facts), _columns(facts)
    if facts.blocks not in (1, 2) or facts.m not in rows or facts.n not in columns:
        raise LayoutError(
            Code.ATOM_OPERAND,
            f"tcgen05.mma of kind {facts.kind}, {facts.blocks} block{'s' if facts.blocks > 1 else ''}, has no shape "
            f"{facts.m} x {facts.n}",
            f"M is {' or '.join(map(str, rows))}, N {_words(columns)}",
        )


def _words(extents: Sequence[int]) -> str:
    if isinstance(extents, range):
        return f"a multiple of {extents.step} from {extents.start} to 256"
    return f"one of {', '.join(map(str, extents))}"


def _rows(facts: UmmaFacts) -> Sequence[int]:
    if facts.is_stationary:
        return (32, 64, 128) if facts.blocks == 1 and not facts.scale_vector else ()
    if facts.scale_vector:
        whole = facts.is_sparse and facts.kind == "mxf8f6f4"
        return (128,) if facts.blocks == 1 else (256,) if whole else (128, 256)
    return (64, 128) if facts.blocks == 1 else (128, 256)


def _columns(facts: UmmaFacts) -> Sequence[int]:
    """The extents N (static assertions of mma_sm100_umma.hpp)."""
    if facts.is_stationary:
        return (64, 128) if facts.is_sparse else (64, 128, 256)
    pair = facts.blocks == 2
    transposed = facts.majors[1] is Major.MN
    if facts.kind == "i8":
        return range(32, 257, 32) if pair else (8, *range(16, 257, 16))
    if facts.kind == "f8f6f4" and (transposed or (facts.is_sparse and (pair or facts.m == 128))):
        return range(32, 257, 32) if pair else range(16, 257, 16)
    doubled = (facts.m == 128 and facts.a_space is TMEM) or facts.ultra
    step = (32 if facts.a_space is TMEM else 16) if pair else 16 if doubled else 8
    return range(step, 257, step)
