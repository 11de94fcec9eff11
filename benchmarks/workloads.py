# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels that are measured: a `.cute` file of the project with parameters, and how it is built."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from os import cpu_count
from pathlib import Path

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import Target
from tilefold.compiler.frontend.params import expand
from tilefold.compiler.frontend.source import Source
from tilefold.runtime.compiled.artifact import Artifact
from tilefold.runtime.engine import LaunchConfig

from benchmarks.record import ROOT
from tilefold.driver.launches import Changes, Launch, read_launches
from tilefold.driver.lowering import Program, load

Parameters = Mapping[str, int | str]
Built = tuple[Artifact, LaunchConfig]


def spelled(parameters: Parameters) -> str:
    """Parameters as on the command line."""
    return " ".join(f"{name}={value}" for name, value in parameters.items())


@dataclass(frozen=True, slots=True)
class Workload:
    """A kernel file, by its path in the project, with parameters: `size` for the measurement, `small` for a run on the
    simulator, None where its kernel is run there at another workload's.
    """

    name: str
    file: str
    size: Parameters = field(default_factory=dict[str, int | str])
    small: Parameters | None = None

    def shrunk(self) -> "Workload":
        """The workload at the size for the simulator."""
        return replace(self, size=self.small or {})

    def source(self) -> Source:
        """The text of the file for these parameters."""
        text = (ROOT / self.file).read_text(encoding="utf-8")
        return expand(text, Path(self.file).name, {name: str(value) for name, value in self.size.items()})

    def loaded(self) -> tuple[Program, Launch]:
        """The program for these parameters, and its one launch."""
        program = load(self.source())
        (launch,) = read_launches(program.module, program.source, Changes())
        return program, launch

    def built(self, target: Target) -> Built:
        """The kernel for a GPU, and the launch that its file describes. TilefoldError where it cannot be compiled."""
        program, launch = self.loaded()
        return program.artifact(launch.kernel, target), LaunchConfig(launch.grid, launch.block)

    @property
    def configuration(self) -> str:
        """The parameters as on the command line."""
        return spelled(self.size)


def build_all(workloads: Iterable[Workload], target: Target) -> dict[str, Built | str]:
    """Every workload built for a GPU, by name, in as many processes as there are cores.

    In place of one that cannot be compiled stands the message. TilefoldError where different ones have one name.
    """
    by_name: dict[str, Workload] = {}
    for workload in workloads:
        if by_name.setdefault(workload.name, workload) != workload:
            raise TilefoldError(Code.CLI_VALUE, f"two workloads have the name '{workload.name}'")
    if not by_name:
        return {}
    # a process that uses a GPU must not be forked
    with ProcessPoolExecutor(min(len(by_name), cpu_count() or 1), mp_context=get_context("spawn")) as pool:
        futures = {name: pool.submit(_build, workload, target) for name, workload in by_name.items()}
        return {name: future.result() for name, future in futures.items()}


def compile_ahead(compilations: Sequence[Callable[[], None]]) -> None:
    """Compiles in as many processes as there are cores. Errors are raised where a result is needed."""
    if compilations:
        with ProcessPoolExecutor(min(len(compilations), cpu_count() or 1), mp_context=get_context("spawn")) as pool:
            wait([pool.submit(compilation) for compilation in compilations])


def _build(workload: Workload, target: Target) -> Built | str:
    try:
        return workload.built(target)
    except TilefoldError as error:
        return str(error)
