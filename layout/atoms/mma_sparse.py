# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix instructions with a sparse A, of which registers or shared memory have half of the elements, and metadata the
places of these (PTX ISA, Sparse matrix storage; CuTe's mma_traits_sm90_gmma_sparse.hpp, mma_traits_sm120_sparse.hpp).

A row of A falls into chunks. A chunk of 4 elements stores 2, and an index of 2 bits names the place of each; it names
the place; a chunk of 8 elements of 4 bits has 2 pairs; one of 2 elements of tf32 has one, whose index is 0b0100 or
0b1110. So 4 bits describe a chunk, from the lowest bits of the register on.

The layout of the metadata maps (thread, value) to the places in A (M,K) that the 32 bits of the thread's register
describe. Threads with the same places are alternatives, among which the sparsity selector chooses.
"""

from dataclasses import dataclass, replace
from typing import final

from ...base.element_types import BY_PTX
from ...base.spaces import RMEM
from ...base.target import WARP, Targets
from ..algebra.core import Layout, flat_modes
from .contract import ANY_BITS, Act, AtOnce, Contract, Major, Named, Operand, Proxy, Role, Whose
from .instructions import MmaSync
from .mma_atom import MmaAtom
from .mma_names import named
from .mma_sync import contract_of, fragment_layouts
from .numbers import MmaOperation, Shape, Types

CHUNK_BITS = 4
"""The bits of metadata that describe a chunk."""
ORDERED_VERSION = 85
"""The version of PTX from which on there is mma.sp::ordered_metadata."""
WARPGROUP_ROWS = 64
"""The rows of A of a warpgroup, 16 for each warp."""


@final
@dataclass(frozen=True, slots=True)
class Chunk:
    """The chunks of a sparse A: of `size` elements, of which a half is there, in units of `unit` neighbours."""

    size: int
    unit: int


def chunk_of(element: str, in_bytes: bool = False) -> Chunk:
    """The chunks of a matrix of this PTX type. Elements of 4 bits come in pairs, but where each takes a byte."""
    bits = BY_PTX[element].bits
    if bits == 4 and not in_bytes:
        return Chunk(8, 2)
    return Chunk(2, 1) if bits == 32 else Chunk(4, 1)


def metadata_operand(layout: Layout) -> Operand:
    """The operand of metadata in a register of each thread."""
    return Operand(
        Role.METADATA, ANY_BITS, (RMEM,), Named.VALUE, Major.FIXED, Act.READ, Whose.OWN, AtOnce(), Proxy.GENERIC, 4,
        layout,
    )  # fmt: skip


def selectors(layout: Layout) -> int:
    """How many sparsity selectors there are: the alternative threads of the quad that have the metadata."""
    found = 1
    for extent, stride in flat_modes(layout[0]):
        found *= extent if stride == 0 else 1
    return found


def _layout(rows: int, k: int, element: str) -> Layout:
    """(thread, value) to the places in A, of 16 rows for each warp, that a register describes: eight chunks.

    With elements of 8 or 4 bits these are of one row: rows 0 to 7 in thread 0 of a quad, the others in thread 1;
    where K has more, the other half of it is two threads on. Of wider elements they are of two rows, 8 apart; thread 1
    has the other half of K, if there is one.
    """
    size, narrow = chunk_of(element).size, BY_PTX[element].bits <= 8
    each = (8 if narrow else 4) * size  # elements of a row
    other = each * rows if k > each else 0
    warps, by_warp = ((4,), (16,)) if rows == WARPGROUP_ROWS else ((), ())
    if narrow:
        return Layout(((2, 2, 8, *warps), each), ((8, other, 1, *by_warp), rows))
    if other:
        return Layout(((2, 2, 8, *warps), (each, 2)), ((other, 0, 1, *by_warp), (rows, 8)))
    return Layout(((4, 8, *warps), (each, 2)), ((0, 1, *by_warp), (rows, 8)))


def warpgroup_metadata(element: str) -> Layout:
    """The layout of the metadata of wgmma, whose A has this PTX type."""
    return _layout(WARPGROUP_ROWS, 512 // BY_PTX[element].bits, element)


def sparse_mma(generation: int, shape: Shape, types: Types, having: Targets, operation: MmaOperation) -> MmaAtom:
    """The atom of a warp-wide mma.sp; `types` are those of D, A, B and C, `shape` has the whole K."""
    _, a, b, _ = types
    layouts = fragment_layouts(shape, (BY_PTX[a].bits // 2, BY_PTX[b].bits))
    dense = contract_of(shape, types, (Major.K, Major.K), layouts, Layout(WARP, 1), having, operation)
    metadata = metadata_operand(_layout(16, shape[2], a))
    made: Contract = replace(dense, operands=(*dense.operands, metadata), instruction=MmaSync(is_sparse=True))
    return named(generation, made)
