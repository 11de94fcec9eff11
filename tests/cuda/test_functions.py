# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of `math` on a GPU: within the errors of docs/language.md, and with the bits of the simulator."""

import numpy as np
import pytest
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.engine import LaunchConfig, TensorArgument

from tests.accuracy import arguments, check_function
from tests.cuda.harness import artifact
from tests.emit.harness import kernel, parse
from tests.emit.test_accuracy import BY_INSTRUCTION, NAMES, POINTERS, THREADS, body, simulated

pytestmark = pytest.mark.gpu

COUNT = 1 << 20


@pytest.fixture(scope="module")
def engine() -> CudaEngine:
    """The engine of the first device. There is no skip: without a device this fails."""
    return CudaEngine()


def test_functions_of_many_numbers(engine: CudaEngine) -> None:
    text = kernel(body(), POINTERS, threads=str(THREADS))
    x = arguments(3, COUNT)
    results = {name: np.zeros_like(x) for name in NAMES}
    given = {name: TensorArgument(array) for name, array in {"X": x, **results}.items()}
    engine.launch(artifact(text, engine.driver.target), LaunchConfig((COUNT // THREADS, 1, 1), (THREADS, 1, 1)), given)
    expected = simulated(parse(text), x)
    for name in NAMES:
        check_function(name, x, results[name])
        if name not in BY_INSTRUCTION:
            np.testing.assert_array_equal(results[name], expected[name], name)
