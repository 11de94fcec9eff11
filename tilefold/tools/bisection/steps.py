# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program after each pass of a pipeline, and the operations there that stem from a line of the source."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.passes import ModulePass

from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.frontend.fingerprint import fingerprint
from tilefold.compiler.pass_runner import run_passes
from tilefold.compiler.reports.listing import Line, Lister, hunks
from tilefold.driver.lowering import Program
from tilefold.passes.check_stage import CheckStagePass
from tilefold.passes.errors import LoweringError
from tilefold.runtime.sim.faults import Site

MAX_LINES = 60
"""The most lines of IR that a report shows."""


@dataclass(frozen=True)
class Step:
    """A program after a pass: the pass as the command line writes it, and the last stage that the program had reached.
    `name` is empty for the program as it was written, and `changed` false where the pass has left it as it was. The
    `lister` names the values of all steps.
    """

    number: int
    name: str
    stage: str
    module: ModuleOp
    lister: Lister
    changed: bool = True


class RefusedError(ProgramError):
    """A pass refuses the program that the passes before it have made; `pass_name` is the pass."""

    def __init__(self, error: ProgramError, pass_name: str) -> None:
        super().__init__(error.diagnostics)
        self.pass_name = pass_name


def steps(program: Program, passes: Sequence[ModulePass]) -> Iterator[Step]:
    """The program as it was written, and after each pass. RefusedError if a pass refuses it, InternalError if one
    fails.
    """
    stage, module, lister = _stage(program), program.module, Lister()
    text = fingerprint(module)
    yield Step(0, "", stage, module, lister)
    for number, applied in enumerate(passes, 1):
        lister.name(module)
        last, module = module, module.clone()
        lister.follow(last, module)
        try:
            run_passes(program.context, module, [applied], source=program.source, done=passes[: number - 1])
        except ProgramError as error:
            raise RefusedError(error, str(applied)) from error
        if isinstance(applied, CheckStagePass):
            stage = applied.stage
        before, text = text, fingerprint(module)
        yield Step(number, str(applied), stage, module, lister, text != before)


def _stage(program: Program) -> str:
    """The stage of a program; empty for one of the public CuTe IR, which is at none before its passes have run."""
    try:
        return program.stage
    except LoweringError:
        return ""


def change(before: Step, after: Step, sites: Sequence[Site]) -> str:
    """How the operations that stem from the lines of some sites differ between two steps, as a diff."""
    lines = {(site.file, site.line) for site in sites}
    old, new = (_operations(step, lines) for step in (before, after))
    shown = [text for hunk in hunks(old, new) for text in str(hunk).split("\n")]
    if len(shown) > MAX_LINES:
        shown = [*shown[:MAX_LINES], f"... {len(shown) - MAX_LINES} lines more"]
    return "\n".join(shown)


def _operations(step: Step, lines: set[tuple[str, int]]) -> list[Line]:
    """The lines of a program whose operations stem from some lines of the source."""
    return [line for line in step.lister.list(step.module).lines if _place(line) in lines]


def _place(line: Line) -> tuple[str, int] | None:
    location = None if line.op is None else line.op.location
    return (location.filename.data, location.line.data) if isinstance(location, FileLineColLoc) else None
