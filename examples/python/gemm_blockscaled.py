# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D = (A * scales of A) @ (B * scales of B)^T on Blackwell (sm_100a), for A and B in fp8 or fp4: TMA copies, and
multiplications with scales in tensor memory. No GPU of this kind has run it; docs/blackwell.md leads to it.

A has M x K elements, B has N x K, D has M x N in f32. Neighbours along K share a scale: 32 elements of fp8 (`mxf8`) or
of fp4 (`mxf4`) a power of 2 (ue8m0), 16 of fp4 a float of 8 bits (`nvf4`, e4m3). Two elements of fp4 are in a byte, the
first in its low half. The scales are in blocks of 512 bytes, in the order of `gemm_sm120.blocked`.

A block makes a tile of 128 rows. Warp 4 loads tiles and blocks of scales to stages of shared memory. A thread of warp 5
copies the scales of a stage to tensor memory, each stage to its own columns, and multiplies. Warps 0 to 3 store.

    python examples/python/gemm_blockscaled.py
    python examples/python/gemm_blockscaled.py --kind mxf8 --m 256 --k 512
"""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from common import Array, check, chosen, normal, parser, place
from gemm_sm120 import blocked, packed

from tilefold import cute
from tilefold.cute import pipeline, utils
from tilefold.cute.nvgpu import cpasync, tcgen05
from tilefold.cute.utils import blackwell_helpers as sm100
from tilefold.cute.utils import blockscaled_layout

ROWS = 128
"""The rows of A, and of B, for a block: a block of scales has as many."""
EPILOGUE, LOADS, MULTIPLIES, WARPS = 4, 4, 5, 6
"""The warps that store, the numbers of the others, and their count."""


@dataclass(frozen=True)
class Kind:
    """The elements of A and B, the scales, how many elements share one, and the elements of K of a stage."""

    element: Any
    scale: Any
    vector: int
    depth: int


KINDS = {
    "mxf8": Kind(cute.Float8E4M3FN, cute.Float8E8M0FNU, 32, 128),
    "mxf4": Kind(cute.Float4E2M1FN, cute.Float8E8M0FNU, 32, 256),
    "nvf4": Kind(cute.Float4E2M1FN, cute.Float8E4M3FN, 16, 256),
}


class Loads:
    """The TMA copies of an operand, or of its scales, to stages of shared memory."""

    def __init__(
        self, tensor: Any, mma: Any, tile: Any, layout: Any, at: Any, of_a: bool, is_scale: bool = False
    ) -> None:
        element, one = tensor.element_type, cute.slice_(layout, (None, None, None, 0))
        self.shared = cute.make_smem_tensor(layout, element, 1024)
        self.bytes = cute.size_in_bytes(element, one)
        make = cute.nvgpu.make_tiled_tma_atom_A if of_a else cute.nvgpu.make_tiled_tma_atom_B
        moved = cute.Int16 if is_scale else element  # two scales at once
        self.atom, every = make(cpasync.CopyBulkTensorTileG2SOp(), tensor, one, tile, mma, internal_type=moved)
        tiles = cute.local_tile(every, tile, (*at, None), proj=(1, None, 1) if of_a else (None, 1, 1))
        tiles = mma.get_slice(0).partition_A(tiles) if of_a else mma.get_slice(0).partition_B(tiles)
        whole = cute.group_modes(self.shared, 0, 3), cute.group_modes(tiles, 0, 3)
        to, source = cpasync.tma_partition(self.atom, 0, cute.make_layout(1), *whole)
        self.to, self.source = (cute.filter_zeros(to), cute.filter_zeros(source)) if is_scale else (to, source)

    def load(self, k: Any, stage: Any) -> None:
        """Loads tile `k` to a stage."""
        cute.copy(self.atom, self.source[None, k], self.to[None, stage.index], tma_bar_ptr=stage.barrier)


class Scales:
    """The scales of an operand in tensor memory from column `start` on, and the copy to it."""

    def __init__(self, start: Any, layout: Any, shared: Any) -> None:
        self.tensor = cute.make_tensor(cute.recast_ptr(start, dtype=shared.element_type), layout)
        compact = cute.filter_zeros(self.tensor)
        atom = cute.make_copy_atom(tcgen05.Cp4x32x128bOp(tcgen05.CtaGroup.ONE), shared.element_type)
        self.copy = tcgen05.make_s2t_copy(atom, compact)
        own = self.copy.get_slice(0)
        self.source = tcgen05.get_s2t_smem_desc_tensor(self.copy, own.partition_S(cute.filter_zeros(shared)))
        self.to = own.partition_D(compact)

    def load(self, stage: Any) -> None:
        """Copies the scales of a stage."""
        cute.copy(self.copy, self.source[None, None, None, None, stage.index], self.to)


@cute.kernel
def gemm_kernel(
    mA: cute.Tensor,
    mB: cute.Tensor,
    mSA: cute.Tensor,
    mSB: cute.Tensor,
    mD: cute.Tensor,
    kind: cute.Constexpr,
    columns: cute.Constexpr[int],
    stages: cute.Constexpr[int],
) -> None:
    if kind.element.bits == 4:  # bytes of two elements
        mA, mB = cute.recast_tensor(mA, kind.element), cute.recast_tensor(mB, kind.element)
    tile, single = (ROWS, columns, kind.depth), cute.Float32
    K, one_block = cute.nvgpu.OperandMajorMode.K, tcgen05.CtaGroup.ONE
    mma = sm100.make_blockscaled_trivial_tiled_mma(
        kind.element, kind.element, K, K, kind.scale, kind.vector, one_block, tile[:2]
    )
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    row, column, _ = cute.arch.block_idx()
    at = (row, column)

    # the TMA copies of operands and of scales
    of_a = sm100.make_smem_layout_a(mma, tile, kind.element, stages)
    of_b = sm100.make_smem_layout_b(mma, tile, kind.element, stages)
    of_sa = blockscaled_layout.make_smem_layout_sfa(mma, tile, kind.vector, stages)
    of_sb = blockscaled_layout.make_smem_layout_sfb(mma, tile, kind.vector, stages)
    blocks_a, blocks_b = (
        cute.make_tensor(scales.iterator, blockscaled_layout.tile_atom_to_shape_SF(matrix.shape, kind.vector))
        for scales, matrix in ((mSA, mA), (mSB, mB))
    )
    A, B = Loads(mA, mma, tile, of_a, at, True), Loads(mB, mma, tile, of_b, at, False)
    SA, SB = Loads(blocks_a, mma, tile, of_sa, at, True, True), Loads(blocks_b, mma, tile, of_sb, at, False, True)
    loads = [A, B, SA, SB]

    # the barriers, and tensor memory: the accumulator, and the scales of each stage
    thread = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    storing = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32 * EPILOGUE)
    producer, consumer = pipeline.PipelineTmaUmma.create(
        num_stages=stages, producer_group=thread, consumer_group=thread, tx_count=sum(each.bytes for each in loads)
    ).make_participants()
    sums, summed = pipeline.PipelineUmmaAsync.create(
        num_stages=1, producer_group=thread, consumer_group=storing
    ).make_participants()
    meet, stored = pipeline.NamedBarrier(1, 32 * (EPILOGUE + 1)), pipeline.NamedBarrier(2, 32 * EPILOGUE)
    tmem = utils.TmemAllocator(cute.make_smem_tensor(1, cute.Int32).iterator, meet)
    shape = mma.make_fragment_C(mma.partition_shape_C(tile[:2])).layout
    laid_a = blockscaled_layout.make_tmem_layout_sfa(mma, tile, kind.vector, cute.slice_(of_sa, (None, None, None, 0)))
    laid_b = blockscaled_layout.make_tmem_layout_sfb(mma, tile, kind.vector, cute.slice_(of_sb, (None, None, None, 0)))
    each_a, each_b = (kind.depth // kind.vector * rows // ROWS for rows in (ROWS, columns))  # columns of a stage
    count = mA.shape[1] // kind.depth

    if warp == LOADS:
        for k in cute.range(count):
            stage = producer.acquire_and_advance()
            for each in loads:
                each.load(k, stage)
        producer.tail()
    elif warp == MULTIPLIES:
        tmem.wait_for_alloc()
        start = tmem.retrieve_ptr(single)
        acc = cute.make_tensor(start, shape)
        tCrA, tCrB = mma.make_fragment_A(A.shared), mma.make_fragment_B(B.shared)
        room = sums.acquire_and_advance()
        for _ in cute.range(count):
            stage = consumer.wait_and_advance()
            first = start + (columns + stage.index * (each_a + each_b))
            scales_a, scales_b = Scales(first, laid_a, SA.shared), Scales(first + each_a, laid_b, SB.shared)
            scales_a.load(stage)
            scales_b.load(stage)
            for k in cute.range_constexpr(cute.size(tCrA, mode=[2])):
                mma.set(tcgen05.Field.SFA, scales_a.tensor[None, None, k].iterator)
                mma.set(tcgen05.Field.SFB, scales_b.tensor[None, None, k].iterator)
                cute.gemm(mma, acc, tCrA[None, None, k, stage.index], tCrB[None, None, k, stage.index], acc)
                mma.set(tcgen05.Field.ACCUMULATE, True)
            stage.release()
        room.commit()
    else:
        tmem.allocate(256 if columns + stages * (each_a + each_b) <= 256 else 512)
        tmem.relinquish_alloc_permit()
        tmem.wait_for_alloc()
        start = tmem.retrieve_ptr(single)
        acc = cute.make_tensor(start, shape)
        out = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), single), acc)
        mine = out.get_slice(cute.arch.thread_idx()[0])
        tDgD = mine.partition_D(mma.get_slice(0).partition_C(cute.local_tile(mD, tile[:2], at)))
        held = cute.make_rmem_tensor(tDgD.shape, single)
        complete = summed.wait_and_advance()
        cute.copy(out, mine.partition_S(acc), held)
        cute.arch.fence_view_async_tmem_load()
        cute.autovec_copy(held, tDgD)
        complete.release()
        stored.arrive_and_wait()  # all four warps have loaded their lanes
        tmem.free(start)


def gemm(
    A: Array,
    B: Array,
    scales_a: Array,
    scales_b: Array,
    D: Array,
    kind: str = "nvf4",
    columns: int = 128,
    stages: int = 3,
    device: str = "auto",
    **options: Any,
) -> None:
    """D = A @ B^T with scales, by a block for each tile of 128 x `columns`, 128 or 256. A and B of fp4 are `packed`. K
    is a multiple of the depth of a stage.
    """
    grid = (D.shape[0] // ROWS, D.shape[1] // columns, 1)
    call = gemm_kernel(A, B, scales_a, scales_b, D, KINDS[kind], columns, stages)
    call.launch(grid, 32 * WARPS, device=device, **options)


def main(arguments: list[str] | None = None) -> None:
    made = parser("D = A @ B^T with scales on tensor cores of Blackwell", m=128, n=128, k=512)
    made.add_argument("--kind", choices=KINDS, default="nvf4")
    options = made.parse_args(arguments)
    m, n, k, kind = options.m, options.n, options.k, KINDS[options.kind]
    if m % ROWS or n % ROWS or k % kind.depth:
        raise SystemExit(f"M and N are multiples of {ROWS}, K of {kind.depth}")
    device = chosen(options.device)
    is_half, type = kind.element.bits == 4, ml_dtypes.float8_e4m3fn
    factor = ml_dtypes.float8_e4m3fn if kind.vector == 16 else ml_dtypes.float8_e8m0fnu
    hA, hB = (normal(seed, (rows, k), np.float32) for seed, rows in ((0, m), (1, n)))
    scales = [
        (2.0 ** np.random.default_rng(seed).integers(-2, 2, (rows, k // kind.vector))).astype(factor)
        for seed, rows in ((2, m), (3, n))
    ]
    given = [packed(x) if is_half else x.astype(type) for x in (hA, hB)]
    A, B, SA, SB, D = place(device, *given, *map(blocked, scales), np.empty((m, n), np.float32))
    gemm(A, B, SA, SB, D, options.kind, device=device)
    wide = [
        x.astype(ml_dtypes.float4_e2m1fn if is_half else type).astype(np.float32)
        * s.astype(np.float32).repeat(kind.vector, 1)
        for x, s in zip((hA, hB), scales, strict=True)
    ]
    check("D", D, wide[0] @ wide[1].T, atol=1e-2)


if __name__ == "__main__":
    main()
