# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D = act(A @ B^T + bias) in f16 on tensor cores, the kernel of examples/gemm.cute in Python.

A has M x K elements, B has N x K, D has M x N, all with the last index contiguous; bias has N. A block computes a tile
in registers. It goes through K by tiles, of which some stages are in shared memory: while one is multiplied, the others
are on their way by cp.async. docs/gemm.md explains the main loop, docs/tutorial.md how one gets there.

    python examples/python/gemm.py
    python examples/python/gemm.py --device cuda --size 4096 4096 4096
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from common import Array, check, chosen, normal, parser, place

from tilefold import cute


@dataclass(frozen=True)
class Config:
    """Sizes of the kernel: the tile of a block, its warps along M and N, and the stages in shared memory.

    The defaults take 144 KiB of shared memory; GPUs that have less (sm_86, sm_89, sm_120) take two stages.
    """

    m: int = 128
    n: int = 256
    k: int = 64
    warps: tuple[int, int] = (2, 4)
    stages: int = 3

    def __post_init__(self) -> None:
        if self.stages < 2:
            raise SystemExit("there are at least two stages: one is multiplied while the next is loaded")

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return 32 * self.warps[0] * self.warps[1]


DEFAULT = Config()


def shared_layout(rows: int, columns: int, stages: int = 1) -> cute.Layout | cute.ComposedLayout:
    """Rows of at most 128 bytes of f16, swizzled so that no access has bank conflicts: (rows,columns,stages)."""
    width = min(columns, 64)
    shape = (rows, (width, columns // width), stages)
    stride = (width, (1, width * rows), rows * columns)
    plain = cute.make_layout(shape, stride=stride)
    return cute.make_composed_layout(cute.make_swizzle(3 if width == 64 else 2, 3, 3), 0, plain)


def by_rows(threads: int, columns: int) -> tuple[cute.Layout, cute.Layout]:
    """The threads over a tile, and the values of each: 16 bytes of f16 a thread, neighbours along a row."""
    along = min(threads, columns // 8)
    return cute.make_layout((threads // along, along), stride=(along, 1)), cute.make_layout((1, 8), stride=(0, 1))


Activation = Callable[[cute.TensorSSA], cute.TensorSSA]
"""The function of the sums, in f32, that is written."""


def by_columns(fragment: cute.Tensor) -> cute.Tensor:
    """A thread's part of C, ((2,2),M,N), by rows and columns of the matrix: ((2,M),(2,N))."""
    m, n = cute.size(fragment, 1), cute.size(fragment, 2)
    return cute.composition(fragment, cute.make_layout(((2, m), (2, n)), stride=((2, 4), (1, 4 * m))))


@cute.kernel
def gemm_kernel(
    mA: cute.Tensor,
    mB: cute.Tensor,
    mD: cute.Tensor,
    bias: cute.Tensor | None,
    config: cute.Constexpr[Config],
    activation: cute.Constexpr[Activation | None],
):
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    ahead = config.stages - 1
    tiles_m, tiles_n = mA.shape[0] // config.m, mB.shape[0] // config.n
    m, n = cute.rasterize(block, tiles_m, tiles_n)
    gA = cute.local_tile(mA, (config.m, config.k), (m, None))  # (m,k,count)
    gB = cute.local_tile(mB, (config.n, config.k), (n, None))  # (n,k,count)
    gD = cute.local_tile(mD, (config.m, config.n), (m, n))  # (m,n)
    count = cute.size(gA, 2)

    # D takes the place of the stages in the end
    bytes_a = 2 * config.m * config.k * config.stages
    bytes_b = 2 * config.n * config.k * config.stages
    memory = cute.make_smem_tensor(max(bytes_a + bytes_b, 2 * config.m * config.n), cute.Int8, alignment=1024)
    sA = cute.alias(memory, shared_layout(config.m, config.k, config.stages), cute.Float16)
    sB = cute.alias(memory, shared_layout(config.n, config.k, config.stages), cute.Float16, offset=bytes_a)
    sD = cute.alias(memory, shared_layout(config.m, config.n), cute.Float16)[None, None, 0]

    # global to shared memory: a predicate is false where there is no tile to load, and no byte is read then
    load = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(cute.nvgpu.LoadCacheMode.GLOBAL, zfill=True), cute.Float16)
    g2s = cute.make_tiled_copy_tv(load, *by_rows(config.threads, config.k)).get_slice(t)
    tAgA, tAsA = g2s.partition_S(gA), g2s.partition_D(sA)  # (8,rows,columns,count or stages)
    tBgB, tBsB = g2s.partition_S(gB), g2s.partition_D(sB)
    pA = cute.make_rmem_tensor(cute.make_layout((1, *tAsA.shape[1:3]), stride=(0, 0, 0)), cute.Boolean)
    pB = cute.make_rmem_tensor(cute.make_layout((1, *tBsB.shape[1:3]), stride=(0, 0, 0)), cute.Boolean)

    # registers: what a thread multiplies in a tile, and what it accumulates
    warps_m, warps_n = config.warps
    op = cute.nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op, (warps_m, warps_n, 1), (16 * warps_m, 16 * warps_n, 16)).get_slice(t)
    tCsD = mma.partition_C(sD)
    rA = mma.make_fragment_A(mma.partition_A(sA)[None, None, None, 0])  # (MMA,MMA_M,steps)
    rB = mma.make_fragment_B(mma.partition_B(sB)[None, None, None, 0])  # (MMA,MMA_N,steps)
    acc = mma.make_fragment_C(tCsD)
    acc.fill(0.0)

    # shared memory to registers: four 8 x 8 matrices at a time
    matrices = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(num_matrices=4), cute.Float16)
    s2rA = cute.make_tiled_copy_A(matrices, mma.tiled_mma).get_slice(t)
    s2rB = cute.make_tiled_copy_B(matrices, mma.tiled_mma).get_slice(t)
    tXsA, tXrA = s2rA.partition_S(sA), s2rA.retile(rA)
    tXsB, tXrB = s2rB.partition_S(sB), s2rB.retile(rB)
    steps = cute.size(rA, 2)
    load_a, load_b = min(1, steps - 2), min(2, steps - 2)

    # the first tiles of all stages but one
    for s in cute.range(ahead, unroll_full=True):
        pA.fill(s < count)
        pB.fill(s < count)
        cute.copy(g2s, tAgA[None, None, None, s], tAsA[None, None, None, s], pred=pA)
        cute.copy(g2s, tBgB[None, None, None, s], tBsB[None, None, None, s], pred=pB)
        cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(config.stages - 2)
    cute.arch.sync_threads()
    cute.copy(s2rA, tXsA[None, None, 0, 0], tXrA[None, None, 0])
    cute.copy(s2rB, tXsB[None, None, 0, 0], tXrB[None, None, 0])

    read, write = 0, ahead
    for i in cute.range(count):
        # the stage to read next; the next tile to load goes where the one before was read
        read_next = 0 if read + 1 == config.stages else read + 1
        there = i + ahead < count
        for step in cute.range(steps, unroll_full=True):
            # fragments are loaded one step ahead: in the last step those of the next tile, once it is there
            stage = read
            if step == steps - 1:
                cute.arch.cp_async_wait_group(config.stages - 2)
                cute.arch.sync_threads()
                stage = read_next
            following = (step + 1) % steps
            cute.copy(s2rA, tXsA[None, None, following, stage], tXrA[None, None, following])
            cute.copy(s2rB, tXsB[None, None, following, stage], tXrB[None, None, following])
            if step == load_a:
                pA.fill(there)
                cute.copy(g2s, tAgA[None, None, None, i + ahead], tAsA[None, None, None, write], pred=pA)
            if step == load_b:
                pB.fill(there)
                cute.copy(g2s, tBgB[None, None, None, i + ahead], tBsB[None, None, None, write], pred=pB)
                cute.arch.cp_async_commit_group()
            cute.gemm(mma, rA[None, None, step], rB[None, None, step], acc)
        read, write = read_next, read
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()

    # a column has the same bias in every row
    result = by_columns(acc).load()
    if bias is not None:
        every_row = cute.make_tensor(bias.iterator, cute.make_layout(mD.shape, stride=(0, 1)))
        tCgBias = mma.partition_C(cute.local_tile(every_row, (config.m, config.n), (m, n)))
        row = by_columns(tCgBias)[0, None].load()
        result = result + row.reshape((1, row.size))
    if activation is not None:
        result = activation(result)

    # through shared memory, so that D is written by 16 bytes and whole rows
    rD = cute.make_rmem_tensor_like(acc, cute.Float16)
    by_columns(rD).store(result.to(cute.Float16))
    cute.autovec_copy(rD, tCsD)
    cute.arch.sync_threads()
    wide = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float16, num_bits_per_copy=128)
    s2g = cute.make_tiled_copy_tv(wide, *by_rows(config.threads, config.n)).get_slice(t)
    cute.copy(s2g, s2g.partition_S(sD), s2g.partition_D(gD))


def gemm(
    A: Array,
    B: Array,
    D: Array,
    bias: Array | None = None,
    activation: Activation | None = None,
    config: Config = DEFAULT,
    device: str = "auto",
) -> None:
    """D = activation(A @ B^T + bias), by a block for each tile of D. The tiles must cover the problem."""
    for mode, extent, tile in (("M", A.shape[0], config.m), ("N", B.shape[0], config.n), ("K", A.shape[1], config.k)):
        if extent % tile:
            raise SystemExit(f"{mode} = {extent} is not a multiple of the tile's {tile}")
    tiles = (A.shape[0] // config.m) * (B.shape[0] // config.n)
    call = gemm_kernel(A, B, D, bias, config, activation)
    call.launch(grid=(tiles, 1, 1), block=(config.threads, 1, 1), device=device)


def main(arguments: list[str] | None = None) -> None:
    made = parser("D = A @ B^T on tensor cores", m=128, n=256, k=128, stages=DEFAULT.stages)
    made.add_argument("--report", action="store_true", help="print what the kernel costs, too")
    options = made.parse_args(arguments)
    device = chosen(options.device)
    hA, hB = normal(0, (options.m, options.k)), normal(1, (options.n, options.k))
    A, B, D = place(device, hA, hB, np.empty((options.m, options.n), np.float16))
    gemm(A, B, D, config=Config(stages=options.stages), device=device)
    check("D", D, hA.astype(np.float32) @ hB.astype(np.float32).T)
    if options.report:
        print(gemm_kernel.report())


if __name__ == "__main__":
    main()
