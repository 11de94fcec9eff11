# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""examples/python/gemm_sm90.py: right in every configuration at every stage, without a fault of the simulator, and its
machine code has the instructions that it should have.
"""

import importlib
import re
import sys
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16, float8_e4m3fn, float8_e5m2
from tilefold.base.target import Target

from tests.kernels.harness import STAGES
from tests.project.tree import ROOT
from tests.ptxas import installed, needs_ptxas
from tests.sass import instructions
from tilefold import cute

SM90A = Target("sm_90a")
SMALL: dict[str, Any] = {"m": 64, "n": 64, "consumers": 1, "stages": 2, "takes_turns": False}
SHARED: dict[str, Any] = {"takes_turns": False}
CONFIGS: dict[str, dict[str, Any]] = {
    "one consumer": SMALL,
    "two consumers": {**SHARED, "n": 256, "stages": 4},
    "two rows of instructions": {**SHARED, "m": 256, "stages": 3},
    "taking turns": {},
    "cluster along M": {**SHARED, "stages": 3, "cluster": (2, 1)},
    "cluster along N": {**SHARED, "m": 256, "stages": 2, "cluster": (1, 2)},
    "cluster of four": {**SHARED, "stages": 2, "cluster": (2, 2)},
    "taking turns in a cluster": {"stages": 3, "cluster": (2, 1)},
}


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "examples" / "python"), *sys.path])
    return importlib.import_module("gemm_sm90")


def matrix(rows: int, columns: int, dtype: Any, seed: int, order: Any = "C") -> Any:
    """Numbers of a type, small ones of an integer, in an order of memory."""
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        return random.integers(0, 5, (rows, columns)).astype(dtype, order=order)
    return random.standard_normal((rows, columns), np.float32).astype(dtype, order=order)


def check(
    module: Any,
    config: dict[str, Any],
    shape: tuple[int, int, int],
    blocks: int,
    types: tuple[Any, Any] = (np.float16, np.float16),
    orders: str = "CC",
    **options: Any,
) -> None:
    """D, which begins as NaN or -1, against NumPy's; `types` are those of A and B, and of D."""
    m, n, k = shape
    A, B = (matrix(rows, k, types[0], rows, order) for rows, order in zip((m, n), orders, strict=True))
    D = np.full((m, n), -1 if np.dtype(types[1]).kind == "i" else np.nan).astype(types[1])
    module.gemm(A, B, D, module.Config(**config), device="sim", blocks=blocks, **options)
    wanted = A.astype(np.float64) @ B.astype(np.float64).T
    error = 1e-2 if types[1] is bfloat16 else 4e-3 if types[0] is np.float32 else 2e-3
    np.testing.assert_allclose(D.astype(np.float64), wanted, rtol=error, atol=error * np.sqrt(k))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_several_tiles_of_a_block(module: Any, config: dict[str, Any]) -> None:
    check(module, config, (512, 256, 192), blocks=4)


@pytest.mark.parametrize(
    ("operands", "result", "orders"),
    [
        (bfloat16, bfloat16, "CC"), (np.float16, np.float32, "CF"), (bfloat16, np.float16, "FC"),
        (np.float16, np.float16, "FF"), (float8_e4m3fn, np.float16, "CC"), (float8_e5m2, bfloat16, "CC"),
        (np.int8, np.int32, "CC"), (np.uint8, np.int32, "CC"), (np.float32, np.float32, "CC"),
    ],
)  # fmt: skip
def test_types_and_orders(module: Any, operands: Any, result: Any, orders: str) -> None:
    check(module, {"m": 64, "n": 64, "stages": 2}, (128, 128, 272), 1, (operands, result), orders)


def test_a_bias_and_an_activation(module: Any) -> None:
    A, B, bias = (matrix(rows, k, np.float16, rows) for rows, k in ((128, 72), (128, 72), (1, 128)))
    D, config = np.full((128, 128), np.nan, np.float16), module.Config(m=64, n=64, stages=2)

    def relu(x: cute.Vec) -> cute.Vec:
        return cute.maximum(x, 0.0)

    module.gemm(A, B, D, config, device="sim", blocks=1, bias=bias[0], activation=relu)
    wanted = np.maximum(A.astype(np.float32) @ B.astype(np.float32).T + bias, 0)
    np.testing.assert_allclose(D, wanted, rtol=2e-3, atol=2e-3)
    with pytest.raises(SystemExit, match="N = 72 is a multiple of the tile's 64"):
        module.gemm(A, B[:72], D[:, :72], config, device="sim", bias=bias[0, :72])


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage(module: Any, stage: str) -> None:
    check(module, SMALL, (128, 64, 128), blocks=1, stage=stage)


@pytest.mark.parametrize("shape", [(136, 72, 72), (65, 8, 64), (1, 264, 8)], ids=str)
@pytest.mark.parametrize("config", ["one consumer", "taking turns in a cluster"])
def test_tiles_that_reach_beyond_the_matrices(module: Any, config: str, shape: tuple[int, int, int]) -> None:
    check(module, CONFIGS[config], shape, blocks=2)


@pytest.mark.parametrize("seed", range(2))
def test_every_order_of_the_warps(module: Any, seed: int) -> None:
    check(module, {"m": 64, "n": 64, "stages": 2}, (256, 128, 128), blocks=1, seed=seed)


def ptx_of(module: Any, config: dict[str, Any]) -> str:
    """The PTX for matrices of 4096 rows and columns."""
    A, B, D = (np.empty((4096, 4096), np.float16) for _ in range(3))
    made = module.Config(**config)
    return module.gemm_kernel(A, B, D, made).build(made.threads).ptx("sm_90a")


def test_stages_are_released_without_waiting_for_writes(module: Any) -> None:
    """At the own block by a local arrival, at a peer by one that orders no writes: neither needs a memory barrier."""
    assert "mbarrier.arrive.shared.b64" in ptx_of(module, CONFIGS["two consumers"])
    text = ptx_of(module, CONFIGS["cluster along M"])
    assert "mbarrier.arrive.shared::cluster.b64 _" in text
    assert "release.cluster" not in re.sub(r"fence\.mbarrier_init\.release\.cluster", "", text)
    assert "fence.proxy.async.shared::cta" in text
    assert "fence.proxy.async;" not in text


@needs_ptxas
@pytest.mark.parametrize(
    ("config", "multiplications"),
    [("two consumers", 4), ("two rows of instructions", 8), ("taking turns in a cluster", 8)],
)
def test_machine_code(module: Any, config: str, multiplications: int) -> None:
    """A loop of so many wgmma, fed by tensor copies; registers are handed over, and none is spilled."""
    found = installed()
    assert found is not None
    cubin = found.assemble(ptx_of(module, CONFIGS[config]), SM90A)
    used = cubin.kernels["gemm_kernel"]
    assert (used.registers, used.spill_stores, used.stack) == (168, 0, 0)
    counts = instructions(cubin.code)["gemm_kernel"]
    assert (counts["HGMMA"], counts["UTMALDG"], counts["USETMAXREG"]) == (multiplications, 2, 2)
    assert counts["UTMASTG"] > 0
    assert counts["LDL"] == counts["STL"] == 0


@pytest.mark.parametrize(
    ("shape", "config"),
    [((4096, 4096), {}), ((1024, 1024), {"n": 64, "stages": 8, **SHARED}), ((4000, 4008), CONFIGS["two consumers"])],
)
def test_the_configuration_that_is_chosen(module: Any, shape: tuple[int, int], config: dict[str, Any]) -> None:
    assert module.chosen_config(*shape, 132) == module.Config(**config)
    assert module.chosen_config(4096, 4096, 132, is_tf32=True) == module.Config(**CONFIGS["two consumers"])


@pytest.mark.parametrize("config", [{"m": 96}, {"n": 96}, {"consumers": 3}])
def test_tiles_that_are_refused(module: Any, config: dict[str, Any]) -> None:
    with pytest.raises(SystemExit, match="64 rows for each consumer"):
        module.Config(**config)
