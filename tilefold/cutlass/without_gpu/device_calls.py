# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Streams, events and devices that programs reach by CUDA's runtime or driver, on a machine without a GPU.

The functions are those of cuda-python: each returns a status and its results. `work` has the order of the work in
streams; an event keeps the work before it, and the time at which it was recorded.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NoReturn

from tilefold.base.occupancy import occupancy
from tilefold.base.target import MAX_BLOCK, MAX_GRID, MAX_THREADS
from tilefold.driver.devices import Simulator, devices_of_process
from tilefold.runtime.cuda import cuda_engine
from tilefold.runtime.cuda import driver as own_driver
from tilefold.runtime.cuda.driver import CudaError, CudaUnavailable
from tilefold.runtime.engine import LaunchConfig, RunResult
from tilefold.runtime.options import Cooperative

from ..replacements import Replacements
from .work import Mark, Streams

_TOO_LARGE = "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", 720


@dataclass(eq=False)
class MissingGpu(Simulator):
    """The simulator as the GPU, with the streams of the program."""

    streams: Streams = field(default_factory=Streams)

    def submit(self, launch: Callable[[], RunResult], config: LaunchConfig, stream: object) -> RunResult | None:
        """Simulates a launch when its stream comes to it, or gives it to the graph. CudaError for a cooperative one
        that the GPU cannot hold.
        """
        if Cooperative() in config.attributes:
            self._check_fits(config.blocks, config.threads)
        return self.streams.do(launch, stream)

    def _check_fits(self, blocks: int, threads: int) -> None:
        """CudaError where not all blocks of a launch run at the same time, as the number of threads tells."""
        most = self.multiprocessors * occupancy(self.target, threads, registers=1, shared=0).resident
        if blocks > most:
            message = f"{blocks} blocks of {threads} threads are launched cooperatively; the simulated GPU holds {most}"
            raise CudaError(*_TOO_LARGE, message, "launch fewer blocks, and let each do more")


def take_the_place_of_gpus(gpu: MissingGpu, replaced: Replacements) -> None:
    """Lets programs of this process find the simulator where they ask for a GPU."""
    replaced.set(devices_of_process(), simulator=gpu, stands_for_gpus=True, world=None, keeps_accesses=False)


@dataclass(frozen=True, slots=True)
class _Events:
    """The events of a program by their handles."""

    streams: Streams
    recorded: dict[int, tuple[float, Mark]] = field(default_factory=lambda: {})

    def create(self, *_: object) -> int:
        handle = len(self.recorded) + 1
        self.recorded[handle] = 0.0, Mark()
        return handle

    def record(self, event: Any, stream: Any = 0, *_: object) -> None:
        self.recorded[int(event)] = time.perf_counter(), self.streams.mark(stream)

    def wait(self, stream: Any, event: Any, *_: object) -> None:
        self.streams.follow(stream, self.recorded[int(event)][1])

    def synchronize(self, event: Any) -> None:
        self.streams.reach(self.recorded[int(event)][1])

    def elapsed(self, start: Any, end: Any) -> float:
        """The milliseconds between two events."""
        return 1e3 * (self.recorded[int(end)][0] - self.recorded[int(start)][0])


_NON_BLOCKING = 1
"""The flag of a stream that does not wait for the default one: CU_STREAM_NON_BLOCKING, cudaStreamNonBlocking."""


def _created(streams: Streams, kind: Callable[[int], object]) -> Callable[..., object]:
    """A function that makes a stream; its flags are the first argument, if it takes any."""

    def create(flags: Any = 0, *_: object) -> object:
        return kind(streams.create(blocking=not int(flags) & _NON_BLOCKING))

    return create


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
    streams = gpu.streams
    of_runtime, of_driver = _Events(streams), _Events(streams)

    def synchronize(*_: object) -> None:
        streams.synchronize()

    runtime_stream, driver_stream = (_created(streams, kind) for kind in (runtime.cudaStream_t, driver.CUstream))
    replaced.set(runtime, **_answers(runtime.cudaError_t.cudaSuccess, {
        "cudaStreamCreate": runtime_stream, "cudaStreamCreateWithFlags": runtime_stream, "cudaStreamDestroy": done,
        "cudaStreamSynchronize": streams.synchronize, "cudaStreamQuery": streams.synchronize,
        "cudaStreamWaitEvent": of_runtime.wait,
        "cudaEventCreate": _made(of_runtime.create, runtime.cudaEvent_t), "cudaEventRecord": of_runtime.record,
        "cudaEventCreateWithFlags": _made(of_runtime.create, runtime.cudaEvent_t),
        "cudaEventQuery": of_runtime.synchronize,
        "cudaEventElapsedTime": of_runtime.elapsed, "cudaEventSynchronize": of_runtime.synchronize,
        "cudaEventDestroy": done,
        "cudaSetDevice": done, "cudaGetDevice": _always(0), "cudaGetDeviceCount": _always(1), "cudaInitDevice": done,
        "cudaDeviceSynchronize": synchronize, "cudaGetLastError": done, "cudaPeekAtLastError": done,
        "cudaProfilerStart": done, "cudaProfilerStop": done,
    }))  # fmt: skip
    attributes = _attributes(gpu, driver.CUdevice_attribute)
    replaced.set(driver, **_answers(driver.CUresult.CUDA_SUCCESS, {
        "cuInit": done, "cuStreamCreate": driver_stream, "cuStreamDestroy": done,
        "cuStreamCreateWithPriority": driver_stream, "cuStreamSynchronize": streams.synchronize,
        "cuStreamQuery": streams.synchronize, "cuStreamWaitEvent": of_driver.wait,
        "cuEventCreate": _made(of_driver.create, driver.CUevent), "cuEventRecord": of_driver.record,
        "cuEventSynchronize": of_driver.synchronize, "cuEventQuery": of_driver.synchronize,
        "cuEventElapsedTime": of_driver.elapsed, "cuEventDestroy": done,
        "cuCtxSynchronize": synchronize, "cuCtxGetCurrent": _always(driver.CUcontext(1)), "cuCtxSetCurrent": done,
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
        **{f"MAX_GRID_DIM_{mode}": most for mode, most in zip("XYZ", MAX_GRID, strict=True)},
        **{f"MAX_BLOCK_DIM_{mode}": most for mode, most in zip("XYZ", MAX_BLOCK, strict=True)},
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
