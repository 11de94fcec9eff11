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
from tilefold.base.target import Target

from tests.project.tree import ROOT
from tests.ptxas import installed, needs_ptxas
from tests.sass import instructions

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


def check(module: Any, config: dict[str, Any], shape: tuple[int, int, int], blocks: int, **options: Any) -> None:
    """D, which begins as NaN, against NumPy's."""
    m, n, k = shape
    random = np.random.default_rng(0)
    A, B = (random.standard_normal((rows, k), np.float32).astype(np.float16) for rows in (m, n))
    D = np.full((m, n), np.nan, np.float16)
    module.gemm(A, B, D, module.Config(**config), device="sim", blocks=blocks, **options)
    np.testing.assert_allclose(D, A.astype(np.float32) @ B.astype(np.float32).T, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_several_tiles_of_a_block(module: Any, config: dict[str, Any]) -> None:
    check(module, config, (512, 256, 192), blocks=4)


@pytest.mark.parametrize("stage", ["index", "instr"])
def test_the_stages_below_tensors(module: Any, stage: str) -> None:
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


@pytest.mark.parametrize("config", [{"m": 96}, {"n": 96}, {"consumers": 3}])
def test_tiles_that_are_refused(module: Any, config: dict[str, Any]) -> None:
    with pytest.raises(SystemExit, match="64 rows for each consumer"):
        module.Config(**config)
