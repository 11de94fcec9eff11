# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPU that there is not: its sizes, and launches on it, which are simulated."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

from tilefold.base.occupancy import occupancy
from tilefold.base.target import Target
from tilefold.cute import gpu_launch, hardware, launch, utils
from tilefold.cute.compiled_kernel import CompiledKernel
from tilefold.cute.launch import LaunchRequest, simulate
from tilefold.cute.specialise import BoundArguments
from tilefold.runtime.cuda.driver import CudaError
from tilefold.runtime.engine import RunResult
from tilefold.runtime.errors import dim3
from tilefold.runtime.options import Cooperative, RunOptions

TARGET = Target("sm_90a")
"""The target of the missing GPU."""
MULTIPROCESSORS = 4
"""The multiprocessors of the missing GPU: persistent kernels have this number of blocks."""
L2_BYTES = 1 << 20
"""The size of its cache."""
_TOO_LARGE = "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", 720


class Hardware(hardware.HardwareInfo):
    """The sizes of the missing GPU."""

    def get_max_active_clusters(self, cluster_size: int) -> int:
        return max(MULTIPROCESSORS // cluster_size, 1)

    def get_device_multiprocessor_count(self) -> int:
        return MULTIPROCESSORS

    def get_l2_cache_size_in_bytes(self) -> int:
        return L2_BYTES


@dataclass
class SimulatedLaunches:
    """Launches on the missing GPU. While a graph is captured it gets them as `captured`, and they are not executed."""

    captured: list[Callable[[], object]] | None = None

    def run(
        self, built: CompiledKernel, bound: BoundArguments, grid: Any, request: LaunchRequest, options: RunOptions
    ) -> RunResult | None:
        """Simulates a launch, or gives it to the graph. CudaError for a cooperative one that the GPU cannot hold."""
        if Cooperative() in request.attributes:
            _check_fits(prod(dim3("grid", grid)), prod(built.traced.bounds.threads))
        if self.captured is None:
            return simulate(built, bound, grid, request, options)
        self.captured.append(partial(simulate, built, bound, grid, request, options))
        return None


def _check_fits(blocks: int, threads: int) -> None:
    """CudaError where not all blocks of a launch run at the same time, as the number of threads tells."""
    most = MULTIPROCESSORS * occupancy(TARGET, threads, registers=1, shared=0).resident
    if blocks > most:
        message = f"{blocks} blocks of {threads} threads are launched cooperatively; the simulated GPU holds {most}"
        raise CudaError(*_TOO_LARGE, message, "launch fewer blocks, and let each do more")


def simulate_launches(launches: SimulatedLaunches) -> None:
    """Redirects launches on the missing GPU to the simulator."""
    launch.simulate = gpu_launch.simulate = launches.run
    utils.HardwareInfo = hardware.HardwareInfo = Hardware
