# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels compute the same at every stage, on the CPU, and on a GPU. `python -m tests.fuzz` runs any number."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tilefold.runtime.cuda import CudaEngine

from tests.fuzz.__main__ import main
from tests.fuzz.engines import CPU, GPU, Fault, Totals, attempt, on_cpu, on_dump, on_simulator
from tests.fuzz.generators import GENERATORS
from tests.fuzz.problem import Problem, Tensor

SEEDS = 12
BATCH = 2


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.sampled(len(GENERATORS))
def test_random_kernels(name: str, first: int) -> None:
    totals = Totals()
    for seed in range(first, first + BATCH):
        attempt(name, GENERATORS[name], seed, totals)
    assert totals.elements["cute"], f"no kernel ran: {totals}"
    assert totals.elements[CPU] or totals.not_on_cpu, f"none ran on the CPU: {totals}"


@pytest.mark.gpu
@pytest.mark.parametrize("name", [name for name, generator in GENERATORS.items() if generator.on_gpus])
def test_random_kernels_on_a_gpu(name: str, pytestconfig: pytest.Config) -> None:
    """So many kernels as `--fuzz` says, from the seed `--fuzz-seed` on. There is no skip: without a GPU this fails."""
    engine, totals = CudaEngine(), Totals()
    first, count = (int(pytestconfig.getoption(option) or 0) for option in ("--fuzz-seed", "--fuzz"))
    for seed in range(first, first + count):
        attempt(name, GENERATORS[name], seed, totals, engine)
    print(f"{name}, seeds {first} to {first + count - 1}: {totals}")
    assert totals.elements[GPU], f"no kernel ran: {totals}"


@pytest.mark.parametrize("run", [on_simulator, on_dump, on_cpu])
def test_a_wrong_element_is_a_fault(run: Callable[[Problem, Totals], None]) -> None:
    problem = GENERATORS["recasts"].make(0)
    b = problem.arguments["B"]
    assert isinstance(b, Tensor)
    wrong = b.wanted.copy()
    wrong[0] += 1
    run(problem, Totals())
    with pytest.raises(Fault, match="1 elements of B differ, first 0"):
        run(replace(problem, arguments={**problem.arguments, "B": replace(b, expected=wrong)}), Totals())


def test_columns_between_two_halves_belong_to_others() -> None:
    """Stores by 16x32bx2 one after the other, each of which has columns between the halves of the one before."""
    problem = GENERATORS["tensor-instructions"].make(46)
    assert problem.text.count('ptx.tcgen05.st "16x32bx2" x 1 unpack') == 4
    on_simulator(problem, Totals())


def test_a_search_tells_its_totals(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "2", "--seed", "5", "--only", "recasts"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("seeds 5 to 6: 2 programs; elements compared: {'cute': ")
    assert said.endswith(", 0 failed\n")
