# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of kernels by mma.sync: tiles in swizzled shared memory that cp.async fills, products of them by warps, and
the masks of attention.
"""

from dataclasses import dataclass
from typing import Any

from tilefold import cute
from tilefold.builder.scalars.operators import Operand
from tilefold.cute.typing import Int, NumericMeta
from tilefold.layout.algebra.core import LayoutLike


@dataclass(frozen=True)
class Mask:
    """Where `causal`, row `i` of `rows` sees key `j` of `keys` only if j <= i + keys - rows, so that the last row sees
    all keys; with a `window`, only the last `window` of them.
    """

    causal: bool = False
    window: int = 0

    def sees(self, row: Int, key: Int, rows: Int, keys: Int) -> Operand:
        """Whether a score counts, of a row and a key that may be beyond the last ones."""
        seen = (row < rows) & (key < keys)
        if self.causal:
            seen = seen & (key <= row + keys - rows)
        if self.window:
            seen = seen & (key > row + keys - rows - self.window)
        return seen

    def others(self, first: Int, size: int, rows: Int, keys: Int, tile: int, tiles: Int, of_keys: bool) -> Any:
        """The tiles with scores that count, of `tiles` tiles: of the rows that see some of the keys from `first` on, or
        of the keys that some of the rows from `first` on see. The first one, and that after the last.
        """
        low = 0
        high = tiles
        past = keys - rows
        if of_keys:
            if self.causal:
                low = cute.math.max(first - past, 0) // tile
            if self.window:
                last = cute.math.max(first + size - 1 - past + self.window - 1, -1)
                high = cute.math.min(high, (last + tile) // tile)
        else:
            if self.causal:
                high = cute.math.min(high, cute.ceil_div(cute.math.max(first + size + past, 0), tile))
            if self.window:
                low = cute.math.max(first + past - self.window + 1, 0) // tile
        return low, high


def shared_layout(rows: int, columns: int, stages: int = 1) -> LayoutLike:
    """Rows of at most 128 bytes of 16-bit elements, swizzled so that no access has bank conflicts: (rows,columns,
    stages).
    """
    width = min(columns, 64)
    shape = (rows, (width, columns // width), stages)
    stride = (width, (1, width * rows), rows * columns)
    return cute.make_composed_layout(
        cute.make_swizzle(3 if width == 64 else 2, 3, 3), 0, cute.make_layout(shape, stride=stride)
    )


def sequence(tensor: cute.Tensor, batch: Int, starts: cute.Tensor | None) -> tuple[Any, Any, Any]:
    """The rows of a batch in (batch,rows,heads,D), or of a sequence that is packed with others from `starts` on: the
    index of the batch, the first row, and the number of rows.
    """
    if starts is None:
        return batch, 0, tensor.shape[1]
    return 0, starts[batch], starts[batch + 1] - starts[batch]


def rows_of_head(tensor: cute.Tensor, at: Int, head: Int, begin: Int, count: Int) -> cute.Tensor:
    """The rows of a head of (batch,rows,heads,D) from `begin` on: (count,D)."""
    whole = cute.domain_offset((begin, 0), tensor[at, None, head, None])
    return cute.make_tensor(whole.iterator, cute.make_layout((count, tensor.shape[3]), stride=tensor.stride[1::2]))


class Loads:
    """Copies of tiles from global to shared memory by all threads of a block, 16 bytes at a time; 0 takes the place of
    all beyond the matrix.
    """

    def __init__(self, dtype: NumericMeta, threads: int, rows: int, columns: int) -> None:
        op = cute.nvgpu.cpasync.CopyG2SOp(cute.nvgpu.LoadCacheMode.GLOBAL, zfill=True)
        along = min(threads, columns // 8)
        order = cute.make_layout((threads // along, along), stride=(along, 1))
        tiled = cute.make_tiled_copy_tv(cute.make_copy_atom(op, dtype), order, cute.make_layout((1, 8), stride=(0, 1)))
        self.thread = tiled.get_slice(cute.arch.thread_idx()[0])
        self.shape = rows, columns

    def begin(self, matrix: cute.Tensor, number: Int, to: cute.Tensor, strip: Int = 0) -> None:
        """Begins to copy a tile of a matrix, by its number along rows and its strip of columns, to shared memory."""
        whole = cute.make_identity_tensor(matrix.shape)
        places = self.thread.partition_S(cute.local_tile(whole, self.shape, (number, strip)))
        source = self.thread.partition_S(cute.local_tile(matrix, self.shape, (number, strip)))
        is_whole = type(matrix.shape[1]) is int and matrix.shape[1] % self.shape[1] == 0
        within = cute.bounds(places, (matrix.shape[0], None if is_whole else matrix.shape[1]))
        cute.copy(self.thread, source, self.thread.partition_D(to), pred=within)


class Warps:
    """Warps below each other, 16 rows each, that multiply tiles of shared memory or registers."""

    def __init__(self, dtype: NumericMeta, warps: int) -> None:
        op = cute.nvgpu.warp.MmaF16BF16Op(dtype, cute.Float32, (16, 8, 16))
        thread = cute.arch.thread_idx()[0]
        self.dtype = dtype
        self.mma = cute.make_tiled_mma(op, (warps, 1, 1), (16 * warps, 16, 16)).get_slice(thread)
        matrices, transposed = (
            cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(num_matrices=4, transpose=turned), dtype)
            for turned in (False, True)
        )
        self.copy_a = cute.make_tiled_copy_A(matrices, self.mma.tiled_mma).get_slice(thread)
        self.copy_b = cute.make_tiled_copy_B(matrices, self.mma.tiled_mma).get_slice(thread)
        self.copy_t = cute.make_tiled_copy_B(transposed, self.mma.tiled_mma).get_slice(thread)

    def sums(self, rows: int, columns: int) -> Any:
        """Accumulators of a tile: ((2,2),1,columns / 8)."""
        return self.mma.make_fragment_C(self.places(rows, columns))

    def places(self, rows: int, columns: int) -> Any:
        """The row and the column of each accumulator of a tile."""
        return self.mma.partition_C(cute.make_identity_tensor((rows, columns)))

    def multiply(self, sums: cute.Tensor, a: Any, b: Any, stage: Int = 0) -> None:
        """sums += a @ b^T, for a (rows,K) and b (columns,K,stages), both in shared memory."""
        ra = self.mma.make_fragment_A(self.mma.partition_A(a))
        rb = self.mma.make_fragment_B(self.mma.partition_B(b)[None, None, None, 0])
        from_a, to_a = self.copy_a.partition_S(a), self.copy_a.retile(ra)
        from_b, to_b = self.copy_b.partition_S(b), self.copy_b.retile(rb)
        pairs, of_pairs = cute.logical_divide(rb, (None, 2)), cute.logical_divide(sums, (None, None, 2))
        for k in range(cute.size(ra, 2)):
            cute.copy(self.copy_a, from_a[None, None, k], to_a[None, None, k])
            for n in range(cute.size(rb, 1) // 2):
                cute.copy(self.copy_b, from_b[None, n, k, stage], to_b[None, n, k])
                cute.gemm(self.mma, ra[None, None, k], pairs[None, (None, n), k], of_pairs[None, None, (None, n)])

    def multiply_turned(self, sums: object, p: Any, b: object, stage: Int = 0) -> None:
        """sums += p @ b, for accumulators p (rows,K) and b (K,columns,stages) in shared memory; p is rounded."""
        rounded = cute.make_rmem_tensor_like(p, self.dtype)
        rounded.store(p.load().to(self.dtype))
        a = cute.composition(rounded, cute.make_layout(((2, 2, 2), 1, cute.size(p, 2) // 2), stride=((1, 2, 4), 4, 8)))
        turned = cute.select(b, [1, 0, 2])
        rb = self.mma.make_fragment_B(self.mma.partition_B(turned)[None, None, None, 0])
        from_b, to_b = self.copy_t.partition_S(turned), self.copy_t.retile(rb)
        pairs, of_pairs = cute.logical_divide(rb, (None, 2)), cute.logical_divide(sums, (None, None, 2))
        for k in range(cute.size(rb, 2)):
            for n in range(cute.size(rb, 1) // 2):
                cute.copy(self.copy_t, from_b[None, n, k, stage], to_b[None, n, k])
                cute.gemm(self.mma, a[None, None, k], pairs[None, (None, n), k], of_pairs[None, None, (None, n)])


def by_rows(sums: object) -> Any:
    """Accumulators ((2,2),1,N) by rows and columns: (2,(2,N))."""
    return cute.composition(sums, cute.make_layout((2, (2, cute.size(sums, 2))), stride=(2, (1, 4))))
