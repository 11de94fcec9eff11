# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The numbers of multiplications: kinds, majors, A in tensor memory, scale factors, against NumPy."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilefold.builder.primitives.arrays import Array
from tilefold.builder.scalars.dtypes import Boolean, Int32
from tilefold.builder.scalars.values import convert
from tilefold.builder.tracing.state import emit
from tilefold.dialects import ptx
from tilefold.layout.atoms.umma_descriptors import InstructionDescriptor, MmaKind

from tests.tcgen05.results import store_rows
from tilefold import cute
from tilefold.cutlass.experimental import primitives as prims

SMEM = cute.AddressSpace.smem
M, N, ROW = 128, 64, 16


@cute.jit
def _ready(bar: Any, slot: Any, columns: int) -> Any:
    """Allocates, and makes the writes to shared memory visible to the tensor core; the address."""
    if cute.arch.warp_idx() == 0:
        prims.tcgen05_alloc(slot, columns)
    if cute.arch.thread_idx()[0] == 0:
        prims.mbarrier_init(bar, 1)
        prims.fence_mbarrier_init()
    cute.arch.fence_proxy("async")
    cute.arch.barrier()
    return prims.make_tmem_ptr(slot[0], cute.Float32)


@cute.jit
def _result(bar: Any, tile: Any, D: Any, columns: int) -> None:
    """Waits, and stores D, a row by each thread."""
    cute.arch.mbarrier_wait(bar.pointer.address, 0)
    prims.tcgen05_fence(prims.Tcgen05Fence.AFTER_THREAD_SYNC)
    store_rows(D, tile, tile, columns)


@cute.kernel
def multiply(A: cute.Tensor, B: cute.Tensor, D: cute.Tensor, kind: cute.Constexpr, idesc: cute.Constexpr) -> None:
    """D = A * B, of 32 bytes along K."""
    t, _, _ = cute.arch.thread_idx()
    a, b = Array(cute.Uint8, (2, M, ROW), SMEM), Array(cute.Uint8, (2, N, ROW), SMEM)
    bar, slot = Array(cute.Int64, 1, SMEM), Array(cute.Int32, 1, SMEM)
    for k in cute.range_constexpr(2 * ROW):
        a[k // ROW, t, k % ROW] = A[t, k]
        if t < N:
            b[k // ROW, t, k % ROW] = B[t, k]
    tile = _ready(bar, slot, N)
    if t == 0:
        of_a = prims.Tcgen05SmemDesc.build(a, M * ROW, 8 * ROW)
        of_b = prims.Tcgen05SmemDesc.build(b, N * ROW, 8 * ROW)
        prims.tcgen05_mma(kind, 1, tile, of_a, of_b, idesc, False)
        prims.tcgen05_commit(bar)
    _result(bar, tile, D, N)


def _issue_scaled(a: Any, b: Any, s: Any, tile: Any, idesc: int) -> None:
    """Copies the scale factors to tensor memory, and multiplies."""
    of_a = prims.Tcgen05SmemDesc.build(a, M * ROW, 8 * ROW)
    of_b = prims.Tcgen05SmemDesc.build(b, N * ROW, 8 * ROW)
    rows = prims.Tcgen05SmemDesc.build(s, ROW, 8 * ROW)
    sfa, sfb = (tile + N).ssa, (tile + (N + 4)).ssa
    emit(ptx.TmaCopySharedOp(1, "32x128b.warpx4", sfa, rows.ssa))
    emit(ptx.TmaCopySharedOp(1, "32x128b.warpx4", sfb, rows.advance_start_address(512).ssa))
    word, never = convert(idesc, Int32).ssa, convert(False, Boolean).ssa
    operands = [tile.ssa, of_a.ssa, of_b.ssa, word, never]
    emit(ptx.TensorMmaScaledOp("mxf8f6f4", 1, operands, (sfa, sfb)))


@cute.kernel
def scaled(A: cute.Tensor, B: cute.Tensor, S: cute.Tensor, D: cute.Tensor, idesc: cute.Constexpr) -> None:
    """D = A * B with scale factors, 4 for each row of which one is used: 512 bytes of A's, and 512 of B's."""
    t, _, _ = cute.arch.thread_idx()
    a, b = Array(cute.Uint8, (2, M, ROW), SMEM), Array(cute.Uint8, (2, N, ROW), SMEM)
    s = Array(cute.Uint8, 1024, SMEM)
    bar, slot = Array(cute.Int64, 1, SMEM), Array(cute.Int32, 1, SMEM)
    for k in cute.range_constexpr(2 * ROW):
        a[k // ROW, t, k % ROW] = A[t, k]
        if t < N:
            b[k // ROW, t, k % ROW] = B[t, k]
    for i in cute.range_constexpr(8):
        s[8 * t + i] = S[8 * t + i]
    tile = _ready(bar, slot, 128)
    if t == 0:
        _issue_scaled(a, b, s, tile, idesc)
        prims.tcgen05_commit(bar)
    _result(bar, tile, D, 128)


KINDS: dict[str, tuple[MmaKind, Any, dict[str, Any]]] = {
    "f16": (MmaKind.F16, np.float16, {}), "bf16": (MmaKind.F16, ml_dtypes.bfloat16, {"a": 1, "b": 1}),
    "tf32": (MmaKind.TF32, np.float32, {"a": 2, "b": 2}), "e4m3": (MmaKind.F8F6F4, ml_dtypes.float8_e4m3fn, {}),
    "e5m2": (MmaKind.F8F6F4, ml_dtypes.float8_e5m2, {"a": 1, "b": 1}),
    "s8": (MmaKind.I8, np.int8, {"d": 2, "a": 1, "b": 1}), "negated": (MmaKind.F16, np.float16, {"negate_a": True}),
}  # fmt: skip


def _matrices(type: Any) -> tuple[Any, Any]:
    chance = np.random.default_rng(11)
    k = 32 // np.dtype(type).itemsize
    return tuple([(8 * chance.standard_normal((rows, k))).round().astype(type) for rows in (M, N)])


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.sampled(1)
def test_kinds(name: str) -> None:
    kind, type, fields = KINDS[name]
    a, b = _matrices(type)
    d = np.zeros((M, N), np.int32 if kind is MmaKind.I8 else np.float32)
    given = InstructionDescriptor(kind, M, N, **fields)
    word = given.value
    multiply(a.view(np.uint8), b.view(np.uint8), d.view(np.float32), prims.Tcgen05MMAKind(kind.value), word).launch(
        grid=1, block=M, device="sim"
    )
    expected = a.astype(np.float64) @ b.T.astype(np.float64)
    assert np.array_equal(d, -expected if fields.get("negate_a") else expected)


@pytest.mark.parametrize("number", [0, 3])
@pytest.mark.sampled(1)
def test_scale_factors(number: int) -> None:
    a, b = _matrices(ml_dtypes.float8_e4m3fn)
    chance = np.random.default_rng(5)
    of_a, of_b = (chance.integers(120, 134, (rows, 4)).astype(np.uint8) for rows in (M, N))
    blocks = np.zeros((2, 32, 4, 4), np.uint8)  # of A and B: row % 32, row / 32, factor
    blocks[0] = of_a.reshape(4, 32, 4).transpose(1, 0, 2)
    blocks[1, :, :2] = of_b.reshape(2, 32, 4).transpose(1, 0, 2)
    d = np.zeros((M, N), np.float32)
    word = InstructionDescriptor(MmaKind.MXF8F6F4, M, N, a_scale=number, b_scale=number).value
    scaled(a.view(np.uint8), b.view(np.uint8), blocks.reshape(-1), d, word).launch(grid=1, block=M, device="sim")
    wide = [
        x.astype(np.float64) * 2.0 ** (s[:, number : number + 1].astype(np.float64) - 127)
        for x, s in ((a, of_a), (b, of_b))
    ]
    assert np.allclose(d, wide[0] @ wide[1].T, rtol=1e-6)
