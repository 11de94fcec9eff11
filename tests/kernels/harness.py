# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of the examples in tests: compiled once, and run on the simulator at any stage."""

import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefold.base.target import Target
from tilefold.compiler.frontend.params import expand
from tilefold.compiler.reports.kernel_report import count_instructions
from tilefold.runtime.check import check_results
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.engine import LaunchConfig, RunResult
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine

from tilefold.driver.filled_arguments import prepare
from tilefold.driver.launches import Changes, Launch, read_launches
from tilefold.driver.lowering import EXECUTABLE_STAGES, Program, load

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.cute"))
BY_SIZE = sorted(EXAMPLES, key=lambda path: path.stat().st_size)
"""The examples, short ones first: samples are a short one and one of middle length."""
STAGES = EXECUTABLE_STAGES
TARGET = Target("sm_80")
MAX_BYTES = 1 << 30


@cache
def program(path: Path) -> Program:
    """The program of an example."""
    return load(expand(path.read_text(), path.name, {}))


def program_of(text: str) -> Program:
    """The program of a text."""
    return load(expand(text, "test.cute", {}))


@cache
def changed_program(name: str, **changed: str) -> Program:
    """The program of an example with other parameters. ProgramError where it refuses them."""
    path = example(name)
    return load(expand(path.read_text(), path.name, changed))


def check_changed(name: str, stage: str, **changed: Any) -> None:
    """Runs an example of one launch with other parameters; its own checks compare the results."""
    found = changed_program(name, **{parameter: str(value) for parameter, value in changed.items()})
    (launch,) = read_launches(found.module, found.source, Changes())
    assert_checks_hold(launch, simulate(found, launch, stage).after)


@cache
def target_of(path: Path) -> Target:
    """The first target that has all that an example needs."""
    return program(path).simulated_target("instr")


@cache
def launches(path: Path) -> list[Launch]:
    """The launches of an example, in its order."""
    return read_launches(program(path).module, program(path).source, Changes())


@cache
def ptx(path: Path, arch: str | None = None) -> str:
    """The PTX of an example without its lines, by default for the first target that has all it needs."""
    return program(path).ptx(target_of(path) if arch is None else Target(arch), lines=False)


@cache
def ptx_counts(path: Path) -> dict[str, dict[str, int]]:
    """How often each instruction stands in the PTX of each kernel of an example."""
    return count_instructions(ptx(path))


def kernel_ptx(path: Path, kernel: str) -> str:
    """The PTX of one kernel of an example, from its entry to its closing brace."""
    text = ptx(path)
    start = text.index(f".entry {kernel}(")
    return text[start : text.index("\n}", start)]


def loops(text: str) -> list[str]:
    """The lines between each branch back in a kernel's PTX and its label, those of a loop, in order."""
    labels = {match[1]: match.start() for match in re.finditer(r"^(\$\w+):", text, re.MULTILINE)}
    branches = re.finditer(r"\bbra(?:\.uni)?\s+(\$\w+)", text)
    return [text[labels[match[1]] : match.end()] for match in branches if labels[match[1]] < match.start()]


ALL_LAUNCHES = [(path, number) for path in EXAMPLES for number in range(len(launches(path)))]
LAUNCH_IDS = [f"{path.stem}-{launches(path)[number].label}" for path, number in ALL_LAUNCHES]


def example(name: str) -> Path:
    """The example of this name, without its suffix."""
    return next(path for path in EXAMPLES if path.stem == name)


@dataclass(frozen=True)
class Ran:
    """A launch that has run: its arguments before and after, as logical arrays, and what the simulator reports."""

    before: dict[str, Any]
    after: dict[str, Any]
    result: RunResult

    def array(self, name: str) -> NDArray[Any]:
        """An argument after the run."""
        return np.asarray(self.after[name])


def simulate(found: Program, launch: Launch, stage: str, target: Target | None = None) -> Ran:
    """Runs a launch on the simulator at a stage of the lowering for a target."""
    module = found.at(stage, target or found.simulated_target(stage))
    assert module is not None
    arguments = prepare(launch, {}, seed=0, max_bytes=MAX_BYTES)
    before = arguments.logical(arguments.launchable())
    given = arguments.launchable()
    engine = SimEngine(sink=lambda _: None)
    result = engine.launch(SimProgram(module, launch.kernel), LaunchConfig(launch.grid, launch.block), given)
    return Ran(before, arguments.logical(given), result)


def on_gpu(found: Program, launch: Launch, engine: CudaEngine) -> dict[str, Any]:
    """The arguments of a launch, as logical arrays, after it has run on a GPU."""
    arguments = prepare(launch, {}, seed=0, max_bytes=MAX_BYTES)
    given = arguments.launchable()
    artifact = found.artifact(launch.kernel, engine.driver.target)
    engine.launch(artifact, LaunchConfig(launch.grid, launch.block), given)
    return arguments.logical(given)


@cache
def simulated(path: Path, number: int, stage: str) -> Ran:
    """A launch of an example, on a corner of its grid, run at a stage."""
    return simulate(program(path), small(launches(path)[number]), stage)


def small(launch: Launch) -> Launch:
    """The launch on a corner of its grid, which every stage simulates quickly."""
    x, y, z = launch.grid
    return replace(launch, grid=(min(x, 4), min(y, 2), min(z, 2)))


def assert_checks_hold(launch: Launch, values: dict[str, Any]) -> None:
    """Every check that the file states holds."""
    assert launch.checks
    for check in launch.checks:
        for result in check_results(check.condition.text, values, rtol=check.rtol, atol=check.atol):
            assert result.passed, str(result)
