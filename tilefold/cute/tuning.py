# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Autotuning: a kernel compiled for many values of its constants, of which the fastest on this GPU is kept.

Compiling needs no GPU, and takes most of the time; so it is done in parallel (see `compiling`). Timing is done here, on
the arguments of the call.
"""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import update_wrapper
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from tilefold.layout.errors import Code, TilefoldError
from tilefold.runtime.build import Build
from tilefold.runtime.errors import LaunchError, dim3
from tilefold.runtime.store import default_store, digest

from .compiling import compile_all, progress
from .kernel import Dim3, Kernel, KernelCall
from .program import CompiledKernel
from .specialise import BoundArguments

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from tilefold.compiler.assemble import KernelResources
    from tilefold.dialects.target import Target
    from tilefold.runtime.cuda import CudaEngine
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
        """The fastest. TilefoldError (E3105) where none works."""
        timed = [each for each in self.candidates if each.milliseconds is not None]
        if not timed:
            raise TilefoldError(
                Code.RUN_LAUNCH,
                "no configuration works:\n" + self.table(),
                "processes that compile import the main module: launch below if __name__ == '__main__', or give "
                "another executor"
                if any("BrokenProcessPool" in each.problem for each in self.candidates)
                else "",
            )
        return min(timed, key=_time)

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


class Tuned:
    """A kernel with configurations; see `autotune`, whose parameters these are."""

    def __init__(
        self,
        kernel: Kernel,
        configs: Iterable[Config],
        grid: Sized,
        block: Sized,
        prune: Callable[[Candidate], bool] = without_spills,
        executor: "Executor | None" = None,
        repeat: int = 20,
    ) -> None:
        if not isinstance(kernel, Kernel):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise LaunchError(
                Code.RUN_LAUNCH, f"{kernel!r} is no kernel", "decorate the function with @cute.kernel first"
            )
        self.configs = tuple(configs)
        if not self.configs:
            raise LaunchError(Code.RUN_LAUNCH, "there is no configuration to choose from", "give configs=[{...}, ...]")
        for config in self.configs:
            if unknown := set(config) - kernel.signature.constants:
                raise LaunchError(
                    Code.RUN_ARGUMENT,
                    f"the configuration names '{min(unknown)}', which is no constant of the kernel",
                    f"its constants: {', '.join(sorted(kernel.signature.constants)) or 'none'}",
                )
        self.kernel = kernel
        self.grid = grid
        self.block = block
        self.prune = prune
        self.executor = executor
        self.repeat = repeat
        self._found: dict[tuple[object, ...], Tuning] = {}
        self._lock = Lock()
        update_wrapper(self, kernel.function)

    def __repr__(self) -> str:
        return f"<{len(self.configs)} configurations of {self.kernel!r}>"

    def __reduce__(self) -> str:
        return self.kernel.function.__qualname__

    def __call__(self, *args: Any, **kwargs: Any) -> "TunedCall":
        return TunedCall(self, args, kwargs)

    def tune(self, *args: Any, **kwargs: Any) -> Tuning:
        """Compiles and times the configurations on these arguments, whose contents the runs change; or finds what was
        measured for their types before, also by another process.

        Raises CudaUnavailable without a GPU, TilefoldError where no configuration works.
        """
        first = self._call(self.configs[0], args, kwargs).bound
        ordinal = _ordinal(first)
        key = ordinal, *first.key
        with self._lock:  # two measurements at the same time would disturb each other
            found = self._found.get(key)
            if found is None:
                found = self._found[key] = self._remembered(ordinal, args, kwargs)
        return found

    def _remembered(self, ordinal: int, args: Any, kwargs: Any) -> Tuning:
        """What was measured before, by the disk; else what is measured now."""
        from .launch import engine_of

        engine = engine_of(ordinal)
        calls = [self._call(config, args, kwargs) for config in self.configs]
        key, store = self._key([each.bound for each in calls], engine), default_store()
        kept = None if store is None or not key else store.get(key)
        if kept is not None:
            from tilefold.compiler.assemble import KernelResources

            candidates = [
                Candidate(config, None if uses is None else KernelResources(**uses), milliseconds, problem)
                for config, (uses, milliseconds, problem) in zip(self.configs, json.loads(kept), strict=True)
            ]
            return Tuning(tuple(candidates), engine.driver.name)
        compiled, lasting = self._compiled(calls, engine.driver.target)
        made = Tuning(tuple(self._measured(compiled, calls, engine)), engine.driver.name)
        assert made.best
        if store is not None and key and lasting:
            found = [
                (None if each.resources is None else asdict(each.resources), each.milliseconds, each.problem)
                for each in made.candidates
            ]
            store.put(key, json.dumps(found).encode())
        return made

    def _key(self, bounds: Sequence[BoundArguments], engine: "CudaEngine") -> str:
        """What the measurement depends on; empty where it is not known. The kernel is taken as it is for the first
        configuration, with all that it calls: to build all of them takes too long where nothing has to be compiled.
        """
        from tilefold.builds import toolchain

        try:
            prune = inspect.getsource(self.prune)
        except (OSError, TypeError):
            return ""
        first = self._built(bounds[0], self.configs[0])
        identity = first.program.identity if isinstance(first, CompiledKernel) else repr(first)
        keys = [f"{each.key}" for each in bounds]
        sizes = [f"{_sized(self.grid, each)} {_sized(self.block, each)}" for each in self.configs]
        driver = engine.driver
        return digest(
            "tuning", identity, prune, *keys, *sizes, repr(self.configs), driver.name, driver.target.arch, toolchain()
        )

    def _compiled(self, calls: Sequence[KernelCall], target: "Target") -> tuple[list[Candidate], bool]:
        """All configurations with what they use, or what is wrong with them; and whether that will be so again."""
        built = [self._built(call.bound, config) for call, config in zip(calls, self.configs, strict=True)]
        kernels = [each for each in built if isinstance(each, CompiledKernel)]
        made = compile_all(kernels, target, self.executor)
        lasting = all(isinstance(each, Build | TilefoldError) for each in made)
        rest = iter(made)
        results = [next(rest) if isinstance(each, CompiledKernel) else each for each in built]
        return [self._candidate(*each) for each in zip(self.configs, results, strict=True)], lasting

    def _built(self, bound: BoundArguments, config: Config) -> CompiledKernel | Exception:
        """The kernel for a configuration, or what was raised while it was built, as by an `assert` of constants."""
        block = dim3("block", _sized(self.block, config))
        try:
            return self.kernel.build(bound, block)
        except Exception as error:
            return error

    def _candidate(self, config: Config, made: Build | Exception) -> Candidate:
        if isinstance(made, Exception):
            return Candidate(config, problem=_problem(made))
        from tilefold.compiler.assemble import cubin_of

        resources = cubin_of(made.cubin, made.log).kernels[made.artifacts[0].kernel]
        candidate = Candidate(config, resources)
        return candidate if self.prune(candidate) else Candidate(config, resources, problem="pruned")

    def _measured(
        self, candidates: Sequence[Candidate], calls: Sequence[KernelCall], engine: "CudaEngine"
    ) -> list[Candidate]:
        with progress("timing", len(candidates)) as advance:
            found: list[Candidate] = []
            for candidate, call in zip(candidates, calls, strict=True):
                found.append(candidate if candidate.problem else self._timed(candidate, call, engine))
                advance()
        return found

    def _timed(self, candidate: Candidate, call: KernelCall, engine: "CudaEngine") -> Candidate:
        from tilefold.runtime.engine import LaunchConfig

        from .launch import on_host

        config, bound = candidate.config, call.bound
        grid, block = _sized(self.grid, config), _sized(self.block, config)
        try:
            if any(array.device is None for array in bound.arrays.values()):  # which is copied once, and not timed
                artifact = call.build(block).artifact(engine.driver.target.arch)
                size = LaunchConfig(dim3("grid", grid), artifact.block)
                values, tensors = on_host(bound)
                timing = engine.time(artifact, size, values, repeat=self.repeat)
                tensors.finish()
            else:
                engine.driver.activate()
                timing = engine.measure(
                    lambda: call.launch(grid, block, stream=0), self.kernel.function.__name__, repeat=self.repeat
                )
        except TilefoldError as error:
            return Candidate(config, candidate.resources, problem=_problem(error))
        return Candidate(config, candidate.resources, timing.median_ms)

    def _call(self, config: Config, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> KernelCall:
        return self.kernel(*args, **kwargs, **config)


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
    configs: Iterable[Config],
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
    chosen = tuple(configs)
    return lambda kernel: Tuned(kernel, chosen, grid, block, prune, executor, repeat)


def _ordinal(bound: BoundArguments) -> int:
    """The GPU that holds the arguments."""
    return next((each.device for each in bound.arrays.values() if each.device is not None), 0)


def _sized(size: Sized, config: Config) -> Dim3:
    return size(config) if callable(size) else size


def _problem(error: Exception) -> str:
    code = error.code if isinstance(error, TilefoldError) else type(error).__name__
    message = error.message if isinstance(error, TilefoldError) else str(error)
    return f"{code}: {message}".partition("\n")[0][:200]


def _time(candidate: Candidate) -> float:
    return float("inf") if candidate.milliseconds is None else candidate.milliseconds
