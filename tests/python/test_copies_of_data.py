# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TMA copies behind conditions of data that may differ within a warp: one of the threads that are there issues."""

import numpy as np
import pytest

from tilefold import cute
from tilefold.cute.nvgpu import cpasync

SHAPE = (8, 8)


@cute.kernel
def copied(X: cute.Tensor, Y: cute.Tensor, flags: cute.Tensor, bound: cute.Constexpr[bool]):
    t = cute.arch.thread_idx()[0]
    layout = cute.make_layout(SHAPE, stride=(8, 1))
    atom, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), X, layout, SHAPE)
    s = cute.make_smem_tensor(layout, cute.Float32, 128)
    g = cute.local_tile(coords, SHAPE, (0, 0))
    groups = cute.group_modes(s, 0, 2), cute.group_modes(g, 0, 2)
    to, source = cpasync.tma_partition(atom, 0, cute.make_layout(1), *groups)
    full = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    if t == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(full, 256)
    cute.arch.sync_threads()
    chosen = t == flags[0] if cute.const_expr(bound) else flags[t] == 1
    if chosen:
        cute.copy(atom, source, to, tma_bar_ptr=full)
    cute.arch.mbarrier_wait(full, 0)
    Y[t] = s[t // 8, t % 8]


X = np.arange(64, dtype=np.float32).reshape(SHAPE)
CASES = {
    "all": (np.ones(32, np.int32), False),
    "one": (np.eye(32, dtype=np.int32)[5], False),
    "some": ((np.arange(32) % 3 == 1).astype(np.int32), False),
    "by number": (np.full(32, 5, np.int32), True),
}


@pytest.mark.parametrize("stage", ["cute", "instr", "ptx"])
@pytest.mark.parametrize("case", CASES)
def test_one_thread_issues(case: str, stage: str) -> None:
    flags, bound = CASES[case]
    Y = np.zeros(32, np.float32)
    copied(X, Y, flags, bound).launch(grid=1, block=32, device="sim", stage=stage)
    assert np.array_equal(Y, X.ravel()[:32])


def test_a_thread_that_the_program_chooses_by_its_number_is_not_elected() -> None:
    made = copied(X, np.zeros(32, np.float32), np.zeros(32, np.int32), True).build(32)
    assert "elect.sync" not in made.ptx("sm_90a")
