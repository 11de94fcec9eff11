# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiplications by warpgroups at every stage of the simulator, against NumPy."""

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tests.kernels.warpgroup_gemm import TYPES, Case, multiply
from tilefold import cute
from tilefold.cute.nvgpu import warpgroup
from tilefold.cute.utils import LayoutEnum

ROW, COL = LayoutEnum.ROW_MAJOR, LayoutEnum.COL_MAJOR
RMEM = warpgroup.OperandSource.RMEM
STAGES = ("cute", "folded", "atoms", "index", "instr")
CASES = [
    *(Case(types) for types in TYPES),
    *(Case(types, source=RMEM) for types in TYPES),
    *(Case(n=n, k=16, mode="SW32") for n in (8, 24, 136, 248)),
    Case("f16_f16", n=256, k=32),
    Case("tf32", n=40, k=32),
    Case("s8", n=208, k=128),
    *(Case(orders=orders) for orders in ((COL, COL), (ROW, COL), (COL, ROW))),
    Case("bf16", source=RMEM, orders=(COL, COL)),
    *(Case(mode=mode, k=128) for mode in ("INTER", "SW32", "SW64", "SW128")),
    *(Case(mode=mode, orders=(COL, COL), n=128) for mode in ("INTER", "SW32", "SW64", "SW128")),
    *(Case(types, mode=mode) for types in ("e4m3", "tf32") for mode in ("INTER", "SW32")),
    *(Case(warpgroups=groups, n=16) for groups in ((2, 1), (4, 1), (1, 2), (1, 4), (2, 2))),
    Case(warpgroups=(3, 1), k=48, mode="SW32"),
    Case(blocks=(2, 2), orders=(COL, ROW)),
    Case("s8", blocks=(1, 2), warpgroups=(2, 1), stages=2, n=32, k=128),
    Case(stages=2, mode="INTER", orders=(COL, COL)),
    Case(source=RMEM, warpgroups=(2, 1), blocks=(2, 1), n=32, stages=2),
]  # fmt: skip


RUNS = [
    *((case, stage) for case in CASES for stage in ("cute", "instr")),
    *((case, stage) for case in CASES[::5] for stage in ("folded", "atoms", "index")),
]


@pytest.mark.parametrize(("case", "stage"), RUNS, ids=str)
@pytest.mark.sampled(12)
def test_product(case: Case, stage: str) -> None:
    a, b, c = case.operands()
    expected = case.expected(a, b, c)
    multiply(a, b, c, case).launch(grid=1, block=case.threads, device="sim", stage=stage)
    np.testing.assert_array_equal(c.astype(np.float64), expected)


def test_rounding_is_the_same_at_every_stage() -> None:
    """Each K of an instruction is rounded, in the order of the instructions."""
    case, rng = Case("f16_f16", k=128), np.random.default_rng(0)
    a, b, before = [rng.normal(size=x.shape).astype(x.dtype) for x in case.operands()]
    results: list[bytes] = []
    for stage in STAGES:
        c = before.copy()
        multiply(a, b, c, case).launch(grid=1, block=case.threads, device="sim", stage=stage)
        results.append(c.tobytes())
    assert len(set(results)) == 1


@cute.kernel
def accumulate(A: cute.Tensor, C: cute.Tensor, turns: cute.Int32, first: cute.Boolean):
    t, _, _ = cute.arch.thread_idx()
    mma = Case().tiled_mma()
    sA = cute.make_smem_tensor(Case().smem(0), A.element_type, alignment=1024)
    threads = cute.make_layout((8, 16), stride=(16, 1))
    cute.autovec_copy(cute.local_partition(A, threads, t), cute.local_partition(sA[None, None, 0], threads, t))
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    thr = mma.get_slice(t)
    tCrA, tCrB = mma.make_fragment_A(thr.partition_A(sA)), mma.make_fragment_B(thr.partition_B(sA))
    acc = cute.make_rmem_tensor(thr.partition_C(C).shape, cute.Float32)
    acc.fill(1.0)
    mma.set(warpgroup.Field.ACCUMULATE, first)
    warpgroup.fence()
    for _ in cute.range(turns):
        cute.gemm(mma, acc, tCrA[None, None, None, 0], tCrB[None, None, None, 0], acc)
        mma.set(warpgroup.Field.ACCUMULATE, True)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    cute.autovec_copy(acc, thr.partition_C(C))


@pytest.mark.parametrize("stage", ["cute", "atoms", "instr"])
@pytest.mark.parametrize(("turns", "first"), [(0, False), (1, False), (3, False), (1, True), (3, True)])
def test_whether_the_first_product_is_added_is_known_at_run_time(turns: int, first: bool, stage: str) -> None:
    a, _, _ = Case().operands()
    c = np.zeros((64, 64), np.float32)
    accumulate(a, c, turns, first).launch(grid=1, block=128, device="sim", stage=stage)
    product = a.astype(np.float32) @ a.T.astype(np.float32)
    np.testing.assert_array_equal(c, turns * product + (first or not turns))


@cute.kernel
def attend(Q: cute.Tensor, V: cute.Tensor, C: cute.Tensor):
    """(Q Q^T) V: accumulators become A of the second product without leaving their registers."""
    t, _, _ = cute.arch.thread_idx()
    scores, case = Case().tiled_mma(), Case(source=RMEM, orders=(ROW, COL))
    values = case.tiled_mma()
    sQ = cute.make_smem_tensor(Case().smem(0), Q.element_type, alignment=1024)
    sV = cute.make_smem_tensor(case.smem(1), V.element_type, alignment=1024)
    threads = cute.make_layout((8, 16), stride=(16, 1))
    for tensor, shared in ((Q, sQ), (V, sV)):
        cute.autovec_copy(
            cute.local_partition(tensor, threads, t), cute.local_partition(shared[None, None, 0], threads, t)
        )
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    thr, thr_v = scores.get_slice(t), values.get_slice(t)
    acc = cute.make_rmem_tensor(thr.partition_C(C).shape, cute.Float32)
    scores.set(warpgroup.Field.ACCUMULATE, False)
    warpgroup.fence()
    tSrQ, tSrK = scores.make_fragment_A(thr.partition_A(sQ)), scores.make_fragment_B(thr.partition_B(sQ))
    cute.gemm(scores, acc, tSrQ[None, None, None, 0], tSrK[None, None, None, 0], acc)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    P = cute.make_rmem_tensor(cute.make_layout(((2, 2, 2), 1, 4)), cute.Float16)
    cute.make_tensor(P.iterator, acc.layout).store(acc.load().to(cute.Float16))
    out = cute.make_rmem_tensor(acc.shape, cute.Float32)
    values.set(warpgroup.Field.ACCUMULATE, False)
    warpgroup.fence()
    cute.gemm(values, out, P, values.make_fragment_B(thr_v.partition_B(sV))[None, None, None, 0], out)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    cute.autovec_copy(out, thr_v.partition_C(C))


@pytest.mark.parametrize("stage", ["cute", "atoms", "instr"])
def test_accumulators_become_a_of_the_next_product(stage: str) -> None:
    rng = np.random.default_rng(0)
    q, v = [rng.integers(-1, 2, (64, 64)).astype(np.float16) for _ in range(2)]
    c = np.zeros((64, 64), np.float32)
    attend(q, v, c).launch(grid=1, block=128, device="sim", stage=stage)
    q, v = q.astype(np.float32), v.astype(np.float32)
    np.testing.assert_array_equal(c, q @ q.T @ v.T)


@cute.kernel
def misused(A: cute.Tensor, C: cute.Tensor, mistake: cute.Constexpr[str]):
    t, _, _ = cute.arch.thread_idx()
    mma = Case().tiled_mma()
    sA = cute.make_smem_tensor(Case().smem(0), A.element_type, alignment=1024)
    threads = cute.make_layout((8, 16), stride=(16, 1))
    cute.autovec_copy(cute.local_partition(A, threads, t), cute.local_partition(sA[None, None, 0], threads, t))
    if mistake != "proxy":
        cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    thr = mma.get_slice(t)
    tCrA, tCrB = mma.make_fragment_A(thr.partition_A(sA)), mma.make_fragment_B(thr.partition_B(sA))
    acc = cute.make_rmem_tensor(thr.partition_C(C).shape, cute.Float32)
    acc.fill(0.0)
    if mistake != "fence":
        warpgroup.fence()
    cute.gemm(mma, acc, tCrA[None, None, None, 0], tCrB[None, None, None, 0], acc)
    warpgroup.commit_group()
    if mistake == "overwrites":
        cute.autovec_copy(cute.local_partition(A, threads, t), cute.local_partition(sA[None, None, 0], threads, t))
    if mistake != "wait":
        warpgroup.wait_group(0)
    cute.autovec_copy(acc, thr.partition_C(C))


@pytest.mark.parametrize("stage", ["cute", "folded", "atoms"])
@pytest.mark.parametrize(
    ("mistake", "code"), [("fence", "E3225"), ("proxy", "E3216"), ("wait", "E3206"), ("overwrites", "E3206"), ("", "")]
)
def test_mistakes_are_found_at_the_stages_of_tensors(mistake: str, code: str, stage: str) -> None:
    a, _, _ = Case().operands()
    c = np.zeros((64, 64), np.float32)
    launch = misused(a, c, mistake).launch
    if not mistake:
        launch(grid=1, block=128, device="sim", stage=stage)
        return
    with pytest.raises(TilefoldError) as caught:
        launch(grid=1, block=128, device="sim", stage=stage)
    assert caught.value.code == code, str(caught.value)


def test_a_block_of_other_than_whole_warpgroups_is_refused() -> None:
    a, b, c = Case().operands()
    with pytest.raises(TilefoldError) as caught:
        multiply(a, b, c, Case()).launch(grid=1, block=160, device="sim")
    assert caught.value.code == "E0321"


@cute.kernel
def beyond(A: cute.Tensor, C: cute.Tensor, stage: cute.Int32):
    t, _, _ = cute.arch.thread_idx()
    mma = Case().tiled_mma()
    sA = cute.make_smem_tensor(Case(stages=2).smem(0), A.element_type, alignment=1024)
    thr = mma.get_slice(t)
    tCrA, tCrB = mma.make_fragment_A(thr.partition_A(sA)), mma.make_fragment_B(thr.partition_B(sA))
    acc = cute.make_rmem_tensor(thr.partition_C(C).shape, cute.Float32)
    mma.set(warpgroup.Field.ACCUMULATE, False)
    warpgroup.fence()
    cute.gemm(mma, acc, tCrA[None, None, None, stage], tCrB[None, None, None, 0], acc)
    warpgroup.commit_group()
    warpgroup.wait_group(0)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_that_does_not_exist_is_named(stage: str) -> None:
    a, _, c = Case().operands()
    with pytest.raises(TilefoldError) as caught:
        beyond(a, c, 2).launch(grid=1, block=128, device="sim", stage=stage)
    assert caught.value.code == "E3202"
    assert "whose coordinate 2 is out of range for extent 2" in str(caught.value)


def test_the_part_of_a_tile_for_an_epilogue() -> None:
    shape = cute.utils.hopper_helpers.compute_tile_shape_or_override
    assert shape((128, 256, 64), cute.Float16) == (64, 32)
    assert shape((128, 256, 64), cute.Float16, is_cooperative=True) == (128, 32)
    assert shape((64, 192, 128), cute.Float8E4M3FN) == (64, 64)
    assert shape((64, 40, 128), cute.Float8E4M3FN) == (64, 40)
    assert shape((64, 48, 64), cute.Float32) == (64, 16)
    assert shape((128, 128, 64), cute.Float32, epi_tile_override=(64, 8)) == (64, 8)
