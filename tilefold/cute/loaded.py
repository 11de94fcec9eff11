# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold.load`: a `.cute` program as a Python object, which is lowered, compiled, run and launched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Unpack

from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.frontend.params import expand
from tilefold.compiler.frontend.source import read_text
from tilefold.cute.file_kernel import FileKernel
from tilefold.cute.inspection import Inspection
from tilefold.driver.launches import Changes, Launch, read_launches
from tilefold.driver.lowering import Program
from tilefold.driver.lowering import load as load_source
from tilefold.driver.session import Session, check_values
from tilefold.runtime.check import CheckResult
from tilefold.runtime.cute_ir.host_engine import entry_point
from tilefold.runtime.engine import RunResult
from tilefold.runtime.options import SimKeywords, SimOptions


@dataclass(frozen=True)
class LaunchOutcome:
    """One launch of a file that has run: its label, where it ran ("stage instr", or a target), its arguments
    afterwards as logical arrays and numbers, its checks, and the engine's result.
    """

    label: str
    where: str
    values: Mapping[str, Any]
    checks: tuple[CheckResult, ...]
    result: RunResult

    @property
    def passed(self) -> bool:
        """Whether every check holds."""
        return all(check.passed for check in self.checks)

    def __str__(self) -> str:
        return "\n".join((f"{self.label}, {self.where}", *(f"  {check}" for check in self.checks)))


class LoadedProgram(Inspection):
    """A verified `.cute` program. `kernels` are its kernels, as `module::kernel`."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def __repr__(self) -> str:
        return f"<program {self._program.source.name} with {', '.join(self.kernels) or 'no kernels'}>"

    def _lowered(self) -> Program:
        return self._program

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels that `kernel` finds, in the order of the file."""
        return tuple(self._program.kernels)

    def kernel(self, name: str | None = None) -> FileKernel:
        """A kernel by its symbol, with or without its module; without a name the only one. Raises TilefoldError (E3107)
        unless there is exactly one.
        """
        matching = [kernel for kernel in self.kernels if name in (None, kernel, kernel.rpartition("::")[2])]
        if len(matching) != 1:
            problem = f"{'no' if not matching else 'more than one'} kernel{'' if name is None else f' {name!r}'}"
            hint = f"its kernels: {', '.join(self.kernels)}" if self.kernels else ""
            raise TilefoldError(Code.RUN_KERNEL, f"the program has {problem}", hint)
        return FileKernel(self._program, matching[0])

    def run(
        self,
        device: str = "auto",
        *,
        stage: str | None = None,
        launch: str | None = None,
        **options: Unpack[SimKeywords],
    ) -> tuple[LaunchOutcome, ...]:
        """Runs the file's `run.launch` operations, as `tilefold run` does; an outcome for each launch and,
        with `stage="all"`, for each stage.

        `device` is "auto", "sim" or "cuda"; `stage` where the simulator runs; `launch` the label or the kernel of the
        only launch to run; `seed` that of fills and of the order of warps. `races`, `max_steps`, `max_seconds`,
        `max_memory` (MiB), `resident`, `exact`, `numbers`, `numerics` and `processes` are options of the simulator.
        Raises TilefoldError for a launch that cannot run, and for faults of a kernel; a check that fails is an outcome.
        """
        if entry_point(self._program.module) is not None:
            raise TilefoldError(
                Code.RUN_LAUNCH, "the program begins on the host, with @main", "run it with the command `tilefold run`"
            )
        simulation = SimOptions.of(options)
        session = Session(self._program, device, stage, simulation)
        launches = read_launches(self._program.module, self._program.source, Changes(name=launch))
        return tuple(outcome for selected in launches for outcome in _outcomes(session, selected))


def _outcomes(session: Session, launch: Launch) -> Sequence[LaunchOutcome]:
    return [
        LaunchOutcome(launch.label, where, values, check_values(launch, values), result)
        for where, values, result in session.runs(launch, {})
    ]


def load(
    program: "str | PathLike[str]", parameters: Mapping[str, object] | None = None, *, target: str | None = None
) -> LoadedProgram:
    """Reads and verifies a `.cute` program: a path, or its text, which has several lines.

    `parameters` are the values of those that the file declares, as with `-D`; `target` is the architecture to compile
    for where a method is given none. Raises ProgramError for a faulty program, TilefoldError for a file that cannot be
    read, TargetError for an unknown target.
    """
    given = fspath(program)
    name, text = ("<text>", given) if "\n" in given else (given, read_text(given))
    source = expand(text, name, {key: str(value) for key, value in (parameters or {}).items()})
    return LoadedProgram(load_source(source, target, cached=True))
