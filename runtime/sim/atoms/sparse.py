# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiplications with a sparse A: metadata say which elements of a row of A are there, and a product is taken of each
of these with the element of B at its place. Other elements of B do not take part, not even infinities.

So a row of D is that of a dense multiplication of the stored elements and of the elements of B that they
select. The sums are those of the dense instructions of half the K: on an H200, all bits of mma.sp and wgmma.sp are
(tests/cuda/test_sparse_sums.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....layout.algebra.core import Layout
from ....layout.atoms.contract import Role
from ....layout.atoms.mma_atom import MmaAtom
from ....layout.atoms.mma_sparse import CHUNK_BITS, Chunk, chunk_of
from ....layout.atoms.numbers import MmaOperation, Types
from ....layout.atoms.summation import Summation
from ...arrays.storage import distances
from ...engine import NumPyArray
from ..faults import Site
from ..warp import Warp
from .mma_arithmetic import Places, Values, narrow, widen
from .sums import multiply_add

if TYPE_CHECKING:
    from ..exact.patterns import Table

SparseProduct: TypeAlias = Callable[[NumPyArray, NumPyArray, NumPyArray, NumPyArray], NumPyArray]
"""D (M,N) of the stored elements (M,K/2) of A, their places in K, B (K,N), and C (M,N) in the type of D."""

_HINT = "let each chunk of A name two different elements, in the threads that the sparsity selector says"


def selected(codes: NumPyArray, chunk: Chunk) -> NumPyArray:
    """The places in K (rows, K/2) of the stored elements, by the descriptions (rows, chunks) of chunks."""
    rows, chunks = codes.shape
    if chunk.size == 2:
        within = (codes >> 3)[..., None]  # 0b0100 and 0b1110 name halves of an element
    else:
        pairs = np.stack([codes & 3, codes >> 2], axis=-1)
        within = (pairs[..., None] * chunk.unit + np.arange(chunk.unit)).reshape(rows, chunks, -1)
    first: NumPyArray = chunk.size * np.arange(int(chunks))[:, None]
    return (within.astype(np.int64) + first).reshape(rows, -1)


def invalid(codes: NumPyArray, chunk: Chunk, ordered: bool) -> NDArray[np.bool_]:
    """The descriptions of chunks that name an element twice, in a falling order where they are `ordered`, or, of
    chunks of two elements, none.
    """
    if chunk.size == 2:
        return (codes != 0b0100) & (codes != 0b1110)
    first, second = codes & 3, codes >> 2
    return first >= second if ordered else first == second


@lru_cache(maxsize=256)
def _sources(layout: Layout, size: int, rows: int, select: int) -> tuple[NumPyArray, NumPyArray]:
    """The thread whose register describes each chunk (rows, chunks), and the position of the chunk's lowest bit."""
    threads, values = int(layout[0].size), int(layout[1].size)
    places = distances(layout).reshape(threads, values, order="F")[:, ::size]
    row, chunk = places % rows, places // rows // size
    lanes = np.zeros((rows, int(chunk.max()) + 1), np.int64)
    shifts, alternatives = np.zeros_like(lanes), np.zeros_like(lanes)
    for thread in range(threads):
        at = row[thread], chunk[thread]
        chosen = alternatives[at] == select
        lanes[at] = np.where(chosen, thread, lanes[at])
        shifts[at] = np.where(chosen, CHUNK_BITS * np.arange(values // size), shifts[at])
        alternatives[at] += 1
    return lanes, shifts


def _described(words: NumPyArray, lanes: NumPyArray, shifts: NumPyArray) -> NumPyArray:
    """The descriptions of chunks in words (..., threads), each in a thread and from a bit on."""
    return np.asarray(words).astype(np.int64)[..., lanes] >> shifts & (1 << CHUNK_BITS) - 1


@dataclass(frozen=True, slots=True)
class Metadata:
    """How registers describe A of an atom of a warp or a warpgroup, with a sparsity selector."""

    atom: MmaAtom
    select: int
    ordered: bool = False

    @property
    def chunk(self) -> Chunk:
        """The chunks of A."""
        return chunk_of(self.atom.types[1])

    @property
    def _sources(self) -> tuple[NumPyArray, NumPyArray]:
        """The thread whose register describes each chunk, and the position of the chunk's lowest bit."""
        layout = self.atom.contract.operand(Role.METADATA).layout
        return _sources(layout, self.chunk.size, self.atom.shape[0], self.select)

    def codes(self, words: NumPyArray) -> NumPyArray:
        """The descriptions (..., M, chunks) of the words (..., threads) of all threads."""
        lanes, shifts = self._sources
        return _described(words, lanes, shifts)

    def check(self, warp: Warp, site: Site, words: NumPyArray, first: int = 0, base: int = 0) -> None:
        """A fault (E3228) where the words of a warp, whose first thread has the number `first` in its group, describe
        chunks wrongly. `base` is the number of its first lane where blocks go in step.
        """
        lanes, shifts = self._sources
        mine = (lanes >= first) & (lanes < first + len(words))
        codes = _described(words, np.where(mine, lanes - first, 0), shifts)
        wrong = invalid(codes, self.chunk, self.ordered) & mine
        if wrong.any():
            row, chunk = np.argwhere(wrong)[0].tolist()
            lane = base + int(lanes[row, chunk]) - first
            say_invalid(warp, site, lane, self.atom.name, self.chunk, row, chunk, codes)


def say_invalid(
    warp: Warp, site: Site, lane: int, name: str, chunk: Chunk, row: int, number: int, codes: NumPyArray
) -> None:
    """The fault (E3228) of the description of a chunk."""
    columns = f"{number * chunk.size} to {(number + 1) * chunk.size - 1}"
    code = int(codes[row, number])
    problem = (
        "which is neither 0b0100 nor 0b1110" if chunk.size == 2
        else "which names one twice" if code & 3 == code >> 2
        else "whose indices do not rise"
    )  # fmt: skip
    text = f"the metadata of row {row}, columns {columns}, of A of {name} are {code:#06b}, {problem}"
    warp.fault(Code.SIM_METADATA, site, lane, text, _HINT)


def sparse_product(
    how: Summation | None, types: Types, saturates: bool = False, exact: "Table | None" = None
) -> SparseProduct:
    """The function that multiplies; with a summation A and B are exact in f32 or f64, else as `widen` makes them."""
    rounded, wide = narrow(types[0], saturates, exact), widen(types[0], exact)

    def execute(a: NumPyArray, places: NumPyArray, b: NumPyArray, c: NumPyArray) -> NumPyArray:
        chosen = b[places]  # (M, K/2, N)
        rows, terms, columns = map(int, chosen.shape)
        if how is None or exact is not None:
            return rounded(np.matmul(a[:, None], chosen)[:, 0] + wide(c))
        at = np.arange(terms * columns).reshape(terms, columns)
        sums = multiply_add(how, types, np.arange(terms)[None], at, np.arange(columns)[None])
        return sums(a, chosen.reshape(rows, -1), c)

    return execute


def sparse_executor(
    atom: MmaAtom, metadata: Metadata, how: Summation | None, exact: "Table | None"
) -> Callable[[Values, Values, Values, NumPyArray], Values]:
    """D of A, B and C in the lanes of a warp, (32, values) each, and of its words of metadata."""
    places, chunk = Places(atom), metadata.chunk
    stored = stored_places(atom)
    saturates = atom.products.operation is MmaOperation.SATURATE
    product = sparse_product(how, atom.types, saturates, exact)
    of_a, of_b = widen(atom.types[1], exact), widen(atom.types[2], exact)

    def execute(a: Values, b: Values, c: Values, words: NumPyArray) -> Values:
        left, right = of_a(a).ravel()[stored], of_b(b).ravel()[places.b[0]]
        d = product(left, selected(metadata.codes(words), chunk), right, c.ravel()[places.c[0]])
        return d.ravel()[places.d].reshape(places.shape_d)

    return execute


@lru_cache(maxsize=256)
def stored_places(atom: MmaAtom) -> NumPyArray:
    """The position of each stored element (M, K/2) of A among the raveled values (threads, values)."""
    (m, _, k), layout = atom.shape, atom.layout_a
    threads, values = int(layout[0].size), int(layout[1].size)
    places = distances(layout).reshape(threads, values, order="F")[:, ::2]
    homes = np.zeros((m, k // 2), np.int64)
    homes[places % m, places // m // 2] = np.arange(threads * values // 2).reshape(threads, -1)
    return homes
