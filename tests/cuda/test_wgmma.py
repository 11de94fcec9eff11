# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiplications by warpgroups: a GPU computes what the simulator does, bit by bit where sums are exact."""

import numpy as np
import pytest
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.sim.atoms.mma_arithmetic import compute_allowed_error
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine

from tests import warp_specialised
from tests.cuda.harness import artifact
from tests.emit.harness import parse
from tests.warpgroups import Problem

MAJORS = ("K", "MN")
PROBLEMS = [
    *(Problem(f"SM90_64x{n}x16_F32F16F16_SS<Major::K,Major::K>", "SW128", 4) for n in (8, 40, 64, 136, 256)),
    *(Problem(f"SM90_64x64x16_{types}_SS<Major::{a},Major::{b}>", mode, 2)
      for types in ("F32F16F16", "F16F16F16", "F32BF16BF16") for a in MAJORS for b in MAJORS
      for mode in ("INTER", "SW32", "SW64")),
    *(Problem(f"SM90_64x128x16_{types}_SS<Major::MN,Major::MN>", "SW128", 4) for types in ("F32F16F16", "F32BF16BF16")),
    *(Problem(f"SM90_64x128x16_{types}_RS<Major::K,Major::{b}>", "SW128", 4)
      for types in ("F32F16F16", "F16F16F16", "F32BF16BF16") for b in MAJORS),
    *(Problem(f"SM90_64x{n}x8_F32TF32TF32_{space}_TN", "SW128", 4) for n in (16, 128) for space in ("SS", "RS")),
    *(Problem(f"SM90_64x64x32_{d}{a}{b}_{space}_TN", "SW128", 4)
      for d in ("F32", "F16") for a in ("E4M3", "E5M2") for b in ("E4M3", "E5M2") for space in ("SS", "RS")),
    *(Problem(f"SM90_64x{n}x32_S32{a}{b}_{space}_TN", "SW64", 2)
      for n in (24, 96) for a in ("S8", "U8") for b in ("S8", "U8") for space in ("SS", "RS")),
    Problem("SM90_64x32x32_S32S8S8_SS_TN_SATURATE", "SW32", 2),
    Problem("SM90_64x32x16_F32F16F16_SS<Major::K,Major::K>", "SW64", 2, "negate_a"),
    Problem("SM90_64x32x16_F32F16F16_SS<Major::K,Major::K>", "SW64", 2, "negate_a negate_b"),
]  # fmt: skip


def _gpu() -> CudaEngine:
    engine = CudaEngine()
    if engine.driver.target.arch != "sm_90a":
        pytest.skip("warpgroups multiply on sm_90a alone")
    return engine


def _computed(problem: Problem, given: tuple[np.ndarray, np.ndarray], engine: CudaEngine | SimEngine) -> np.ndarray:
    out = problem.output()
    args = {"A": TensorArgument(given[0]), "B": TensorArgument(given[1]), "C": TensorArgument(out)}
    config = LaunchConfig((1, 1, 1), (128, 1, 1))
    if isinstance(engine, CudaEngine):
        engine.launch(artifact(problem.text(), engine.driver.target), config, args)
    else:
        engine.launch(SimProgram(parse(problem.text()), "k"), config, args)
    return problem.matrix(out)


@pytest.mark.gpu
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: f"{p.name} {p.mode} {p.flags}")
def test_exact_sums_are_equal_on_a_gpu(problem: Problem) -> None:
    given = problem.given(*problem.elements(seed=3, exact=True))
    np.testing.assert_array_equal(_computed(problem, given, _gpu()), _computed(problem, given, SimEngine()))


@pytest.mark.gpu
@pytest.mark.parametrize("problem", PROBLEMS[::3], ids=lambda p: f"{p.name} {p.mode} {p.flags}")
def test_a_gpu_is_as_near_as_the_model_says(problem: Problem) -> None:
    a, b = problem.elements(seed=4, exact=False)
    given = problem.given(a, b)
    got, model = _computed(problem, given, _gpu()), _computed(problem, given, SimEngine())
    magnitude = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)).T
    allowed = problem.blocks * compute_allowed_error(problem.atom, magnitude)
    far = np.abs(got.astype(np.float64) - model.astype(np.float64)) > allowed
    assert not far.any(), np.argwhere(far)[:4]


@pytest.mark.gpu
@pytest.mark.parametrize("running", [0, 1])
@pytest.mark.parametrize("n", [1, 3, 4, 5, 33])
def test_a_ring_of_three_warpgroups_on_a_gpu(running: int, n: int) -> None:
    engine = _gpu()
    rng = np.random.default_rng(n)
    a, b = (rng.integers(-4, 5, (rows, 64 * n)).astype(np.float16) for rows in (128, 256))
    out = np.full(256 * 128, np.nan, np.float32)
    args = {
        "A": TensorArgument(warp_specialised.stages_of(a)),
        "B": TensorArgument(warp_specialised.stages_of(b)),
        "C": TensorArgument(out),
        "n": n,
    }
    kernel = artifact(warp_specialised.text(running), engine.driver.target)
    engine.launch(kernel, LaunchConfig((1, 1, 1), (384, 1, 1)), args)
    np.testing.assert_array_equal(warp_specialised.result(out), a.astype(np.float32) @ b.astype(np.float32).T)
