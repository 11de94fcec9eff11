# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPU that there is not: the simulator in its place."""

from collections.abc import Callable
from dataclasses import dataclass

from tilefold.base.occupancy import occupancy
from tilefold.driver.devices import Simulator, devices_of_process
from tilefold.runtime.cuda.driver import CudaError
from tilefold.runtime.engine import LaunchConfig, RunResult
from tilefold.runtime.options import Cooperative

from ..replacements import Replacements

_TOO_LARGE = "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", 720


@dataclass(eq=False)
class MissingGpu(Simulator):
    """The simulator as the GPU. While a graph is captured, `captured` collects launches, and they are not
    executed.
    """

    captured: list[Callable[[], object]] | None = None

    def submit(self, launch: Callable[[], RunResult], config: LaunchConfig) -> RunResult | None:
        """Simulates a launch, or gives it to the graph. CudaError for a cooperative one that the GPU cannot hold."""
        if Cooperative() in config.attributes:
            self._check_fits(config.blocks, config.threads)
        if self.captured is None:
            return launch()
        self.captured.append(launch)
        return None

    def _check_fits(self, blocks: int, threads: int) -> None:
        """CudaError where not all blocks of a launch run at the same time, as the number of threads tells."""
        most = self.multiprocessors * occupancy(self.target, threads, registers=1, shared=0).resident
        if blocks > most:
            message = f"{blocks} blocks of {threads} threads are launched cooperatively; the simulated GPU holds {most}"
            raise CudaError(*_TOO_LARGE, message, "launch fewer blocks, and let each do more")


def take_the_place_of_gpus(gpu: MissingGpu, replaced: Replacements) -> None:
    """Lets programs of this process find the simulator where they ask for a GPU."""
    replaced.set(devices_of_process(), simulator=gpu, stands_for_gpus=True)
