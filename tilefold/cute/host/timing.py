# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Time on a GPU, by events of the driver; graphs of calls."""

from collections.abc import Callable

from tilefold.driver.devices import gpu_engine


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
