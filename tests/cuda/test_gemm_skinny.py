# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tilefold/kernels/sm90/gemm_skinny.py on a GPU of compute capability 9.0: exact in every type, for extents around
those of tiles and every number of blocks that share K, and the same in every launch.
"""

from typing import Any

import numpy as np
import pytest

from benchmarks.in_python import sm90
from tests.kernels.gemm_sm90 import TYPES, operands, product

pytestmark = pytest.mark.gpu

BY_ROWS = [types for types in TYPES if types[2] == "CC"]


def run(m: int, n: int, k: int, types: tuple[Any, Any, str] = TYPES[0], *config: int) -> Any:
    """Compares a product with NumPy's, and returns it."""
    A, B, D = operands(m, n, k, types)
    module = sm90("gemm_skinny")
    module.skinny_gemm(A, B, D, module.Skinny(*config) if config else None, device="cuda")
    np.testing.assert_array_equal(D, product(A, B, D))
    return D


@pytest.mark.parametrize("types", BY_ROWS, ids=str)
@pytest.mark.parametrize("extents", [(1, 64, 8), (7, 72, 1000), (16, 200, 512), (33, 1000, 1040), (130, 136, 4096)])
def test_extents_around_those_of_a_tile(types: tuple[Any, Any, str], extents: tuple[int, int, int]) -> None:
    run(*extents, types)


@pytest.mark.parametrize("splits", [1, 2, 4, 8])
@pytest.mark.parametrize("rows", [64, 128])
@pytest.mark.parametrize("m", [8, 24, 64, 128])
def test_configurations(m: int, rows: int, splits: int) -> None:
    run(m + 1, 392, 1032, TYPES[0], m, rows, 3, splits)


def test_sums_have_the_same_order_in_every_launch() -> None:
    random, module = np.random.default_rng(0), sm90("gemm_skinny")
    A, B = (random.standard_normal((rows, 8192), np.float32).astype(np.float16) for rows in (16, 1024))
    results = [np.empty((16, 1024), np.float16) for _ in range(20)]
    for result in results:
        module.skinny_gemm(A, B, result, device="cuda")
        np.testing.assert_array_equal(result, results[0])
