# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Timing contenders side by side on a GPU: in one process, on the same data, in turns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from statistics import median
from typing import Any

from tilefold.base.errors import Code, TilefoldError

# torch has no types here and is not installed where the project is developed; it is loaded when figures are taken.
Torch = Any


def load_torch() -> Torch:
    """The module torch with a CUDA device. TilefoldError where it is missing or sees no GPU."""
    try:
        torch = import_module("torch")
        import_module("torch.nn.attention")
    except ImportError:
        raise TilefoldError(
            Code.CUDA_UNAVAILABLE, "the peers on the GPU are PyTorch's, which is not installed", "pip install torch"
        ) from None
    if not torch.cuda.is_available():
        raise TilefoldError(Code.CUDA_UNAVAILABLE, "PyTorch sees no GPU", "dry-run with --device sim")
    return torch


@dataclass(frozen=True, slots=True)
class Timed:
    """Milliseconds of the runs of one contender."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the runs, in milliseconds."""
        return median(self.samples)


Run = Callable[[], Any]
"""Queues a contender's work on the default stream. It returns the result unless it was told where to write it."""

_AHEAD = 1_000_000
"""Cycles that the GPU waits before each run, so that all of the run is queued when its time begins."""


def time_in_turns(torch: Torch, contenders: Mapping[str, Run], *, warmup: int, repeat: int) -> dict[str, Timed]:
    """Times each contender `repeat` times by CUDA events, all taking turns so that clocks and heat are the same."""
    for _ in range(warmup):
        for run in contenders.values():
            run()
    torch.cuda.synchronize()
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeat):
        for name, run in contenders.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(_AHEAD)
            start.record()
            run()
            end.record()
            end.synchronize()
            samples[name].append(float(start.elapsed_time(end)))
    return {name: Timed(tuple(times)) for name, times in samples.items()}


def repeated(torch: Torch, run: Run, count: int) -> Run:
    """A function that queues `count` runs at once, as a graph: they follow each other without the host, and may
    overlap.
    """
    run()  # what is compiled or allocated at the first time is no part of it
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            run()
    return graph.replay


def fastest(torch: Torch, contenders: Mapping[str, Run]) -> str:
    """The name of the contender that takes the least time, by a few runs of each in turns."""
    if len(contenders) == 1:
        return next(iter(contenders))
    times = time_in_turns(torch, contenders, warmup=2, repeat=7)
    return min(times, key=lambda name: times[name].median)


def check_each(
    torch: Torch,
    contenders: Mapping[str, Run],
    output: Any,
    expected: Any,
    inputs: Sequence[Any],
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
) -> None:
    """Runs each contender once onto a poisoned output, which must then be the expected values up to `atol` + `rtol`
    times their magnitude, and the inputs as before.

    TilefoldError that names the contender otherwise.
    """
    sums = [checksum(torch, tensor) for tensor in inputs]
    bound = expected.abs().mul_(rtol).add_(atol) if rtol or atol else None
    for name, run in contenders.items():
        _bits(torch, output).fill_(-1)
        result = run()
        torch.cuda.synchronize()
        given = output if result is None else result
        right = given == expected if bound is None else (given.to(expected.dtype) - expected).abs_() <= bound
        if not bool(right.all()):
            wrong = int((~right).sum())
            raise TilefoldError(Code.CHECK_FAILED, f"{name}: {wrong} of {right.numel()} elements are wrong")
    if [checksum(torch, tensor) for tensor in inputs] != sums:
        raise TilefoldError(Code.CHECK_FAILED, "a contender changed its input")


def rms_error(torch: Torch, run: Run, output: Any, exact: Any) -> float:
    """The root mean square of the differences between a contender's result and the exact values in f64, relative to the
    root mean square of these.
    """
    result = run()
    torch.cuda.synchronize()
    given = output if result is None else result
    difference = given.to(exact.dtype) - exact
    return float((difference.square().mean() / exact.square().mean()).sqrt())


def checksum(torch: Torch, tensor: Any) -> int:
    """The sum of the tensor's bits, read as integers."""
    return int(_bits(torch, tensor).sum(dtype=torch.int64))


def _bits(torch: Torch, tensor: Any) -> Any:
    kinds = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.view(kinds[tensor.element_size()])
