# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What an engine is: something that launches kernels over a grid. The simulator and CUDA both are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..base.errors import Code
from ..layout.algebra.core import ComposedLayout, Layout
from .counters import Counters
from .errors import Dim3, LaunchError


@dataclass(frozen=True, slots=True)
class LaunchConfig:
    """The grid in blocks and the block in threads, each as (x, y, z); at least 1 everywhere, else a
    LaunchError.
    """

    grid: Dim3
    block: Dim3

    def __post_init__(self) -> None:
        for what, size in (("grid", self.grid), ("block", self.block)):
            if len(size) != 3 or any(n < 1 for n in size):
                raise LaunchError(
                    Code.RUN_LAUNCH,
                    f"the {what} is {size}",
                    "give three sizes of at least 1: x, y, z",
                )

    @property
    def blocks(self) -> int:
        """How many blocks the grid has."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """How many threads a block has."""
        return self.block[0] * self.block[1] * self.block[2]


@dataclass(frozen=True, slots=True, eq=False)
class TensorArgument:
    """A tensor as a kernel sees it: one-dimensional storage in elements, and the layout that addresses it.

    The launch reads `storage` and leaves the results in it. `layout` maps coordinates to elements of the
    storage; None means that any use within the storage is right. Where `initialised` is false, the simulator
    treats a read before a write as an error.
    """

    storage: NDArray[Any]
    layout: Layout | ComposedLayout | None = None
    initialised: bool = True

    def __post_init__(self) -> None:
        if self.storage.ndim != 1 or not self.storage.flags.c_contiguous:
            raise LaunchError(
                Code.RUN_ARGUMENT,
                f"the storage of a tensor is an array of shape {self.storage.shape}",
                "it must be one-dimensional and contiguous; see tilefold.runtime.arrays.storage.storage_of",
            )

    @classmethod
    def of(cls, array: NDArray[Any]) -> "TensorArgument":
        """A NumPy array as it lies in memory: the launch reads and writes the array itself.

        LaunchError for an array without elements or with negative strides.
        """
        strides = [step // array.itemsize for step in array.strides]
        if not array.size or any(step < 0 for step in array.strides):
            raise LaunchError(
                Code.RUN_ARGUMENT,
                f"an array of shape {array.shape} with strides {array.strides} cannot be passed",
                "pass a copy of it, which has elements and positive strides",
            )
        span = 1 + sum((n - 1) * d for n, d in zip(array.shape, strides, strict=True))
        storage = np.lib.stride_tricks.as_strided(array, (span,), (array.itemsize,))
        layout = Layout(tuple(array.shape), tuple(strides)) if array.ndim else Layout(1, 0)
        return cls(storage, layout)


Argument: TypeAlias = TensorArgument | int | float | np.generic
"""What a kernel is launched on: a tensor, or a scalar of the argument's type."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a launch reports: `seconds` it took, `output` the text that the kernel printed, as far as the
    engine sees it, and `counters`, empty on an engine that does not count.
    """

    seconds: float
    output: str = ""
    counters: Counters = field(default_factory=Counters)


ProgramT = TypeVar("ProgramT", contravariant=True)


class Engine(Protocol[ProgramT]):
    """Runs programs of one kind: the simulator IR modules, the CUDA engine assembled artifacts."""

    @property
    def name(self) -> str:
        """The name on the command line: `sim` or `cuda`."""
        ...

    def launch(self, program: ProgramT, config: LaunchConfig, args: Mapping[str, Argument]) -> RunResult:
        """Runs the kernel on arguments by name; returns when it has finished and the tensors hold its
        results.

        TilefoldError for a launch that does not fit the kernel, and for what the kernel does wrong while it
        runs.
        """
        ...
