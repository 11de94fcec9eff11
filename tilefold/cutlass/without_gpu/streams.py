# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch's streams, events and graphs without a GPU: a launch is complete when its call returns."""

import time
from collections import namedtuple
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any

from tilefold.base.target import MAX_THREADS, RESERVED_SHARED_BYTES, STATIC_SHARED_BYTES

from ..replacements import Replacements
from .device_calls import MissingGpu


class _Stream:
    """A stream that has nothing to wait for."""

    cuda_stream = 0

    def __init__(self, *_: object, **__: object) -> None: ...

    def synchronize(self) -> None:
        """Nothing is left to do."""

    def wait_stream(self, *_: object) -> None:
        """Nothing is to wait for; the same of events."""

    wait_event = record_event = wait_stream

    def __enter__(self) -> "_Stream":
        return self

    def __exit__(self, *_: object) -> None: ...


class _Event(_Stream):
    """An event that is complete at the time at which it is recorded."""

    @property
    def cuda_event(self) -> int:
        """A handle, which no library takes."""
        return id(self)

    def record(self, *_: object) -> None:
        """Notes the time."""
        self.time = time.perf_counter()

    def elapsed_time(self, other: "_Event") -> float:
        """The milliseconds between two events."""
        return 1e3 * (other.time - self.time)


@dataclass
class _Graph:
    """The launches that a program makes while it captures them. Other work is not repeated."""

    gpu: MissingGpu
    captured: list[Callable[[], object]] = field(default_factory=lambda: [])

    def capture_begin(self, *_: object, **__: object) -> None:
        """Gets the launches from here on."""
        self.gpu.captured = self.captured

    def capture_end(self) -> None:
        """Launches are executed again."""
        self.gpu.captured = None

    def replay(self) -> None:
        """Executes the launches in their order."""
        for run in self.captured:
            run()

    def reset(self) -> None:
        """Forgets the launches."""
        self.captured.clear()


class _Capture:
    """`with torch.cuda.graph(graph):`."""

    def __init__(self, cuda_graph: _Graph, *_: object, **__: object) -> None:
        self._graph = cuda_graph

    def __enter__(self) -> None:
        self._graph.capture_begin()

    def __exit__(self, *_: object) -> None:
        self._graph.capture_end()


def _always(value: object) -> Callable[..., Any]:
    """A function that returns a value, whatever it is given."""

    def call(*_: object, **__: object) -> Any:
        return value

    return call


def _of_host(function: Callable[..., object]) -> Callable[..., Any]:
    """A function of torch for a GPU, which may be named last, as the host's."""
    count = len(signature(function).parameters)

    def call(*args: object, **_: object) -> Any:
        return function(*args[:count])

    return call


def streams_on_host(torch: Any, gpu: MissingGpu, replaced: Replacements) -> None:
    """Makes torch say that there is a GPU, and answer for its streams, events and graphs."""
    capability = gpu.target.capability
    shared = capability.shared_kib * 1024
    values = dict(
        name="the simulator",
        gcnArchName="the simulator",  # the name for the compiler of a torch that is built without CUDA
        multi_processor_count=gpu.multiprocessors,
        major=gpu.target.sm // 10,
        minor=gpu.target.sm % 10,
        total_memory=1 << 34,
        L2_cache_size=gpu.l2_bytes,
        warp_size=32,
        max_threads_per_block=MAX_THREADS,
        max_threads_per_multi_processor=capability.threads,
        regs_per_multiprocessor=1 << 16,
        shared_memory_per_block=STATIC_SHARED_BYTES,
        shared_memory_per_block_optin=shared - RESERVED_SHARED_BYTES,
        shared_memory_per_multiprocessor=shared,
    )
    made: Callable[..., Any] = namedtuple  # one of the kinds of objects that torch.compile takes
    properties = made("properties", values)(**values)
    answers = {
        "is_available": True, "is_initialized": True, "device_count": 1, "current_device": 0, "set_device": None,
        "synchronize": None, "empty_cache": None, "init": None, "get_device_capability": divmod(gpu.target.sm, 10),
        "get_device_name": properties.name, "get_device_properties": properties, "current_stream": _Stream(),
        "default_stream": _Stream(), "stream": nullcontext(), "device": nullcontext(), "memory_allocated": 0,
        "reset_peak_memory_stats": None, "manual_seed": None, "manual_seed_all": None,
        "is_current_stream_capturing": False, "can_device_access_peer": True,
    }  # fmt: skip
    replaced.set(torch.cuda, **{name: _always(value) for name, value in answers.items()})
    replaced.set(torch.cuda, Stream=_Stream, Event=_Event, CUDAGraph=partial(_Graph, gpu), graph=_Capture)


def compiler_on_host(torch: Any, replaced: Replacements) -> None:
    """Lets `torch.compile` compile for the host although there is a GPU: its own questions are answered as without."""
    states = {name: _of_host(getattr(torch, name)) for name in ("get_rng_state", "set_rng_state")}
    replaced.set(torch.cuda, **states)
    replaced.set(torch.accelerator, is_available=_always(False), current_device_index=_always(0))
    replaced.set(import_module("torch.utils._triton"), has_triton=_always(False))
