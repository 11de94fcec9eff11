# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several simulated devices in one process. Each has a rank and runs the same program, in a thread of its own.

The programs take turns: one goes on until it launches a kernel, meets the others, or ends. Once none can go on, the
kernels that were launched are simulated at the same time, as those of different devices, in one simulation: so their
blocks can wait for each other, and accesses of several devices that nothing orders are races.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from tilefold.base.errors import Code, TilefoldError
from tilefold.runtime.engine import Argument, LaunchConfig, RunResult
from tilefold.runtime.errors import LaunchError

if TYPE_CHECKING:
    from tilefold.runtime.arrays.host_tensors import Multicast
    from tilefold.runtime.sim.preparation import SimProgram
    from tilefold.runtime.sim.sim_engine import SimEngine

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Launch:
    engine: "SimEngine"
    program: "SimProgram"
    config: LaunchConfig
    args: Mapping[str, Argument]
    device: int


@dataclass(frozen=True, slots=True)
class _Rendezvous:
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class _Failed:
    error: BaseException


@dataclass(eq=False)
class World:
    """The devices, `count` of them, and the `multicasts` of their memory."""

    count: int
    multicasts: "list[Multicast]" = field(default_factory=lambda: [])
    symmetric: dict[int, list[Any]] = field(default_factory=dict[int, list[Any]])
    """The arrays of all devices that were allocated together, by the address of each."""
    _local: threading.local = field(default_factory=threading.local)
    _requests: dict[int, Any] = field(default_factory=dict[int, Any])
    _answers: dict[int, Any] = field(default_factory=dict[int, Any])
    _failure: BaseException | None = None

    def __post_init__(self) -> None:
        self._turns = [threading.Semaphore(0) for _ in range(self.count)]
        self._back = threading.Semaphore(0)

    @property
    def rank(self) -> int:
        """The device whose program is executed in this thread."""
        return self._local.rank

    def run(self, program: Callable[[int], T]) -> list[T]:
        """Runs the program of each device, with its rank; the results. Raises the first error of one of them, and
        LaunchError (E3105) where they wait for each other in vain.
        """
        results: dict[int, T] = {}

        def run_rank(rank: int) -> None:
            self._local.rank = rank
            self._turns[rank].acquire()
            try:
                results[rank] = program(rank)
            except BaseException as error:
                self._failure = error
            self._requests.pop(rank, None)
            self._back.release()

        for rank in range(self.count):
            threading.Thread(target=run_rank, args=(rank,), daemon=True).start()
        ready = dict.fromkeys(range(self.count))
        while ready:
            for rank, answer in ready.items():
                self._requests.pop(rank, None)
                self._answers[rank] = answer
                self._turns[rank].release()
                self._back.acquire()
                if self._failure is not None:
                    raise self._failure
            ready = self._answered()
        return [results[rank] for rank in range(self.count)]

    def meet(self, name: str, value: object = None) -> list[Any]:
        """Waits for the programs of all devices, which meet by the same name; their values, by rank."""
        return self._ask(_Rendezvous(name, value))

    def launch(
        self, engine: "SimEngine", program: "SimProgram", config: LaunchConfig, args: Mapping[str, Argument]
    ) -> RunResult:
        """Launches a kernel on the device of this thread, together with those of the others."""
        return self._ask(_Launch(engine, program, config, args, self.rank))

    def _ask(self, request: object) -> Any:
        rank = self.rank
        self._requests[rank] = request
        self._back.release()
        self._turns[rank].acquire()
        answer = self._answers[rank]
        if isinstance(answer, _Failed):
            raise answer.error
        return answer

    def _answered(self) -> Mapping[int, Any]:
        """The answers to the devices that may go on, now that all wait."""
        launches = {rank: given for rank, given in sorted(self._requests.items()) if isinstance(given, _Launch)}
        if launches:
            try:
                return dict.fromkeys(launches, self._run_together(list(launches.values())))
            except TilefoldError as error:
                return {next(iter(launches)): _Failed(error)}
        names = {given.name for given in self._requests.values()}
        if self._requests and (len(self._requests) < self.count or len(names) > 1):
            waits = ", ".join(f"device {rank} at {given.name}" for rank, given in sorted(self._requests.items()))
            ended = [f"device {rank}" for rank in range(self.count) if rank not in self._requests]
            over = f"; {', '.join(ended)} ended" if ended else ""
            message = f"the programs of {self.count} devices wait for each other forever: {waits}{over}"
            error = LaunchError(Code.RUN_LAUNCH, message, "all of them must meet in the same order")
            return {next(iter(self._requests)): _Failed(error)}
        values = [self._requests[rank].value for rank in sorted(self._requests)]
        return dict.fromkeys(self._requests, values)

    def _run_together(self, launches: Sequence[_Launch]) -> RunResult:
        from tilefold.runtime.sim.preparation import Launch

        first = launches[0]
        texts = {text: meaning for launch in launches for text, meaning in launch.engine.texts.items()}
        engine = replace(first.engine, texts=texts)
        given = [Launch(launch.program, launch.config, launch.args, launch.device) for launch in launches]
        return engine.launch_together(given, self.multicasts)


@dataclass(frozen=True)
class DeviceEngine:
    """The engine of a program that runs on several devices."""

    world: World
    engine: "SimEngine"

    @property
    def name(self) -> str:
        """That of the engine."""
        return self.engine.name

    def launch(self, program: "SimProgram", config: LaunchConfig, args: Mapping[str, Argument]) -> RunResult:
        """Launches a kernel together with those of the other devices."""
        return self.world.launch(self.engine, program, config, args)
