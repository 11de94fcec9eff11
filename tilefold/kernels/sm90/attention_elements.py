# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements of 16 bits and of 8 in attention on Hopper: their products, and how they lie in shared memory and registers.

wgmma takes V in 16 bits with D contiguous, as it is. Of elements of 8 bits it takes K-major matrices alone, so that V
is transposed before (attention_fp8.py). A thread has exponentials of keys 8 i + 2 q and the next in one accumulator; as
8-bit elements of A it has 16 i + 4 q and the three next (PTX ISA, wgmma, figures of fragments). Each 16 keys of the
transposed V are in the order in which the accumulators become those elements, so that no thread moves any.
"""

from typing import Any

from tilefold import cute
from tilefold.builder.scalars.operators import Operand
from tilefold.cute.nvgpu import warpgroup
from tilefold.cute.typing import NumericMeta
from tilefold.layout.algebra.core import LayoutLike

from .attention_tiles import ROWS

OFFSET = 8.0
"""Exponentials in fp8 are multiplied by 2 to the power of this, so that small ones are not rounded to 0; the largest is
256 then, where e4m3 has 448.
"""
KEYS = 16
"""The keys that the transposed V has in an order of its own."""


class Elements:
    """The elements of Q, K, P and V, heads of `depth` of them and tiles of `keys`."""

    def __init__(self, dtype: NumericMeta, depth: int, keys: int) -> None:
        self.dtype, self.depth, self.keys = dtype, depth, keys

    @property
    def narrow(self) -> bool:
        """Whether they have 8 bits: V is transposed, (batch,heads,D,keys)."""
        return self.dtype.bits == 8

    @property
    def step(self) -> int:
        """The elements that an instruction adds up."""
        return 256 // self.dtype.bits

    @property
    def offset(self) -> float:
        """The logarithm to the base of 2 by which exponentials are multiplied."""
        return OFFSET if self.narrow else 0.0

    def shift(self, logarithm: Operand) -> Any:
        """The logarithm to the base of 2 of an exponential, with the offset."""
        return logarithm + self.offset if self.narrow else logarithm

    def by_k(self, length: int) -> LayoutLike:
        """The smallest layout of rows of this many elements, by the widest swizzle that divides them."""
        kinds = warpgroup.SmemLayoutAtomKind
        bits = length * self.dtype.bits
        kind = kinds.K_SW128 if bits % 1024 == 0 else kinds.K_SW64 if bits % 512 == 0 else kinds.K_SW32
        return warpgroup.make_smem_layout_atom(kind, self.dtype)

    def layout_v(self, stages: int) -> LayoutLike:
        """Tiles of V in shared memory, (D,keys,stages)."""
        if self.narrow:
            return cute.tile_to_shape(self.by_k(self.keys), (self.depth, self.keys, stages), order=(0, 1, 2))
        kinds = warpgroup.SmemLayoutAtomKind
        by_mn = warpgroup.make_smem_layout_atom(kinds.MN_SW64 if self.depth % 64 else kinds.MN_SW128, self.dtype)
        return cute.tile_to_shape(by_mn, (self.depth, self.keys, stages), order=(1, 0, 2))

    def order_v(self) -> list[int]:
        """The modes of V in memory, as (D,keys,heads,batch)."""
        return [2, 3, 1, 0] if self.narrow else [3, 1, 2, 0]

    def products(self) -> tuple[Any, Any]:
        """The multiplications of Q by K, and of P by V."""
        K, MN = warpgroup.OperandMajorMode.K, warpgroup.OperandMajorMode.MN
        SMEM, RMEM = warpgroup.OperandSource.SMEM, warpgroup.OperandSource.RMEM
        of_scores, of_rows = (ROWS, self.keys, self.step), (ROWS, self.depth, self.step)
        single, dtype = cute.Float32, self.dtype
        if self.narrow:
            qk = warpgroup.MmaF8Op(dtype, dtype, single, of_scores, SMEM, K, K)
            pv = warpgroup.MmaF8Op(dtype, dtype, single, of_rows, RMEM, K, K)
        else:
            qk = warpgroup.MmaF16BF16Op(dtype, single, of_scores, SMEM, K, K)
            pv = warpgroup.MmaF16BF16Op(dtype, single, of_rows, RMEM, K, MN)
        return cute.make_tiled_mma(qk), cute.make_tiled_mma(pv)

    def registers(self, scores: cute.Tensor) -> Any:
        """Registers for the exponentials that take the place of scores."""
        if self.narrow:
            return cute.make_rmem_tensor((self.keys // 2,), self.dtype)
        return cute.make_rmem_tensor_like(scores, self.dtype)

    def operand(self, exponentials: object) -> Any:
        """Exponentials in registers as the A of the second product: (MMA,1,steps)."""
        if self.narrow:
            layout = cute.make_layout(((4, 2, 2), 1, self.keys // 32), stride=((1, 4, 8), 0, 16))
        else:
            layout = cute.make_layout(((2, 2, 2), 1, self.keys // 16), stride=((1, 2, 4), 0, 8))
        return cute.composition(exponentials, layout)

    def narrowed(self, scores: cute.Tensor, exponentials: cute.Tensor) -> None:
        """The scores' exponentials, rounded, in the layout of A of the second product."""
        if not self.narrow:
            exponentials.store(scores.load().to(self.dtype))
            return
        words = cute.recast_tensor(exponentials, cute.Int32)
        for word in range(self.keys // 8):  # of neighbours and those 8 keys further, of rows 8 apart in turns
            at = word // 2 * 8 + word % 2 * 2
            a, b, c, d = (scores[at + i] for i in (0, 1, 4, 5))
            words[word] = cute.arch.pack_float8(a, b, c, d, self.dtype)
