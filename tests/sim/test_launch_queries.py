# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks that take over the places of blocks that have not begun, by `issue_clc_query` and `clc_response`."""

import numpy as np

from tilefold import cute

BLOCKS = 6


@cute.kernel
def taking_over(done: cute.Tensor, answers: cute.Tensor) -> None:
    smem = cute.utils.SmemAllocator()
    bar = smem.allocate_array(cute.Int64, 1)
    response = smem.allocate_array(cute.Int32, 4, byte_alignment=16)
    t, _, _ = cute.arch.thread_idx()
    x, _, _ = cute.arch.block_idx()
    if t == 0:
        cute.arch.mbarrier_init(bar, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    place, has_more, phase = x, cute.Boolean(True), cute.Int32(0)
    while has_more:
        if t == 0:
            cute.arch.atomic_add(done.ptr(place), cute.Int32(1))
            cute.arch.mbarrier_arrive_and_expect_tx(bar, 16)
            cute.arch.issue_clc_query(bar, response, multicast=False)
        cute.arch.mbarrier_wait(bar, phase)
        first, _, _, has_more = cute.arch.clc_response(response)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        if t == 0 and has_more:
            cute.arch.atomic_add(answers.ptr(0), cute.Int32(1))
        place, phase = first, phase ^ 1


def test_each_place_is_taken_once() -> None:
    done, answers = np.zeros(BLOCKS, np.int32), np.zeros(1, np.int32)
    taking_over(done, answers).launch(grid=BLOCKS, block=32, device="sim")
    assert done.tolist() == [1] * BLOCKS
    assert answers[0] > 0
