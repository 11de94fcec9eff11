# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""examples/python/kernels.py: one entry, by the kernel for the GPU at hand."""

import importlib
import sys
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tests.project.tree import ROOT
from tilefold import cute


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the entries."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "examples" / "python"), *sys.path])
    return importlib.import_module("kernels")


def halves(*shape: int) -> Any:
    """Normally distributed numbers."""
    return np.random.default_rng(shape[0]).standard_normal(shape, np.float32).astype(np.float16)


@pytest.mark.parametrize("target", [None, "sm_90a", "sm_90", "sm_100a", "sm_80", "sm_89"])
def test_gemm_is_right_for_every_target(kernels: Any, target: str | None) -> None:
    A, B, bias = halves(128, 64), halves(256, 64), halves(256)
    D = np.full((128, 256), np.nan, np.float16)

    def relu(x: cute.TensorSSA) -> cute.TensorSSA:
        return cute.math.max(x, 0.0)

    kernels.gemm(A, B, D, bias, relu, device="sim", target=target)
    wanted = np.maximum(A.astype(np.float32) @ B.astype(np.float32).T + bias, 0)
    np.testing.assert_allclose(D, wanted, rtol=2e-3, atol=2e-3)


def test_gemm_by_wgmma_on_hopper_and_by_mma_elsewhere(kernels: Any) -> None:
    A, B, D = halves(128, 64), halves(256, 64), np.empty((128, 256), np.float16)
    kernels.gemm(A, B, D, device="sim", target="sm_90a")
    assert "wgmma.mma_async" in kernels.gemm_sm90.gemm_kernel.ptx("sm_90a")
    kernels.gemm(A, B, D, device="sim", target="sm_89")
    assert "mma.sync" in kernels.gemm_sm80.gemm_kernel.ptx("sm_89")  # which has no room for three stages


def test_sizes_that_one_of_the_kernels_takes(kernels: Any) -> None:
    A, B, D = halves(100, 72), halves(40, 72), np.empty((100, 40), np.float16)
    kernels.gemm(A, B, D, device="sim")
    np.testing.assert_allclose(D, A.astype(np.float32) @ B.astype(np.float32).T, rtol=2e-3, atol=1e-2)
    with pytest.raises(SystemExit, match="M = 100 is not a multiple"):
        kernels.gemm(A, B, D, device="sim", target="sm_80")


def heads(shape: tuple[int, int, int, int]) -> Any:
    """Q, K, V and a place for O."""
    Q, K, V = np.random.default_rng(0).standard_normal((3, *shape), np.float32).astype(np.float16)
    return Q, K, V, np.full(shape, np.nan, np.float16)


@pytest.mark.parametrize(("target", "causal"), [(None, True), ("sm_80", True), ("sm_80", False)])
def test_attention_is_right_for_every_target(kernels: Any, target: str | None, causal: bool) -> None:
    Q, K, V, Out = heads((2, 128, 1, 64))
    kernels.attention(Q, K, V, Out, causal, device="sim", target=target)
    for each in range(2):
        wanted = kernels.attention_sm80.reference(Q[each], K[each], V[each], causal)
        np.testing.assert_allclose(Out[each], wanted, rtol=4e-3, atol=4e-3)


def test_attention_that_one_of_the_kernels_takes(kernels: Any) -> None:
    Q, K, V, Out = heads((1, 40, 1, 96))
    kernels.attention(Q, K, V, Out, device="sim")
    np.testing.assert_allclose(Out[0], kernels.attention_sm80.reference(Q[0], K[0], V[0], False), rtol=4e-3, atol=4e-3)
    with pytest.raises(SystemExit, match="D = 96 is none of 64, 128"):
        kernels.attention(Q, K, V, Out, device="sim", target="sm_80")
    with pytest.raises(SystemExit, match="a multiple of 128 rows"):
        kernels.attention(*heads((1, 40, 1, 64)), device="sim", target="sm_80")


def test_an_unknown_target(kernels: Any) -> None:
    A, D = halves(128, 64), np.empty((128, 128), np.float16)
    with pytest.raises(TilefoldError, match="unknown target 'sm_42'"):
        kernels.gemm(A, A, D, device="sim", target="sm_42")
