# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts that softmax.py and rmsnorm.py share: rows of a matrix in registers, and reductions over them.

`group` threads, whole warps, keep a row, 16 bytes at a time; a block has `rows` rows. Where they do not divide a row,
the last accesses are predicated.
"""

from dataclasses import dataclass

from tilefold import cute


@dataclass(frozen=True)
class Config:
    """The rows of a block, and the threads of a row."""

    rows: int = 2
    group: int = 64

    def __post_init__(self) -> None:
        if self.group % 32:
            raise SystemExit(f"a row has {self.group} threads, which are no whole warps")

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.rows * self.group

    @property
    def warps(self) -> int:
        """The warps of a row."""
        return self.group // 32


DEFAULT = Config()


class RowTile:
    """The rows of a block: `load` and `store` are a thread's part of them."""

    def __init__(self, config: Config, columns: int) -> None:
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float16, num_bits_per_copy=128)
        threads = cute.make_layout((config.rows, config.group), stride=(config.group, 1))
        self.tiled_copy = cute.make_tiled_copy_tv(atom, threads, cute.make_layout((1, 8)))
        self.shape = (config.rows, columns)
        self.thread = self.tiled_copy.get_slice(cute.arch.thread_idx()[0])
        self.within = None
        if columns % (8 * config.group):
            places = self.thread.partition_S(cute.make_identity_tensor(self.shape))
            self.within = cute.bounds(places, (None, columns))

    def load(self, matrix: cute.Tensor, block: cute.Int | int, beyond: float) -> cute.Tensor:
        """A thread's part of the rows of a block: (8,1,vectors); `beyond` is what stands after the end of a row."""
        tile = cute.local_tile(matrix, self.shape, (block, 0))
        part = self.thread.partition_S(tile)
        values = cute.make_rmem_tensor_like(part)
        if self.within is not None:
            values.fill(beyond)
        cute.copy(self.tiled_copy, part, values, pred=self.within)
        return values

    def store(self, values: cute.Tensor, matrix: cute.Tensor, block: cute.Int | int) -> None:
        """Writes what `load` gave, changed."""
        tile = cute.local_tile(matrix, self.shape, (block, 0))
        part = self.thread.partition_D(tile)
        cute.copy(self.tiled_copy, values, part, pred=self.within)


@cute.jit
def every_warp(values: list[cute.Float], config: Config) -> list[cute.TensorSSA]:
    """Of each value, the same in the threads of a warp, that of all warps of the row."""
    t, _, _ = cute.arch.thread_idx()
    row, warp = t // config.group, t % config.group // 32
    shared = cute.make_smem_tensor((config.warps, config.rows, len(values)), cute.Float32)
    if cute.arch.lane_idx() == 0:
        for i, value in enumerate(values):
            shared[warp, row, i] = value
    cute.arch.sync_threads()
    return [shared[None, row, i].load() for i in range(len(values))]


@cute.jit
def dot(x: cute.TensorSSA, y: cute.TensorSSA) -> cute.Float:
    """The sum of products of elements, each rounded together with the sum so far."""
    total = cute.Float32(0)
    for i in cute.range(x.size, unroll_full=True):
        total = cute.fma(x[i], y[i], total)
    return total
