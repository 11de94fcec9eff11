# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The streams of a simulated GPU, and the order of the work in them.

Work of the current stream, and of the default one, is done when it is asked for: what the program does next with torch,
on the host, comes after it. Work of another stream is done at once, too, if it can end. A launch there that waits for
something is kept, and the program goes on; what it asks for next in that stream, or in one that waits for it, comes
after the launch. Whoever waits for the GPU waits for all of that. While a graph is captured nothing is done: a replay
begins all of its work, in the order that its streams and events had.
"""

import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tilefold.driver.devices import devices_of_process
from tilefold.driver.world import Work, World
from tilefold.runtime.errors import LaunchError
from tilefold.runtime.streams import handle_of

T = TypeVar("T")
_FIRST = 0x1000
"""The handle of the first stream that a program makes."""


@dataclass(eq=False)
class Queue:
    """A stream by its handle. One that is `blocking` and the default stream wait for each other's work (CUDA C++
    Programming Guide, Default Stream). `last` is the unfinished work that its next one comes after.
    """

    handle: int
    blocking: bool = False
    last: tuple[Work, ...] = ()

    def unfinished(self) -> tuple[Work, ...]:
        """The work that its next one comes after."""
        self.last = tuple(work for work in self.last if not work.is_done)
        return self.last


@dataclass(frozen=True, slots=True)
class Node:
    """Work of a graph, a launch or a copy, and the numbers of the nodes that it comes after."""

    do: Callable[[], object]
    stream: int
    behind: tuple[int, ...]
    is_copy: bool


@dataclass(eq=False)
class Capture:
    """The work that a program asks for while it captures a graph, and by stream the last nodes there."""

    nodes: list[Node] = field(default_factory=list[Node])
    last: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])

    def add(self, do: Callable[[], object], stream: int, *, is_copy: bool) -> None:
        """Keeps work of a stream for the replays."""
        self.nodes.append(Node(do, stream, self.last.get(stream, ()), is_copy))
        self.last[stream] = (len(self.nodes) - 1,)


@dataclass(frozen=True, slots=True)
class Mark:
    """The work before a point of a stream: what is unfinished, and nodes of the graph that is captured."""

    work: tuple[Work, ...] = ()
    nodes: tuple[int, ...] = ()


@dataclass(eq=False)
class Streams:
    """The streams of a simulated GPU by their handles, and the graph that is captured."""

    capture: Capture | None = None
    _queues: dict[int, Queue] = field(default_factory=dict[int, Queue])
    _local: threading.local = field(default_factory=threading.local)

    def create(self, *, blocking: bool = False) -> int:
        """The handle of a new stream."""
        handle = _FIRST + len(self._queues)
        self._queues[handle] = Queue(handle, blocking)
        return handle

    @property
    def current(self) -> int:
        """The handle of the current stream of this thread's program; 0 is the default one."""
        return getattr(self._local, "current", 0)

    @contextmanager
    def within(self, handle: int) -> Generator[None]:
        """Makes a stream the current one."""
        before, self._local.current = self.current, handle
        try:
            yield
        finally:
            self._local.current = before

    def do(self, work: Callable[[], T], stream: Any, *, is_copy: bool = False) -> T | None:
        """Does work of a stream, a launch or a copy; the result is None where it is kept for later. Raises its errors,
        and those of earlier work that it must wait for.
        """
        handle = self._handle(stream)
        if self.capture is not None:
            self.capture.add(work, handle, is_copy=is_copy)
            return None
        queue = self._queues.get(handle)
        if queue is None or handle == self.current or not _has_thread():
            self.wait(self._before(handle))
            return work()
        begun = _world().begin(work, queue.unfinished(), late=is_copy)
        queue.last = (begun,)
        _world().wait(queue.last, patient=False)
        return begun.result if begun.is_done else None

    def mark(self, stream: Any) -> Mark:
        """The work before now in a stream."""
        handle = self._handle(stream)
        nodes = () if self.capture is None else self.capture.last.get(handle, ())
        return Mark(self._before(handle), nodes)

    def follow(self, stream: Any, mark: Mark) -> None:
        """Makes the next work of a stream come after a point of another one."""
        handle = self._handle(stream)
        if self.capture is not None:
            last = self.capture.last.get(handle, ())
            self.capture.last[handle] = tuple(dict.fromkeys((*last, *mark.nodes)))
        queue = self._queues.get(handle)
        if queue is None or handle == self.current:
            self.wait(mark.work)
        else:
            queue.last = tuple(dict.fromkeys((*queue.unfinished(), *mark.work)))

    def synchronize(self, stream: Any = None) -> None:
        """Waits for the work of a stream, or of all. Raises its errors: SimulationError (E3231) where launches wait for
        something that nothing else does.
        """
        if stream is None:
            self.wait([work for queue in self._queues.values() for work in queue.unfinished()])
        else:
            self.wait(self._before(self._handle(stream)))

    def wait(self, work: Iterable[Work]) -> None:
        """Waits for work, as far as it is this program's."""
        left = [each for each in work if not each.is_done]
        if left and _has_thread():
            _world().wait([each for each in left if each.rank == _world().rank])

    def replay(self, nodes: Sequence[Node]) -> None:
        """Does the work of a graph, and waits for it."""
        self.wait(self._before(self.current))
        if len({node.stream for node in nodes}) < 2 or not _has_thread():
            for node in nodes:
                node.do()
            return
        begun: list[Work] = []
        for node in nodes:
            behind = [begun[number] for number in node.behind]
            begun.append(_world().begin(node.do, behind, late=node.is_copy))
        _world().wait(begun)

    def _handle(self, stream: Any) -> int:
        if stream is None:
            return self.current
        try:
            return handle_of(stream)
        except LaunchError:  # which the launch itself reports
            return 0

    def _before(self, handle: int) -> tuple[Work, ...]:
        """The unfinished work that new work of a stream comes after."""
        if handle:
            return self._queues[handle].unfinished() if handle in self._queues else ()
        return tuple(work for queue in self._queues.values() if queue.blocking for work in queue.unfinished())


def _world() -> World:
    """The devices of this process: those of a program for several, or else one."""
    devices = devices_of_process()
    if devices.world is None:
        devices.world = World.alone()
    return devices.world


def _has_thread() -> bool:
    """Whether work can be kept for the calling thread."""
    return _world().has_thread
