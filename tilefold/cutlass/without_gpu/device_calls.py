# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Streams, events and devices that programs reach by CUDA's runtime or driver, on a machine without a GPU.

The functions are those of cuda-python: each returns a status and its results. Work is done when it is asked for, so a
stream is the default one, which never waits, and an event keeps the time at which it was recorded.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NoReturn

from tilefold.base.occupancy import occupancy
from tilefold.base.target import MAX_THREADS
from tilefold.driver.devices import Simulator, devices_of_process
from tilefold.runtime.cuda import cuda_engine
from tilefold.runtime.cuda import driver as own_driver
from tilefold.runtime.cuda.driver import CudaError, CudaUnavailable
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


@dataclass(frozen=True, slots=True)
class _Events:
    """The events of a program by their handles."""

    times: dict[int, float] = field(default_factory=lambda: {})

    def create(self, *_: object) -> int:
        handle = len(self.times) + 1
        self.times[handle] = 0.0
        return handle

    def record(self, event: Any, *_: object) -> None:
        self.times[int(event)] = time.perf_counter()

    def elapsed(self, start: Any, end: Any) -> float:
        """The milliseconds between two events."""
        return 1e3 * (self.times[int(end)] - self.times[int(start)])


def device_on_host(gpu: MissingGpu, replaced: Replacements) -> None:
    """Makes cuda-python, if it is installed, answer for streams, events and one device; tilefold itself still finds no
    GPU. Statuses are `cudaSuccess`.
    """
    for module in (own_driver, cuda_engine):
        replaced.set(module, open_device=_no_device)
    if find_spec("cuda") is None:
        return
    runtime, driver = import_module("cuda.bindings.runtime"), import_module("cuda.bindings.driver")
    done = _nothing
    of_runtime, of_driver = _Events(), _Events()
    replaced.set(runtime, **_answers(runtime.cudaError_t.cudaSuccess, {
        "cudaStreamCreate": _always(runtime.cudaStream_t(0)), "cudaStreamDestroy": done, "cudaStreamSynchronize": done,
        "cudaStreamCreateWithFlags": _always(runtime.cudaStream_t(0)), "cudaStreamQuery": done,
        "cudaStreamWaitEvent": done,
        "cudaEventCreate": _made(of_runtime.create, runtime.cudaEvent_t), "cudaEventRecord": of_runtime.record,
        "cudaEventCreateWithFlags": _made(of_runtime.create, runtime.cudaEvent_t), "cudaEventQuery": done,
        "cudaEventElapsedTime": of_runtime.elapsed, "cudaEventSynchronize": done, "cudaEventDestroy": done,
        "cudaSetDevice": done, "cudaGetDevice": _always(0), "cudaGetDeviceCount": _always(1), "cudaInitDevice": done,
        "cudaDeviceSynchronize": done, "cudaGetLastError": done, "cudaPeekAtLastError": done,
        "cudaProfilerStart": done, "cudaProfilerStop": done,
    }))  # fmt: skip
    attributes = _attributes(gpu, driver.CUdevice_attribute)
    replaced.set(driver, **_answers(driver.CUresult.CUDA_SUCCESS, {
        "cuInit": done, "cuStreamCreate": _always(driver.CUstream(0)), "cuStreamDestroy": done,
        "cuStreamCreateWithPriority": _always(driver.CUstream(0)), "cuStreamSynchronize": done, "cuStreamQuery": done,
        "cuStreamWaitEvent": done, "cuEventCreate": _made(of_driver.create, driver.CUevent),
        "cuEventRecord": of_driver.record, "cuEventSynchronize": done, "cuEventQuery": done,
        "cuEventElapsedTime": of_driver.elapsed, "cuEventDestroy": done,
        "cuCtxSynchronize": done, "cuCtxGetCurrent": _always(driver.CUcontext(1)), "cuCtxSetCurrent": done,
        "cuCtxGetDevice": _always(driver.CUdevice(0)), "cuDeviceGet": _always(driver.CUdevice(0)),
        "cuDeviceGetCount": _always(1), "cuDevicePrimaryCtxRetain": _always(driver.CUcontext(1)),
        "cuDevicePrimaryCtxRelease": done,
    }))  # fmt: skip
    success, unknown = driver.CUresult.CUDA_SUCCESS, driver.CUresult.CUDA_ERROR_INVALID_VALUE

    def attribute_of(attribute: object, _: object = 0) -> tuple[Any, int]:
        return (success, attributes[attribute]) if attribute in attributes else (unknown, 0)

    replaced.set(driver, cuDeviceGetAttribute=attribute_of)


def _attributes(gpu: MissingGpu, names: object) -> Mapping[object, int]:
    """The attributes of the simulated device that programs choose their sizes by."""
    capability = gpu.target.capability
    kind = "CU_DEVICE_ATTRIBUTE_"
    known = {
        "COMPUTE_CAPABILITY_MAJOR": gpu.target.sm // 10, "COMPUTE_CAPABILITY_MINOR": gpu.target.sm % 10,
        "MULTIPROCESSOR_COUNT": gpu.multiprocessors, "L2_CACHE_SIZE": gpu.l2_bytes, "WARP_SIZE": 32,
        "MAX_THREADS_PER_BLOCK": MAX_THREADS, "MAX_THREADS_PER_MULTIPROCESSOR": capability.threads,
        "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": (capability.shared_kib - 1) * 1024,
        "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": capability.shared_kib * 1024,
    }  # fmt: skip
    return {getattr(names, kind + name): value for name, value in known.items()}


def _no_device(ordinal: int = 0) -> NoReturn:
    raise CudaUnavailable(f"device {ordinal} is simulated")


def _nothing(*_: object) -> None:
    """Nothing is left to do."""


def _always(value: object) -> Callable[..., object]:
    return lambda *_: value


def _made(create: Callable[..., int], kind: Callable[[int], object]) -> Callable[..., object]:
    return lambda *given: kind(create(*given))


def _answers(success: object, functions: Mapping[str, Callable[..., object]]) -> dict[str, Callable[..., Any]]:
    """Functions of CUDA that return a status, and then a result unless it is None."""

    def answering(work: Callable[..., object]) -> Callable[..., tuple[Any, ...]]:
        def call(*args: object) -> tuple[Any, ...]:
            result = work(*args)
            return (success,) if result is None else (success, result)

        return call

    return {name: answering(work) for name, work in functions.items()}
