# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bulk copies of tensors by `cute.copy`: one for each run of elements that are contiguous on both sides."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tests.kernels.harness import STAGES
from tilefold import cute
from tilefold.cute.nvgpu import cpasync


@cute.kernel
def through_shared(A: cute.Tensor, B: cute.Tensor, shared: cute.Constexpr[Any], bits: cute.Constexpr[int | None]):
    s = cute.make_smem_tensor(shared, A.element_type, 128)
    bar = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    load = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), A.element_type, num_bits_per_copy=bits)
    store = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), A.element_type)
    if cute.arch.thread_idx()[0] == 0:
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(bar, cute.size(shared) * A.element_type.bits // 8)
        cute.copy(load, A, s, mbar_ptr=bar)
        cute.arch.mbarrier_wait(bar, 0)
        cute.copy(store, s, B)
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0, read=True)


ROWS = cute.make_layout((16, 32), stride=(32, 1))
PADDED = cute.make_layout((16, 32), stride=(40, 1))
SWIZZLED = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, ROWS)
CASES = [(ROWS, None, 1), (ROWS, 512, 16), (PADDED, None, 16), (SWIZZLED, None, 64)]


@pytest.mark.parametrize(("shared", "bits", "copies"), CASES, ids=["whole", "limited", "padded", "swizzled"])
def test_runs(shared: Any, bits: int | None, copies: int) -> None:
    A = np.random.default_rng(0).integers(-99, 99, (16, 32)).astype(np.float16)
    B = np.full_like(A, np.nan)
    through_shared(A, B, shared, bits).launch(1, 32, device="sim")
    np.testing.assert_array_equal(A, B)
    text = through_shared(A, B, shared, bits).build(32).ptx("sm_90a")
    assert text.count("cp.async.bulk.shared::cluster.global.mbarrier") == copies
    assert text.count("cp.async.bulk.global.shared::cta.bulk_group") == (1 if bits else copies)


@pytest.mark.parametrize("stage", STAGES)
def test_at_every_stage(stage: str) -> None:
    A, B = np.arange(512, dtype=np.float16).reshape(16, 32), np.zeros((16, 32), np.float16)
    through_shared(A, B, PADDED, None).launch(1, 32, device="sim", stage=stage)
    np.testing.assert_array_equal(A, B)


@cute.kernel
def prefetched(A: cute.Tensor, B: cute.Tensor):
    s = cute.make_smem_tensor(ROWS, cute.Float16, 128)
    if cute.arch.thread_idx()[0] == 0:
        cute.prefetch(cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Float16), A, cache_policy=1 << 60)
        cute.copy(cute.make_copy_atom("SM90_BULK_COPY_AUTO", cute.Float16), s, B, cache_policy=1 << 60)


def test_prefetches_and_policies() -> None:
    A = np.zeros((16, 32), np.float16)
    text = prefetched(A, A.copy()).build(32).ptx("sm_90a")
    assert text.count("cp.async.bulk.prefetch.L2.global.L2::cache_hint [") == 1
    assert text.count("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [") == 1


@cute.kernel
def wrong(A: cute.Tensor, way: cute.Constexpr[str]):
    load = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Float16)
    columns = cute.make_layout((16, 32), stride=(1, 16))
    s = cute.make_smem_tensor(columns if way == "order" else ROWS, cute.Float16, 128)
    bar = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    match way:
        case "spaces":
            cute.copy(load, s, A, mbar_ptr=bar)
        case "mbarrier":
            cute.copy(load, A, s)
        case "mask":
            cute.copy(load, A, s, mbar_ptr=bar, mcast_mask=3)
        case "type":
            cute.copy(cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Float32), A, s, mbar_ptr=bar)
        case "store":
            cute.copy(cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cute.Float16), s, A, mbar_ptr=bar)
        case "width":
            cute.copy(cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Float16, 64), A, s, mbar_ptr=bar)
        case "shape":
            cute.copy(load, A, s[0, None], mbar_ptr=bar)
        case _:
            cute.copy(load, A, s, mbar_ptr=bar)


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("spaces", "source of atom SM90_BULK_COPY_G2S is in smem"), ("mbarrier", "SM90_BULK_COPY_G2S has no mbarrier"),
        ("mask", "only a TMA copy has an mbarrier tma_bar_ptr, a"), ("type", "moves f32, the source holds f16"),
        ("store", "SM90_BULK_COPY_S2G does not take an mbarrier"), ("width", "a bulk copy cannot move 64 bits"),
        ("shape", "the source has rank 2"), ("order", "multiples of 8 adjacent elements, but 1 are adjacent in"),
    ],
)  # fmt: skip
def test_copies_that_are_refused(way: str, said: str) -> None:
    with pytest.raises(TilefoldError, match=said) as caught:
        wrong(np.zeros((16, 32), np.float16), way).build(32)
    assert caught.value.hint or way == "shape"
