# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D = act(A @ B^T + bias) on Hopper (sm_90a) for an A of few rows, as in the decoding of a language model.

The memory that holds B is the limit: each element of B is read once and used M times. So the operands change places:
64 or 128 rows of B are the M of wgmma and the rows of A its N, which may be as small as 8. Blocks of a cluster share
K, so that a B of few rows keeps all multiprocessors busy too. Each sums up its part; then each adds up a slice of all
parts, which it reads from the shared memory of the others, always in the same order.

One warp loads by tensor copies. Before the kernel ahead has ended, it brings the first tiles of B to the L2 cache,
which is right even if that kernel writes B.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tilefold import cute
from tilefold.cute import pipeline, utils
from tilefold.cute.nvgpu import cpasync, warpgroup
from tilefold.cute.utils import hopper_helpers

from ..arguments import Array, refuse
from .parts import ROWS, WARPGROUP, Stages

Activation = Callable[[cute.TensorSSA], cute.TensorSSA]
"""A function of the sums that is applied before they are written."""
VECTOR = 4
"""Adjacent sums of a row of D that a thread adds up at a time."""
BUSY = 60
"""Blocks that draw as many bytes as the memory gives, on a GPU with 132 multiprocessors."""
MEMORY = 208 * 1024
"""The shared memory of a multiprocessor that stages and sums may take, in bytes."""


@dataclass(frozen=True)
class Skinny:
    """Sizes of the kernel: the rows of A and of B in a tile, the stages in shared memory, the blocks of a cluster,
    which share K, and the adjacent elements of D that a thread writes, of which N is a multiple.
    """

    m: int = 16
    rows: int = ROWS
    stages: int = 8
    splits: int = 2
    vector: int = VECTOR

    def __post_init__(self) -> None:
        if self.m % 8 or not 8 <= self.m <= 256 or self.rows % ROWS or self.splits not in (1, 2, 4, 8):
            refuse("gemm", "a tile has a multiple of 8 rows of A and of 64 rows of B, a cluster 1, 2, 4 or 8 blocks")


def chosen_skinny(m: int, n: int, k: int, blocks: int, itemsize: int = 2) -> Skinny:
    """The configuration for a GPU with so many multiprocessors. Blocks share K until enough of them draw on the memory;
    more cost time at the end. Where one wave holds all blocks, each has as many stages as fit, and else half as many.
    """
    rows = next((rows for rows in (8, 16, 32, 64) if m <= rows), 128)
    tiles, depth = -(-m // rows) * -(-n // ROWS), 128 // itemsize
    splits = 1
    while splits < 8 and tiles * splits < BUSY * blocks // 132 and 2 * splits <= -(-k // depth):
        splits *= 2
    room = (MEMORY if tiles * splits <= blocks else MEMORY // 2) - rows * (ROWS + VECTOR) * 4
    return Skinny(rows, ROWS, min(room // (128 * (ROWS + rows)), 20), splits)


def is_skinny(m: int, n: int, blocks: int) -> bool:
    """Whether a product is one for this kernel: A has few rows, or D too few tiles for all multiprocessors."""
    return m <= 64 or -(-m // 128) * -(-n // ROWS) < BUSY * blocks // 132


def adjacent(row: Any, number: Any, vector: int) -> Any:
    """Adjacent elements of a row in f32, as a column."""
    return cute.local_tile(row, (vector,), (number,)).load().to(cute.Float32).reshape((vector, 1))


@cute.kernel(min_blocks=1)
def skinny_kernel(
    mA: cute.Tensor,
    mB: cute.Tensor,
    mD: cute.Tensor,
    config: cute.Constexpr[Skinny],
    bias: cute.Tensor | None = None,
    activation: cute.Constexpr[Activation | None] = None,
    scale_m: cute.Tensor | None = None,
    scale_n: cute.Tensor | None = None,
    gate: cute.Tensor | None = None,
    residual: cute.Tensor | None = None,
):
    t = cute.arch.thread_idx()[0]
    n, m, rank = cute.arch.block_idx()
    warp, group = (cute.arch.make_warp_uniform(t // threads) for threads in (32, WARPGROUP))
    cute.arch.griddepcontrol_launch_dependents()

    # shared memory, and the maps of A and B
    dtype = mA.element_type
    depth = 1024 // dtype.bits  # elements in 128 bytes
    shape, by_rows = (config.rows, config.m, depth), utils.LayoutEnum.ROW_MAJOR
    stages_b = Stages(mB, hopper_helpers.make_smem_layout_a(by_rows, shape, dtype, config.stages), (config.rows, depth))
    stages_a = Stages(mA, hopper_helpers.make_smem_layout_b(by_rows, shape, dtype, config.stages), (config.m, depth))
    acc_type = cute.Int32 if dtype.kind == "int" else cute.Float32
    factor = cute.TFloat32 if dtype == cute.Float32 else dtype
    vector = config.vector
    padded = cute.make_layout((config.rows, config.m), stride=(1, config.rows + VECTOR))
    sums = cute.make_smem_tensor(padded, acc_type, alignment=128)

    thread = pipeline.Agent.Thread
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=config.stages,
        producer_group=pipeline.CooperativeGroup(thread),
        consumer_group=pipeline.CooperativeGroup(thread, 4),
        tx_count=128 * (config.rows + config.m),
        defer_sync=True,
    )
    pipeline.pipeline_init_arrive((1, 1))
    producer, consumer = pipe.make_participants()
    count = cute.ceil_div(mA.shape[1], depth)
    begin, end = count * rank // config.splits, count * (rank + 1) // config.splits
    pipeline.pipeline_init_wait((1, 1))

    if group == 1:
        if warp == 4:
            cpasync.prefetch_descriptor(stages_b.atom)
            cpasync.prefetch_descriptor(stages_a.atom)
            with cute.arch.elect_one():
                for k in cute.range(begin, min(end, begin + config.stages)):
                    cute.prefetch(stages_b.atom, stages_b.source[None, n, k])
            cute.arch.griddepcontrol_wait()
            for k in cute.range(begin, end):
                stage = producer.acquire_and_advance()
                with cute.arch.elect_one():
                    stages_b.load((n, k), stage)
                    stages_a.load((m, k), stage)
                stage.commit()
            producer.tail()
    else:
        major = warpgroup.OperandMajorMode.K
        mma = hopper_helpers.make_trivial_tiled_mma(factor, factor, major, major, acc_type, (1, 1, 1), (ROWS, config.m))
        part = mma.get_slice(t)
        rB = mma.make_fragment_A(part.partition_A(stages_b.tensor))  # (MMA,rows / 64,steps,stages)
        rA = mma.make_fragment_B(part.partition_B(stages_a.tensor))  # (MMA,1,steps,stages)
        to_sums = part.partition_C(sums)
        acc = mma.make_fragment_C(to_sums)
        before = consumer.state.clone()
        for k in cute.range(begin, end):
            stage = consumer.wait_and_advance()
            warpgroup.fence()
            for step in cute.range_constexpr(cute.size(rA, 2)):
                mma.set(warpgroup.Field.ACCUMULATE, k > begin if step == 0 else True)
                at = (None, None, step, stage.index)
                cute.gemm(mma, acc, rB[at], rA[at], acc)
            warpgroup.commit_group()
            warpgroup.wait_group(1)
            if k > begin:  # the products before are complete
                pipe.consumer_release(before)
                before.advance()
        warpgroup.wait_group(0)
        pipe.consumer_release(before)
        cute.autovec_copy(acc, to_sums)

    # each block of the cluster adds up a slice of the rows of B
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    share = config.rows // config.splits // vector
    parts = [cute.arch.mapa(sums, peer) if config.splits > 1 else sums for peer in range(config.splits)]
    if group == 0:
        for v in cute.range(t, share * config.m, WARPGROUP):
            row, at = v // share, rank * share + v % share
            into, column = m * config.m + row, n * (config.rows // vector) + at
            if into < mD.shape[0] and column * vector < mD.shape[1]:
                result = cute.local_tile(parts[0], (vector, 1), (at, row)).load()
                for peer in cute.range_constexpr(1, config.splits):
                    result = result + cute.local_tile(parts[peer], (vector, 1), (at, row)).load()
                if scale_m is not None:
                    result = result * scale_m[into]
                if scale_n is not None:
                    result = result * adjacent(scale_n, column, vector)
                if bias is not None:
                    result = result + adjacent(bias, column, vector)
                if activation is not None:
                    result = activation(result)
                if gate is not None:
                    result = result * adjacent(gate[into, None], column, vector)
                if residual is not None:
                    result = result + adjacent(residual[into, None], column, vector)
                to = cute.make_tensor(mD[into, None].iterator, cute.make_layout((mD.shape[1], 1), stride=(1, 0)))
                cute.local_tile(to, (vector, 1), (column, 0)).store(result.to(mD.element_type))
    if config.splits > 1:  # no block ends while others read its sums
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()


def skinny_gemm(
    A: Array,
    B: Array,
    D: Array,
    config: Skinny | None = None,
    device: str = "auto",
    blocks: int = 132,
    bias: Array | None = None,
    activation: Activation | None = None,
    **options: Any,
) -> None:
    """D = activation(A @ B^T + bias) for A of M x K, B of N x K and D of M x N elements, rows contiguous, on a GPU with
    `blocks` multiprocessors.
    """
    m, n = D.shape
    config = config or chosen_skinny(m, n, A.shape[1], blocks, A.dtype.itemsize)
    if config.splits > -(-A.shape[1] * A.dtype.itemsize // 128):
        refuse("gemm", f"{config.splits} blocks share K = {A.shape[1]}, which has fewer strips of 128 bytes")
    config = replace(config, vector=VECTOR if n % VECTOR == 0 else 1)
    grid = -(-n // config.rows), -(-m // config.m), config.splits
    call = skinny_kernel(A, B, D, config, bias, activation)
    call.launch(grid, 2 * WARPGROUP, cluster=(1, 1, config.splits), use_pdl=True, device=device, **options)
