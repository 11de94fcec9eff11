# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles by tensor copies on a GPU: what arrives is what was sent, with multicasts, reductions and pipelines."""

import numpy as np
import pytest
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.engine import LaunchConfig

from tests.kernels.harness import MAX_BYTES, assert_checks_hold, program_of
from tests.kernels.test_tensor_copies import CASES, MULTICAST, REDUCTIONS, text_of
from tests.python.test_tensor_copies import pipelined, shared_by_two
from tilefold.running.filled_arguments import prepare
from tilefold.running.launches import Changes, read_launches

pytestmark = pytest.mark.gpu
TEXTS = {name: text_of(case) for name, case in CASES.items()} | {"multicast": MULTICAST} | REDUCTIONS


@pytest.fixture(scope="module")
def engine() -> CudaEngine:
    """The engine of a GPU with tensor copies."""
    engine = CudaEngine()
    if engine.driver.capability[0] < 9:
        pytest.skip("tensor copies need sm_90")
    return engine


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_tiles_arrive(engine: CudaEngine, text: str) -> None:
    program = program_of(text)
    (launch,) = read_launches(program.module, program.source, Changes())
    arguments = prepare(launch, {}, seed=0, max_bytes=MAX_BYTES)
    given = arguments.launchable()
    artifact = program.artifact(launch.kernel, engine.driver.target)
    engine.launch(artifact, LaunchConfig(launch.grid, launch.block), given)
    assert_checks_hold(launch, arguments.logical(given))


def test_kernels_in_python(engine: CudaEngine) -> None:
    A = np.random.default_rng(0).integers(0, 9, (128, 320)).astype(np.float16)
    rows = np.zeros(128, np.float32)
    pipelined(A, rows, 8192).launch(grid=2, block=96, device="cuda")
    assert np.array_equal(rows, A.sum(axis=1, dtype=np.float32))
    tile, both = np.ascontiguousarray(A[:, :64]), np.zeros((128, 128), np.float16)
    shared_by_two(tile, both).launch(grid=(2, 2), block=32, device="cuda")
    assert np.array_equal(both, np.concatenate([tile, tile], axis=1))
