# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Streams among the arguments of host functions.

Time on a GPU is measured there by events of the driver; calls in a stream become graphs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tilefold.driver.devices import gpu_engine

_KINDS = ("CUstream", "cudaStream_t", "Stream", "FakeStream")
"""The names of the classes of streams: those of cuda-python, torch, CuPy and cuda.core, and of a stream that a function
is compiled for."""


@dataclass(frozen=True, slots=True)
class StreamSlot:
    """The stream that a host function is given as the argument `name`: in this call, `stream`."""

    name: str
    stream: Any


def is_stream(value: object) -> bool:
    """Whether an argument is a stream."""
    return type(value).__name__ in _KINDS


@dataclass(frozen=True, slots=True)
class FakeStream:
    """A stream that a function is compiled for. Calls are not given that of the `environment`: it is torch's current
    one where tensors of torch are passed, and else the default stream.
    """

    environment: bool = False


def current_stream() -> Any:
    """torch's current stream as one of cuda-python."""
    return as_stream(torch_module().cuda.current_stream().cuda_stream)


def default_stream() -> Any:
    """torch's default stream as one of cuda-python."""
    return as_stream(torch_module().cuda.default_stream().cuda_stream)


def as_stream(handle: int) -> Any:
    """A stream of cuda-python by its handle."""
    return import_module("cuda.bindings.driver").CUstream(handle)


def torch_module() -> Any:
    """torch, which is imported where a function needs it."""
    return import_module("torch")


def milliseconds(run: Callable[[], object], stream: int) -> float:
    """The time that a GPU needs for the work that `run` queues in a stream."""
    driver = gpu_engine(0).driver
    with driver.current():
        begin, end = (driver.call("cuEventCreate", 0) for _ in range(2))
        try:
            driver.call("cuEventRecord", begin, stream)
            run()
            driver.call("cuEventRecord", end, stream)
            driver.call("cuEventSynchronize", end)
            return float(driver.call("cuEventElapsedTime", begin, end))
        finally:
            for event in (begin, end):
                driver.call("cuEventDestroy", event)


def graph_of(run: Callable[[], object], stream: int) -> Callable[[], object]:
    """The work that `run` puts into a stream, other than the default one, as a graph: a function that launches it
    there."""
    driver = gpu_engine(0).driver
    with driver.current():
        mode = driver.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        driver.call("cuStreamBeginCapture", stream, mode)
        try:
            run()
        finally:
            graph = driver.call("cuStreamEndCapture", stream)
        ready = driver.call("cuGraphInstantiate", graph, 0)
    return lambda: driver.call("cuGraphLaunch", ready, stream)


def l2_bytes() -> int:
    """The size of the first GPU's L2 cache."""
    driver = gpu_engine(0).driver
    return driver.attribute(driver.api.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
