# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arithmetic of tcgen05.mma on the bytes that hold its operands.

Sums are those of a GPU's tensor core where the launch asks for them: one sum of all products of an instruction and of
D, aligned and truncated, as `AlignedSum` says (Xie et al., MMA-Sim, arXiv 2511.10909, for sm_100). Otherwise they are
taken in double precision, and rounded once. Pairs of blocks, .ws and scale_d count as the rest, which nobody has
measured.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....base.element_types import BY_PTX
from ....layout.atoms.numbers import Types
from ....layout.atoms.summation import AlignedSum
from ....layout.atoms.umma_descriptors import InstructionDescriptor
from ...engine import NumPyArray
from ..atoms.mma_arithmetic import from_bytes, narrow, to_bytes, widen
from ..atoms.sparse import sparse_product
from ..atoms.sums import MultiplyAdd, multiply_add
from .scaled import Scales, scaled_product

if TYPE_CHECKING:
    from ..exact.patterns import Table

Bytes: TypeAlias = NDArray[np.uint8]

_FRACTION = 25
"""The fractional bits to which addends are truncated."""


@dataclass(frozen=True, slots=True)
class TensorArithmetic:
    """D = A * B + D of an instruction descriptor: `measured` as a GPU sums, or `exact` in exact arithmetic."""

    given: InstructionDescriptor
    measured: bool
    exact: "Table | None"

    def elements(self, name: str, rows: Bytes, mn_major: bool, in_cells: bool = False) -> NumPyArray:
        """The numbers (MN, K) in bytes (rows, bytes) of a matrix, in the type `name`. Elements of 4 and 6 bits that can
        be mixed with others are packed at the start of rows of 16 bytes, 16 of them in each (PTX ISA, tcgen05: Packing
        formats in shared memory). In the cells of tensor memory each has a byte, as `PLACES` says.
        """
        bits = BY_PTX[name].bits
        if bits < 8 and not self.given.kind.is_dense_fp4:
            codes = rows >> PLACES[bits] & np.uint8((1 << bits) - 1) if in_cells else unpacked(rows, bits)
            return widen(name, self.exact)(
                from_bytes(name, codes << np.uint8(2) if bits == 4 else codes, in_bytes=True)
            )
        values = widen(name, self.exact)(from_bytes(name, rows))
        return values.T if mn_major else values

    def accumulators(self, words: NDArray[np.uint32]) -> NumPyArray:
        """The numbers in cells of D, one in each."""
        d = self.given.types[0]
        parts = words.astype(np.uint16) if BY_PTX[d].bits == 16 else words
        return from_bytes(d, np.ascontiguousarray(parts).view(np.uint8))

    def words(self, d: NumPyArray) -> NDArray[np.uint32]:
        """The cells of D that hold numbers."""
        name = self.given.types[0]
        unit = np.uint16 if BY_PTX[name].bits == 16 else np.uint32
        return to_bytes(name, d).view(unit).astype(np.uint32)

    def result(
        self,
        a: NumPyArray,
        b: NumPyArray,
        d: NumPyArray | None,
        divisor: int,
        scales: Scales | None,
        places: NDArray[np.int64] | None = None,
    ) -> NumPyArray:
        """A (M, K) * B (N, K) + D / 2**divisor, or A * B where `d` is None, in D's type. A sparse A has half of
        its elements, at `places` of K.
        """
        given = self.given
        name = given.types[0]
        if given.negate_a != given.negate_b:
            a = -a
        wide, narrowed = widen(name, self.exact), narrow(name, given.saturate, self.exact)
        before = narrowed(np.zeros((len(a), len(b)))) if d is None else d
        if divisor:
            before = narrowed(wide(before) * 2.0**-divisor)
        if scales is not None:
            return scaled_product(given, a, b, before, scales, self.measured)
        how = self.measured and self.exact is None and BY_PTX[name].kind == "float"
        of_a, of_b = given.types[1:]
        if places is not None:
            sums = AlignedSum((tuple(range(a.shape[1])),), _FRACTION) if how else None
            types = (name, of_a, of_b, name)
            return sparse_product(sums, types, given.saturate, self.exact)(a, places, b.T, before)
        if how:
            total = _sum((name, of_a, of_b, name), len(a), len(b), a.shape[1])
            return total(a.reshape(1, -1), b.reshape(1, -1), before.reshape(1, -1)).reshape(before.shape)
        total = np.matmul(a, b.T)
        return narrowed(total if d is None else total + wide(before))


def unpacked(rows: Bytes, bits: int) -> Bytes:
    """The codes of elements of 4 or 6 bits, a byte for each, of which 16 begin each 16 bytes of rows (rows, bytes)."""
    groups = rows.reshape(len(rows), -1, _GROUP)[:, :, : 2 * bits]
    single = np.unpackbits(np.ascontiguousarray(groups), axis=2, bitorder="little")
    codes = np.packbits(single.reshape(*groups.shape[:2], _GROUP, bits), axis=3, bitorder="little")
    return codes.reshape(len(rows), -1)


_GROUP = 16
"""The elements of 4 and 6 bits in a row of as many bytes."""
PLACES = {4: np.uint8(2), 6: np.uint8(1)}
"""The lowest bit of an element of 4 or 6 bits in its byte of tensor memory: 00xxxx00 and 0xxxxxx0 (PTX ISA, tcgen05:
Optional Decompression, which shows them; CUTLASS's experimental/primitives/tcgen05/cp_narrow_a_to_tmem_mma.py).
"""


@lru_cache(maxsize=64)
def _sum(types: Types, m: int, n: int, k: int) -> MultiplyAdd:
    """The rule for D (M, N) plus the products of A (M, K) and B (N, K)."""
    at_a, at_b, at_d = [np.arange(rows * columns).reshape(rows, columns) for rows, columns in ((m, k), (n, k), (m, n))]
    return multiply_add(AlignedSum((tuple(range(k)),), _FRACTION), types, at_a, at_b.T, at_d)
