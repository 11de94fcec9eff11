# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch's streams, events and graphs without a GPU, whose work `work` does."""

import time
from collections import namedtuple
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from inspect import signature
from types import ModuleType
from typing import Any, ClassVar

from tilefold.base.target import MAX_THREADS, RESERVED_SHARED_BYTES, STATIC_SHARED_BYTES
from tilefold.cute.runtime import RuntimeTensor
from tilefold.cute.torch_compile import skip_frames

from ..replacements import Replacements
from .device_calls import MissingGpu
from .work import Capture, Mark, Node, Streams


class Event:
    """An event that is complete, unless work before it is kept, at the time at which it is recorded."""

    streams: ClassVar[Streams]

    def __init__(self, *_: object, **__: object) -> None:
        self.time = 0.0
        self._mark = Mark()

    @property
    def cuda_event(self) -> int:
        """A handle, which no library takes."""
        return id(self)

    def record(self, stream: object = None) -> None:
        """Marks the work of a stream, by default the current one, and notes the time."""
        self._mark = self.streams.mark(stream)
        self.time = time.perf_counter()

    def wait(self, stream: object = None) -> None:
        """The next work of a stream, by default the current one, comes after the event."""
        self.streams.follow(stream, self._mark)

    def synchronize(self) -> None:
        """Waits for the work before it."""
        self.streams.reach(self._mark)

    def query(self) -> bool:
        """Whether the work before it is done; it waits for that."""
        self.synchronize()
        return True

    def elapsed_time(self, other: "Event") -> float:
        """The milliseconds between two events."""
        return 1e3 * (other.time - self.time)


class Stream:
    """A stream of the GPU, in whose place a class of each program's simulator has its `streams`."""

    streams: ClassVar[Streams]
    event: ClassVar[type[Event]]

    def __init__(self, *_: object, **__: object) -> None:
        self.cuda_stream = self.streams.create()

    def synchronize(self) -> None:
        """Waits for its work."""
        self.streams.synchronize(self)

    def query(self) -> bool:
        """Whether its work is done; it waits for that."""
        self.synchronize()
        return True

    def wait_stream(self, other: "Stream") -> None:
        """Its next work comes after the work of another one so far."""
        self.streams.follow(self, self.streams.mark(other))

    def wait_event(self, event: Event) -> None:
        """Its next work comes after that before an event."""
        event.wait(self)

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event after its work so far."""
        event = self.event() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> "Stream":
        self._within = self.streams.within(self.cuda_stream)
        self._within.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._within.__exit__(None, None, None)


class _Graph:
    """The launches and CUDA's copies that a program asks for while it captures them. Other work is not repeated."""

    streams: ClassVar[Streams]

    def __init__(self, keep_graph: bool = False) -> None:
        self.nodes: list[Node] = []

    def capture_begin(self, *_: object, **__: object) -> None:
        """Gets the work from here on."""
        self.streams.capture = Capture(self.nodes)

    def capture_end(self) -> None:
        """Work is done again."""
        self.streams.capture = None

    def replay(self) -> None:
        """Does the work in the order of its streams."""
        self.streams.replay(self.nodes)

    def reset(self) -> None:
        """Forgets the work."""
        self.nodes.clear()


class _Capture:
    """`with torch.cuda.graph(graph):`, which first waits for the GPU, as torch's does."""

    def __init__(self, cuda_graph: _Graph, pool: object = None, stream: Any = None, *_: object, **__: object) -> None:
        self._graph = cuda_graph
        self._within = nullcontext() if stream is None else cuda_graph.streams.within(stream.cuda_stream)

    def __enter__(self) -> None:
        self._graph.streams.synchronize()
        self._graph.capture_begin()
        self._within.__enter__()

    def __exit__(self, *_: object) -> None:
        self._within.__exit__(None, None, None)
        self._graph.capture_end()


class _Device:
    """`with torch.cuda.device(index):`."""

    def __init__(self, device: object = 0) -> None:
        self.idx = getattr(device, "index", device) or 0

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def _always(value: object) -> Callable[..., object]:
    """A function that returns a value, whatever it is given."""

    def call(*_: object, **__: object) -> Any:
        return value

    return call


def _of_host(function: Callable[..., object]) -> Callable[..., object]:
    """A function of torch for a GPU, which may be named last, as the host's."""
    count = len(signature(function).parameters)

    def call(*args: object, **_: object) -> Any:
        return function(*args[:count])

    return call


def streams_on_host(torch: ModuleType, gpu: MissingGpu, replaced: Replacements) -> None:
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
        "empty_cache": None, "init": None, "get_device_capability": divmod(gpu.target.sm, 10),
        "get_device_name": properties.name, "get_device_properties": properties,
        "current_blas_handle": 0, "mem_get_info": (properties.total_memory, properties.total_memory), "_sleep": None,
        "memory_allocated": 0, "reset_peak_memory_stats": None, "manual_seed": None, "manual_seed_all": None,
        "is_current_stream_capturing": False, "can_device_access_peer": True,
    }  # fmt: skip
    replaced.set(torch.cuda, **{name: _always(value) for name, value in answers.items()})
    streams = gpu.streams
    event = type("Event", (Event,), {"streams": streams})
    kind = type("Stream", (Stream,), {"streams": streams, "event": event})

    known: dict[int, object] = {}

    def stream_of(handle: int) -> Any:
        found = known.get(handle)
        if found is None:
            found = known[handle] = kind.__new__(kind)
            found.cuda_stream = handle
        return found

    def external(handle: int, *_: object) -> Any:
        return stream_of(handle)

    def current_stream(device: object = None) -> Any:
        return stream_of(streams.current)

    def current_handle(device: int) -> int:
        return streams.current

    def synchronizer() -> Callable[..., None]:
        """A function for each module, as torch's compiler has a handler for each."""

        def synchronize(device: object = None) -> None:
            streams.synchronize()

        return synchronize

    def within(stream: Any) -> Any:
        return nullcontext() if stream is None else streams.within(stream.cuda_stream)

    replaced.set(
        torch.cuda,
        Stream=kind,
        Event=event,
        CUDAGraph=type("CUDAGraph", (_Graph,), {"streams": streams}),
        graph=_Capture,
        current_stream=current_stream,
        default_stream=_always(stream_of(0)),
        stream=within,
        synchronize=synchronizer(),
        device=_Device,
        ExternalStream=external,
    )
    replaced.set(torch._C, _cuda_getCurrentRawStream=current_handle)
    replaced.set(torch.cuda.profiler, start=_always(None), stop=_always(None))
    replaced.set(torch.accelerator, synchronize=synchronizer())


def compiler_on_host(torch: ModuleType, replaced: Replacements) -> None:
    """Lets `torch.compile` compile for the host although there is a GPU: its own questions are answered as without. It
    does not look into `from_dlpack`, which keeps the host's arrays.
    """
    skip_frames(RuntimeTensor.__init__)
    states = {name: _of_host(getattr(torch, name)) for name in ("get_rng_state", "set_rng_state")}
    replaced.set(torch.cuda, **states)
    replaced.set(torch.accelerator, is_available=_always(False), current_device_index=_always(0))
    replaced.set(import_module("torch.utils._triton"), has_triton=_always(False))
