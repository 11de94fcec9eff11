# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""O = softmax(Q K^T * scale) V for each head, in f16 on tensor cores: attention that never writes the matrix of scores.

Q, K, V and O are (sequence, heads, D), with D contiguous, 64 or 128. A block has rows of one head and goes through the
keys tile by tile, keeping for each row the greatest score so far, the sum of exponentials and the unfinished row of O
(Dao, FlashAttention-2, 2023). docs/attention.md walks through examples/attention.cute, the same kernel for sequences of
any length.

    python examples/python/attention.py
    python examples/python/attention.py --device cuda --sequence 4096 --heads 32 --rows 128 --keys 64 --warps 4
"""

import math
from dataclasses import dataclass

import numpy as np
from common import Array, check, chosen, normal, parser, place
from gemm import by_columns, by_rows, shared_layout

from tilefold import cute
from tilefold.kernels.softmax_parts import exp2, pipelined, quad_reduce


@dataclass(frozen=True)
class Config:
    """The rows of a block and its warps, which have 16 or 32 rows each; the keys of a tile; whether keys after a row's
    own are left out.

    Blocks go through `group` heads at a time. A row's maximum is replaced by one that is greater by a factor of
    `2 ** lazy` in the exponentials only, and O is left alone by a warp none of whose rows have a new one.
    """

    rows: int = 128
    keys: int = 64
    warps: int = 4
    causal: bool = False
    group: int = 8
    lazy: int = 8


DEFAULT = Config()


@cute.kernel
def attention_kernel(
    mQ: cute.Tensor,
    mK: cute.Tensor,
    mV: cute.Tensor,
    mOut: cute.Tensor,
    scale: cute.Float32,
    config: cute.Constexpr[Config],
):
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    sequence, heads, depth = mQ.shape
    rows, keys, threads = config.rows, config.keys, 32 * config.warps
    # the last rows of a head come first: where causal, they have most keys
    tiles = sequence // rows
    head, after = cute.rasterize(block, heads, tiles, group=config.group)
    m = tiles - 1 - after
    gQ = cute.local_tile(mQ[None, head, None], (rows, depth), (m, 0))  # (rows,D)
    gK = cute.local_tile(mK[None, head, None], (keys, depth), (None, 0))  # (keys,D,tiles)
    gV = cute.local_tile(mV[None, head, None], (keys, depth), (None, 0))
    gO = cute.local_tile(mOut[None, head, None], (rows, depth), (m, 0))
    sQ = cute.make_smem_tensor(shared_layout(rows, depth), cute.Float16, alignment=1024)[None, None, 0]
    sK = cute.make_smem_tensor(shared_layout(keys, depth), cute.Float16, alignment=1024)[None, None, 0]
    sV = cute.make_smem_tensor(shared_layout(keys, depth), cute.Float16, alignment=1024)[None, None, 0]
    sVt = cute.select(sV, [1, 0])  # V is an operand B of (D,keys)

    load = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(cute.nvgpu.LoadCacheMode.GLOBAL), cute.Float16)
    g2s = cute.make_tiled_copy_tv(load, *by_rows(threads, depth)).get_slice(t)
    tKgK, tKsK = g2s.partition_S(gK), g2s.partition_D(sK)
    tVgV, tVsV = g2s.partition_S(gV), g2s.partition_D(sV)

    # registers: each warp multiplies 16 rows of Q by 16 keys, and 16 rows of P by 16 columns of V, at once
    op = cute.nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op, (config.warps, 1, 1), (16 * config.warps, 16, 16)).get_slice(t)
    rQ = mma.make_fragment_A(mma.partition_A(sQ))
    rK = mma.make_fragment_B(mma.partition_B(sK))
    rV = mma.make_fragment_B(mma.partition_B(sVt))
    matrices = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(num_matrices=4), cute.Float16)
    transposed = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(num_matrices=4, transpose=True), cute.Float16)
    s2rQ = cute.make_tiled_copy_A(matrices, mma.tiled_mma).get_slice(t)
    s2rK = cute.make_tiled_copy_B(matrices, mma.tiled_mma).get_slice(t)
    s2rV = cute.make_tiled_copy_B(transposed, mma.tiled_mma).get_slice(t)
    tXsQ, tXrQ = s2rQ.partition_S(sQ), s2rQ.retile(rQ)
    tXsK, tXrK = s2rK.partition_S(sK), s2rK.retile(rK)
    tXsV, tXrV = s2rV.partition_S(sVt), s2rV.retile(rV)

    # scores and their exponentials, (2,2),M,N: two neighbours of rows r and r + 8; also by rows and columns
    places = cute.local_tile(cute.make_identity_tensor((sequence, sequence)), (rows, keys), (m, None))
    tScS = mma.partition_C(places)  # ((2,2),M,N,tiles)
    accS = mma.make_fragment_C(tScS[None, None, None, 0])
    accO = mma.make_fragment_C(mma.partition_C(gO))
    rP = cute.make_rmem_tensor_like(accS, cute.Float16)
    M, N = cute.size(accS, 1), cute.size(accS, 2)
    operand_A = cute.make_layout(((2, 2, 2), M, N // 2), stride=((1, 2, 4 * M), 4, 8 * M))
    aP = cute.composition(rP, operand_A)
    S, P, out = by_columns(accS), by_columns(rP), by_columns(accO)
    largest = cute.make_rmem_tensor(((2, M), 1), cute.Float32)
    total = cute.make_rmem_tensor(((2, M), 1), cute.Float32)
    accO.fill(0.0)
    largest.fill(float("-inf"))
    total.fill(0.0)

    # what is multiplied at once: 16 keys or columns of V, that is two atoms
    S16, P16 = cute.logical_divide(S, (None, 4)), cute.logical_divide(P, (None, 4))
    pairsK, pairsV = cute.logical_divide(rK, (None, 2)), cute.logical_divide(rV, (None, 2))
    pairsS, pairsO = cute.logical_divide(accS, (None, None, 2)), cute.logical_divide(accO, (None, None, 2))
    keys16, depth16 = keys // 16, depth // 16
    factor = scale * math.log2(math.e)

    def fetch_qk(e: int) -> None:
        k, n = e // keys16, e % keys16
        cute.copy(s2rK, tXsK[None, n, k], tXrK[None, n, k])
        if n == 0:
            cute.copy(s2rQ, tXsQ[None, None, k], tXrQ[None, None, k])

    def multiply_qk(e: int) -> None:
        k, n = e // keys16, e % keys16
        cute.gemm(mma, rQ[None, None, k], pairsK[None, (None, n), k], pairsS[None, None, (None, n)])

    def exponentials(k: int) -> None:
        """P = exp(scale * (S - largest)) of 16 keys."""
        power = exp2(cute.fma(S16[None, (None, k)].load(), factor, -largest.load() * factor))
        total.store(power.reduce(cute.ReductionOp.ADD, total.load(), reduction_profile=(None, 1), keepdims=True))
        P16[None, (None, k)] = power.to(cute.Float16)

    def fetch_v(e: int) -> None:
        k, n = e // depth16, e % depth16
        cute.copy(s2rV, tXsV[None, n, k], tXrV[None, n, k])

    def multiply_pv(e: int) -> None:
        k, n = e // depth16, e % depth16
        if n == 0 and k + 1 < keys16:
            exponentials(k + 1)
        cute.gemm(mma, aP[None, None, k], pairsV[None, (None, n), k], pairsO[None, None, (None, n)])

    def tile_of_keys(j: int, count: int, masked: bool) -> None:
        # the keys are here, and V may take the place of the values that were multiplied last
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        cute.copy(g2s, tVgV[None, None, None, j], tVsV)
        cute.arch.cp_async_commit_group()
        accS.fill(0.0)
        pipelined(keys16 * depth16, fetch_qk, multiply_qk)
        if masked:
            at = tScS[None, None, None, j]
            for i in cute.range(cute.size(accS), unroll_full=True):
                row, key = at[i]
                accS[i] = cute.where(key <= row, accS[i], float("-inf"))

        # the values are here, and the next keys may take the place of these
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        if j + 1 < count:
            cute.copy(g2s, tKgK[None, None, None, j + 1], tKsK)
        cute.arch.cp_async_commit_group()

        # what was summed up before is scaled to the new maximum
        before = largest.load()
        found = quad_reduce(
            S.load().reduce(cute.ReductionOp.MAX, before, reduction_profile=(None, 1), keepdims=True),
            cute.ReductionOp.MAX,
        )
        largest.store(cute.where((found - before) * factor > config.lazy, found, before))
        shrink = exp2((before - largest.load()) * factor)
        total.store(total.load() * shrink)
        if cute.arch.vote_any_sync(shrink.reduce(cute.ReductionOp.MIN) < 1.0):
            out.store(out.load() * shrink)
        exponentials(0)
        pipelined(keys16 * depth16, fetch_v, multiply_pv)

    cute.copy(g2s, g2s.partition_S(gQ), g2s.partition_D(sQ))
    cute.copy(g2s, tKgK[None, None, None, 0], tKsK)
    cute.arch.cp_async_commit_group()
    if config.causal:
        whole, count = m * rows // keys, ((m + 1) * rows + keys - 1) // keys
        for j in cute.range(whole):
            tile_of_keys(j, count, masked=False)
        for j in cute.range(whole, count):
            tile_of_keys(j, count, masked=True)
    else:
        count = cute.size(gK, 2)
        for j in cute.range(count):
            tile_of_keys(j, count, masked=False)

    # a row's sum is that of its four threads; O goes through the memory of Q, and from there by 16 bytes
    inverse = cute.arch.approx("rcp", quad_reduce(total.load(), cute.ReductionOp.ADD))
    rO = cute.make_rmem_tensor_like(accO, cute.Float16)
    by_columns(rO).store((out.load() * inverse).to(cute.Float16))
    cute.autovec_copy(rO, mma.partition_C(sQ))
    cute.arch.sync_threads()
    wide = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float16, num_bits_per_copy=128)
    s2g = cute.make_tiled_copy_tv(wide, *by_rows(threads, depth)).get_slice(t)
    cute.copy(s2g, s2g.partition_S(sQ), s2g.partition_D(gO))


def attention(Q: Array, K: Array, V: Array, Out: Array, config: Config = DEFAULT, device: str = "auto") -> None:
    """O = softmax(Q K^T / sqrt(D)) V for each head; the sequence is a multiple of the rows and keys of a tile."""
    sequence, heads, depth = Q.shape
    call = attention_kernel(Q, K, V, Out, 1 / math.sqrt(depth), config)
    call.launch(grid=(sequence // config.rows * heads, 1, 1), block=(32 * config.warps, 1, 1), device=device)


def reference(Q: np.ndarray, K: np.ndarray, V: np.ndarray, causal: bool) -> np.ndarray:
    """The same in f32: (..., rows, heads, D). Heads of Q that follow each other may share one of K and V. Where causal,
    the last row sees all keys; a row that sees none is 0.
    """
    shared = Q.shape[-2] // K.shape[-2]
    q, k, v = (np.swapaxes(x.astype(np.float32), -2, -3) for x in (Q, *(np.repeat(x, shared, -2) for x in (K, V))))
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(Q.shape[-1])
    rows, keys = scores.shape[-2:]
    if causal:
        scores[..., ~np.tri(rows, keys, keys - rows, dtype=bool)] = -np.inf
    top = scores.max(axis=-1, keepdims=True, initial=-1e30)
    power = np.exp(scores - top)
    sums = power.sum(axis=-1, keepdims=True)
    return np.swapaxes(power / np.where(sums > 0, sums, 1) @ v, -2, -3)


def main(arguments: list[str] | None = None) -> None:
    made = parser("attention", sequence=64, heads=2, depth=64, rows=32, keys=32, warps=2, causal=0)
    options = made.parse_args(arguments)
    device = chosen(options.device)
    shape = (options.sequence, options.heads, options.depth)
    hQ, hK, hV = (normal(seed, shape) for seed in range(3))
    Q, K, V, Out = place(device, hQ, hK, hV, np.empty_like(hQ))
    attention(Q, K, V, Out, Config(options.rows, options.keys, options.warps, bool(options.causal)), device)
    check("O", Out, reference(hQ, hK, hV, bool(options.causal)))


if __name__ == "__main__":
    main()
