# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of fp8: V transposed byte for byte, results near those in f64, and refusals."""

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16, float8_e4m3fn
from tilefold.base.errors import Code, TilefoldError

from tests.kernels.attention_reference import reference
from tests.kernels.test_library import normal
from tilefold import cute, kernels
from tilefold.kernels.sm90 import attention_fp8
from tilefold.kernels.sm90.attention import attention_kernel
from tilefold.kernels.sm90.attention_tiles import Config

Array = np.ndarray[Any, Any]


def transposed(v: Array) -> Array:
    """V as the kernel leaves it, in an array that begins as NaN."""
    batch, keys, heads, depth = v.shape
    to = np.full((batch, heads, depth, attention_fp8.places_of(keys)), np.nan, v.dtype)
    grid = attention_fp8.grid_of(*v.shape)
    attention_fp8.transpose_kernel(v, to).launch(grid, attention_fp8.THREADS, device="sim")
    return to


def test_each_place_has_its_key() -> None:
    v = normal(0, 2, 70, 2, 64, dtype=float8_e4m3fn)
    given, place = transposed(v), np.arange(96)
    keys = place // 16 * 16 + place % 4 // 2 * 8 + place % 16 // 4 * 2 + place % 2
    padded = np.zeros((2, 96, 2, 64), v.dtype)
    padded[:, :70] = v
    np.testing.assert_array_equal(given.view(np.uint8), padded[:, keys].transpose(0, 2, 3, 1).view(np.uint8))


@pytest.mark.parametrize(("depth", "causal"), [(64, True), (128, False)])
@pytest.mark.sampled(1)
def test_near_the_exact_result(depth: int, causal: bool) -> None:
    """Two heads share one of K. Rounding exponentials to 4 bits costs 2 % of the result."""
    config = Config(32, 2, row_stages=1, causal=causal)
    q, k, v = (normal(i, 1, n, h, depth, dtype=float8_e4m3fn) for i, (n, h) in enumerate(((8, 2), (40, 1), (40, 1))))
    scales = [np.array([[x]], np.float32) for x in (0.5, 1.5, 3.0)]
    out, given = np.full(q.shape, np.nan, bfloat16), (1 / depth**0.5, np.zeros(1, np.int32), config, None, None, None)
    attention_kernel(q, k, transposed(v), out, *given, *scales).launch(2, config.threads, device="sim", use_pdl=True)
    wanted: Array = reference(
        q.astype(np.float64) * 0.5, k.astype(np.float64) * 1.5, v.astype(np.float64) * 3.0, causal
    )
    assert np.linalg.norm(out - wanted) < 3e-2 * np.linalg.norm(wanted)


HEADS: Any = [np.zeros((1, 20, 2, 64), float8_e4m3fn)] * 3
SIM: Any = {"device": "sim"}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: kernels.attention(*HEADS, causal=True, window=4, **SIM), "fp8 has no window"),
        (lambda: kernels.attention(*HEADS, target="sm_80"), "no kernel for sm_80"),
        (lambda: kernels.attention(*HEADS, scale_q=np.ones((1, 1), np.float32), **SIM), "scale_q has the shape"),
        (lambda: kernels.attention(HEADS[0], HEADS[0], normal(0, 1, 20, 2, 64), **SIM), "v has elements of"),
        (lambda: kernels.attention(*[x[..., :32] for x in HEADS], **SIM), "D is 32"),
        (lambda: kernels.attention(*[normal(0, 1, 8, 1, 64)] * 3, scale_v=np.zeros(1)), "q has elements"),
    ],
)  # fmt: skip
def test_what_is_refused(call: Any, said: str) -> None:
    with pytest.raises(TilefoldError, match=said) as caught:
        call()
    assert caught.value.code in (Code.RUN_ARGUMENT, Code.RUN_LAUNCH)


def test_a_word_of_four_floats() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        y[0] = cute.arch.pack_float8(x[0], x[1], x[2], x[3], cute.Float8E4M3FN)

    x, y = np.array([1.5, -1000.0, 2.0**-9, 0.3], np.float32), np.zeros(1, np.int32)
    kernel(x, y).launch(1, 1, device="sim")
    np.testing.assert_array_equal(y.view(float8_e4m3fn), np.clip(x, -448, 448).astype(float8_e4m3fn))


def test_a_word_of_other_floats_is_refused() -> None:
    with pytest.raises(TilefoldError, match="Float16 is not an 8-bit float"):
        cute.arch.pack_float8(1.0, 2.0, 3.0, 4.0, cute.Float16)
