# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiplications into tensor memory that are written as text, with registers that several texts use."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.builder.primitives.arrays import Array

from tests.tcgen05.results import store_rows
from tilefold import cute
from tilefold.cute import pipeline
from tilefold.cutlass.experimental import primitives as prims
from tilefold.cutlass.mlir.dialects import llvm

SMEM = cute.AddressSpace.smem
M, N, K = 128, 64, 32
DECLARED = """
    .reg .b32 lo;
    .reg .b64 of_a_<2>;
    mov.b64 of_a_0, {$0, $1};
    add.s32 lo, $0, 0x100; // the next two core matrices
    mov.b64 of_a_1, {lo, $1};
"""
MULTIPLIED = """{
    .reg .pred leader, adds, P1;
    .reg .b32 idesc, d, b_lo, a_lo, a_hi;
    .reg .b64 of_b;
    LAB_WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 P1, [$4], $5, 10000000;
    @P1 bra DONE;
    bra LAB_WAIT;
    DONE:
    elect.sync _|leader, -1;
    mov.b32 idesc, $3;
    mov.b32 d, $0;
    mov.b64 of_b, {$1, $2};
    setp.ne.b32 adds, $6, 0;
    @leader tcgen05.mma.cta_group::1.kind::f16 [d], of_a_0, of_b, idesc, adds;
    add.u32 b_lo, $1, 0x80;
    mov.b64 of_b, {b_lo, $2};
    mov.b64 {a_lo, a_hi}, of_a_1;
    mov.b64 of_a_1, {a_lo, a_hi};
    @leader tcgen05.mma.cta_group::1.kind::f16 [d + 0x0], of_a_1, of_b, idesc, 1;
}"""


def asm(text: str, *operands: Any) -> None:
    given = [x.ir_value() for x in operands]
    llvm.inline_asm(None, given, text, ",".join("r" for _ in operands), has_side_effects=True)


@cute.kernel
def multiply(A: cute.Tensor, B: cute.Tensor, D: cute.Tensor) -> None:
    """D = A * B of one tile, twice: the first product replaces D, the second one adds to it, by a predicate."""
    t, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    a = Array(cute.Float16, (K // 8, M, 8), SMEM)
    b = Array(cute.Float16, (K // 8, N, 8), SMEM)
    done, ready = (cute.make_smem_tensor(1, cute.Int64).iterator for _ in range(2))
    slot = Array(cute.Int32, 1, SMEM)
    for k in cute.range_constexpr(K):
        a[k // 8, t, k % 8] = A[t, k]
        if t < N:
            b[k // 8, t, k % 8] = B[t, k]
    if warp == 0:
        prims.tcgen05_alloc(slot, N)
        prims.tcgen05_relinquish_alloc_permit()
    group = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    complete = pipeline.MbarrierArray(done, 1, (pipeline.PipelineOp.TCGen05Mma, group))
    if t == 0:
        cute.arch.mbarrier_init(ready, M)
        prims.fence_mbarrier_init()
    cute.arch.fence_proxy("async")
    cute.arch.barrier()
    cute.arch.mbarrier_arrive(ready)
    if warp == 0:
        build, none = prims.Tcgen05SmemDesc.build, prims.Tcgen05SmemSwizzle.NONE
        of_a = build(a, leading_byte_offset=M * 16, stride_byte_offset=128, layout=none)
        of_b = build(b, leading_byte_offset=N * 16, stride_byte_offset=128, layout=none)
        form = prims.Tcgen05InstrDesc.build(cute.Float32, cute.Float16, cute.Float16, n_dim=N, m_dim=M)
        asm(DECLARED, cute.Int32(of_a), cute.Int32(of_a >> 32))
        for i in range(2):
            asm(
                MULTIPLIED, slot[0], cute.Int32(of_b), cute.Int32(of_b >> 32), cute.Int32(form.value),
                ready.toint(), cute.Int32(0), cute.Int32(i),
            )  # fmt: skip
        complete.arrive(0, None, cute.nvgpu.tcgen05.CtaGroup.ONE)
    cute.arch.mbarrier_wait(done, 0)
    prims.tcgen05_fence(prims.Tcgen05Fence.AFTER_THREAD_SYNC)
    store_rows(D, prims.make_tmem_ptr(slot[0], cute.Float32), slot[0], N)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("stage", ["cute", "ptx"])
def test_a_multiplication_of_texts(stage: str) -> None:
    chance = np.random.default_rng(3)
    a, b = (chance.standard_normal((rows, K)).astype(np.float16) for rows in (M, N))
    d = np.zeros((M, N), np.float32)
    multiply(a, b, d).launch(grid=1, block=M, device="sim", stage=stage)
    assert np.allclose(d, 2 * (a.astype(np.float32) @ b.T.astype(np.float32)), atol=1e-4)


def test_a_register_that_no_text_declares_is_refused() -> None:
    @cute.kernel
    def wrong(A: cute.Tensor) -> None:
        asm("{ tcgen05.mma.cta_group::1.kind::f16 [$0], nothing, nothing, $0, 1; }", A[0])

    with pytest.raises(TilefoldError, match=r"E5002.*no earlier text declares the register 'nothing'"):
        wrong(np.zeros(32, np.int32)).launch(grid=1, block=32, device="sim")


def test_constraints_are_checked() -> None:
    @cute.kernel
    def wrong(A: cute.Tensor) -> None:
        asm("{ tcgen05.mma.cta_group::1.kind::f16 [$0], $1, $1, $0, 1; }", A[0], cute.Float64(A[0]))

    with pytest.raises(TilefoldError, match=r"E1003.*of type f64"):
        wrong(np.zeros(32, np.int32)).launch(grid=1, block=32, device="sim")


def test_a_text_with_another_instruction_stays_text() -> None:
    @cute.kernel
    def other(A: cute.Tensor) -> None:
        text = "{ .reg .b64 x; mov.b64 x, {$0, $0}; tcgen05.mma.cta_group::1.kind::f16 [$0], x, x, $0, 1; %s }"
        asm(text % "txq.width.b32 x, [x];", A[0])

    with pytest.raises(TilefoldError, match=r"E3201.*does not execute text"):
        other(np.zeros(32, np.int32)).launch(grid=1, block=32, device="sim")
