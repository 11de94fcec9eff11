# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix instructions of one warp: mma.sync, and of a quarter of it (PTX ISA, Matrix multiply-accumulate with
mma).

In the warp-wide shapes thread 4r + c holds, of A, the 32-bit registers of row r (and r + 8) that begin at
column c * v, v being the elements in a register, and again 4v columns on; B likewise, and of C elements 2c
and 2c + 1 of row r (and r + 8).
"""

from ...base.element_types import BY_PTX
from ...base.target import WARP, TargetFamily
from ..algebra.core import Layout
from .instructions import MmaOperation, MmaSync, Shape, Types
from .mma_atom import MmaAtom

_SOURCE = "PTX ISA, Warp-level matrix instructions: mma"


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


def mma_sync(
    name: str, shape: Shape, types: Types, targets: TargetFamily, operation: MmaOperation = MmaOperation.MULTIPLY_ADD
) -> MmaAtom:
    """The atom of a warp-wide mma.sync: `types` are those of D, A, B and C.

    Raises `LayoutError` (E0301) if the fragments do not hold the matrices.
    """
    m, n, k = shape
    _, a, b, _ = types
    return MmaAtom(
        name=name,
        thr_id=Layout(WARP, 1),
        instruction=MmaSync(shape, types, operation=operation),
        layout_a=_operand(m, k, BY_PTX[a].bits),
        layout_b=_operand(n, k, BY_PTX[b].bits),
        layout_c=_accumulator(m),
        targets=targets,
        source=_SOURCE,
    )


_QUAD_PAIR = {"f16": Layout((8, 8), (1, 8)), "f32": Layout(((2, 2, 2), (2, 2, 2)), ((1, 16, 4), (8, 2, 32)))}
"""(thread, value) to a place in the 8x8 accumulator of mma.m8n8k4, by its type."""


def mma_quad_pair(name: str, c: str, major_a: str, major_b: str) -> MmaAtom:
    """The atom of mma.sync.m8n8k4: lanes 0-3 and 16-19 (or 4-7 and 20-23, ...) multiply 8x8x4 f16 matrices.

    `c`, the type of C and D, is "f16" or "f32". `major_a` is "row" or "col" as in PTX, `major_b` too.
    """
    by_row = Layout((8, 4), (1, 8))
    by_column = Layout(((4, 2), 4), ((8, 4), 1))
    return MmaAtom(
        name=name,
        thr_id=Layout((4, 2), (1, 16)),
        instruction=MmaSync((8, 8, 4), (c, "f16", "f16", c), (major_a, major_b)),
        layout_a=by_row if major_a == "row" else by_column,
        layout_b=by_row if major_b == "col" else by_column,
        layout_c=_QUAD_PAIR[c],
        targets=TargetFamily(70, 64),
        source=_SOURCE,
    )
