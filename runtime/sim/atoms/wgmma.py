# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arithmetic of a warpgroup's multiplication, for all of its 128 threads at once.

The sums are those of `mma`: a GPU's, or else in double precision, with each result rounded once, to nearest even.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ....base.target import WARP
from ....layout.algebra.core import Layout
from ....layout.atoms.contract import Major
from ....layout.atoms.mma_atom import MmaAtom
from ....layout.atoms.numbers import MmaOperation
from ....layout.atoms.summation import Summation
from ...arrays.storage import distances
from .mma_arithmetic import from_bytes, narrow, to_bytes, widen
from .sparse import Metadata, selected, sparse_product, stored_places
from .sums import MultiplyAdd, multiply_add

if TYPE_CHECKING:
    from ..exact.patterns import Table

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.float64]


class WgmmaArithmetic:
    """The product of an atom of a warpgroup, on the bytes that hold its operands."""

    def __init__(
        self,
        atom: MmaAtom,
        signs: tuple[int, int],
        exact: "Table | None" = None,
        how: Summation | None = None,
        metadata: Metadata | None = None,
    ) -> None:
        self.atom, self._signs = atom, signs
        self._widen = [widen(name, exact) for name in atom.types]
        self._narrow = narrow(atom.types[0], atom.products.operation is MmaOperation.SATURATE, exact)
        self._places_a, self._places_d = _places(atom.layout_a), _places(atom.layout_c)
        self.metadata = metadata
        saturates = atom.products.operation is MmaOperation.SATURATE
        self._sparse = None if metadata is None else sparse_product(how, atom.types, saturates, exact)
        self._sum = None if how is None or exact is not None or metadata is not None else _sum(how, atom)

    @property
    def shape_number(self) -> int:
        """A number that tells shapes apart, 2 to 255."""
        _, n, k = self.atom.shape
        return n // 8 * 4 + k // 16

    def shared(self, operand: str, rows: Bytes) -> Numbers:
        """Operand "A" or "B", (MN, K), from its rows of 16 bytes in shared memory, in the order of `Matrix`."""
        number = "AB".index(operand)
        name = self.atom.types[1 + number]
        matrix = self._widen[1 + number](from_bytes(name, rows.reshape(rows.shape[0], -1)))
        return matrix.T if self.atom.operand(operand).major is Major.MN else matrix

    def registers(self, operand: str, words: Sequence[Bytes]) -> Numbers:
        """Operand "A" or the accumulators "D", (64, K) or (64, N), from the registers (lanes, bytes) of the warps."""
        number = "DA".index(operand)
        values = self._widen[number](from_bytes(self.atom.types[number], np.concatenate(words)))
        if number and self.metadata is not None:
            return values.ravel()[stored_places(self.atom)]
        matrix = np.empty_like(values, shape=values.size)
        matrix[self._places_a if number else self._places_d] = values
        return matrix.reshape(-1, 64).T

    def result(self, a: Numbers, b: Numbers, d: Numbers | None, words: NDArray[np.uint32] | None = None) -> Numbers:
        """A * B + D, or A * B where `d` is None, in D's type. For a sparse A, `words` are the metadata of all
        threads.
        """
        if self._sparse is not None and self.metadata is not None and words is not None:
            a = -a if self._signs[0] * self._signs[1] < 0 else a
            before = np.zeros((len(a), len(b))) if d is None else d
            places = selected(self.metadata.codes(words), self.metadata.chunk)
            return self._widen[0](self._sparse(a, places, b.T, self._narrow(before)))
        if self._sum is not None:
            if self._signs[0] * self._signs[1] < 0:
                a = -a
            before = np.zeros((len(a), len(b))) if d is None else d
            total = self._sum(*[x.reshape(1, -1) for x in (a, b, self._narrow(before))])
            return self._widen[0](total.reshape(before.shape))
        total = np.matmul(a, b.T)
        if self._signs[0] * self._signs[1] < 0:
            total = -total
        return self._widen[0](self._narrow(total if d is None else total + d))

    def words(self, result: Numbers, warp: int) -> Bytes:
        """The accumulators (lanes, bytes) of a warp, number 0 to 3 of the warpgroup."""
        places = self._places_d[warp * WARP : (warp + 1) * WARP]
        return to_bytes(self.atom.types[0], self._narrow(result.T.ravel()[places]))


def _sum(how: Summation, atom: MmaAtom) -> MultiplyAdd:
    """The product of the matrices A (M, K) and B (N, K), added to D (M, N)."""
    m, n, k = atom.shape
    at_a, at_b, at_d = [np.arange(rows * columns).reshape(rows, columns) for rows, columns in ((m, k), (n, k), (m, n))]
    return multiply_add(how, atom.types, at_a, at_b.T, at_d)


def _places(layout: Layout) -> NDArray[np.int64]:
    """Where each value (thread, value) of an operand is in its matrix, counted first mode fastest."""
    return distances(layout).reshape(layout[0].size, -1, order="F")
