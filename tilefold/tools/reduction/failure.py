# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The way in which a program fails, and whether another program fails in the same way.

A command of the user may tell programs of interest from others instead; and PTX may lose lines.
"""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from xdsl.passes import ModulePass

from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.frontend.source import Source, plain_source
from tilefold.compiler.pass_runner import InternalError, parse_passes, run_passes_quickly
from tilefold.driver.devices import simulator
from tilefold.driver.filled_arguments import Arguments, prepare
from tilefold.driver.launches import Changes, Launch, read_launches
from tilefold.driver.lowering import Program, available_passes, load, passes_to_instr
from tilefold.driver.session import check_values
from tilefold.driver.trial import Outcome, Trial, difference
from tilefold.runtime.engine import LaunchConfig
from tilefold.runtime.options import SimOptions
from tilefold.runtime.sim.sim_engine import discard

_STEPS = 200_000
"""The operations of warps within which a failure is looked for first."""


class FailureKind(Enum):
    """The place at which a program fails."""

    REFUSED = "a pass rejects it"
    CRASH = "a pass fails"
    FAULT = "it has a fault as written"
    PASS = "a pass changes it"
    EMISSION = "its PTX is wrong"
    CHECK = "a check fails"


@dataclass(frozen=True)
class Failure:
    """How a program fails: the code of a fault or of a refusal, the pass, the text of a check, or the discrepancy of
    its PTX. `share` is the part of the elements that a check finds wrong.
    """

    kind: FailureKind
    detail: str
    share: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.detail}"

    def is_kept_by(self, other: "Failure | None") -> bool:
        """Whether another failure is the same. A check may not fail for a larger part of its elements: otherwise a
        program that computes nothing would fail like every wrong one.
        """
        if other is None or (self.kind, self.detail) != (other.kind, other.detail):
            return False
        return other.share <= self.share


class Search(Protocol):
    """The search for the pass, or for the PTX, that changes a launch."""

    def first(self, program: Program, trial: Trial, passes: Sequence[ModulePass]) -> tuple[Failure | None, Outcome]:
        """The first pass that changes a launch, or else the discrepancy of the PTX; and the outcome as written."""
        ...

    def emission(self, program: Program, trial: Trial) -> Failure | None:
        """How the PTX of stage `instr` differs from its operations, if it does."""
        ...


@dataclass(frozen=True)
class Conditions:
    """How programs are run: the search for a wrong pass, the target, the passes instead of those that lead to stage
    `instr`, the changes of the command line, the files of arguments by their names, and the options of the simulator.
    """

    search: Search
    target: str | None = None
    passes: str | None = None
    changes: Changes = field(default_factory=Changes)
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    options: SimOptions = field(default_factory=SimOptions)

    def failure(self, source: Source, like: Failure | None = None) -> Failure | None:
        """How a program fails, None if it does not. With `like`, only that failure is looked for, which is faster.

        Raises TilefoldError for a program that cannot be read or launched.
        """
        program = load(source, self.target)
        try:
            passes = self._passes(program)
            if like is not None and like.kind in (FailureKind.REFUSED, FailureKind.CRASH):
                run_passes_quickly(program.context, program.module.clone(), passes, source=source)
                return None
            return next(filter(None, self._failures(program, passes, like)), None)
        except InternalError as error:
            cause = type(error.__cause__).__name__
            return Failure(FailureKind.CRASH, f"{error.pass_name}: {cause}")
        except ProgramError as error:
            return Failure(FailureKind.REFUSED, ", ".join(sorted({str(d.code) for d in error.diagnostics if d.code})))

    def interest(self, source: Source, progress: Callable[[str], None]) -> Callable[[str], bool]:
        """A function that tells whether the program of a text fails as that of `source` does; `progress` is called with
        each finding. TilefoldError (E4003) for one that does not fail.
        """
        failure = self.failure(source)
        if failure is None:
            message = f"{source.name} does not fail: no fault, every check holds, and no pass changes it"
            raise TilefoldError(
                Code.CLI_VALUE,
                message,
                "--test COMMAND reduces a program for which a command fails, such as 'tilefold check'",
            )
        progress(f"failure to keep: {failure}")
        bounded = self._bounded(source, failure)

        def keeps(text: str) -> bool:
            try:
                return failure.is_kept_by(bounded.failure(plain_source(text, "reduced.cute"), failure))
            except TilefoldError:  # it is not a program, or cannot be launched
                return False

        return keeps

    def _bounded(self, source: Source, failure: Failure) -> "Conditions":
        """The same with a limit of steps that is not much larger than a failing program needs."""
        limit = _STEPS
        while limit < self.options.limits.steps:
            less = replace(self, options=replace(self.options, max_steps=limit))
            if failure.is_kept_by(less.failure(source, failure)):
                return replace(self, options=replace(self.options, max_steps=min(2 * limit, self.options.limits.steps)))
            limit *= 10
        return self

    def _passes(self, program: Program) -> Sequence[ModulePass]:
        if self.passes is not None:
            return parse_passes(self.passes, available_passes())
        return passes_to_instr(program, program.simulated_target("instr"))

    def _failures(
        self, program: Program, passes: Sequence[ModulePass], like: Failure | None
    ) -> Iterator[Failure | None]:
        for launch in read_launches(program.module, program.source, self.changes):
            arguments = prepare(launch, self.files, seed=self.options.seed, max_bytes=self.options.limits.bytes)
            config, engine = LaunchConfig(launch.grid, launch.block), simulator(self.options, discard)
            engine = replace(engine, tensor_cores=program.tensor_cores)
            trial = Trial(launch.kernel, config, arguments.launchable, engine)
            if like is None:
                yield self._any(program, passes, trial, launch, arguments)
            elif like.kind in (FailureKind.FAULT, FailureKind.CHECK):
                yield _as_written(trial.run(program.module), launch, arguments)
            elif like.kind is FailureKind.PASS:
                yield _by_pass(program, passes, trial, like.detail)
            else:
                yield self.search.emission(program, trial)

    def _any(
        self, program: Program, passes: Sequence[ModulePass], trial: Trial, launch: Launch, arguments: Arguments
    ) -> Failure | None:
        failure, as_written = self.search.first(program, trial, passes)
        return failure or _as_written(as_written, launch, arguments)


def _as_written(outcome: Outcome, launch: Launch, arguments: Arguments) -> Failure | None:
    """The fault of a launch, or the first check that fails."""
    if outcome.fault is not None:
        return Failure(FailureKind.FAULT, str(outcome.fault.code))
    for result in check_values(launch, arguments.logical(outcome.arguments, outcome.exact)):
        if result.mismatch is not None:
            return Failure(FailureKind.CHECK, result.text, result.mismatch.wrong / result.elements)
    return None


def _by_pass(program: Program, passes: Sequence[ModulePass], trial: Trial, name: str) -> Failure | None:
    """Whether the pass of this name changes the behaviour of a launch; earlier passes are ignored."""
    module, done = program.module.clone(), 0
    for index, applied in enumerate(passes):
        if str(applied) != name:
            continue
        run_passes_quickly(program.context, module, passes[done:index], source=program.source, done=passes[:done])
        before = trial.run(module)
        run_passes_quickly(program.context, module, [applied], source=program.source, done=passes[:index])
        after, done = trial.run(module), index + 1
        unknown = Code.SIM_UNSUPPORTED, Code.SIM_STEPS
        if any(outcome.fault is not None and outcome.fault.code in unknown for outcome in (before, after)):
            continue
        if difference(before, after) is not None:
            return Failure(FailureKind.PASS, name)
    return None


SECONDS = 60
"""The time that a command may take. One that takes longer finds nothing of interest."""


@dataclass(frozen=True)
class Command:
    """The words of a command, with `{}` for the name of a program's file."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "Command":
        """The command of a text, which is taken apart as a shell does. TilefoldError (E4003) for none."""
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise TilefoldError(Code.CLI_VALUE, f"--test {text[:80]}: {error}") from None
        if not words:
            raise TilefoldError(Code.CLI_VALUE, "--test: no command")
        return cls(words if any("{}" in word for word in words) else (*words, "{}"))

    def fails(self, text: str) -> bool:
        """Whether the command ends with another exit status than 0 for a program. TilefoldError (E4003) where it cannot
        run.
        """
        with TemporaryDirectory(prefix="tilefold-") as folder:
            path = Path(folder) / "reduced.cute"
            path.write_text(text, encoding="utf-8")
            words = [word.replace("{}", str(path)) for word in self.words]
            quiet = subprocess.DEVNULL
            try:
                process = subprocess.Popen(words, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
            except OSError as error:
                raise TilefoldError(Code.CLI_VALUE, f"--test {words[0]}: {error.strerror}") from None
            try:
                return process.wait(SECONDS) != 0
            except subprocess.TimeoutExpired:
                return False
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


_STAYS = (".version", ".target", ".address_size", ".reg")


def reduced_ptx(
    text: str, is_interesting: Callable[[str], bool], seconds: float, progress: Callable[[str], None]
) -> str:
    """The smallest text of interest that is found in some seconds, by its lines; no line more can go, if they suffice.
    The head of a module and declarations of registers stay, and a malformed text is not interesting.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("//")]
    deadline = time.monotonic() + seconds
    progress(f"the program: {len(lines)} lines")
    size, changed = max(len(lines) // 2, 1), False
    while time.monotonic() < deadline:
        begin = 0
        while begin < len(lines) and time.monotonic() < deadline:
            kept = [line for line in lines[begin : begin + size] if line.lstrip().startswith(_STAYS)]
            fewer = lines[:begin] + kept + lines[begin + size :]
            if len(fewer) < len(lines) and is_interesting("\n".join(fewer) + "\n"):
                lines, changed = fewer, True
                progress(f"{len(lines)} lines")
            else:
                begin += size
        if size == 1 and not changed:
            break
        size, changed = max(size // 2, 1), False
    return "\n".join(lines) + "\n"
