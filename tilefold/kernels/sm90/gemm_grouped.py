# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of groups of rows, each with its own B, on Hopper (sm_90a): D_g = A_g @ B_g^T in one launch.

B has (groups, N, K) elements, and `rows` (groups) has the number of rows of each group. They are read on the GPU, so
the host need not know them, and a graph of launches serves all. Blocks go through the tiles of all groups. A and D are

- contiguous, (M, K) and (M, N): the groups follow each other, each at a multiple of the tile's rows; or
- masked, (groups, M, K) and (groups, M, N): of each group the first rows count.

Rows between the end of a group and that of its last tile are computed like others. Elements of A and B are f16 or bf16,
or fp8 with scales of blocks (gemm_scaled.py), which have a mode of groups where A and B have one.
"""

from typing import Any

from tilefold import cute
from tilefold.cute.nvgpu import cpasync
from tilefold.cute.typing import Int

from ..arguments import Array, refuse
from ..replay import Launch
from .gemm_scaled import BLOCK, ScaledSums, check_scales
from .gemm_scaled import DEFAULT as WITH_SCALES
from .parts import ROWS, WARPGROUP, Config, Sums, Writer, load_strips, pipe_of, stages_of, warpgroup_mma

DEFAULT = Config(n=256, stages=4, takes_turns=False)


class GroupedTiles:
    """The tiles of D of all groups, one group after the other, and the group that a block has come to."""

    def __init__(self, rows: cute.Tensor, columns: Int, height: int):
        self.rows, self.columns, self.height = rows, columns, height
        self.groups = cute.size(rows)
        self.group, self.first, self.above = cute.Int32(0), cute.Int32(0), cute.Int32(0)
        self.high = cute.ceil_div(rows[0], height)

    @cute.jit
    def find(self, index: Int):
        """Whether there is a tile of this number; goes on to its group then."""
        while self.group < self.groups and index - self.first >= self.high * self.columns:
            self.first += self.high * self.columns
            self.above += self.high
            self.group += 1
            if self.group < self.groups:
                self.high = cute.ceil_div(self.rows[self.group], self.height)
        return self.group < self.groups

    def place(self, index: Int) -> tuple[Int, Int]:
        """The row and column of a tile within its group, counted by tiles."""
        return cute.rasterize(index - self.first, self.high, self.columns)


@cute.kernel(min_blocks=1)
def gemm_grouped_kernel(
    mA: cute.Tensor,
    mB: cute.Tensor,
    rows: cute.Tensor,
    mD: cute.Tensor,
    config: cute.Constexpr[Config],
    scale_a: cute.Tensor | None = None,
    scale_b: cute.Tensor | None = None,
):
    t = cute.arch.thread_idx()[0]
    block, blocks = cute.arch.block_idx()[0], cute.arch.grid_dim()[0]
    warp = cute.arch.make_warp_uniform(t // 32)
    group = cute.arch.make_warp_uniform(t // WARPGROUP)
    cute.arch.griddepcontrol_launch_dependents()

    is_masked = cute.rank(mA) == 3
    if is_masked:
        mA, mD = cute.select(mA, [1, 2, 0]), cute.select(mD, [1, 2, 0])
    mB = cute.select(mB, [1, 2, 0])
    depth = 1024 // mA.element_type.bits
    stages_a, stages_b = stages_of(mA, mB, config, depth)
    writer = Writer(mD, config.consumers, config.buffers)
    pipe = pipe_of(config, defer_sync=False)
    producer, consumer = pipe.make_participants()
    count = cute.ceil_div(mA.shape[1], depth)
    cute.arch.griddepcontrol_wait()
    tiles = GroupedTiles(rows, cute.ceil_div(mB.shape[0], config.n), config.m)
    index = block

    if group == 0:
        if config.consumers > 1:
            cute.arch.setmaxregister_decrease(40)
        if warp == 0:
            cpasync.prefetch_descriptor(stages_a.atom)
            cpasync.prefetch_descriptor(stages_b.atom)
            while tiles.find(index):
                m, n = tiles.place(index)
                of_a = (m, tiles.group) if is_masked else (tiles.above + m,)
                load_strips(producer, 0, count, stages_a, of_a, stages_b, (n, tiles.group))
                index += blocks
            producer.tail()
    else:
        if config.consumers > 1:  # a thread of one alone has enough
            cute.arch.setmaxregister_increase(232)
        own = group - 1
        part = warpgroup_mma(mA, mB, config.consumers, config.n).get_slice(t - WARPGROUP)
        kind: Any = Sums if scale_a is None else ScaledSums
        sums = kind(part, stages_a.tensor, stages_b.tensor, pipe, consumer, (config.m, config.n))
        writer.begin(t % WARPGROUP, own)
        chunks = writer.chunks(sums.sums)
        while tiles.find(index):
            m, n = tiles.place(index)
            row = m if is_masked else tiles.above + m
            if scale_a is None:
                sums.add_up(count)
            else:
                of_group = scale_a[tiles.group, None, None] if is_masked else scale_a
                assert scale_b is not None
                sums.add_scaled(of_group, scale_b[tiles.group, None, None], row, n, count)
            for chunk in cute.range_constexpr(cute.size(chunks, 3)):
                place = config.m // ROWS * row + own, cute.size(chunks, 3) * n + chunk
                writer.write(chunks[None, None, None, chunk], (*place, tiles.group) if is_masked else place)
            index += blocks
        writer.end()


def grouped_launch(
    A: Array, B: Array, rows: Array, D: Array, scale_a: Array | None, scale_b: Array | None, blocks: int,
    config: Config | None = None,
) -> Launch | None:  # fmt: skip
    """The launch for D_g = A_g @ B_g^T for all groups, by `blocks` blocks; None where D is empty."""
    config = config or (DEFAULT if scale_a is None else WITH_SCALES)
    (*groups, m, k), count = A.shape, B.shape[0]
    if tuple(rows.shape) != (count,) or (groups and groups != [count]):
        refuse("grouped_gemm", f"there are {count} groups of B, and the other arguments must have as many")
    if config.takes_turns or config.m != ROWS * config.consumers or config.cluster != (1, 1):
        refuse("grouped_gemm", "consumers share a tile, 64 rows each, and blocks are in no clusters")
    if not groups and m % config.m:
        refuse(
            "grouped_gemm", f"groups begin at multiples of the tile's {config.m} rows, and M = {m} is not a multiple"
        )
    if scale_a is not None:
        check_scales(k, scale_a, (*groups, m), scale_b, (count, -(-B.shape[1] // BLOCK)))
        if config.n > 192:
            refuse("grouped_gemm", "with scales, a tile has at most 192 columns")
    if k == 0:
        refuse("grouped_gemm", "K is 0, and there is nothing to multiply")
    if 0 in D.shape:
        return None
    given = A, B, rows, D, config, scale_a, scale_b
    return Launch(gemm_grouped_kernel, given, (blocks, 1, 1), config.threads, {"use_pdl": True})


def gemm_grouped(
    A: Array,
    B: Array,
    rows: Array,
    D: Array,
    scale_a: Array | None = None,
    scale_b: Array | None = None,
    config: Config | None = None,
    device: str = "auto",
    blocks: int = 132,
    **options: object,
) -> None:
    """D_g = A_g @ B_g^T for all groups, by `blocks` blocks, one for each multiprocessor."""
    launch = grouped_launch(A, B, rows, D, scale_a, scale_b, blocks, config)
    if launch is not None:
        launch.run(A, device, **options)
