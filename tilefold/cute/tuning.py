# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Autotuning: a kernel compiled for many values of its constants, of which the fastest on this GPU is kept.

Compiling needs no GPU, and takes most of the time; so it is done in parallel, by any executor of `concurrent.futures`:
processes of this machine by default, or those of a cluster. Timing is done here, on the arguments of the call.
"""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from tilefold.compiler.builder.trace import trace
from tilefold.dialects.kernel import LaunchBounds
from tilefold.dialects.target import Target
from tilefold.layout.errors import Code, TilefoldError
from tilefold.runtime.build import Build
from tilefold.runtime.errors import LaunchError, dim3
from tilefold.runtime.store import default_store, digest

from .kernel import Dim3, Kernel, KernelOptions
from .program import CompiledKernel
from .specialise import BoundArguments

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from tilefold.compiler.assemble import KernelResources
    from tilefold.runtime.engine import RunResult

Config: TypeAlias = Mapping[str, Any]
"""Values of constants by the names of their parameters."""
Sized: TypeAlias = "Dim3 | Callable[[Config], Dim3]"
"""A size of a grid or a block, or what it is for a configuration."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration that was tried: what it uses, and its time in milliseconds; or why there is none of these."""

    config: Config
    resources: "KernelResources | None" = None
    milliseconds: float | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Tuning:
    """What was found out for arguments of some types."""

    candidates: tuple[Candidate, ...]
    device: str

    @property
    def best(self) -> Candidate:
        """The fastest."""
        return min((each for each in self.candidates if each.milliseconds is not None), key=_time)

    def table(self) -> str:
        """All candidates, the fastest first, as text."""
        from io import StringIO

        from rich.console import Console
        from rich.table import Table

        found = Table("configuration", "ms", "registers", "spilled bytes", "problem", title=self.device)
        for each in sorted(self.candidates, key=_time):
            resources = each.resources
            found.add_row(
                ", ".join(f"{name}={value}" for name, value in each.config.items()),
                "" if each.milliseconds is None else f"{each.milliseconds:.4f}",
                "" if resources is None else str(resources.registers),
                "" if resources is None else str(resources.spill_stores),
                each.problem,
            )
        stream = StringIO()
        Console(file=stream, width=120).print(found)
        return stream.getvalue()


def without_spills(candidate: Candidate) -> bool:
    """Whether a candidate is worth timing: its registers are enough. The default of `autotune`."""
    return candidate.resources is not None and not candidate.resources.spill_stores


@dataclass
class Tuned:
    """A kernel with configurations; see `autotune`."""

    kernel: Kernel
    configs: Sequence[Config]
    grid: Sized
    block: Sized
    prune: Callable[[Candidate], bool] = without_spills
    executor: "Executor | None" = None
    repeat: int = 20
    _found: dict[tuple[object, ...], Tuning] = field(default_factory=lambda: {})

    def __post_init__(self) -> None:
        if not self.configs:
            raise LaunchError(Code.RUN_LAUNCH, "there is no configuration to choose from", "give configs=[{...}, ...]")
        for config in self.configs:
            if unknown := set(config) - self.kernel.signature.constants:
                raise LaunchError(
                    Code.RUN_ARGUMENT,
                    f"the configuration names '{min(unknown)}', which is no constant of the kernel",
                    f"its constants: {', '.join(sorted(self.kernel.signature.constants)) or 'none'}",
                )

    def __call__(self, *args: Any, **kwargs: Any) -> "TunedCall":
        return TunedCall(self, args, kwargs)

    def tune(self, *args: Any, **kwargs: Any) -> Tuning:
        """Compiles and times the configurations on these arguments, whose contents the runs change; or finds what was
        measured for their types before, also by another process.

        Raises CudaUnavailable without a GPU, TilefoldError where no configuration works.
        """
        first = self.kernel(*args, **kwargs, **self.configs[0]).bound
        key = tuple(first.key)
        found = self._found.get(key)
        if found is None:
            rest = [self.kernel(*args, **kwargs, **config).bound for config in self.configs[1:]]
            found = self._found[key] = self._remembered([first, *rest], args, kwargs)
        return found

    def _remembered(self, bounds: Sequence[BoundArguments], args: Any, kwargs: Any) -> Tuning:
        from tilefold.builds import toolchain

        from .launch import engine_of

        driver = engine_of(_ordinal(bounds[0])).driver
        device, target = driver.name, driver.target
        store = default_store()
        try:
            source = inspect.getsource(self.kernel.function)
        except OSError:
            store, source = None, ""  # of a kernel without a source it is not known whether it is the same
        keys = [f"{each.key}" for each in bounds]
        blocks = [f"{_sized(self.grid, each)} {_sized(self.block, each)}" for each in self.configs]
        key = digest("tuning", source, *keys, *blocks, repr(self.configs), device, target.arch, toolchain())
        kept = None if store is None else store.get(key)
        if kept is not None:
            times = json.loads(kept)
            return Tuning(tuple(Candidate(c, None, *each) for c, each in zip(self.configs, times, strict=True)), device)
        made = Tuning(tuple(self._measured(self._compiled(bounds, target), args, kwargs)), device)
        if all(each.milliseconds is None for each in made.candidates):
            raise TilefoldError(Code.RUN_LAUNCH, "no configuration works:\n" + made.table())
        if store is not None:
            store.put(key, json.dumps([[each.milliseconds, each.problem] for each in made.candidates]).encode())
        return made

    def _compiled(self, bounds: Sequence[BoundArguments], target: Target) -> list[Candidate]:
        """Compiles all configurations, in parallel, and shows how far it is on a terminal."""
        from concurrent.futures import as_completed

        from rich.console import Console
        from rich.progress import Progress

        found: dict[int, Candidate] = {}
        executor = self.executor or _processes()
        try:
            waiting: dict[Future[Any], int] = {}
            for number, (config, bound) in enumerate(zip(self.configs, bounds, strict=True)):
                block = dim3("block", _sized(self.block, config))
                job = compile_in_worker, _name(self.kernel), self.kernel.options, bound.arguments, block, target.arch
                waiting[executor.submit(*job)] = number
            console = Console(stderr=True)
            with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
                task = progress.add_task("compiling", total=len(waiting))
                for future in as_completed(waiting):
                    number = waiting[future]
                    found[number] = self._candidate(self.configs[number], future)
                    progress.advance(task)
        finally:
            if self.executor is None:
                executor.shutdown(cancel_futures=True)
        return [found[number] for number in range(len(self.configs))]

    def _candidate(self, config: Config, future: "Future[Any]") -> Candidate:
        from tilefold.compiler.assemble import cubin_of

        made: bytes | str = future.result()
        if isinstance(made, str):
            return Candidate(config, problem=made)
        build = Build.from_bytes(made)
        resources = cubin_of(build.cubin, build.log).kernels[build.artifacts[0].kernel]
        candidate = Candidate(config, resources)
        return candidate if self.prune(candidate) else Candidate(config, resources, problem="pruned")

    def _measured(self, candidates: Sequence[Candidate], args: Any, kwargs: Any) -> list[Candidate]:
        """The candidates that are left, with their times; each is compiled again, out of the cache."""
        return [each if each.problem else self._timed(each, args, kwargs) for each in candidates]

    def _timed(self, candidate: Candidate, args: Any, kwargs: Any) -> Candidate:
        from .launch import engine_of

        config = candidate.config
        call = self.kernel(*args, **kwargs, **config)
        grid, block = _sized(self.grid, config), _sized(self.block, config)
        engine = engine_of(_ordinal(call.bound))
        engine.driver.activate()
        try:
            timing = engine.measure(
                lambda: call.launch(grid, block, stream=0), self.kernel.__name__, repeat=self.repeat
            )
        except TilefoldError as error:
            return Candidate(config, candidate.resources, problem=_problem(error))
        return Candidate(config, candidate.resources, timing.median_ms)


@dataclass(frozen=True, slots=True)
class TunedCall:
    """A kernel with configurations, and arguments without the constants."""

    tuned: Tuned
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def launch(self, *, stream: Any = None, device: str = "auto") -> "RunResult | None":
        """Launches the fastest configuration, which is found out where it is not known. On the simulator, which has no
        time, it is the first one.
        """
        from tilefold.execution import chosen_device

        tuned = self.tuned
        simulated = device == "sim" or (device == "auto" and chosen_device(device) == "sim")
        config = tuned.configs[0] if simulated else tuned.tune(*self.args, **self.kwargs).best.config
        return tuned.kernel(*self.args, **self.kwargs, **config).launch(
            _sized(tuned.grid, config), _sized(tuned.block, config), stream=stream, device=device
        )


def autotune(
    *,
    configs: Sequence[Config],
    grid: Sized,
    block: Sized,
    prune: Callable[[Candidate], bool] = without_spills,
    executor: "Executor | None" = None,
    repeat: int = 20,
) -> Callable[[Kernel], Tuned]:
    """Makes a kernel one that chooses among configurations, values of its `Constexpr` parameters:

        @cute.autotune(configs=[{"BM": 64}, {"BM": 128}], grid=lambda c: M // c["BM"], block=128)
        @cute.kernel
        def kernel(A, B, BM: cute.Constexpr): ...

        kernel(a, b).launch()

    `prune` says of a compiled configuration whether it is timed. `executor` compiles; by default processes of this
    machine do. Each is timed `repeat` times on the arguments of the first call of their types; results are kept on
    disk. Raises LaunchError for a configuration that names no constant.
    """
    return lambda kernel: Tuned(kernel, configs, grid, block, prune, executor, repeat)


def compile_in_worker(
    name: tuple[str, str], options: KernelOptions, arguments: Mapping[str, object], block: Sequence[int], arch: str
) -> bytes | str:
    """Compiles a kernel that is found by the name of its module and its own; what `Build.to_bytes` makes, or what is
    wrong with the kernel for these constants.

    Runs in another process, perhaps on another machine, where the kernel's module can be imported.
    """
    found: Any = import_module(name[0])
    for part in name[1].split("."):
        found = getattr(found, part)
    kernel: Kernel = found.kernel if isinstance(found, Tuned) else found
    bounds = LaunchBounds(tuple(block), options.min_blocks, options.max_registers)
    try:
        built = CompiledKernel(trace(kernel.rewritten, arguments, bounds, options.name))
        return built.program.build(Target(arch)).to_bytes()
    except TilefoldError as error:
        return _problem(error)


def _ordinal(bound: BoundArguments) -> int:
    """The GPU that holds the arguments."""
    return next((each.device for each in bound.arrays.values() if each.device is not None), 0)


def _name(kernel: Kernel) -> tuple[str, str]:
    return kernel.function.__module__, kernel.function.__qualname__


def _sized(size: Sized, config: Config) -> Dim3:
    return size(config) if callable(size) else size


def _problem(error: TilefoldError) -> str:
    return f"{error.code}: {error.message}".partition("\n")[0][:200]


def _time(candidate: Candidate) -> float:
    return float("inf") if candidate.milliseconds is None else candidate.milliseconds


def _processes() -> "Executor":
    """Processes of this machine, begun anew: a process that uses a GPU cannot be forked."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(mp_context=get_context("spawn"))
