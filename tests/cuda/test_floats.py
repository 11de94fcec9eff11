# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on floats and conversions on a GPU: the numbers that exact arithmetic gives, and so the simulator."""

from collections.abc import Callable

import pytest
from tilefold.compiler.diagnostics import ProgramError
from tilefold.dialects.target import Target
from tilefold.runtime.cuda import CudaEngine

from tests.emit.float_edges import IDS, KERNELS, results
from tests.emit.float_kernels import Kernel
from tests.emit.float_programs import generate
from tests.fuzz.engines import Totals, on_gpu
from tests.fuzz.floats import problem_of

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def engine() -> CudaEngine:
    """The engine of the first device. There is no skip: without a device this fails."""
    return CudaEngine()


def check_on_gpu(engine: CudaEngine, kernel: Kernel, kept: list[str]) -> None:
    """The GPU gives exact numbers; a kernel that it is too old for is refused."""
    problem = problem_of(kernel, kept)
    if engine.driver.target.sm >= Target(problem.interpreted[0]).sm:
        on_gpu(problem, Totals(), engine)
        return
    with pytest.raises(ProgramError, match="E2102"):
        on_gpu(problem, Totals(), engine)


@pytest.mark.parametrize(("make", "type"), KERNELS, ids=IDS)
def test_every_operation_at_the_edges_of_its_type(engine: CudaEngine, make: Callable[[str], Kernel], type: str) -> None:
    kernel = make(type)
    check_on_gpu(engine, kernel, results(kernel))


@pytest.mark.parametrize("seed", range(40))
def test_random_kernel_has_exact_numbers(engine: CudaEngine, seed: int) -> None:
    check_on_gpu(engine, *generate(seed))
