# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles by TMA copies on a GPU: what arrives is what was sent, with multicasts, reductions and pipelines."""

import numpy as np
import pytest
from tilefold.runtime.cuda import CudaEngine

from tests.kernels.harness import assert_checks_hold, on_gpu, program_of
from tests.kernels.test_tma import CASES, MULTICAST, REDUCTIONS, text_of
from tests.python.test_tma import pipelined, shared_by_two
from tilefold.driver.launches import Changes, read_launches

pytestmark = pytest.mark.gpu
TEXTS = {name: text_of(case) for name, case in CASES.items()} | {"multicast": MULTICAST} | REDUCTIONS


@pytest.fixture(scope="module")
def engine() -> CudaEngine:
    """The engine of a GPU with TMA copies."""
    engine = CudaEngine()
    if engine.driver.capability[0] < 9:
        pytest.skip("TMA copies need sm_90")
    return engine


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_tiles_arrive(engine: CudaEngine, text: str) -> None:
    program = program_of(text)
    (launch,) = read_launches(program.module, program.source, Changes())
    assert_checks_hold(launch, on_gpu(program, launch, engine))


def test_kernels_in_python(engine: CudaEngine) -> None:
    A = np.random.default_rng(0).integers(0, 9, (128, 320)).astype(np.float16)
    rows = np.zeros(128, np.float32)
    pipelined(A, rows, 8192).launch(grid=2, block=96, device="cuda")
    assert np.array_equal(rows, A.sum(axis=1, dtype=np.float32))
    tile, both = np.ascontiguousarray(A[:, :64]), np.zeros((128, 128), np.float16)
    shared_by_two(tile, both).launch(grid=(2, 2), block=32, device="cuda")
    assert np.array_equal(both, np.concatenate([tile, tile], axis=1))
