# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Streams, events and graphs (CUDA Driver API, Stream, Event and Graph Management), for programs without torch or CuPy.

Launches take the streams of those libraries as well: their graphs and events then see tilefold's kernels.
"""

import weakref
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..base.errors import Code
from .errors import LaunchError

if TYPE_CHECKING:
    from .cuda import Driver


def handle_of(stream: Any) -> int:
    """The driver's handle of a stream: of an integer itself, of torch's streams `cuda_stream`, of CuPy's `ptr`, of any
    object what its `__cuda_stream__` says (cuda.core), of ours `handle`. LaunchError (E3106) for anything else.
    """
    if isinstance(stream, int):
        return stream
    for attribute in ("handle", "cuda_stream", "ptr"):
        found = getattr(stream, attribute, None)
        if isinstance(found, int):
            return found
    protocol: Any = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        pair: Any = protocol() if callable(protocol) else protocol
        return int(pair[1])
    raise LaunchError(
        Code.RUN_ARGUMENT,
        f"a {type(stream).__name__} is no stream",
        "pass a stream of torch, CuPy or cuda.core, cute.Stream(), or the driver's handle",
    )


def _make(device: int, function: str, flags: int) -> "tuple[Driver, Any]":
    """The driver of a device, and what one of its functions makes there. CudaUnavailable without the device."""
    from .cuda import open_device

    driver = open_device(device)
    with driver.current():
        return driver, driver.call(function, flags)


class Stream:
    """A stream of its own on a device: what is queued there runs in its order. It is destroyed with the object."""

    def __init__(self, device: int = 0) -> None:
        """CudaUnavailable without the device."""
        self.driver, made = _make(device, "cuStreamCreate", 1)  # CU_STREAM_NON_BLOCKING
        self.handle = int(made)
        weakref.finalize(self, self.driver.api.cuStreamDestroy, made).atexit = False  # the driver does then

    def synchronize(self) -> None:
        """Waits until everything in the stream has ended. CudaError for what went wrong there."""
        self.driver.call("cuStreamSynchronize", self.handle, doing="waiting for a stream")

    def wait(self, event: "Event") -> None:
        """What is queued from now on begins after the event."""
        self.driver.call("cuStreamWaitEvent", self.handle, event.handle, 0)


class Event:
    """A point in a stream, and when it was reached."""

    def __init__(self, device: int = 0) -> None:
        """CudaUnavailable without the device."""
        self.driver, made = _make(device, "cuEventCreate", 0)
        self.handle = int(made)
        weakref.finalize(self, self.driver.api.cuEventDestroy, made).atexit = False

    def record(self, stream: Any = 0) -> "Event":
        """Sets the event at what has been queued in a stream so far; returns itself."""
        self.driver.call("cuEventRecord", self.handle, handle_of(stream))
        return self

    def synchronize(self) -> None:
        """Waits until the event is reached."""
        self.driver.call("cuEventSynchronize", self.handle, doing="waiting for an event")

    def milliseconds_since(self, earlier: "Event") -> float:
        """The GPU's time between two events that have been reached."""
        return float(self.driver.call("cuEventElapsedTime", earlier.handle, self.handle))


class Graph:
    """Launches that were captured once and are queued again as a whole (CUDA Graphs)."""

    def __init__(self, driver: "Driver") -> None:
        self.driver = driver
        self._executable: Any = None

    def take(self, captured: Any) -> None:
        """Makes a captured graph ready. CudaError where it cannot run."""
        self._executable = self.driver.call("cuGraphInstantiate", captured, 0, doing="making a graph")
        weakref.finalize(self, self.driver.api.cuGraphExecDestroy, self._executable).atexit = False

    def launch(self, stream: Any = 0) -> None:
        """Queues everything that was captured, on the arguments of then."""
        if self._executable is None:
            raise LaunchError(
                Code.RUN_LAUNCH, "nothing was captured for this graph", "with cute.capture(stream) as graph:"
            )
        self.driver.call("cuGraphLaunch", self._executable, handle_of(stream), doing="launching a graph")


@contextmanager
def capture(stream: Stream) -> Generator[Graph, None, None]:
    """Within it, launches in the stream become part of the graph instead of running. The kernels must have been
    launched before: neither compiling nor loading can be captured. LaunchError for a stream of another library, which
    captures its own, as `torch.cuda.graph` does.
    """
    if not isinstance(stream, Stream):  # pyright: ignore[reportUnnecessaryIsInstance]
        hint = "pass cute.Stream(); capture a stream of torch by torch.cuda.graph"
        raise LaunchError(Code.RUN_ARGUMENT, f"a {type(stream).__name__} is no cute.Stream", hint)
    driver = stream.driver
    graph = Graph(driver)
    mode = driver.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    driver.call("cuStreamBeginCapture", stream.handle, mode, doing="capturing launches")
    try:
        yield graph
    except BaseException:
        driver.api.cuStreamEndCapture(stream.handle)
        raise
    captured: Any = driver.call("cuStreamEndCapture", stream.handle, doing="capturing launches")
    try:
        graph.take(captured)
    finally:
        driver.api.cuGraphDestroy(captured)
