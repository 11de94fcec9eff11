# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The streams of other libraries, as the driver knows them. tilefold has no class of streams of its own."""

from collections.abc import Callable
from typing import Any

from ..base.errors import Code
from .errors import LaunchError

_BINDINGS = ("CUstream", "cudaStream_t")
"""The names of cuda-python's own types of streams."""


def handle_of(stream: Any) -> int:
    """The driver's handle (CUstream) of a stream: an integer is one itself; cuda-python's CUstream converts to one;
    torch's streams have it as `cuda_stream`, CuPy's as `ptr`, and any other object by `__cuda_stream__` (the protocol
    of cuda.core). LaunchError (E3106) for anything else.
    """
    if isinstance(stream, int) or type(stream).__name__ in _BINDINGS:
        return int(stream)
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int(protocol()[1])
    for attribute in ("cuda_stream", "ptr"):
        handle = getattr(stream, attribute, None)
        if isinstance(handle, int):
            return handle
    raise LaunchError(
        Code.RUN_ARGUMENT,
        f"a {type(stream).__name__} is not a stream",
        "pass a stream of torch, CuPy, cuda.core or cuda-python, or the driver's handle",
    )


def current_stream_of(torch: Any) -> Callable[[int], int]:
    """The function that reads the handle of torch's current stream on a GPU, by its number.

    Every launch on tensors calls it. `torch.cuda.current_stream` makes an object in each call, which takes 1.6 us; the
    function by which torch's own compiled code reads the handle takes 0.1 us (beside an H200). It is taken where torch
    has it, which torch does not promise.
    """
    direct: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return direct or (lambda ordinal: int(torch.cuda.current_stream(ordinal).cuda_stream))
