# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D = A @ B^T on Hopper (sm_90a) for A and B in fp8 with scales in f32: of A one for each 128 elements of a row, of B
one for each block of 128 x 128.

A has M x K elements, B has N x K, with K contiguous and a multiple of 128; D has M x N in f16, bf16 or f32. `scale_a`
has M x K/128 elements and `scale_b` has N/128 x K/128, rounded up, in any order; without scales K is any. Tensor cores
add up 128 products in one accumulator, which is then scaled and added to a sum in f32: products of fp8 are added with
few bits, and the scales differ. Otherwise the kernel is that of gemm.py with cooperative consumers.
"""

import math
from typing import Any

from tilefold import cute
from tilefold.builder.scalars.operators import Operand
from tilefold.cute import pipeline, utils
from tilefold.cute.nvgpu import cpasync, warpgroup
from tilefold.cute.typing import Int

from ..arguments import Array, any_rows, refuse
from ..replay import Launch
from .parts import ROWS, WARPGROUP, Config, Sums, Writer, load_strips, pipe_of, stages_of, warpgroup_mma

BLOCK = 128
"""The elements of K that have a scale, and those of N."""
AHEAD = 4
"""The blocks of K in an iteration, in which multiplications overlap."""
DEFAULT = Config(takes_turns=False)


class ScaledSums(Sums):
    """A consumer's sums in f32 of scaled products, which tensor cores add up for a block of K.

    While the products of one block are scaled, those of the next are added up in other accumulators, if there are
    registers for these.
    """

    def __init__(self, part: Any, a: Any, b: Any, pipe: Any, consumer: Any, tile: tuple[int, int]):
        super().__init__(part, a, b, pipe, consumer, tile)
        self.tile, self.width = tile, math.gcd(tile[1], BLOCK)  # the columns that a scale is for
        self.products = [part.make_fragment_C(self.places) for _ in range(2 if tile[1] <= 128 else 1)]
        self.factors = cute.make_rmem_tensor((2, 1), cute.Float32)

    @cute.jit
    def add_scaled(self, scale_a: Any, scale_b: Any, m: Int, n: Int, count: Int):
        """Sums up a tile. Rows and columns beyond D have the last scales."""
        self.sums.fill(0.0)
        of_tile, scales = None, None
        if scale_a is not None:
            rows = [cute.math.min(m * self.tile[0] + self.places[i][0], scale_a.shape[0] - 1) for i in (0, 2)]
            columns = [n * self.tile[1] + i for i in range(0, self.tile[1], self.width)]
            blocks = [cute.math.min(column // BLOCK, scale_b.shape[0] - 1) for column in columns]
            of_tile = [scale_a[row, None] for row in rows], [scale_b[block, None] for block in blocks]
            scales = self.loaded(of_tile, 0)
        is_short = type(count) is int and count < 2 * AHEAD  # one turn is not a loop, and spills
        step = AHEAD if len(self.products) > 1 and not is_short else 1
        for i in cute.range(count // step, unroll=1):
            scales = self.add_blocks(step * i, step, of_tile, scales)
        for k in cute.range(count // step * step, count, unroll=1):
            scales = self.add_blocks(k, 1, of_tile, scales)

    def add_blocks(self, k: Int, number: int, of_tile: object, scales: Operand) -> Any:
        """Adds some blocks of K, the first of which has these scales. Gives those of the next one."""
        before = self.consumer.state.clone()
        self.multiply(self.products[0])
        for i in range(number):
            following, is_last = None if scales is None else self.loaded(of_tile, k + i + 1), i + 1 == number
            if not is_last:
                self.multiply(self.products[(i + 1) % 2])
            warpgroup.wait_group(0 if is_last else 1)
            self.pipe.consumer_release(before)
            before.advance()
            if scales is None:
                self.sums.store(self.sums.load() + self.products[i % 2].load())
            else:
                self.add(self.products[i % 2], *scales)
            scales = following
        return scales

    def loaded(self, of_tile: Int, k: Int) -> Any:
        """The scales of a block of K, or of the last one."""
        k = cute.math.min(k, cute.size(of_tile[0][0]) - 1)
        return tuple([mode[k] for mode in some] for some in of_tile)

    def add(self, products: cute.Tensor, of_rows: Any, of_columns: Any) -> None:
        """Adds products times their scales; a thread has those of two rows."""
        shape, stride = (2, (2, self.width // 8), len(of_columns)), (2, (1, 4), self.width // 2)
        by_rows = cute.make_layout(shape, stride=stride)
        products, sums = cute.composition(products, by_rows), cute.composition(self.sums, by_rows)
        for chunk, of_column in enumerate(of_columns):
            for row, of_row in enumerate(of_rows):
                self.factors[row] = of_row * of_column
            at = None, None, chunk
            sums[at].store(cute.fma(products[at].load(), self.factors.load(), sums[at].load()))


@cute.kernel(min_blocks=1)
def gemm_fp8_scaled_kernel(
    mA: cute.Tensor,
    mB: cute.Tensor,
    scale_a: cute.Tensor | None,
    scale_b: cute.Tensor | None,
    mD: cute.Tensor,
    config: cute.Constexpr[Config],
):
    t = cute.arch.thread_idx()[0]
    warp = cute.arch.make_warp_uniform(t // 32)
    group = cute.arch.make_warp_uniform(t // WARPGROUP)
    cluster = cute.make_layout((*config.cluster, 1))
    rank = cute.arch.block_in_cluster_idx() if cute.size(cluster) > 1 else (0, 0, 0)
    cute.arch.griddepcontrol_launch_dependents()

    stages_a, stages_b = stages_of(mA, mB, config, BLOCK, cluster, rank)
    writer = Writer(mD, config.consumers, config.buffers)
    pipe = pipe_of(config)
    pipeline.pipeline_init_arrive(config.cluster, is_relaxed=True)
    producer, consumer = pipe.make_participants()
    count = cute.ceil_div(mA.shape[1], BLOCK)
    problem = cute.ceil_div(mA.shape[0], config.m), cute.ceil_div(mB.shape[0], config.n), 1
    params = utils.PersistentTileSchedulerParams(problem, (*config.cluster, 1), config.group, raster_along_m=False)
    scheduler = utils.StaticPersistentTileScheduler.create(params, cute.arch.block_idx(), cute.arch.grid_dim())
    pipeline.pipeline_init_wait(config.cluster)

    if group == 0:
        if config.consumers > 1:
            cute.arch.setmaxregister_decrease(40)
        if warp == 0:
            cpasync.prefetch_descriptor(stages_a.atom)
            cpasync.prefetch_descriptor(stages_b.atom)
            cute.arch.griddepcontrol_wait()
            work = scheduler.initial_work_tile_info()
            while work.is_valid_tile:
                m, n, _ = work.tile_idx
                load_strips(producer, 0, count, stages_a, (m,), stages_b, (n,))
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
            producer.tail()
    else:
        if config.consumers > 1:  # a thread of one alone has enough
            cute.arch.setmaxregister_increase(232)
        own = group - 1
        part = warpgroup_mma(mA, mB, config.consumers, config.n).get_slice(t - WARPGROUP)
        sums = ScaledSums(part, stages_a.tensor, stages_b.tensor, pipe, consumer, (config.m, config.n))
        writer.begin(t % WARPGROUP, own)
        chunks = writer.chunks(sums.sums)
        cute.arch.griddepcontrol_wait()
        work = scheduler.initial_work_tile_info()
        while work.is_valid_tile:
            m, n, _ = work.tile_idx
            sums.add_scaled(scale_a, scale_b, m, n, count)
            for chunk in cute.range_constexpr(cute.size(chunks, 3)):
                place = config.m // ROWS * m + own, cute.size(chunks, 3) * n + chunk
                writer.write(chunks[None, None, None, chunk], place)
            scheduler.advance_to_next_work()
            work = scheduler.get_current_work()
        writer.end()


def check_scales(k: int, scale_a: Array, of_a: tuple[int, ...], scale_b: Array, of_b: tuple[int, ...]) -> None:
    """LaunchError (E3106) unless each block of A and of B has a scale; their modes before K are given by blocks."""
    if k % BLOCK or k == 0:
        refuse("scaled gemm", f"K = {k} is not a multiple of {BLOCK}, the elements that have a scale")
    for name, scales, modes in (("scale_a", scale_a, of_a), ("scale_b", scale_b, of_b)):
        shape = *modes, k // BLOCK
        if scales is None or tuple(scales.shape) != shape:
            given = None if scales is None else tuple(scales.shape)
            refuse("scaled gemm", f"{name} has the shape {given}; it has a scale for each block: {shape}")


def scaled_launch(
    A: Array, B: Array, scale_a: Array | None, scale_b: Array | None, D: Array, blocks: int, config: Config = DEFAULT
) -> Launch | None:
    """The launch for D = (scale_a * A) @ (scale_b * B)^T, by at most `blocks` blocks; None where D is empty."""
    (m, k), n = A.shape, B.shape[0]
    if scale_a is not None or scale_b is not None:
        check_scales(k, scale_a, (m,), scale_b, (-(-n // BLOCK),))
    if config.takes_turns or config.m != ROWS * config.consumers or config.n > 192:
        refuse("scaled gemm", "consumers share a tile, 64 rows and at most 192 columns each")
    if 0 in D.shape:
        return None
    params = utils.PersistentTileSchedulerParams((-(-m // config.m), -(-n // config.n), 1), (*config.cluster, 1))
    grid = utils.StaticPersistentTileScheduler.get_grid_shape(params, blocks // (config.cluster[0] * config.cluster[1]))
    given = any_rows(A), B, any_rows(scale_a), scale_b, any_rows(D), config
    options = {"cluster": (*config.cluster, 1), "use_pdl": True}
    return Launch(gemm_fp8_scaled_kernel, given, grid, config.threads, options)


def gemm_fp8_scaled(
    A: Array,
    B: Array,
    scale_a: Array,
    scale_b: Array,
    D: Array,
    config: Config = DEFAULT,
    device: str = "auto",
    blocks: int = 132,
    **options: object,
) -> None:
    """D = (scale_a * A) @ (scale_b * B)^T by at most `blocks` blocks, one for each multiprocessor."""
    launch = scaled_launch(A, B, scale_a, scale_b, D, blocks, config)
    if launch is not None:
        launch.run(A, device, **options)
