# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels below layouts on a GPU: the simulator and the GPU write the same."""

from typing import Any

import numpy as np
import pytest
from tilefold.runtime.cuda import CudaEngine

from tests.python import test_known_texts as known
from tests.python import test_primitives as kernels
from tilefold import cute
from tilefold.cutlass.experimental import primitives

pytestmark = pytest.mark.gpu
RANDOM = np.random.default_rng(3)
NUMBERS = RANDOM.integers(-9, 9, 32).astype(np.int32)
FLOATS = RANDOM.random(1024, np.float32)
WORDS = RANDOM.integers(-(1 << 31), 1 << 31, (2, 32)).astype(np.int32)

CASES: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "hand_over": (kernels.hand_over, (np.zeros(32, np.float32), 32), {}),
    "swizzled": (kernels.swizzled, (FLOATS, np.zeros_like(FLOATS), "s64b"), {"block": 128}),
    "transposed": (kernels.transposed, (RANDOM.random((32, 8)).astype(np.float16), np.zeros((8, 32), np.float16)), {}),
    "masked": (kernels.masked, (FLOATS[:16].copy(), np.full(36, -1, np.float32), 13), {"block": 4}),
    "products": (kernels.products, (np.zeros(8, np.float32), 5.0), {"block": 1}),
    "lanes": (kernels.lanes, (np.zeros(4, np.int32), NUMBERS), {}),
    "neighbours": (kernels.neighbours, (np.zeros((4, 32), np.float32), FLOATS[:32].copy(), 0x1807), {}),
    "phases": (kernels.phases, (np.zeros(32, np.int32),), {}),
    "exchange": (kernels.exchange, (np.zeros((2, 32), np.int32),), {"grid": 2}),
    "through_maps": (
        kernels.through_maps,
        (
            RANDOM.random((32, 128)).astype(np.float16),
            np.zeros((32, 64), np.float16),
            primitives.TensorMapSwizzle.s128b,
        ),
        {},
    ),
    **{
        f"text{number}": (known.texts, (*WORDS, np.zeros(32, np.int32), text, "r"), {})
        for number, (text, _) in enumerate(known.MORE_INTEGERS)
    },
    **{mode: (known.voting, (np.zeros(32, np.int32), mode), {}) for mode in ("any", "all", "uni", "ballot")},
}


@pytest.fixture(scope="module", autouse=True)
def _hopper() -> None:  # pyright: ignore[reportUnusedFunction]
    if CudaEngine().driver.capability[0] < 9:
        pytest.skip("these instructions need sm_90")


@pytest.mark.parametrize("name", CASES)
def test_simulator_and_gpu_agree(name: str) -> None:
    kernel, arguments, sizes = CASES[name]
    results: list[list[Any]] = []
    for device in ("sim", "cuda"):
        given: list[Any] = [x.copy() if hasattr(x, "copy") else x for x in arguments]
        assert isinstance(kernel, cute.Kernel)
        kernel(*given).launch(**{"grid": 1, "block": 32, **sizes}, device=device)
        results.append([x for x in given if hasattr(x, "copy")])
    for simulated, real in zip(*results, strict=True):
        assert np.array_equal(simulated, real)
