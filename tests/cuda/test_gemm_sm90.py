# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tilefold/kernels/sm90/gemm.py on a GPU of compute capability 9.0: exact in every type, order of memory and
configuration, for extents around those of tiles, and the same in every launch.
"""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import Code, TilefoldError

from benchmarks.in_python import sm90
from tests.kernels.gemm_sm90 import TYPES, operands, product
from tilefold import cute

pytestmark = pytest.mark.gpu

HALVES = TYPES[0]
BY_M_AND_N = TYPES[4]
SHARED: dict[str, Any] = {"takes_turns": False}
CONFIGS: tuple[dict[str, Any], ...] = (
    {}, {"cluster": (2, 1)}, {"cluster": (1, 2)}, {**SHARED, "n": 256, "stages": 4},
    {**SHARED, "n": 256, "stages": 4, "cluster": (1, 2)}, {**SHARED, "m": 256, "stages": 4, "cluster": (2, 1)},
    {**SHARED, "stages": 4, "cluster": (2, 2)}, {**SHARED, "n": 64, "stages": 8},
)  # fmt: skip


def relu(x: cute.TensorSSA) -> cute.TensorSSA:
    """Nothing below zero."""
    return cute.math.max(x, 0.0)


def run(m: int, n: int, k: int, types: tuple[Any, Any, str], config: dict[str, Any], blocks: int = 132) -> None:
    """Compares a product with NumPy's."""
    A, B, D = operands(m, n, k, types)
    module = sm90("gemm")
    module.gemm(A, B, D, module.Config(**config), device="cuda", blocks=blocks)
    np.testing.assert_array_equal(D, product(A, B, D))


@pytest.mark.parametrize("extents", [(127, 120, -1), (129, 136, 1), (136, 120, 8), (120, 136, -8), (2, 8, None)])
@pytest.mark.parametrize("types", TYPES)
def test_extents_around_those_of_a_tile(types: tuple[Any, Any, str], extents: tuple[int, int, int | None]) -> None:
    """`extents` are M, N, and how far K is from a stage's; None is a K of 2."""
    m, n, more = extents
    run(m, n, 2 if more is None else 128 // np.dtype(types[0]).itemsize + more, types, {"cluster": (2, 1)})


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("types", [HALVES, BY_M_AND_N])
def test_several_tiles_of_a_block(types: tuple[Any, Any, str], config: dict[str, Any]) -> None:
    run(1000, 1160, 200, types, config, blocks=8)


@pytest.mark.parametrize("shape", [(0, 8, 8), (8, 0, 8), (8, 8, 0)])
def test_empty_products(shape: tuple[int, int, int]) -> None:
    run(*shape, HALVES, {})


@pytest.mark.parametrize("shared", ["", "A", "B"])
def test_a_batch(shared: str) -> None:
    a, b, D = operands(200, 136, 72, HALVES, 5)
    A, B = (np.broadcast_to(x[:, :, :1], x.shape) if name in shared else x for name, x in (("A", a), ("B", b)))
    sm90("gemm").gemm(A, B, D, device="cuda", blocks=7)
    np.testing.assert_array_equal(D, product(A, B, D))


def test_the_simulator_has_the_same_bits() -> None:
    """With a bias that ends within a tile, and an activation."""
    results: list[bytes] = []
    for device in ("cuda", "sim"):
        A, B, D = operands(200, 136, 72, HALVES)
        bias = np.arange(136).astype(np.float16) - 68
        sm90("gemm").gemm(A, B, D, device=device, blocks=2, bias=bias, activation=relu)
        np.testing.assert_array_equal(D, np.maximum(product(A, B, D) + bias, 0))
        results.append(D.tobytes())
    assert results[0] == results[1]


def test_rows_that_no_map_describes_are_refused() -> None:
    D = np.zeros((64, 129), np.float16)
    A, B, _ = operands(64, 129, 64, HALVES)
    module = sm90("gemm")
    with pytest.raises(TilefoldError) as raised:
        module.gemm(A, B, D, module.Config(), device="cuda")
    assert raised.value.code is Code.TENSOR_MAP


@pytest.mark.parametrize("config", [{"cluster": (2, 1)}, {**SHARED, "n": 256, "stages": 4}], ids=str)
def test_a_thousand_launches_change_no_bit(config: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch", reason="torch keeps the matrices on the GPU")
    module = sm90("gemm")
    torch.manual_seed(0)
    A, B = (torch.randn(rows, 520, device="cuda").half() for rows in (1000, 1032))
    first, D = (torch.empty(1000, 1032, device="cuda", dtype=torch.float16) for _ in range(2))
    module.gemm(A, B, first, module.Config(**config), device="cuda", blocks=50)
    for _ in range(1000):
        D.fill_(float("nan"))
        module.gemm(A, B, D, module.Config(**config), device="cuda", blocks=50)
        assert torch.equal(D, first)
