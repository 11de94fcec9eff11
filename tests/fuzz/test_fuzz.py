# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels compute the same at every stage, on the CPU, and on a GPU. `python -m tests.fuzz` runs any number."""

import pytest
from tilefold.runtime.cuda import CudaEngine

from tests.fuzz.engines import CPU, GPU, Totals, attempt
from tests.fuzz.generators import GENERATORS

SEEDS = 12
BATCH = 4


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
@pytest.mark.parametrize("name", GENERATORS)
def test_random_kernels(name: str, first: int) -> None:
    totals = Totals()
    for seed in range(first, first + BATCH):
        attempt(name, GENERATORS[name], seed, totals)
    assert totals.elements["cute"], f"no kernel ran: {totals}"
    assert totals.elements[CPU] or totals.not_on_cpu, f"none ran on the CPU: {totals}"


@pytest.mark.gpu
@pytest.mark.parametrize("name", GENERATORS)
def test_random_kernels_on_a_gpu(name: str, pytestconfig: pytest.Config) -> None:
    """So many kernels as `--fuzz` says, from the seed `--fuzz-seed` on. There is no skip: without a GPU this fails."""
    engine, totals = CudaEngine(), Totals()
    first, count = (int(pytestconfig.getoption(option) or 0) for option in ("--fuzz-seed", "--fuzz"))
    for seed in range(first, first + count):
        attempt(name, GENERATORS[name], seed, totals, engine)
    print(f"{name}, seeds {first} to {first + count - 1}: {totals}")
    assert totals.elements[GPU], f"no kernel ran: {totals}"
