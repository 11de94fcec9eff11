# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the library on sm_100a, on the simulator: the same calls as on other targets."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilefold.kernels import attention, gemm
from tilefold.kernels.sm100 import attention as attention_sm100
from tilefold.kernels.sm100.gemm import chosen_config


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("dtype", "m", "n", "k", "blocks", "out"),
    [
        (np.float16, 256, 64, 64, 2, "float16"),
        (ml_dtypes.float8_e4m3fn, 128, 64, 128, 1, "bfloat16"),
        (np.int8, 128, 64, 128, 1, "int32"),
        (np.float16, 40, 24, 16, None, "float32"),
    ],
    ids=["pair", "fp8", "integers", "no whole tiles"],
)
def test_products(dtype: Any, m: int, n: int, k: int, blocks: int | None, out: str) -> None:
    config = chosen_config(m, n, k, 8 * np.dtype(dtype).itemsize)
    assert (config and config.blocks) == blocks
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, (rows, k)).astype(dtype) for rows in (m, n))
    d = gemm(a, b, out_dtype=out, device="sim", target="sm_100a")
    expected = a.astype(np.float32) @ b.astype(np.float32).T
    np.testing.assert_array_equal(np.asarray(d).astype(np.float32), expected)


@pytest.mark.parametrize(("rows", "is_whole"), [(256, True), (72, False)])
def test_attention(rows: int, is_whole: bool) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, size, 1, 64)).astype(np.float16) for size in (rows, 128, 128))
    assert attention_sm100.is_whole(q, k) == is_whole
    found = np.asarray(attention(q, k, v, device="sim", target="sm_100a")).astype(np.float32)
    scores = np.einsum("brhd,bkhd->bhrk", q.astype(np.float32), k.astype(np.float32)) / 8
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    expected = np.einsum("bhrk,bkhd->brhd", weights / weights.sum(axis=-1, keepdims=True), v.astype(np.float32))
    np.testing.assert_allclose(found, expected, atol=2e-3)
