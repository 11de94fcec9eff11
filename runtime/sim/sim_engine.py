# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simulator as an engine: kernels as xDSL modules, at any of the executable stages."""

import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from ...base.errors import Code
from ...base.limits import Limits
from ...base.target import WARP, Target
from ..arrays.host_tensors import Multicast, Placing
from ..engine import Argument, Counters, Launch, LaunchConfig, RunResult, sum_counts
from ..options import Cooperative, SimOptions
from ..settings import shows_progress, simulator_processes, wants_tensor_fences
from .faults import SimulationError, UndefinedReadError, deep_stack, site_of
from .launch import Completion, Forgiven, LaunchState, Loads, OutOfStepError, Stream, refuse_output
from .memory.memories import Memories, Seats
from .ordering.liveness import Watchdog
from .ordering.schedule import ClusterRuns
from .preparation import Binding, Grid, SimProgram, bind_all, bodies_of, numbered, rules_for
from .translate import InlineMeanings, RuleOf, Translator

if TYPE_CHECKING:
    from ..accesses import Accesses
    from .exact.patterns import Table
    from .memory.journal import Journal
    from .memory.undefined import Trace
    from .progress import Display, Progress

GLOBAL_BASE = 0x7F00_0000_0000
"""Where simulated global memory begins: far from small integers, so that a stray offset is out of bounds."""
GLOBAL_GUARD = 1 << 20
"""Bytes between two arguments, so that an index that is a little too large meets no other argument."""
_LANES_IN_STEP = 2048
"""How many threads run in step at most, where a block has no more: NumPy's calls take about as long for fewer."""
SHARED_BASE = 1024
"""Where a block's shared memory begins. A multiple of all alignments that shared memory needs."""


def discard(text: str) -> None:
    """A sink for the text of launches that nobody reads."""


def _display_of_process() -> "Display | None":
    """The standard error; None where the settings want no progress."""
    if not shows_progress():
        return None
    from .progress import Display

    return Display()


@dataclass(frozen=True, slots=True)
class _Run:
    """The remains of a run: the places of the arguments in its memory, and the counters."""

    bindings: list[Binding]
    spaces: Memories
    counters: Counters
    table: "Table | None"


@dataclass(frozen=True, slots=True)
class SimEngine:
    """Executes kernels on the CPU, warp by warp, and checks every access.

    A seed among the `options` also orders clusters where the engine shuffles them (`shuffle_blocks`). A `budget` stands
    for the limits of the options. `completion` says when asynchronous copies arrive at mbarriers. `sink` receives the
    text that the kernel prints; None is stdout. `read` puts operations in place of PTX as text, but for the `texts`
    that have functions. `journal` sees accesses, and `instrument` wraps the rules of operations. `forgiven` are faults
    of operations that do not end a launch. Products of matrix instructions are summed as the tensor cores of
    `tensor_cores` do, if it is known and the options say so. Kernels that make pointers of numbers reach the host
    memory that `memory` returns, by its addresses. With `any_fault`, the first fault of warps in step ends a launch by
    an OutOfStepError, and is not looked for again for its report. `loads` is an unusual way of atomic loads, and
    `rehearsals` those in which a launch runs, too, before it has results. These have the accessed bytes with
    `keeps_accesses`. `stream` is the one that the launch is in, `multicasts` memory of several devices, and `display`
    where a long launch shows its `progress`.
    """

    options: SimOptions = field(default_factory=SimOptions)
    sink: Callable[[str], None] | None = None
    texts: InlineMeanings = field(default_factory=lambda: MappingProxyType({}))
    read: Callable[[ModuleOp, Collection[str]], ModuleOp] | None = None
    budget: Limits | None = None
    shuffle_blocks: bool = False
    completion: Completion = Completion.LATE
    journal: "Journal | None" = None
    instrument: Callable[[RuleOf], RuleOf] | None = None
    forgiven: Forgiven = frozenset()
    tensor_cores: Target | None = None
    memory: Callable[[], Sequence[NDArray[np.uint8]]] = tuple
    any_fault: bool = False
    loads: Loads | None = None
    rehearsals: Sequence[Loads] = ()
    keeps_accesses: bool = False
    stream: Stream | None = None
    multicasts: Sequence[Multicast] = ()
    display: "Display | None" = field(default_factory=_display_of_process)
    progress: "Progress | None" = None

    @property
    def name(self) -> str:
        """`sim`."""
        return "sim"

    @property
    def limits(self) -> Limits:
        """The limits of a launch."""
        return self.options.limits if self.budget is None else self.budget

    @property
    def processes(self) -> int | None:
        """How many processes may share out clusters that do not order themselves; None is one a core, or fewer."""
        return simulator_processes() if self.options.processes is None else self.options.processes

    def launch(self, program: SimProgram, config: LaunchConfig, args: Mapping[str, Argument]) -> RunResult:
        """Runs the kernel over the grid. LaunchError for a launch that does not fit, SimulationError for a fault."""
        return self.launch_together([Launch(program, config, args)])

    def launch_together(
        self, launches: Sequence[Launch[SimProgram]], multicasts: Sequence[Multicast] = ()
    ) -> RunResult:
        """Runs kernels at the same time, each over a grid on a device. Tensors that share memory do so here. Raises as
        `launch`.
        """
        if self.display is None:
            return self._launch(launches, multicasts)
        with self.display.following([launch.config for launch in launches]) as progress:
            return replace(self, progress=progress)._launch(launches, multicasts)

    def _launch(self, launches: Sequence[Launch[SimProgram]], multicasts: Sequence[Multicast]) -> RunResult:
        began = time.perf_counter()
        if self.read is not None:
            modules = [self.read(launch.code.module, self.texts) for launch in launches]
            pairs = zip(launches, modules, strict=True)
            launches = [replace(launch, code=replace(launch.code, module=module)) for launch, module in pairs]
        grids = [Grid.of(launch) for launch in launches]
        printed: list[str] = []
        engine = replace(self, multicasts=multicasts)
        sink = sys.stdout.write if self.sink is None else self.sink

        def emit(text: str) -> None:
            printed.append(text)
            sink(text)

        try:
            run = engine._run_in_step(grids) or engine._run_in_order(grids, emit)
        except UndefinedReadError:
            from .memory.undefined import run_agreed

            length = len("".join(printed))
            texts: list[str] = []

            def compared(trace: "Trace") -> _Run:
                texts.clear()
                return engine._run_once(grids, texts.append, trace)

            try:
                run = run_agreed(compared)
            except SimulationError as fault:
                engine._explain(fault, grids)
                raise
            emit("".join(texts)[length:])
        for loads in self.rehearsals:
            with suppress(UndefinedReadError):  # which only the usual run follows
                replace(engine, loads=loads, progress=None)._run_once(grids, discard)
        for binding in run.bindings:
            run.spaces.global_.arena.read_back(binding.offset, binding.argument.storage)
        seconds = time.perf_counter() - began
        exact = {} if run.table is None else run.table.tensors(grids[0].args)
        return RunResult(seconds, "".join(printed), run.counters, exact, self._accesses(grids, run))

    def _accesses(self, grids: Sequence[Grid], run: "_Run") -> "Accesses | None":
        if not self.keeps_accesses:
            return None
        from .ordering.stream import accessed_by

        return accessed_by(grids, run.spaces, run.bindings)

    def attempt(self, program: SimProgram, config: LaunchConfig, args: Mapping[str, Argument]) -> RunResult | None:
        """As `launch`, but None for a launch with a fault, which takes less time than to tell the fault."""
        try:
            return replace(self, any_fault=True).launch(program, config, args)
        except (SimulationError, OutOfStepError):
            return None

    def _explain(self, fault: SimulationError, grids: Sequence[Grid]) -> None:
        """Makes the hint of a fault about an unwritten byte name the operation that writes it too late."""
        from .late_writes import late_write, sightings_of
        from .memory.journal import Journal

        if self.journal is not None or fault.code != Code.SIM_UNINITIALISED or fault.at is None:
            return
        journal = Journal(fault.at)
        with suppress(SimulationError):
            replace(self, journal=journal, forgiven=None)._run_once(grids, discard)
        late = late_write(sightings_of(journal, fault), fault)
        if late is not None:
            fault.hint = late[1]

    def _run_in_step(self, grids: Sequence[Grid]) -> "_Run | None":
        """A run with the warps of some blocks in step: the same, if there is no fault. None if the order of warps
        shows, and after anything that a run in order has to tell.
        """
        config = grids[0].config
        if self._is_observed or self._is_together(grids) or prod(config.cluster) > 1 or config.threads % WARP:
            return None
        if self.stream is not None and self.stream.is_overlapped_by(config):
            return None
        most = max(1, min(config.blocks, _LANES_IN_STEP // config.threads))
        for count in dict.fromkeys((1 << most.bit_length() - 1, 1)):
            try:
                return self._run_once(grids, refuse_output, in_step=count)
            except OutOfStepError as out:
                if out.is_fault and self.any_fault:
                    raise
                if out.always or out.is_fault:
                    break
            except (UndefinedReadError, SimulationError):
                pass
        return None

    @property
    def _is_observed(self) -> bool:
        """Whether the order of warps, or each of their operations, shows in the outcome."""
        watched = self.journal is not None and self.journal.is_watching
        options = self.options
        others = any(code is not Code.SIM_RACE for code, _ in self.forgiven or ())
        instruments = self.instrument or options.exact or options.numbers
        return bool(options.seed or watched or instruments or self.loads or others)

    def _is_together(self, grids: Sequence[Grid]) -> bool:
        """Whether clusters run at the same time, so that they may wait for each other."""
        return self.options.resident > 1 or self._holds_all(grids)

    def _holds_all(self, grids: Sequence[Grid]) -> bool:
        """Whether all clusters run at the same time."""
        return len(grids) > 1 or Cooperative() in grids[0].config.attributes

    def _run_in_order(self, grids: Sequence[Grid], emit: Callable[[str], None]) -> "_Run":
        """A run with one warp after the other; with its clusters, too, where processes that share them out meet."""
        with suppress(OutOfStepError):
            return self._run_once(grids, emit)
        return replace(self, options=replace(self.options, processes=1))._run_once(grids, emit)

    def _run_once(
        self,
        grids: Sequence[Grid],
        emit: Callable[[str], None],
        trace: "Trace | None" = None,
        *,
        in_step: int = 0,
    ) -> "_Run":
        """A run that leaves the arguments as they are. UndefinedReadError for a read of undefined bytes without a
        `trace`.
        """
        chance = Random(self.options.seed) if self.completion is Completion.RANDOM else None
        launch = LaunchState(
            numbered(grids),
            self.limits,
            emit,
            repeats=True,
            in_step=in_step,
            trace=trace,
            facts=grids[0].facts,
            progress=self.progress,
            completion=self.completion,
            chance=chance,
            forgiven=self.forgiven,
            numbers=self.options.numbers,
            loads=self.loads,
            tensor_fences=wants_tensor_fences(),
            tensor_cores=self.tensor_cores if self.options.numerics == "hardware" else None,
        )
        races = self.options.races or in_step > 0  # nothing but the lack of races makes any order as good
        spaces = Memories.make(races=races, global_base=GLOBAL_BASE, shared_base=SHARED_BASE, guard=GLOBAL_GUARD)
        launch.races = races
        spaces.keep_versions(self.loads)
        apart = trace or chance or self.keeps_accesses or self._is_observed or self._is_together(grids)
        launch.shares = races and not apart
        placing = Placing.of([grid.args for grid in grids], self.multicasts)
        translators = [self._translator(launch, spaces, grid) for grid in grids]
        bindings = bind_all(grids, translators, placing, self.multicasts, self.memory)
        kernel = grids[0].kernel
        if self.journal is not None:
            spaces.global_.journal = spaces.shared.journal = self.journal
            places = [(binding.argument.storage, binding.offset) for binding in bindings]
            self.journal.begin(spaces.global_.arena, places, spaces.shared.arena)
        with deep_stack(site_of(kernel)), np.errstate(all="ignore"):
            codes = bodies_of([grid.kernel for grid in grids], translators)
            if self.progress is not None:
                self.progress.begin([loop for each in translators for loop in each.loops])
            seats = Seats(spaces)
            resident = None if self._holds_all(grids) else self.options.resident
            seats.build(launch, resident, site_of(kernel))
            for bound in bindings:
                spaces.global_.arena.fill(bound.offset, bound.argument.storage, bound.argument.initialised)
            if self.stream is not None and self.stream.is_overlapped_by(grids[0].config):
                from .ordering.stream import offer

                offer(self.stream, launch, spaces, bindings)
            for multicast in launch.multicasts:
                spaces.global_.arena.remove(multicast.start - spaces.global_.base, multicast.size)
            watchdog = Watchdog(launch, seats.digest, [access for each in translators for access in each.accesses])
            runs = ClusterRuns(
                launch, seats, codes, translators, watchdog, self.journal, self.options.seed, self.shuffle_blocks,
                self.processes,
            )  # fmt: skip
            try:
                runs.run()
            except KeyboardInterrupt as interrupt:
                interrupt.add_note(f"simulator: {watchdog.where()}")
                raise
        if self.journal is not None:
            from .reached import reached_by

            self.journal.reached = reached_by([part for each in translators for part in each.parts])
        if self.stream is not None and (self.stream.left or launch.lets_next_begin):
            from .ordering.stream import left_by

            self.stream.left = tuple(left_by(launch, spaces, bindings))
        counters = Counters(
            MappingProxyType(sum_counts(each.instructions() for each in translators)),
            tuple(access.count() for each in translators for access in each.accesses if access.requests),
            launch.steps,
            MappingProxyType(sum_counts(each.lines() for each in translators)),
        )
        return _Run(bindings, spaces, counters, launch.exact)

    def _translator(self, launch: LaunchState, spaces: Memories, grid: Grid) -> Translator:
        """The translation of the kernel of a grid."""
        rules = rules_for(launch, grid.kernel, grid.args, exact=self.options.exact)
        rules = rules if self.instrument is None else self.instrument(rules)
        return Translator(rules, launch, spaces, self.texts)
