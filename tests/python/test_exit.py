# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Threads that end before their kernel does."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute
from tilefold.cutlass.experimental import primitives
from tilefold.cutlass.mlir.dialects import nvvm


@cute.kernel
def end_of_some(B: cute.Tensor, last: cute.Int32):
    t, _, _ = cute.arch.thread_idx()
    B[t] = 1
    if t >= 32:
        if t > last:
            primitives.exit()
        B[t] = 2
    cute.arch.sync_warp() if t < 32 else None
    B[t] = B[t] + 10


@cute.kernel
def end_by_the_dialect(B: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    if t > 4:
        nvvm.exit()
    B[t] = 1


class Names:
    """Another function of this name."""

    def __init__(self, out: Any) -> None:
        self.out = out

    def exit(self) -> None:
        self.out[0] = 5


@cute.kernel
def other_exit(B: cute.Tensor):
    names = Names(B)
    if cute.arch.thread_idx()[0] == 0:
        names.exit()
    B[cute.arch.thread_idx()[0] + 1] = 3


@pytest.mark.parametrize("stage", ["cute", "ptx"])
def test_threads_end(stage: str) -> None:
    B = np.zeros(64, np.int32)
    end_of_some(B, 40).launch(grid=1, block=64, device="sim", stage=stage)
    np.testing.assert_array_equal(B, [11] * 32 + [12] * 9 + [1] * 23)


def test_a_thread_ends_by_the_name_of_the_dialect() -> None:
    B = np.zeros(32, np.int32)
    end_by_the_dialect(B).launch(grid=1, block=32, device="sim")
    assert B.tolist() == [1] * 5 + [0] * 27


def test_other_functions_of_this_name() -> None:
    B = np.zeros(33, np.int32)
    other_exit(B).launch(grid=1, block=32, device="sim")
    np.testing.assert_array_equal(B, [5] + [3] * 32)


def test_a_helper_cannot_end_a_thread() -> None:
    @cute.jit
    def helper():
        primitives.exit()

    @cute.kernel
    def calls(B: cute.Tensor):
        helper()
        B[0] = 1

    with pytest.raises(TilefoldError, match="only in the kernel's own function") as caught:
        calls(np.zeros(1, np.int32)).build(32)
    assert caught.value.code == "E5005"
