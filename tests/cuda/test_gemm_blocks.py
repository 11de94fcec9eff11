# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with scales of blocks, and of groups of rows, on a GPU of compute capability 9.0: right at the edges of
tiles, exact where sums are, and the same bits at every launch.
"""

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16, float8_e4m3fn

from tests.kernels.test_gemm_blocks import check_grouped, check_scaled, example

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("k", [128, 256, 1152])
@pytest.mark.parametrize(("m", "n"), [(1, 8), (127, 184), (128, 192), (129, 200), (1000, 1032)])
def test_products_with_scales(m: int, n: int, k: int) -> None:
    for dtype in (np.float16, bfloat16, np.float32):
        check_scaled((m, n, k), {}, dtype, device="cuda", blocks=132)
    check_scaled((m, n, k), {"stages": 4, "n": 192}, device="cuda", blocks=132)


def test_products_with_scales_of_small_integers_are_exact_and_do_not_change() -> None:
    module, random = example("gemm_scaled"), np.random.default_rng(0)
    A, B = (random.integers(-4, 5, (rows, 1024)).astype(float8_e4m3fn) for rows in (520, 456))
    a, b = (2.0 ** random.integers(-2, 3, shape).astype(np.float32) for shape in ((520, 8), (4, 8)))
    wide_a, wide_b = (
        A.astype(np.float64) * a.repeat(128, 1),
        B.astype(np.float64) * b.repeat(128, 0)[:456].repeat(128, 1),
    )
    for _ in range(20):
        D = np.full((520, 456), np.nan, np.float32)
        module.gemm_fp8_scaled(A, B, a, b, D, device="cuda")
        np.testing.assert_array_equal(D, wide_a @ wide_b.T)


COUNTS = [[1000, 0, 1, 127, 128, 129, 0], [0, 0], [5, 300]]


@pytest.mark.parametrize("is_masked", [True, False], ids=["masked", "contiguous"])
@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("dtype", [np.float16, bfloat16, float8_e4m3fn])
def test_groups(dtype: Any, counts: list[int], is_masked: bool) -> None:
    config = {"stages": 6} if dtype is float8_e4m3fn else {"stages": 4, "n": 256}
    check_grouped(counts, (1000, 520, 640), is_masked, config, dtype, device="cuda", blocks=132)
