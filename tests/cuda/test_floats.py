# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations on floats and conversions on a GPU: the numbers that exact arithmetic gives, and the simulator."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from numpy.typing import NDArray
from tilefold.compiler.diagnostics import ProgramError
from tilefold.dialects.target import Target
from tilefold.runtime.artifact import Artifact
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.engine import LaunchConfig, TensorArgument

from tests.emit.float_edges import IDS, KERNELS, results
from tests.emit.float_kernels import Kernel
from tests.emit.float_programs import generate
from tests.emit.fuzz_floats import check, simulate
from tests.passes.harness import source_of
from tilefold.lowering import load

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def engine() -> CudaEngine:
    """The engine of the first device. There is no skip: without a device this fails."""
    return CudaEngine()


def launch(engine: CudaEngine, artifact: Artifact, kernel: Kernel, arrays: dict[str, NDArray[Any]]) -> None:
    """Runs a kernel on the GPU."""
    given = {name: TensorArgument(array) for name, array in arrays.items()}
    engine.launch(artifact, LaunchConfig((kernel.blocks, 1, 1), (kernel.threads, 1, 1)), given)


def check_on_gpu(engine: CudaEngine, kernel: Kernel, kept: list[str]) -> None:
    """The GPU and the simulator give exact numbers; a kernel that the GPU is too old for is refused."""
    target = engine.driver.target
    if target.sm < Target(kernel.targets()[0]).sm:
        with pytest.raises(ProgramError, match="E2102"):
            load(source_of(kernel.text(kept)), target.arch).ptx_artifacts(target)
        return
    program = load(source_of(kernel.text(kept)), target.arch)
    (artifact,) = program.ptx_artifacts(target)
    check(kernel, kept, "GPU", partial(launch, engine, artifact, kernel))
    check(kernel, kept, "simulator", partial(simulate, program.reached("instr"), kernel))


@pytest.mark.parametrize(("make", "type"), KERNELS, ids=IDS)
def test_every_operation_at_the_edges_of_its_type(engine: CudaEngine, make: Callable[[str], Kernel], type: str) -> None:
    kernel = make(type)
    check_on_gpu(engine, kernel, results(kernel))


@pytest.mark.parametrize("seed", range(40))
def test_random_kernel_has_exact_numbers(engine: CudaEngine, seed: int) -> None:
    check_on_gpu(engine, *generate(seed))
