# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The engine that runs kernels on a GPU."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from ..compiled.artifact import Artifact
from ..engine import LaunchConfig, RunResult
from .driver import Driver, open_device
from .kernel import Kernel
from .packed_arguments import CudaArgument, PackedArguments


@dataclass(frozen=True, slots=True)
class Timing:
    """What repeated launches took, in milliseconds each, by the GPU's own clock."""

    samples: tuple[float, ...]

    @property
    def median_ms(self) -> float:
        """The median of the launches, in milliseconds."""
        return median(self.samples)


class CudaEngine:
    """Launches artifacts on one device. Loaded kernels are kept, so that a second launch finds its kernel ready."""

    def __init__(self, ordinal: int = 0) -> None:
        """CudaUnavailable where there is no driver, or no such device."""
        self.driver: Driver = open_device(ordinal)
        self._kernels: dict[Artifact, Kernel] = {}

    @property
    def name(self) -> str:
        """The name on the command line."""
        return "cuda"

    def launch(
        self, program: Artifact, config: LaunchConfig, args: Mapping[str, CudaArgument], stream: int = 0
    ) -> RunResult:
        """Runs the kernel once and waits for it. Storage is copied to the device and back.

        `stream` is the handle of a CUDA stream, 0 for the default one. What the kernel prints goes to the
        process's standard output, from the driver. LaunchError for what does not fit the kernel, CudaError
        for what fails on the GPU, with the kernel's name.
        """
        kernel = self.load(program)
        packed = PackedArguments(self.driver, program, args)
        milliseconds = self._measured(lambda: kernel.launch(config, packed.addresses, stream), stream, program.kernel)
        packed.read_back()
        return RunResult(seconds=milliseconds / 1e3)

    def time(
        self,
        program: Artifact,
        config: LaunchConfig,
        args: Mapping[str, CudaArgument],
        *,
        warmup: int = 3,
        repeat: int = 20,
    ) -> Timing:
        """Times `repeat` launches by events after `warmup` others, on arguments that are copied once before.

        Results are copied back at the end, so that they can be checked. Raises what `launch` raises.
        """
        kernel = self.load(program)
        packed = PackedArguments(self.driver, program, args)

        timing = self.measure(
            lambda: kernel.launch(config, packed.addresses), program.kernel, warmup=warmup, repeat=repeat
        )
        packed.read_back()
        return timing

    def measure(self, run: Callable[[], object], kernel: str, *, warmup: int = 3, repeat: int = 20) -> Timing:
        """Times `repeat` calls of `run`, which queues work of `kernel` on the default stream, after `warmup` others."""
        for _ in range(warmup):
            run()
        return Timing(tuple(self._measured(run, 0, kernel) for _ in range(repeat)))

    def load(self, program: Artifact) -> Kernel:
        """The kernel on this device, loaded at its first use. CudaError where it cannot be."""
        kernel = self._kernels.get(program)
        if kernel is None:
            kernel = self._kernels[program] = Kernel(self.driver, program)
        self.driver.activate()
        return kernel

    def _measured(self, run: Callable[[], object], stream: int, kernel: str) -> float:
        """What the work that `run` queues took, in milliseconds; waits for it, which also flushes what it printed."""
        driver, doing = self.driver, f"running kernel '{kernel}'"
        events: list[Any] = [driver.call("cuEventCreate", 0) for _ in range(2)]
        try:
            driver.call("cuEventRecord", events[0], stream)
            run()
            driver.call("cuEventRecord", events[1], stream)
            driver.call("cuCtxSynchronize", doing=doing)
            return float(driver.call("cuEventElapsedTime", *events))
        finally:
            for event in events:
                driver.api.cuEventDestroy(event)
