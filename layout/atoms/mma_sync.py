# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix instructions of one warp: mma.sync, and of a quarter of it (PTX ISA, Matrix multiply-accumulate with
mma).

In the warp-wide shapes thread 4r + c holds, of A, the 32-bit registers of row r (and r + 8) that begin at
column c * v, v being the elements in a register, and again 4v columns on; B likewise, and of C elements 2c
and 2c + 1 of row r (and r + 8).
"""

from dataclasses import dataclass
from typing import final

from ...base.element_types import BY_PTX
from ...base.spaces import RMEM
from ...base.target import WARP, Targets, targets
from ..algebra.core import Layout
from .contract import Act, Agent, AtOnce, Contract, Counted, Major, Named, Operand, Proxy, Role, Whose
from .instructions import MmaSync
from .mma_atom import MmaAtom
from .mma_names import named
from .numbers import MmaOperation, Products, Shape, Summed, Types


def _operand(rows: int, k: int, bits: int) -> Layout:
    """(thread, value) to a place in a `rows` by `k` operand: A if it has 16 rows, A or B if it has 8."""
    width = max(32 // bits, 1)
    modes = [(width, rows), (rows // 8, 8), (k // (4 * width), 4 * width * rows)]
    return _with_values((4, 8), (width * rows, 1), modes, flat=bits != 4)  # as CuTe has these profiles


def _with_values(threads: tuple[int, ...], steps: tuple[int, ...], modes: list[tuple[int, int]], flat: bool) -> Layout:
    """The layout of threads and of the value modes larger than 1; a single value mode is a leaf if `flat`."""
    nontrivial = [m for m in modes if m[0] > 1] or [(1, 0)]
    shape, stride = tuple([m[0] for m in nontrivial]), tuple([m[1] for m in nontrivial])
    if flat and len(nontrivial) == 1:
        return Layout((threads, shape[0]), (steps, stride[0]))
    return Layout((threads, shape), (steps, stride))


def _accumulator(m: int) -> Layout:
    """(thread, value) to a place in the accumulator of M = 8 or 16 and N = 8."""
    return _with_values((4, 8), (2 * m, 1), [(2, m), (m // 8, 8)], flat=True)


def contract_of(shape: Shape, types: Types, majors: tuple[Major, Major], layouts: tuple[Layout, Layout, Layout],
                ids: Layout, targets: Targets, operation: MmaOperation) -> Contract:  # fmt: skip
    """All lanes execute it; operands are registers, and the result is there at once."""
    _, n, k = shape
    of_a, of_b, of_c = layouts

    def held(role: Role, element: str, act: Act, major: Major, layout: Layout) -> Operand:
        return Operand(role, element, (RMEM,), Named.VALUE, major, act, Whose.OWN, AtOnce(), Proxy.GENERIC, 4, layout)

    d, a, b, c = types
    quarter = (n, k) == (8, 4) and a == "f16"  # GPUs after sm_70 emulate it
    return Contract(
        agent=Agent.WARP,
        counts=Counted.THREADS,
        ids=ids,
        operands=(
            held(Role.D, d, Act.WRITE, Major.FIXED, of_c),
            held(Role.A, a, Act.READ, majors[0], of_a),
            held(Role.B, b, Act.READ, majors[1], of_b),
            held(Role.C, c, Act.READ, Major.FIXED, of_c),
        ),
        numbers=Products(shape, operation, Summed.QUAD_PAIR if quarter else Summed.WARP_UNIT),
        targets=targets,
        instruction=MmaSync(),
        section="PTX ISA, Warp-level matrix instructions: mma",
    )


def fragment_layouts(shape: Shape, bits: tuple[int, int]) -> tuple[Layout, Layout, Layout]:
    """(thread, value) to a place in A, B and C, where elements of A and B take `bits` in registers."""
    m, n, k = shape
    return _operand(m, k, bits[0]), _operand(n, k, bits[1]), _accumulator(m)


def mma_sync(
    generation: int, shape: Shape, types: Types, targets: Targets, operation: MmaOperation = MmaOperation.MULTIPLY_ADD
) -> MmaAtom:
    """The atom of a warp-wide mma.sync: `types` are those of D, A, B and C.

    Raises `LayoutError` (E0301) if the fragments do not hold the matrices.
    """
    _, a, b, _ = types
    layouts = fragment_layouts(shape, (BY_PTX[a].bits, BY_PTX[b].bits))
    return named(
        generation, contract_of(shape, types, (Major.K, Major.K), layouts, Layout(WARP, 1), targets, operation)
    )


_QUAD_PAIR = {"f16": Layout((8, 8), (1, 8)), "f32": Layout(((2, 2, 2), (2, 2, 2)), ((1, 16, 4), (8, 2, 32)))}
"""(thread, value) to a place in the 8x8 accumulator of mma.m8n8k4, by its type."""


def mma_quad_pair(c: str, major_a: Major, major_b: Major) -> MmaAtom:
    """The atom of mma.sync.m8n8k4: lanes 0-3 and 16-19 (or 4-7 and 20-23, ...) multiply 8x8x4 f16 matrices.

    `c`, the type of C and D, is "f16" or "f32".
    """
    along_k = Layout((8, 4), (1, 8))
    along_mn = Layout(((4, 2), 4), ((8, 4), 1))
    a, b = (along_k if major is Major.K else along_mn for major in (major_a, major_b))
    types, ids = (c, "f16", "f16", c), Layout((4, 2), (1, 16))
    layouts, operation = (a, b, _QUAD_PAIR[c]), MmaOperation.MULTIPLY_ADD
    return named(70, contract_of((8, 8, 4), types, (major_a, major_b), layouts, ids, targets(70, 64), operation))


OPERANDS = ("D", "A", "B", "C")
"""The operands of D = A * B + C in the order of `MmaAtom.types`."""


@final
@dataclass(frozen=True, slots=True)
class Registers:
    """The registers of one operand in each thread: `count` of type `kind`, each with `values` neighbouring values.

    `kind` is "f32", "f64" or "b32"; the first value of a b32 register is in its lowest bits.
    """

    kind: str
    count: int
    values: int

    @property
    def bytes(self) -> int:
        """The width of one register."""
        return 8 if self.kind == "f64" else 4


def registers(atom: MmaAtom, operand: str) -> Registers:
    """The registers of operand "D", "A", "B" or "C" of an instruction.

    f32 and f64 accumulators have registers of their own types; whatever else is packed into b32, tf32 and s32 one in
    each.
    """
    given, values = atom.operand(operand), thread_values(atom, operand)
    if given.element in ("f32", "f64"):
        return Registers(given.element, values, 1)
    packed = max(1, min(32 // atom.held_bits(given), values))  # UniversalFMA has one value
    return Registers("b32", values // packed, packed)


def thread_values(atom: MmaAtom, operand: str) -> int:
    """How many values of an operand each thread has."""
    return atom.operand(operand).layout[1].size
