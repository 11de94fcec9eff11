# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps that a kernel changes, on a GPU: what copies by them move."""

import numpy as np
import pytest
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.engine import LaunchConfig, TensorArgument

from tests.cuda.harness import artifact
from tests.python.test_tensor_maps import arguments, halves, of_halves
from tests.sim.harness import entry
from tests.sim.tensor_maps import ARGS, CHANGES, SETUP, A
from tilefold.cute.utils import TensorMapUpdateMode

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", CHANGES)
def test_copies_by_a_changed_map(name: str) -> None:
    engine = CudaEngine()
    if str(engine.driver.target) != "sm_90a":
        pytest.skip("tensormap.replace needs sm_90a")
    body, expected = CHANGES[name]
    a, b, w = A.copy(), np.ones(128, np.float32), np.zeros(32, np.int32)
    tensors = {"A": TensorArgument(a), "B": TensorArgument(b), "W": TensorArgument(w)}
    code = artifact(entry(SETUP + body, ARGS, "64", shared=2056), engine.driver.target)
    engine.launch(code, LaunchConfig((1, 1, 1), (64, 1, 1)), {**tensors, "n": 2, "d": 256})
    np.testing.assert_array_equal(b[: expected.size], expected.ravel())
    assert (b[expected.size :] == 1).all()


@pytest.mark.parametrize("mode", TensorMapUpdateMode)
def test_maps_of_tensors_that_the_kernel_chooses(mode: TensorMapUpdateMode) -> None:
    engine = CudaEngine()
    if str(engine.driver.target) != "sm_90a":
        pytest.skip("tensormap.replace needs sm_90a")
    a, b, w = arguments()
    halves(of_halves(a), b, w, mode, True).launch(grid=2, block=64, device="cuda")
    np.testing.assert_array_equal(b, np.concatenate([a[:, :, 0], a[:, :, 1]]))
