# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.math.div`: a quotient that may be approximated."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute


@cute.kernel
def divided(A: cute.Tensor, B: cute.Tensor, out: cute.Tensor, fastmath: cute.Constexpr[bool]):
    t = cute.arch.thread_idx()[0]
    out[t, 0] = cute.math.div(A[t, 0], B[t, 0], fastmath)
    out[t, None].store(cute.math.div(A[t, None].load(), B[t, None].load(), fastmath=fastmath))


@pytest.mark.parametrize(("dtype", "fastmath", "instruction"), [
    (np.float32, False, "div.rn.f32"), (np.float32, True, "div.approx.f32"), (np.float16, True, "div.approx.f32"),
    (np.int32, True, "div.approx.f32"), (np.float64, True, "div.rn.f64"),
])  # fmt: skip
def test_quotients_of_values_and_fragments(dtype: Any, fastmath: bool, instruction: str) -> None:
    a, b = (np.arange(1, 129).reshape(32, 4)[::step].astype(dtype) for step in (1, -1))
    out = np.zeros((32, 4), np.float32 if dtype == np.int32 else dtype)
    divided(a, b, out, fastmath).launch(grid=1, block=32, device="sim")
    np.testing.assert_allclose(out, a / b, rtol=1e-3 if dtype == np.float16 else 1e-6)
    ptx = divided.ptx("sm_90a")
    assert instruction in ptx
    assert ("div.approx" in ptx) == ("approx" in instruction)


def test_numbers_and_mistakes() -> None:
    assert cute.math.div(1, 4) == cute.math.div(1, 4, fastmath=True) == 0.25
    with pytest.raises(TilefoldError, match="E5002: expected a fragment, a value or a number, got str"):
        cute.math.div("1", 2, fastmath=True)


@cute.kernel
def normalised(A: cute.Tensor, out: cute.Tensor, n: cute.Int32):
    t = cute.arch.thread_idx()[0]
    if n < 0:
        cute.arch.inline_ptx("wgmma.fence.sync.aligned;", "")
    v = A[t, None].load()
    out[t, None].store(v / (cute.math.sqrt(v) + 1.0))


def test_a_kernel_with_wgmma_has_neither_instruction_that_is_a_call() -> None:
    a = np.linspace(0.5, 9.0, 128 * 4, dtype=np.float32).reshape(128, 4)
    out = np.zeros_like(a)
    ptx = normalised(a, out, 0).build(128).ptx("sm_90a")
    assert "wgmma" in ptx
    assert "div.rn" not in ptx
    assert "sqrt.rn" not in ptx


@pytest.mark.gpu
def test_on_a_gpu_they_are_the_nearest_floats() -> None:
    """Hopper alone has wgmma."""
    bits = np.random.default_rng(1).integers(0, 1 << 31, (128, 64), np.uint32)
    a = bits.view(np.float32)
    out = np.zeros_like(a)
    normalised(a, out, 0).launch(grid=1, block=128, device="cuda:0")
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(out, a / (np.sqrt(a) + np.float32(1)))
