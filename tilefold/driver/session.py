# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs launches on an engine and judges the results. The output of a run goes to the standard output at once, as do the
counters of the simulator, as tables.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import numpy as np

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.limits import DEFAULT_LIMITS
from tilefold.base.spaces import traffic_of
from tilefold.compiler.frontend.diagnostics import Diagnostic, Severity
from tilefold.dialects.run.grammar import ExpressionError
from tilefold.driver.devices import chosen_device, executable
from tilefold.driver.filled_arguments import prepare
from tilefold.driver.launches import Check, Launch
from tilefold.driver.lowering import PTX_STAGE, SIMULATED_STAGES, Program
from tilefold.driver.messages import print_diagnostics
from tilefold.driver.output import write_output
from tilefold.runtime.check import CheckResult, check_results
from tilefold.runtime.engine import AccessCount, Counters, LaunchConfig, RunResult
from tilefold.runtime.exact.number import nearest
from tilefold.runtime.options import SimOptions
from tilefold.runtime.sim.faults import SimulationError

ALL = "all"

Run = tuple[str, Mapping[str, Any], RunResult]
"""A run of a launch: its place, its arguments afterwards, and the report of the engine."""


@dataclass
class Session:
    """One invocation of `tilefold run`: where launches run, and how the simulator does.

    `device` is auto, sim or cuda; `stage` a stage, `all`, or None for the default of the device.
    """

    program: Program
    device: str = "auto"
    stage: str | None = None
    options: SimOptions = field(default_factory=SimOptions)
    counters: bool = False

    def __post_init__(self) -> None:
        if self.stage is not None and self.stage not in (*SIMULATED_STAGES, ALL):
            raise TilefoldError(
                Code.CLI_VALUE,
                f"--stage {self.stage[:40]}: unknown stage",
                f"stages: {', '.join(SIMULATED_STAGES)}, or {ALL}",
            )
        if self.device == "cuda" and self.stage is not None:
            raise TilefoldError(
                Code.CLI_VALUE, "--stage is for the simulator; a GPU runs machine code", "use --device sim"
            )
        self.device = chosen_device(self.device) if self.stage is None else "sim"

    def run(self, launch: Launch, *, files: Mapping[str, str], saves: Mapping[str, str]) -> bool:
        """Fills, launches, checks and saves; whether every check holds, and every stage gives the same results.

        Raises TilefoldError for a launch that cannot run and for faults of the kernel.
        """
        runs = self.runs(launch, files)
        block, grid = _dim3(launch.block), _dim3(launch.grid)
        print(f"{launch.label}: grid {grid}, block {block}, on {self._place()}", flush=True)
        passed, right = True, ""
        first: Mapping[str, object] = {}
        try:
            for where, logical, result in runs:
                print(f"  {where}: {_duration(result.seconds)}", flush=True)
                passed &= self._judge(launch, logical)
                if right and (change := _change(first, logical)):
                    passed = False
                    _tell_change(f"{where} {change}", right, where)
                    break
                first, right = first or logical, where
                if self.counters:
                    _print_counters(result)
        except TilefoldError as error:
            if right and isinstance(error.__cause__ or error, SimulationError):
                _tell_change("the next stage is at fault", right)
            raise
        for name, path in saves.items():
            if name in first:
                _save(np.asarray(first[name]), path)
        return passed

    def runs(self, launch: Launch, files: Mapping[str, str]) -> Iterator[Run]:
        """Fills the arguments at once, and launches as the iterator advances: once, or at each stage of the program."""
        arguments = prepare(launch, files, seed=self.options.seed, max_bytes=self.options.limits.bytes)
        config = LaunchConfig(launch.grid, launch.block)
        stages = filter(self.program.has, self._all_stages()) if self.stage == ALL else (self.stage,)

        def run(stage: str | None) -> Run:
            ready = executable(self.program, launch.kernel, self.device, stage, self.options)
            given = arguments.launchable()
            result = ready.launch(config, given)
            return ready.where, arguments.logical(given, result.exact), result

        return map(run, stages)

    def _all_stages(self) -> Iterator[str]:
        """Every stage that the program can be simulated at. Where its PTX cannot be, a line says why."""
        for stage in SIMULATED_STAGES:
            if stage == PTX_STAGE and (reason := not_as_ptx(self.program, exact=self.options.exact)):
                print(f"  stage {stage}: left out, since {reason}", flush=True)
            else:
                yield stage

    def _place(self) -> str:
        return "the simulator" if self.device == "sim" else "the GPU"

    def _judge(self, launch: Launch, values: Mapping[str, object]) -> bool:
        passed = True
        for check in launch.checks:
            for result in results_of(check, values, self.options.limits.bytes):
                if result.passed:
                    print(f"    {result}", flush=True)
                else:
                    passed = False
                    print(f"    {result.text}: FAILED", flush=True)
                    place = check.condition.place
                    print_diagnostics(Diagnostic(Severity.ERROR, str(result), place, Code.CHECK_FAILED).render())
        if not launch.checks:
            print("    nothing to check: the launch has no run.check", flush=True)
        return passed


def not_as_ptx(program: Program, *, exact: bool) -> str:
    """Why the simulator cannot run the PTX of a program; empty if it can."""
    if exact:
        return "exact numbers have no bits, which instructions on registers use"
    try:
        program.reached(PTX_STAGE, program.simulated_target(PTX_STAGE))
    except TilefoldError as error:
        if error.code not in (Code.PTX_UNSUPPORTED, Code.EMIT_UNSUPPORTED, Code.LLVM_EFFORT):
            raise
        return f"{error.code}: {error.message}"
    return ""


def check_values(launch: Launch, values: Mapping[str, object]) -> tuple[CheckResult, ...]:
    """Every check of a launch on its arguments afterwards. Raises TilefoldError for one that cannot be evaluated."""
    return tuple(result for check in launch.checks for result in results_of(check, values))


def results_of(
    check: Check, values: Mapping[str, Any], max_bytes: int = DEFAULT_LIMITS.bytes
) -> tuple[CheckResult, ...]:
    """The comparisons of a check on the arguments; `max_bytes` bounds the memory that they need. ProgramError for one
    that cannot be evaluated.
    """
    try:
        return check_results(check.condition.text, values, rtol=check.rtol, atol=check.atol, max_bytes=max_bytes)
    except ExpressionError as error:
        raise check.condition.error(error) from error


def _change(first: Mapping[str, object], now: Mapping[str, object]) -> str:
    """How the bytes that a run leaves differ from those of the first, in words; empty where they are the same."""
    for name, value in first.items():
        before, after = np.atleast_1d(np.asarray(value)), np.atleast_1d(np.asarray(now[name]))
        places = np.argwhere(_differ(before, after))
        if len(places):
            at = tuple(places[0].tolist())
            count = f"{len(places)} of {before.size} elements differ"
            return f"leaves {after[at]} in {name}[{', '.join(map(str, at))}] instead of {before[at]}; {count}"
    return ""


def _differ(before: np.ndarray[Any, Any], after: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The elements in which two arrays differ, by bytes or by exact numbers."""
    if before.dtype == object:
        return np.asarray(before != after, np.bool_)
    sides = [np.ascontiguousarray(side).view(np.uint8).reshape(*side.shape, -1) for side in (before, after)]
    return (sides[0] != sides[1]).any(axis=-1)


def _tell_change(change: str, right: str, where: str = "") -> None:
    cause = "its PTX does something else" if where.endswith(PTX_STAGE) else "a pass after it changes the program"
    message = f"{change}: the kernel is right at {right}, and {cause}"
    hint = "`tilefold bisect` names the pass, or the difference of the PTX"
    print_diagnostics(Diagnostic(Severity.ERROR, message, code=Code.STAGES_DIFFER, hint=hint).render())


def _save(array: np.ndarray[Any, Any], path: str) -> None:
    buffer = BytesIO()
    rounded = nearest(array) if array.dtype == object else array
    np.save(buffer, np.ascontiguousarray(rounded), allow_pickle=False)
    write_output(buffer.getvalue(), path)


def _print_counters(result: RunResult) -> None:
    print(print_counters(result.counters, "    "), end="", flush=True)


def _dim3(size: tuple[int, int, int]) -> str:
    return "x".join(map(str, size))


def _duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def print_counters(counters: Counters, indent: str = "") -> str:
    """The counts of a launch: a row for each instruction, then one for each operation of the source that accesses
    memory.

    Wavefronts are passes over the banks of shared memory, sectors 32 bytes of global memory; `least` is the
    smallest number that accesses of this width by as many threads can need.
    """
    instructions = [(name, str(count.warps), str(count.threads)) for name, count in counters.instructions.items()]
    lines = _table(("instruction", "by warps", "by threads"), instructions)
    if counters.accesses:
        accesses = [_access(access) for access in counters.by_place()]
        lines += ["", *_table(("access", "bytes", "by warps", "transactions", "least", ""), accesses)]
    return "".join(f"{indent}{line}".rstrip() + "\n" for line in lines)


def _access(access: AccessCount) -> tuple[str, ...]:
    where = f"{access.location}: " if access.location else ""
    return (
        f"{where}{access.op}, {access.space} {access.kind}",
        str(access.width),
        str(access.requests),
        str(access.transactions),
        str(access.minimum),
        traffic_of(access.space).value,
    )


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines of equal columns: the first one left-justified, numbers right-justified, units as they are."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in (head, *rows)]
