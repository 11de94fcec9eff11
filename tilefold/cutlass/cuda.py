# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of CUDA in the process (`cutlass.cuda`)."""

from tilefold.driver import devices


def initialize_cuda_context(device_id: int = 0) -> None:
    """Does nothing: the first launch makes a GPU ready."""


def default_stream() -> int:
    """The default stream, as launches take it."""
    return 0


def stream_sync(stream: object = 0) -> None:
    """Waits for the work in a stream. Raises CudaError for a fault in it. Without a GPU it does nothing."""
    if devices.chosen_device("auto") == "cuda":
        devices.gpu_engine(0).driver.call("cuStreamSynchronize", stream, doing="waiting for a stream")


__all__ = ["default_stream", "initialize_cuda_context", "stream_sync"]
