# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the fastest of many values of a kernel's constants is found: compiled, timed, kept on disk.

Compiling needs no GPU, and takes most of the time; so it is done in parallel (see `compiling`). Timing is done here, on
the arguments of the call, or by the workers of an executor (see `worker_timing`).
"""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tilefold.base.errors import Code, TilefoldError
from tilefold.runtime.compiled.artifact import Build
from tilefold.runtime.compiled.store import default_store, digest
from tilefold.runtime.options import dim3

from .compiled_kernel import CompiledKernel
from .compiling import compile_all
from .debugging_methods import Size
from .kernel import Kernel, KernelCall
from .specialise import BoundArguments
from .worker_timing import TimingJob, time_all

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from tilefold.compiler.machine.assemble import KernelResources
    from tilefold.runtime.cuda import CudaEngine

Config: TypeAlias = Mapping[str, Any]
"""Values of constants by the names of their parameters."""
Sized: TypeAlias = Size | Callable[[Config], Size]
"""A size of a grid or a block, or a function of the configuration."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration after its trial: its resources, and its time in milliseconds; or the reason that it has
    neither.
    """

    config: Config
    resources: "KernelResources | None" = None
    milliseconds: float | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Tuning:
    """The result of tuning for arguments of some types."""

    candidates: tuple[Candidate, ...]
    device: str

    @property
    def best(self) -> Candidate:
        """The fastest candidate. Raises TilefoldError (E3105) if none works."""
        timed = [candidate for candidate in self.candidates if candidate.milliseconds is not None]
        if not timed:
            raise TilefoldError(
                Code.RUN_LAUNCH,
                "no configuration works:\n" + self.table(),
                "processes that compile import the main module: launch below if __name__ == '__main__', or give "
                "another executor"
                if any("BrokenProcessPool" in candidate.problem for candidate in self.candidates)
                else "",
            )
        return min(timed, key=_time)

    def table(self) -> str:
        """All candidates, the fastest first, as text."""
        from io import StringIO

        from rich.console import Console
        from rich.table import Table

        table = Table("configuration", "ms", "registers", "spilled bytes", "problem", title=self.device)
        for candidate in sorted(self.candidates, key=_time):
            resources = candidate.resources
            table.add_row(
                ", ".join(f"{name}={value}" for name, value in candidate.config.items()),
                "" if candidate.milliseconds is None else f"{candidate.milliseconds:.4f}",
                "" if resources is None else str(resources.registers),
                "" if resources is None else str(resources.spill_stores),
                candidate.problem,
            )
        stream = StringIO()
        Console(file=stream, width=120).print(table)
        return stream.getvalue()


def without_spills(candidate: Candidate) -> bool:
    """Whether a candidate is worth timing: its registers are enough. The default of `autotune`."""
    return candidate.resources is not None and not candidate.resources.spill_stores


@dataclass(frozen=True, slots=True)
class Tuner:
    """How configurations of a kernel are compiled, chosen and timed; see `autotune`, whose parameters these are."""

    kernel: Kernel
    configs: tuple[Config, ...]
    grid: Sized
    block: Sized
    prune: Callable[[Candidate], bool]
    executor: "Executor | None"
    repeat: int
    time_on_workers: bool = False

    def measure(self, calls: Sequence[KernelCall], ordinal: int) -> Tuning:
        """The measurements on a GPU: those on disk, else new ones. The calls are those of the
        configurations, whose arguments the runs change.

        Raises CudaUnavailable without the GPU, TilefoldError if no configuration works.
        """
        from tilefold.driver import devices

        engine = devices.gpu_engine(ordinal)
        key, store = self._key([call.bound for call in calls], engine), default_store()
        kept = None if store is None or not key else store.get(key)
        if kept is not None:
            from tilefold.compiler.machine.assemble import KernelResources

            candidates = [
                Candidate(config, None if uses is None else KernelResources(**uses), milliseconds, problem)
                for config, (uses, milliseconds, problem) in zip(self.configs, json.loads(kept), strict=True)
            ]
            return Tuning(tuple(candidates), engine.driver.name)
        compiled, lasting = self._compiled(calls, engine)
        measured = self._measured_by_workers if self.time_on_workers else self._measured
        made = Tuning(tuple(measured(compiled, calls, engine)), engine.driver.name)
        assert made.best
        if store is not None and key and lasting:
            rows = [
                (None if tried.resources is None else asdict(tried.resources), tried.milliseconds, tried.problem)
                for tried in made.candidates
            ]
            store.put(key, json.dumps(rows).encode())
        return made

    def _key(self, bounds: Sequence[BoundArguments], engine: "CudaEngine") -> str:
        """The key of the measurement; empty where it is unknown. The kernel is taken as it is for the first
        configuration, with all that it calls: to build all of them takes too long where nothing has to be compiled.
        """
        from tilefold.driver.machine_code import toolchain

        try:
            prune = inspect.getsource(self.prune)
        except (OSError, TypeError):
            return ""
        first = self._built(bounds[0], self.configs[0])
        identity = first.program.identity if isinstance(first, CompiledKernel) else repr(first)
        keys = [f"{bound.key}" for bound in bounds]
        sizes = [f"{evaluate_size(self.grid, config)} {evaluate_size(self.block, config)}" for config in self.configs]
        driver = engine.driver
        return digest(
            "tuning", identity, prune, *keys, *sizes, repr(self.configs), driver.name, driver.target.arch, toolchain()
        )

    def _compiled(self, calls: Sequence[KernelCall], engine: "CudaEngine") -> tuple[list[Candidate], bool]:
        """All configurations with their resources or problems; and whether another run would give the same."""
        built = [self._built(call.bound, config) for call, config in zip(calls, self.configs, strict=True)]
        kernels = [kernel for kernel in built if isinstance(kernel, CompiledKernel)]
        made = compile_all(kernels, engine.driver.target, self.executor)
        lasting = all(isinstance(build, Build | TilefoldError) for build in made)
        rest = iter(made)
        results = [next(rest) if isinstance(kernel, CompiledKernel) else kernel for kernel in built]
        return [self._candidate(*pair, engine) for pair in zip(self.configs, results, strict=True)], lasting

    def _built(self, bound: BoundArguments, config: Config) -> CompiledKernel | Exception:
        """The kernel for a configuration, or the exception raised while it was built, as by an `assert` of
        constants."""
        block = dim3("block", evaluate_size(self.block, config))
        try:
            return self.kernel.build(bound, block)
        except Exception as error:
            return error

    def _candidate(self, config: Config, made: Build | Exception, engine: "CudaEngine") -> Candidate:
        if isinstance(made, Exception):
            return Candidate(config, problem=_problem(made))
        from tilefold.compiler.machine.assemble import KernelResources, cubin_of

        (artifact,) = made.artifacts
        if made.cubin:
            resources = cubin_of(made.cubin, made.log).kernels[artifact.kernel]
        else:  # the driver assembles it, and does not tell how much of its local memory is spills
            try:
                with engine.driver.current():
                    kernel = engine.load(artifact).kernel
                    local, shared = kernel.local_bytes, kernel.shared_bytes
                    resources = KernelResources(kernel.registers, local, local, local, shared, code=0)
            except TilefoldError as error:
                return Candidate(config, problem=_problem(error))
        candidate = Candidate(config, resources)
        return candidate if self.prune(candidate) else Candidate(config, resources, problem="pruned")

    def _measured(
        self, candidates: Sequence[Candidate], calls: Sequence[KernelCall], engine: "CudaEngine"
    ) -> list[Candidate]:
        from tilefold.driver.output import progress

        with engine.driver.current(), progress("timing", len(candidates)) as advance:
            measured: list[Candidate] = []
            for candidate, call in zip(candidates, calls, strict=True):
                measured.append(candidate if candidate.problem else self._timed(candidate, call, engine))
                advance()
        return measured

    def _measured_by_workers(
        self, candidates: Sequence[Candidate], calls: Sequence[KernelCall], engine: "CudaEngine"
    ) -> list[Candidate]:
        assert self.executor is not None, "autotune asks for it"
        jobs = [self._job(*pair, engine) for pair in zip(candidates, calls, strict=True)]
        measured: list[Candidate] = []
        for tried, made in zip(candidates, time_all(self.executor, jobs), strict=True):
            if isinstance(made, Exception):
                measured.append(Candidate(tried.config, tried.resources, problem=_problem(made)))
            else:
                measured.append(tried if made is None else Candidate(tried.config, tried.resources, made))
        return measured

    def _job(self, candidate: Candidate, call: KernelCall, engine: "CudaEngine") -> TimingJob | None:
        """A configuration for a worker to time; None for one that is not timed."""
        if candidate.problem:
            return None
        config, bound, driver = candidate.config, call.bound, engine.driver
        build = call.build(evaluate_size(self.block, config)).program.build(driver.target)
        grid = dim3("grid", evaluate_size(self.grid, config))
        return TimingJob.of(build, grid, bound.values, bound.arrays, driver.name, self.repeat)

    def _timed(self, candidate: Candidate, call: KernelCall, engine: "CudaEngine") -> Candidate:
        from tilefold.runtime.engine import LaunchConfig

        from .launch import on_host

        config, bound = candidate.config, call.bound
        grid, block = evaluate_size(self.grid, config), evaluate_size(self.block, config)
        try:
            if any(array.device is None for array in bound.arrays.values()):  # which is copied once, and not timed
                artifact = call.build(block).artifact(engine.driver.target.arch)
                size = LaunchConfig(dim3("grid", grid), artifact.block)
                values, tensors = on_host(bound)
                timing = engine.time(artifact, size, values, repeat=self.repeat)
                tensors.finish()
            else:
                timing = engine.measure(
                    lambda: call.launch(grid, block, stream=0), self.kernel.function.__name__, repeat=self.repeat
                )
        except TilefoldError as error:
            return Candidate(config, candidate.resources, problem=_problem(error))
        return Candidate(config, candidate.resources, timing.median_ms)


def evaluate_size(size: Sized, config: Config) -> Size:
    """A size for a configuration."""
    return size(config) if callable(size) else size


def _problem(error: Exception) -> str:
    code = error.code if isinstance(error, TilefoldError) else type(error).__name__
    message = error.message if isinstance(error, TilefoldError) else str(error)
    return f"{code}: {message}".partition("\n")[0][:200]


def _time(candidate: Candidate) -> float:
    return float("inf") if candidate.milliseconds is None else candidate.milliseconds
