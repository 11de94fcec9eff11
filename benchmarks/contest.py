# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parts of a measurement on a GPU: cases, each of one problem, its kernels and its figures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle
from typing import Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.cuda.packed_arguments import CudaArgument, PackedArguments

from benchmarks.record import Figure
from benchmarks.timing import Run, Timed, Torch, check_each, fastest, repeated, rms_error, time_in_turns
from benchmarks.workloads import Built, Workload


@dataclass(frozen=True, slots=True)
class Bench:
    """A GPU with what has been built for it, how often to run, and a list of what has gone wrong."""

    torch: Torch
    engine: CudaEngine
    built: Mapping[str, Built | str]
    warmup: int
    repeat: int
    failed: list[str] = field(default_factory=list[str])

    def built_for(self, workload: Workload) -> Built:
        """The kernel of a workload and its launch. TilefoldError with the compiler's message where there is none."""
        build = self.built[workload.name]
        if isinstance(build, str):
            raise TilefoldError(Code.CLI_VALUE, f"{workload.name} does not compile: {build}")
        return build

    def launcher(self, workload: Workload, args: Mapping[str, CudaArgument]) -> Run:
        """A function that queues the workload's kernel on the default stream, on arrays in device memory.

        It keeps the arrays: their addresses alone would not keep PyTorch from giving the memory to others.
        """
        artifact, config = self.built_for(workload)
        kernel = self.engine.load(artifact)
        packed = PackedArguments(self.engine.driver, artifact, args)
        frame = kernel.ready(packed, config.grid, config.stream, config.attributes)

        def run(keep: Any = (packed, args)) -> None:
            kernel.run(frame)

        return run

    def check(
        self,
        contenders: Mapping[str, Run],
        output: Any,
        expected: Any,
        inputs: Sequence[Any],
        *,
        rtol: float = 0.0,
        atol: float = 0.0,
    ) -> None:
        """Checks the result of each contender; see `check_each`."""
        check_each(self.torch, contenders, output, expected, inputs, rtol=rtol, atol=atol)

    def right(
        self, peers: Mapping[str, Run], output: Any, expected: Any, inputs: Sequence[Any], *, atol: float
    ) -> dict[str, Run]:
        """The peers whose results are right. One that fails does not hold up the case, but counts as a failure."""
        runs: dict[str, Run] = {}
        for name, run in peers.items():
            try:
                self.check({name: run}, output, expected, inputs, atol=atol)
            except Exception as error:  # PyTorch and Triton raise errors of many kinds
                self.failed.append(f"{name}: {error}")
            else:
                runs[name] = run
        return runs

    def errors(self, contenders: Mapping[str, Run], output: Any, exact: Any) -> dict[str, float]:
        """The error of each contender's result against the exact values; see `rms_error`."""
        return {name: rms_error(self.torch, run, output, exact) for name, run in contenders.items()}

    def repeated(self, contenders: Mapping[str, Run], count: int) -> dict[str, Run]:
        """The contenders, each `count` times at once; see `timing.repeated`."""
        return {name: repeated(self.torch, run, count) for name, run in contenders.items()}

    def fastest(self, contenders: Mapping[str, Run]) -> str:
        """The name of the contender that takes the least time, by a few runs."""
        return fastest(self.torch, contenders)

    def time(self, contenders: Mapping[str, Run]) -> dict[str, Timed]:
        """The times of the contenders, taken in turns."""
        return time_in_turns(self.torch, contenders, warmup=self.warmup, repeat=self.repeat)


@dataclass(frozen=True, slots=True)
class Case:
    """One problem: the workloads to build for it, and what takes its figures, of which one has the `target`.

    Of several workloads that compute the same, the fastest one counts. Kernels in Python are no workloads; `compile`
    puts them into the cache on disk, so that measuring them takes less time.
    """

    name: str
    workloads: Sequence[Workload]
    measure: Callable[[Bench], list[Figure]]
    target: float | None = None
    compile: Callable[[], None] | None = None


def rate(name: str, work: float, timed: Timed, unit: str, note: str = "", error: float | None = None) -> Figure:
    """The work of one run, operations or bytes, by the median time, in 10^12 a second."""
    return Figure(name, work / timed.median / 1e9, unit, note=note, error=error, samples=timed.samples)


def ratio(figure: Figure, base: Figure, target: float | None = None) -> Figure:
    """The figure against another, by its name."""
    return replace(figure, base=base.name, ratio=figure.value / base.value, target=target)


MORE_THAN_A_CACHE = 160e6
"""More bytes than any L2 cache holds."""
_COPIED = 2**27
"""The bytes of a copy."""


def in_turn(run: Callable[..., Any], *given: Sequence[Any]) -> Run:
    """A run that takes the next arguments each time, so that the L2 cache holds none."""
    turns = cycle(zip(*given, strict=True))
    return lambda: run(*next(turns))


def beside_a_copy(
    bench: Bench, problem: str, runs: Mapping[str, Run], bytes: int, count: int, target: float
) -> list[Figure]:
    """The bytes of tilefold and its peers by time, in samples of `count` runs; the ratios to the peers, which have the
    target, and to the bandwidth of a copy.
    """
    whole = bench.torch.empty(2 * _COPIED, device="cuda", dtype=bench.torch.int8)
    runs = {**runs, "a copy": partial(whole[:_COPIED].copy_, whole[_COPIED:])}
    work = {**dict.fromkeys(runs, bytes), "a copy": 2 * _COPIED}
    times = bench.time(bench.repeated(runs, count))
    figures = {name: rate(f"{problem}, {name}", work[name] * count, times[name], "TB/s") for name in runs}
    ours = figures.pop("tilefold")
    targets = {name: None if name == "a copy" else target for name in figures}
    return [*figures.values(), *(ratio(ours, peer, targets[name]) for name, peer in figures.items())]
