# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on floats and conversions on a GPU: the numbers that exact arithmetic gives, and so the simulator."""

from collections.abc import Callable

import pytest
from tilefold.base.target import Target
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.runtime.cuda import CudaEngine

from tests.emit.float_edges import IDS, KERNELS, results
from tests.emit.float_kernels import Kernel
from tests.fuzz.engines import Totals, on_gpu
from tests.fuzz.floats import problem_of

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def engine() -> CudaEngine:
    """The engine of the first device. There is no skip: without a device this fails."""
    return CudaEngine()


@pytest.mark.parametrize(("make", "type"), KERNELS, ids=IDS)
def test_every_operation_at_the_edges_of_its_type(engine: CudaEngine, make: Callable[[str], Kernel], type: str) -> None:
    """A kernel that the GPU is too old for is refused."""
    kernel = make(type)
    problem = problem_of(kernel, results(kernel))
    if engine.driver.target.sm >= Target(problem.interpreted[0]).sm:
        on_gpu(problem, Totals(), engine)
        return
    with pytest.raises(ProgramError, match="E2102"):
        on_gpu(problem, Totals(), engine)
