# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads of elements of 4 bits as values."""

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute

NUMBERS = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]
"""The numbers of E2M1 by their bits."""


@cute.kernel
def converted(A: cute.Tensor, B: cute.Tensor) -> None:
    halves = cute.recast_tensor(A, cute.Float4E2M1FN)
    B.store(halves.load().to(cute.Float32))


def test_each_number_of_four_bits() -> None:
    codes = np.arange(16, dtype=np.uint8)
    b = np.ones(16, np.float32)
    converted(codes[::2] | codes[1::2] << 4, b).launch(grid=1, block=1, device="sim")
    np.testing.assert_array_equal(b.view(np.uint32), np.array(NUMBERS, np.float32).view(np.uint32))


def test_elements_with_gaps_are_refused() -> None:
    @cute.kernel
    def kernel(A: cute.Tensor) -> None:
        rows = cute.recast_tensor(A, cute.Float4E2M1FN)
        _ = rows[0, None].load()

    with pytest.raises(TilefoldError, match="E0319"):
        kernel(np.zeros((4, 4), np.uint8).T).launch(grid=1, block=1, device="sim")
