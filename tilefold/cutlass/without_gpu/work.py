# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The streams of a simulated GPU, and the order of the work in them.

Work of the current stream, and of the default one, is done when it is asked for: what the program does next with torch,
on the host, comes after it. Work of another stream is done at once, too, if it can end. A launch there that waits for
something is kept, and the program goes on; what it asks for next in that stream, or in one that waits for it, comes
after the launch. Whoever waits for the GPU waits for all of that. While a graph is captured nothing is done: a replay
begins all of its work, in the order that its streams and events had. From the first stream that a program makes on,
`order` compares the bytes that work of different streams accesses.
"""

import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from tilefold.builder.tracing.source import user_place
from tilefold.driver.devices import devices_of_process
from tilefold.driver.world import Work, World
from tilefold.runtime.accesses import Accesses, Piece
from tilefold.runtime.engine import RunResult
from tilefold.runtime.errors import LaunchError
from tilefold.runtime.settings import looks_for_races
from tilefold.runtime.sim.faults import Site
from tilefold.runtime.streams import handle_of

from .order import Clock, StreamOrder, joined

T = TypeVar("T")
_FIRST = 0x1000
"""The handle of the first stream that a program makes."""
_SAME_AS_DEFAULT = 1, 2
"""The handles of the default stream by other names (cudaStreamLegacy, cudaStreamPerThread)."""


Pieces: TypeAlias = Callable[[], Sequence[Piece]]
"""What tells the memory that work has accessed."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy, or other work that is no launch, by the name of its function: the memory that it accesses."""

    name: str
    pieces: Pieces


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
    copy: Copy | None
    site: Site


@dataclass(eq=False)
class Capture:
    """The work that a program asks for while it captures a graph, and by stream the last nodes there."""

    nodes: list[Node] = field(default_factory=list[Node])
    last: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])

    def add(self, do: Callable[[], object], stream: int, copy: Copy | None, site: Site) -> None:
        """Keeps work of a stream for the replays."""
        self.nodes.append(Node(do, stream, self.last.get(stream, ()), copy, site))
        self.last[stream] = (len(self.nodes) - 1,)


@dataclass(frozen=True, slots=True)
class Mark:
    """The work before a point of a stream: what is unfinished, nodes of the graph that is captured, and all of it."""

    work: tuple[Work, ...] = ()
    nodes: tuple[int, ...] = ()
    clock: Clock = field(default_factory=dict[int, int])


@dataclass(eq=False)
class Streams:
    """The streams of a simulated GPU by their handles, and the graph that is captured. `order` is that of their work;
    `watchers` are called when the program makes its first stream.
    """

    capture: Capture | None = None
    order: StreamOrder | None = None
    watchers: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    _queues: dict[int, Queue] = field(default_factory=dict[int, Queue])
    _local: threading.local = field(default_factory=threading.local)

    def create(self, *, blocking: bool = False) -> int:
        """The handle of a new stream."""
        if self.order is None and _world().is_alone and looks_for_races():
            self.order, devices_of_process().keeps_accesses = StreamOrder(), True
            for watch in self.watchers:
                watch()
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

    def do(self, work: Callable[[], T], stream: Any, copy: Copy | None = None) -> T | None:
        """Does work of a stream, a launch or a copy; the result is None where it is kept for later. Raises its errors,
        those of earlier work that it must wait for, and SimulationError (E3205) for a race with work of another stream.
        """
        handle = self._handle(stream)
        site = self._site(copy)
        if self.capture is not None:
            self.capture.add(work, handle, copy, site)
            return None
        work, _ = self._in_order(work, handle, copy, site, self._known(handle))
        queue = self._queues.get(handle)
        if queue is None or handle == self.current or not _has_thread():
            self.wait(self._before(handle))
            return work()
        begun = _world().begin(work, queue.unfinished(), late=copy is not None)
        queue.last = (begun,)
        _world().wait(queue.last, patient=False)
        if not begun.is_done:
            return None
        _world().wait(queue.last)  # raises its error
        return begun.result

    def mark(self, stream: Any) -> Mark:
        """The work before now in a stream."""
        handle = self._handle(stream)
        nodes = () if self.capture is None else self.capture.last.get(handle, ())
        return Mark(self._before(handle), nodes, self._known(handle))

    def follow(self, stream: Any, mark: Mark) -> None:
        """Makes the next work of a stream come after a point of another one."""
        handle = self._handle(stream)
        if self.capture is not None:
            last = self.capture.last.get(handle, ())
            self.capture.last[handle] = tuple(dict.fromkeys((*last, *mark.nodes)))
        if self.order is not None:
            self.order.follow(handle, mark.clock)
        queue = self._queues.get(handle)
        if queue is None or handle == self.current:
            self.wait(mark.work)
        else:
            queue.last = tuple(dict.fromkeys((*queue.unfinished(), *mark.work)))

    def reach(self, mark: Mark) -> None:
        """Waits for the work before a point of a stream."""
        self.wait(mark.work)
        if self.order is not None:
            self.order.wait(mark.clock)

    def synchronize(self, stream: Any = None) -> None:
        """Waits for the work of a stream, or of all. Raises its errors: SimulationError (E3231) where launches wait for
        something that nothing else does.
        """
        if stream is not None:
            self.reach(self.mark(stream))
            return
        self.wait([work for queue in self._queues.values() for work in queue.unfinished()])
        if self.order is not None:
            self.order.wait()

    def wait(self, work: Iterable[Work]) -> None:
        """Waits for work, as far as it is this program's."""
        left = [each for each in work if not each.is_done]
        if left and _has_thread():
            _world().wait([each for each in left if each.rank == _world().rank])

    def replay(self, nodes: Sequence[Node]) -> None:
        """Does the work of a graph, and waits for it."""
        self.wait(self._before(self.current))
        is_one_stream = len({node.stream for node in nodes}) < 2 or not _has_thread()
        start, after, begun = self._known(self.current), list[Clock](), list[Work]()
        for node in nodes:
            clock = joined([start, *(after[number] for number in node.behind)])
            work, known = self._in_order(node.do, ~node.stream, node.copy, node.site, clock)
            after.append(known)
            if is_one_stream:
                work()
            else:
                behind = [begun[number] for number in node.behind]
                begun.append(_world().begin(work, behind, late=node.copy is not None))
        if begun:
            _world().wait(begun)
        if self.order is not None:
            self.order.follow(self.current, joined(after))

    def _in_order(
        self, work: Callable[[], T], handle: int, copy: Copy | None, site: Site, clock: Clock
    ) -> tuple[Callable[[], T], Clock]:
        """Work that is compared with that of other streams when it is done, and what is known behind it."""
        order = self.order
        if order is None:
            return work, {}
        turn = order.begin(site, handle, clock, (work, copy))

        def do() -> T:
            try:
                result = work()
            except BaseException:
                order.give_up(turn)
                raise
            order.end(turn, _accesses(result, copy))
            return result

        return do, turn.after

    def _site(self, copy: Copy | None) -> Site:
        """The line of the program that asks for work."""
        name = "launch" if copy is None else copy.name
        place = None if self.order is None else user_place()
        return Site(name) if place is None else Site(name, place.file, place.line, place.column)

    def _known(self, handle: int) -> Clock:
        """What the next work of a stream comes after."""
        if self.order is None:
            return {}
        queue = self._queues.get(handle)
        if not handle:
            return self.order.known(0, *(each.handle for each in self._queues.values() if each.blocking))
        return self.order.known(handle, *(() if queue is None or not queue.blocking else (0,)))

    def _handle(self, stream: Any) -> int:
        if stream is None:
            return self.current
        try:
            handle = handle_of(stream)
            return 0 if handle in _SAME_AS_DEFAULT else handle
        except LaunchError:  # which the launch itself reports
            return 0

    def _before(self, handle: int) -> tuple[Work, ...]:
        """The unfinished work that new work of a stream comes after."""
        if handle:
            return self._queues[handle].unfinished() if handle in self._queues else ()
        return tuple(work for queue in self._queues.values() if queue.blocking for work in queue.unfinished())


def _accesses(result: object, copy: Copy | None) -> Accesses | None:
    """What work with a result has accessed; None for a copy that has failed, and where a launch does not tell."""
    if copy is None:
        return result.accesses if isinstance(result, RunResult) else None
    return None if result is False else Accesses.of(copy.pieces())


def _world() -> World:
    """The devices of this process: those of a program for several, or else one."""
    devices = devices_of_process()
    if devices.world is None:
        devices.world = World.alone()
    return devices.world


def _has_thread() -> bool:
    """Whether work can be kept for the calling thread."""
    return _world().has_thread
