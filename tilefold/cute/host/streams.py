# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Streams among the arguments of host functions."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

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
