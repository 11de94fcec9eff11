# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D = (A * scales of A) @ (B * scales of B)^T on GeForce Blackwell (sm_120a), for A and B in fp4: TMA copies, and
mma.sync with scales. For A and B in f16 without scales: D = A @ B^T.

A has M x K elements, B has N x K, two of 4 bits in a byte, the first in its low half; D has M x N in f16. Each 16
neighbours along K have a scale in fp8 (e4m3, NVFP4), or each 32 a power of 2 (ue8m0, MXFP4). M and N are multiples of
128. Nothing of this has run on such a GPU yet: the simulator and the assembler are what it has been tried on.

Eight warps multiply, a ninth one loads tiles of A and B and blocks of scales to stages of shared memory by TMA
copies. A block of 512 bytes has the scales of 128 rows for four groups of elements: `blocked` puts them in this order.

    python examples/python/gemm_sm120.py
    python examples/python/gemm_sm120.py --scaled 32 --k 512
    python examples/python/gemm_sm120.py --scaled 0
"""

from typing import Any

import ml_dtypes
import numpy as np
from common import Array, check, chosen, normal, parser, place

from tilefold import cute
from tilefold.cute import pipeline, utils
from tilefold.cute.nvgpu import cpasync, warp, warpgroup
from tilefold.cute.utils import blackwell_helpers, blockscaled_layout, hopper_helpers

TILE = 128
"""Rows of A, and of B, for a block."""
WARPS = 8
"""The warps that multiply."""


def tiled_mma_of(dtype: Any, scaled: int) -> Any:
    """The multiplication of a tile by eight warps: 128 rows of A with 32 of B."""
    if not scaled:
        return cute.make_tiled_mma(warp.MmaF16BF16Op(dtype, cute.Float32, (16, 8, 16)), (4, 2, 1), (64, 32, 16))
    if scaled == 16:
        op = warp.MmaMXF4NVF4Op(dtype, cute.Float32, cute.Float8E4M3FN)
    else:
        op = warp.MmaMXF4Op(dtype, cute.Float32, cute.Float8E8M0FNU)
    return cute.make_tiled_mma(op, (4, 2, 1), blackwell_helpers.get_permutation_mnk((TILE, TILE, 128), scaled, False))


def stages_of(tensor: Any, depth: int, stages: int) -> tuple[Any, Any]:
    """Shared memory for stages of a tile of a matrix, K contiguous, and its layout for one."""
    element, rows = tensor.element_type, utils.LayoutEnum.ROW_MAJOR
    atom = warpgroup.make_smem_layout_atom(hopper_helpers.get_smem_layout_atom(rows, element, depth), element)
    layout = cute.tile_to_shape(atom, (TILE, depth, stages), (0, 1, 2))
    return cute.make_smem_tensor(layout, element, 1024), cute.slice_(layout, (None, None, 0))


class Loads:
    """The copies of tiles of a matrix, or of its scales, to stages of shared memory."""

    def __init__(self, tensor: Any, shared: Any, layout: Any, depth: int, row: Any, is_matrix: bool = True) -> None:
        self.atom, tiles = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), tensor, layout, (TILE, depth))
        tiles = cute.local_tile(tiles, (TILE, depth), (row, None))  # (rows,depth,steps along K)
        both = cute.group_modes(shared, 0, 2), cute.group_modes(tiles, 0, 2)
        to, source = cpasync.tma_partition(self.atom, 0, cute.make_layout(1), *both)
        self.to, self.source = (to, source) if is_matrix else (cute.filter_zeros(to), cute.filter_zeros(source))

    def load(self, k: Any, stage: Any) -> None:
        """Loads tile `k` to a stage."""
        cute.copy(self.atom, self.source[None, k], self.to[None, stage.index], tma_bar_ptr=stage.barrier)


def scale_stages(given: Any, matrix: Any, make: Any, mma: Any, stages: int, row: Any) -> tuple[Any, Loads, int]:
    """Shared memory for stages of the scales of a matrix, the copies to it, and the bytes of each."""
    each, depth, element = mma.op.sf_vec_size, 128, given.element_type
    layout = make(mma, (TILE, TILE, depth), each, stages)
    shared, one = cute.make_smem_tensor(layout, element, 1024), cute.slice_(layout, (None, None, 0))
    whole = cute.make_tensor(given.iterator, blockscaled_layout.tile_atom_to_shape_SF(matrix.shape, each))
    return shared, Loads(whole, shared, one, depth, row, is_matrix=False), cute.size_in_bytes(element, one)


def scale_fragment(shared: Any, mma: Any, part: Any, t: Any, letter: str) -> tuple[Any, Any, Any]:
    """Registers for a thread's scales of A or B, and where they come from and go to, each scale once."""
    helpers, (m, n, k) = blackwell_helpers, mma.tile_shape
    if letter == "A":
        fragment, layout = helpers.partition_fragment_SFA(shared[None, None, 0], part), helpers.get_layoutSFA_TV(mma)
    else:
        fragment, layout = helpers.partition_fragment_SFB(shared[None, None, 0], part), helpers.get_layoutSFB_TV(mma)
    fragment = cute.group_modes(fragment, 2, cute.rank(fragment))
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), shared.element_type)
    copy = cute.make_tiled_copy(atom, layout, (m if letter == "A" else n, k)).get_slice(t)
    return fragment, cute.filter_zeros(copy.partition_S(shared)), cute.filter_zeros(copy.retile(fragment))


@cute.kernel(min_blocks=1)
def gemm_kernel(
    mA: cute.Tensor,
    mB: cute.Tensor,
    mD: cute.Tensor,
    mSA: cute.Tensor | None,
    mSB: cute.Tensor | None,
    scaled: cute.Constexpr[int],
    stages: cute.Constexpr[int],
):
    t = cute.arch.thread_idx()[0]
    number = cute.arch.make_warp_uniform(t // 32)
    m, n, _ = cute.arch.block_idx()
    if scaled:  # bytes of two elements
        mA, mB = cute.recast_tensor(mA, cute.Float4E2M1FN), cute.recast_tensor(mB, cute.Float4E2M1FN)
    depth = 128 if scaled else 64
    mma = tiled_mma_of(mA.element_type, scaled)

    # shared memory, and what is copied to it
    sA, one_a = stages_of(mA, depth, stages)
    sB, one_b = stages_of(mB, depth, stages)
    loads = [Loads(mA, sA, one_a, depth, m), Loads(mB, sB, one_b, depth, n)]
    moved = cute.size_in_bytes(mA.element_type, one_a) + cute.size_in_bytes(mB.element_type, one_b)
    scales: list[Any] = []
    if scaled:
        sSA, load_a, bytes_a = scale_stages(mSA, mA, blockscaled_layout.sm120_make_smem_layout_sfa, mma, stages, m)
        sSB, load_b, bytes_b = scale_stages(mSB, mB, blockscaled_layout.sm120_make_smem_layout_sfb, mma, stages, n)
        scales, moved = [sSA, sSB], moved + bytes_a + bytes_b
        loads += [load_a, load_b]

    thread = pipeline.Agent.Thread
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=stages,
        producer_group=pipeline.CooperativeGroup(thread),
        consumer_group=pipeline.CooperativeGroup(thread, WARPS),
        tx_count=moved,
    )
    producer, consumer = pipe.make_participants()
    count = mA.shape[1] // depth

    if number == WARPS:
        cute.arch.setmaxregister_decrease(40)
        for k in cute.range(count):
            stage = producer.acquire_and_advance()
            with cute.arch.elect_one():
                for each in loads:
                    each.load(k, stage)
            stage.commit()
        producer.tail()
    else:
        cute.arch.setmaxregister_increase(232)
        part = mma.get_slice(t)
        rA = mma.make_fragment_A(part.partition_A(sA)[None, None, None, 0])
        rB = mma.make_fragment_B(part.partition_B(sB)[None, None, None, 0])
        matrices = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), mA.element_type)
        copy_a = cute.make_tiled_copy_A(matrices, mma)
        copy_b = cute.make_tiled_copy_B(matrices, mma)
        from_a, from_b = copy_a.get_slice(t).partition_S(sA), copy_b.get_slice(t).partition_S(sB)
        to_a, to_b = copy_a.get_slice(t).retile(rA), copy_b.get_slice(t).retile(rB)
        gD = cute.local_tile(mD, (TILE, TILE), (m, n))
        tDgD = part.partition_C(gD)
        acc = mma.make_fragment_C(tDgD)
        acc.fill(0.0)
        factors: list[Any] = []
        if scaled:
            factors = [
                scale_fragment(shared, mma, part, t, letter) for shared, letter in zip(scales, "AB", strict=True)
            ]

        for _ in cute.range(count):
            stage = consumer.wait_and_advance()
            for step in cute.range_constexpr(cute.size(rA, 2)):
                at, in_stage = (None, None, step), (None, None, step, stage.index)
                cute.copy(copy_a, from_a[in_stage], to_a[at])
                cute.copy(copy_b, from_b[in_stage], to_b[at])
                for _, source, to in factors:
                    cute.autovec_copy(source[in_stage], to[at])
                if scaled:
                    rSA, rSB = factors[0][0], factors[1][0]
                    cute.gemm(mma, acc, [rA[at], rSA[at]], [rB[at], rSB[at]], acc)
                else:
                    cute.gemm(mma, acc, rA[at], rB[at], acc)
            stage.release()
        result = cute.make_rmem_tensor_like(acc, mD.element_type)
        result.store(acc.load().to(mD.element_type))
        cute.autovec_copy(result, tDgD)


def blocked(scales: Array) -> Array:
    """Scales (rows, K / elements of a scale) as the kernel reads them: blocks of 128 rows and 4 scales, those along K
    first, in each 16 bytes for rows r, r + 32, r + 64 and r + 96.
    """
    rows, columns = scales.shape
    return np.ascontiguousarray(scales.reshape(rows // TILE, 4, 32, columns // 4, 4).transpose(0, 3, 2, 1, 4)).reshape(
        -1
    )


def packed(values: Array) -> Array:
    """Floats as bytes of two elements of 4 bits, the first in the low half."""
    codes = values.astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    return codes[:, ::2] | codes[:, 1::2] << 4


def gemm(
    A: Array,
    B: Array,
    D: Array,
    scales_a: Array | None = None,
    scales_b: Array | None = None,
    scaled: int = 0,
    stages: int = 3,
    device: str = "auto",
    **options: Any,
) -> None:
    """D = A @ B^T, by a block for each tile of 128 x 128. With `scaled` of 16 or 32 A and B are `packed`, and that many
    elements share a scale of `blocked` ones.
    """
    call = gemm_kernel(A, B, D, scales_a, scales_b, scaled, stages)
    call.launch((D.shape[0] // TILE, D.shape[1] // TILE, 1), 32 * (WARPS + 1), device=device, **options)


def main(arguments: list[str] | None = None) -> None:
    made = parser("D = A @ B^T with scales on tensor cores of sm_120", m=128, n=128, k=256, scaled=16)
    options = made.parse_args(arguments)
    m, n, k, scaled = options.m, options.n, options.k, options.scaled
    if m % TILE or n % TILE or scaled not in (0, 16, 32) or k % (128 if scaled else 64):
        raise SystemExit("M and N are multiples of 128, K of 128 (of 64 without scales); scaled is 0, 16 or 32")
    device = chosen(options.device)
    hA, hB = (normal(seed, (rows, k), np.float32) for seed, rows in ((0, m), (1, n)))
    empty = np.zeros((m, n), np.float16)
    if not scaled:
        A, B, D = place(device, hA.astype(np.float16), hB.astype(np.float16), empty)
        gemm(A, B, D, device=device)
        check("D", D, hA.astype(np.float16).astype(np.float32) @ hB.astype(np.float16).astype(np.float32).T)
        return
    kind = ml_dtypes.float8_e4m3fn if scaled == 16 else ml_dtypes.float8_e8m0fnu
    scales = [
        (2.0 ** np.random.default_rng(seed).integers(-2, 2, (rows, k // scaled))).astype(kind)
        for seed, rows in ((2, m), (3, n))
    ]
    fA, fB, result, sA, sB = place(device, packed(hA), packed(hB), empty, *map(blocked, scales))
    gemm(fA, fB, result, sA, sB, scaled, device=device)
    wide = [
        x.astype(ml_dtypes.float4_e2m1fn).astype(np.float32) * s.astype(np.float32).repeat(scaled, 1)
        for x, s in zip((hA, hB), scales, strict=True)
    ]
    check("D", result, wide[0] @ wide[1].T, atol=2e-2)


if __name__ == "__main__":
    main()
