# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Timing contenders side by side on a GPU: in one process, on the same data, in turns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from statistics import median
from typing import Any

from tilefold.layout.errors import Code, TilefoldError

# torch has no types here and is not installed where the project is developed; it is loaded when figures are taken.
Torch = Any


def load_torch() -> Torch:
    """The module torch with a CUDA device. TilefoldError where it is missing or sees no GPU."""
    try:
        torch = import_module("torch")
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


def time_in_turns(
    torch: Torch, contenders: Mapping[str, Callable[[], None]], *, warmup: int, repeat: int
) -> dict[str, Timed]:
    """Times each contender `repeat` times by CUDA events, all taking turns so that clocks and heat are the same."""
    for _ in range(warmup):
        for run in contenders.values():
            run()
    torch.cuda.synchronize()
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeat):
        for name, run in contenders.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            run()
            end.record()
            end.synchronize()
            samples[name].append(float(start.elapsed_time(end)))
    return {name: Timed(tuple(times)) for name, times in samples.items()}


def check_each(
    torch: Torch, contenders: Mapping[str, Callable[[], None]], output: Any, expected: Any, source: Any, kept: Any
) -> None:
    """Runs each contender once onto a poisoned output, which must then have the expected bits, and the source its own.

    TilefoldError that names the contender otherwise.
    """
    for name, run in contenders.items():
        _bits(torch, output).fill_(-1)
        run()
        torch.cuda.synchronize()
        if not bool((_bits(torch, output) == _bits(torch, expected)).all()):
            raise TilefoldError(Code.CHECK_FAILED, f"{name}: the result is wrong")
    if int(_bits(torch, source).sum(dtype=torch.int64)) != kept:
        raise TilefoldError(Code.CHECK_FAILED, "a contender changed its input")


def checksum(torch: Torch, tensor: Any) -> int:
    """The sum of the tensor's bits, read as integers."""
    return int(_bits(torch, tensor).sum(dtype=torch.int64))


def _bits(torch: Torch, tensor: Any) -> Any:
    return tensor.view(torch.int16 if tensor.element_size() == 2 else torch.int32)
