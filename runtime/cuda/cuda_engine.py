# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The engine that runs kernels on a GPU."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median

from ..compiled.artifact import Artifact
from ..engine import LaunchConfig, RunResult
from .driver import Driver, load_library, open_device
from .loaded_kernel import Kernel, check_launch
from .packed_arguments import CudaArgument, PackedArguments
from .prepared import Prepared


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of repeated launches, in milliseconds each, by the GPU's own clock."""

    samples: tuple[float, ...]

    @property
    def median_ms(self) -> float:
        """The median of the launches, in milliseconds."""
        return median(self.samples)


class CudaEngine:
    """Launches artifacts on one device. Loaded kernels are kept, so that a second launch finds its kernel ready."""

    def __init__(self, ordinal: int = 0) -> None:
        """CudaUnavailable without a driver or such a device."""
        self.driver: Driver = open_device(ordinal)
        self._library = load_library()
        self._kernels: dict[Artifact, Prepared] = {}

    @property
    def name(self) -> str:
        """The name on the command line."""
        return "cuda"

    def launch(self, program: Artifact, config: LaunchConfig, args: Mapping[str, CudaArgument]) -> RunResult:
        """Runs the kernel once and waits for it. Storage is copied to the device and back.

        The driver writes the text that the kernel prints to standard output. LaunchError for arguments that do not fit
        the kernel, CudaError for failures on the GPU, with the kernel's name.
        """
        with self._ready(program, config, args) as run:
            return RunResult(seconds=self._measured(run, config.stream, program.kernel) / 1e3)

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

        Results are copied back at the end, so that they can be checked. Errors are those of `launch`.
        """
        with self._ready(program, config, args) as run:
            return self.measure(run, program.kernel, warmup=warmup, repeat=repeat)

    def measure(self, run: Callable[[], object], kernel: str, *, warmup: int = 3, repeat: int = 20) -> Timing:
        """Times `repeat` calls of `run`, which queues work of `kernel` on the default stream, after `warmup` others."""
        for _ in range(warmup):
            run()
        return Timing(tuple(self._measured(run, 0, kernel) for _ in range(repeat)))

    def load(self, program: Artifact) -> Prepared:
        """The launches of a kernel on this device, loaded at its first use. CudaError if it cannot be."""
        prepared = self._kernels.get(program)
        if prepared is None:
            prepared = self._kernels[program] = Prepared(Kernel(self.driver, program), self._library)
        self.driver.activate()
        return prepared

    @contextmanager
    def _ready(
        self, program: Artifact, config: LaunchConfig, args: Mapping[str, CudaArgument]
    ) -> Generator[Callable[[], None], None, None]:
        """Within it, the function that queues the launch, any number of times; then the results are copied back."""
        prepared = self.load(program)
        check_launch(program, config)
        packed = PackedArguments(self.driver, program, args)
        frame = prepared.ready(packed, config.grid, config.stream, config.attributes)
        yield partial(prepared.run, frame)
        packed.read_back()
        prepared.give(frame)

    def _measured(self, run: Callable[[], object], stream: int, kernel: str) -> float:
        """The time of the work that `run` queues, in milliseconds; waits for it, which also flushes its printed
        text.
        """
        driver, doing = self.driver, f"running kernel '{kernel}'"
        events = [driver.call("cuEventCreate", 0) for _ in range(2)]
        try:
            driver.call("cuEventRecord", events[0], stream)
            run()
            driver.call("cuEventRecord", events[1], stream)
            driver.call("cuCtxSynchronize", doing=doing)
            return float(driver.call("cuEventElapsedTime", *events))
        finally:
            for event in events:
                driver.api.cuEventDestroy(event)
