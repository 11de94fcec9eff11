# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Simulated devices in one process, and streams of them whose launches run at the same time.

Each of several devices has a rank and runs the same program, in a thread of its own. Work of a stream, a launch or a
copy, that the program need not wait for is done in a thread, too. The threads take turns: one goes on until it launches
a kernel, waits for others, or ends. Once none can go on, launches are simulated, as many of them together as it takes:
first one of each device, so that their blocks can wait for each other, and where these wait forever, with the next ones
of other streams. Accesses of launches that run together are races where nothing orders them. A launch that cannot end
yet is kept, and its program goes on as on a GPU; it is tried again, from its beginning, together with later ones. That
is possible because a simulated launch leaves its arguments as they are until it has ended.
"""

import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from tilefold.base.errors import Code, TilefoldError
from tilefold.runtime.engine import Argument, Launch, LaunchConfig, RunResult
from tilefold.runtime.errors import LaunchError
from tilefold.runtime.sim.launch import Loads

if TYPE_CHECKING:
    from tilefold.runtime.arrays.host_tensors import Multicast
    from tilefold.runtime.sim.preparation import SimProgram
    from tilefold.runtime.sim.sim_engine import SimEngine

T = TypeVar("T")
_OUTDATED = 5
"""The choices of outdated values that rehearsals try."""


@dataclass(frozen=True, slots=True)
class _Launch:
    engine: "SimEngine"
    launch: "Launch[SimProgram]"


@dataclass(frozen=True, slots=True)
class _Meeting:
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class _Behind:
    """Waits until work is done; unless `patient`, as long as anything goes on without the one who asks."""

    work: "Sequence[Work]"
    patient: bool


@dataclass(frozen=True, slots=True)
class _Failed:
    error: BaseException


@dataclass(eq=False)
class Work:
    """What a thread does for the device `rank`: its program, or the work of a stream, which a program has begun."""

    rank: int
    number: int
    owner: "Work | None" = None
    result: Any = None
    error: BaseException | None = None
    is_done: bool = False
    failures: list[BaseException] = field(default_factory=list[BaseException])
    """The errors of work that it has started and has not yet joined."""
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    answer: Any = None


@dataclass(eq=False)
class World:
    """The devices, `count` of them, and the `multicasts` of their memory. With `rehearses`, launches also run with
    other values of atomic loads before they have results.
    """

    count: int
    rehearses: bool = False
    multicasts: "list[Multicast]" = field(default_factory=lambda: [])
    symmetric: dict[int, list[Any]] = field(default_factory=dict[int, list[Any]])
    """The arrays of all devices that were allocated together, by the address of each."""
    _local: threading.local = field(default_factory=threading.local)
    _requests: dict[Work, Any] = field(default_factory=dict[Work, Any])
    _ready: deque[tuple[Work, Any]] = field(default_factory=deque[tuple[Work, Any]])
    """Who may go on, with the answers to their requests."""
    _kept: list[Work] = field(default_factory=list[Work])
    """Those whose launches could not end so far."""
    _back: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _driver: Work | None = None
    _begun: int = 0

    @classmethod
    def alone(cls) -> "World":
        """One device, whose program is the calling thread."""
        world = cls(1)
        world._driver = world._local.me = world._next(0)
        return world

    @property
    def is_alone(self) -> bool:
        """Whether its only program was there before it."""
        return self._driver is not None

    @property
    def rank(self) -> int:
        """The device whose program is executed in this thread."""
        return self._local.me.rank

    @property
    def has_thread(self) -> bool:
        """Whether the calling thread is one that takes turns."""
        return hasattr(self._local, "me")

    def run(self, program: Callable[[int], T]) -> list[T]:
        """Runs the program of each device, with its rank; the results. Raises the first error of one of them, and
        LaunchError (E3105) where they wait for each other in vain.
        """

        def run_rank(rank: int) -> T:
            result = program(rank)
            self.wait([work for work in self._requests if work.owner is self._local.me])
            return result

        programs = [self._next(rank) for rank in range(self.count)]
        for work in programs:
            self._start(work, lambda rank=work.rank: run_rank(rank))
        self._serve()
        return [work.result for work in programs]

    def meet(self, name: str, value: object = None) -> list[Any]:
        """Waits for the programs of all devices, which meet by the same name; their values, by rank."""
        return self._ask(_Meeting(name, value))

    def launch(
        self, engine: "SimEngine", program: "SimProgram", config: LaunchConfig, args: Mapping[str, Argument]
    ) -> RunResult:
        """Launches a kernel on the device of this thread, together with those of the others."""
        if not self.has_thread:
            return engine.launch(program, config, args)
        return self._ask(_Launch(engine, Launch(program, config, args, self.rank)))

    def begin(self, do: Callable[[], object], behind: Sequence[Work] = (), *, late: bool = False) -> Work:
        """Work of a stream that begins once all work before it is done, a `late` one only when nothing else goes on: so
        a launch that should wait for it, and does not, comes before it. Its errors are raised in the program of this
        thread, while that waits.
        """
        work = self._next(self.rank, self._local.me)

        def run() -> object:
            if any(not other.is_done for other in behind):
                self._ask(_Behind(behind, patient=True))
            if late:
                self._ask(_Behind((), patient=False))
            return do()

        self._start(work, run)
        return work

    def wait(self, work: Sequence[Work], *, patient: bool = True) -> None:
        """Waits until work is done; unless `patient`, as long as anything goes on without this thread. Raises errors
        of the work that it has begun, such as SimulationError (E3231) for launches that wait forever.
        """
        if any(not each.is_done for each in work) or self._local.me.failures:
            self._ask(_Behind(work, patient))

    def _next(self, rank: int, owner: Work | None = None) -> Work:
        self._begun += 1
        return Work(rank, self._begun, owner)

    def _start(self, work: Work, do: Callable[[], object]) -> None:
        def run() -> None:
            self._local.me = work
            work.turn.acquire()
            try:
                work.result = do()
            except BaseException as error:
                work.error = error
            work.is_done = True
            self._back.release()

        threading.Thread(target=run, daemon=True).start()
        self._ready.append((work, None))

    def _ask(self, request: object) -> Any:
        me = self._local.me
        self._requests[me] = request
        if me is self._driver:
            answer = self._serve()
        else:
            self._back.release()
            me.turn.acquire()
            answer = me.answer
        if isinstance(answer, _Failed):
            raise answer.error
        return answer

    def _serve(self) -> Any:
        """Lets all run in turn until the driver may; returns its answer. Without a driver until all have ended."""
        while self._ready or self._requests:
            if not self._ready:
                self._answer()
            work, work.answer = self._ready[0]
            self._ready.popleft()
            if work is self._driver:
                return work.answer
            work.turn.release()
            self._back.acquire()
            if work.error is not None:
                if work.owner is None:
                    raise work.error
                work.owner.failures.append(work.error)
        return None

    def _reply(self, work: Work, answer: object = None) -> None:
        del self._requests[work]
        self._ready.append((work, answer))

    def _answer(self) -> None:
        """Answers at least one request, now that all wait."""
        waiting = sorted(self._requests.items(), key=lambda entry: entry[0].number)
        for work, given in waiting:
            if work.failures:
                self._reply(work, _Failed(work.failures.pop(0)))
            elif isinstance(given, _Behind) and given.patient and all(other.is_done for other in given.work):
                self._reply(work)
        if self._ready:
            return
        stuck = self._launch_some([work for work, given in waiting if isinstance(given, _Launch)])
        if self._ready:
            return
        for work, given in reversed(waiting):  # late work before those who have begun it
            if isinstance(given, _Behind) and not given.patient:
                self._reply(work)
        meetings = {work: given for work, given in waiting if isinstance(given, _Meeting)}
        names = {given.name for given in meetings.values()}
        if not self._ready and len(meetings) == self.count and len(names) == 1:
            values = [given.value for given in meetings.values()]
            for work in meetings:
                self._reply(work, values)
        if self._ready:
            return
        if stuck is not None:
            self._fail(stuck)
            return
        waits = ", ".join(f"device {work.rank} at {given.name}" for work, given in meetings.items())
        ranks = {work.rank for work in meetings}
        ended = [f"device {rank}" for rank in range(self.count) if rank not in ranks]
        over = f"; {', '.join(ended)} ended" if ended else ""
        message = f"the programs of {self.count} devices wait for each other forever: {waits}{over}"
        error = LaunchError(Code.RUN_LAUNCH, message, "all of them must meet in the same order")
        self._reply(next(iter(meetings)), _Failed(error))

    def _launch_some(self, launches: Sequence[Work]) -> "_Stuck | None":
        """Simulates launches that end together, or answers the one that fails. Keeps those that wait forever, and
        returns the error of all of them.
        """
        stuck: _Stuck | None = None
        self._kept = [work for work in self._kept if work in launches]
        while launches and (stuck is None or len(self._kept) < len(launches)):
            first: dict[int, Work] = {}
            for work in launches:
                if work not in self._kept:
                    first.setdefault(work.rank, work)
            together = [*self._kept, *first.values()]
            stuck = self._attempt(together)
            if stuck is None:
                return None
            others = [work for work in together if work not in stuck.waiting]
            if others and self._attempt(others) is None:  # they do not need those that wait
                return None
            self._kept = together
        return stuck

    def _attempt(self, launches: Sequence[Work]) -> "_Stuck | None":
        """Simulates launches together and answers them, or the one that fails. The error, if some wait forever."""
        given: list[_Launch] = [self._requests[work] for work in launches]
        texts: list[str] | None = [] if any(work.owner for work in launches) else None
        try:
            result = self._simulate(given, texts)
        except TilefoldError as error:
            concerned = [launches[number] for number in getattr(error, "grids", (0,))]
            if error.code is Code.SIM_STUCK and texts is not None:
                return _Stuck(error, concerned, texts)
            _write(given[0].engine, texts)
            self._reply(concerned[0], _Failed(error))
            return None
        _write(given[0].engine, texts)
        for work in launches:
            self._reply(work, result)
        return None

    def _simulate(self, given: Sequence[_Launch], texts: list[str] | None) -> RunResult:
        engine = given[0].engine
        if len(given) > 1:
            meanings = {text: meaning for each in given for text, meaning in each.engine.texts.items()}
            engine = replace(engine, texts=meanings, stream=None)
        if texts is not None:
            engine = replace(engine, sink=texts.append)
        if self.rehearses:
            outdated = (Loads(seed=seed) for seed in range(_OUTDATED))
            engine = replace(engine, rehearsals=(*outdated, Loads(hurry=1)))
        return engine.launch_together([each.launch for each in given], self.multicasts)

    def _fail(self, stuck: "_Stuck") -> None:
        """Launches wait forever, and nobody can go on."""
        work = stuck.waiting[0]
        _write(self._requests[work].engine, stuck.texts)
        self._reply(work, _Failed(stuck.error))


@dataclass(frozen=True, slots=True)
class _Stuck:
    """Launches that wait forever, the error, and the text that they and those beside them have printed."""

    error: TilefoldError
    waiting: Sequence[Work]
    texts: list[str]


def _write(engine: "SimEngine", texts: list[str] | None) -> None:
    """Writes text that was kept back until it was sure."""
    if texts:
        (sys.stdout.write if engine.sink is None else engine.sink)("".join(texts))


@dataclass(frozen=True)
class DeviceEngine:
    """The engine of a program that runs on several devices, or whose streams run at the same time."""

    world: World
    engine: "SimEngine"

    @property
    def name(self) -> str:
        """That of the engine."""
        return self.engine.name

    def launch(self, program: "SimProgram", config: LaunchConfig, args: Mapping[str, Argument]) -> RunResult:
        """Launches a kernel together with those of other devices and streams."""
        return self.world.launch(self.engine, program, config, args)
