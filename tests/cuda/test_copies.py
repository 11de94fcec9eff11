# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies by every atom that a GPU has leave the simulator's bits; what it has not is refused before it runs."""

import numpy as np
import pytest
from tilefold.base.target import Target
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.runtime.cuda import CudaEngine

from tests.kernels.copies import CACHED, EPILOGUE, MATRICES, POLICIES, TRANSPOSED, WAYS, matrices, predicated
from tests.kernels.harness import assert_checks_hold, on_gpu, simulate
from tests.kernels.test_maps import launch_of

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def engine() -> CudaEngine:
    """The engine of the first device. There is no skip: without a device this fails."""
    return CudaEngine()


def assert_bits_agree(engine: CudaEngine, text: str, arch: str = "sm_80") -> None:
    """The only launch of a program leaves on the GPU what the simulator leaves at the last stage."""
    found, launch = launch_of(text)
    target = engine.driver.target
    needed = Target(arch)
    if target.sm < needed.sm:
        with pytest.raises(ProgramError, match="E2102"):
            found.artifact(launch.kernel, target)
        return
    after = on_gpu(found, launch, engine)
    assert_checks_hold(launch, after)
    expected = simulate(found, launch, "instr", target).after
    for name, value in after.items():
        assert np.asarray(value).tobytes() == np.asarray(expected[name]).tobytes(), name


@pytest.mark.parametrize(("store", "load", "type", "bits", "arch"), MATRICES, ids=[m[0] for m in MATRICES])
def test_matrices(engine: CudaEngine, store: str, load: str, type: str, bits: int, arch: str) -> None:
    assert_bits_agree(engine, matrices(store, load, type, bits), arch)


@pytest.mark.parametrize("inside", [0, 23, 50, 64])
@pytest.mark.parametrize("elementwise", [False, True])
def test_predicates(engine: CudaEngine, inside: int, elementwise: bool) -> None:
    assert_bits_agree(engine, predicated(inside, elementwise))


@pytest.mark.parametrize(
    ("text", "arch"),
    [(TRANSPOSED, "sm_80"), (CACHED, "sm_80"), (POLICIES, "sm_80"), (WAYS, "sm_80"), (EPILOGUE, "sm_90")],
    ids=["movmatrix", "cache hints", "policies", "ways", "epilogue"],
)
def test_copies(engine: CudaEngine, text: str, arch: str) -> None:
    assert_bits_agree(engine, text, arch)
