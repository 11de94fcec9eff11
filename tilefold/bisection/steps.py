# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program after each pass of a pipeline, and the operations there that stem from a line of the source."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from io import StringIO

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from tilefold.compiler.frontend.fingerprint import fingerprint
from tilefold.compiler.pass_runner import run_passes
from tilefold.lowering import Program
from tilefold.passes.check_stage import CheckStagePass
from tilefold.runtime.sim.faults import Site

MAX_LINES = 60
"""The most lines of IR that a report shows."""


@dataclass(frozen=True)
class Step:
    """A program after a pass: the pass as the command line writes it, and the last stage that the program had reached.
    `name` is empty for the program as it was written, and `changed` false where the pass has left it as it was.
    """

    number: int
    name: str
    stage: str
    module: ModuleOp
    changed: bool = True


def steps(program: Program, passes: Sequence[ModulePass]) -> Iterator[Step]:
    """The program as it was written, and after each pass. ProgramError where a pass refuses it, InternalError where one
    fails.
    """
    stage, module = program.stage, program.module
    text = fingerprint(module)
    yield Step(0, "", stage, module)
    for number, applied in enumerate(passes, 1):
        module = module.clone()
        run_passes(program.context, module, [applied], source=program.source, done=passes[: number - 1])
        if isinstance(applied, CheckStagePass):
            stage = applied.stage
        before, text = text, fingerprint(module)
        yield Step(number, str(applied), stage, module, changed=text != before)


def change(before: ModuleOp, after: ModuleOp, sites: Sequence[Site]) -> str:
    """How the operations that stem from the lines of some sites differ between two modules, as a unified diff."""
    lines = {(site.file, site.line) for site in sites}
    old, new = _operations(before, lines), _operations(after, lines)
    shown = list(unified_diff(old, new, "before", "after", n=2, lineterm=""))
    if len(shown) > MAX_LINES:
        shown = [*shown[:MAX_LINES], f"... {len(shown) - MAX_LINES} lines more"]
    return "\n".join(shown)


def _operations(module: ModuleOp, lines: set[tuple[str, int]]) -> list[str]:
    """The operations at some lines of the source, in order, one line each, without those in their regions."""
    output = StringIO()
    printer = Printer(output)  # one for all, so that values keep their names
    texts: list[str] = []
    for op in module.walk():
        location = op.location
        if isinstance(location, FileLineColLoc) and (location.filename.data, location.line.data) in lines:
            start = output.tell()
            printer.print_op(op)
            texts.append(output.getvalue()[start:].split("\n", 1)[0])
    return texts
