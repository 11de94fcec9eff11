# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks launches: runs them on the simulator at several stages, and gathers all their faults."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tilefold.base.errors import Code
from tilefold.compiler.frontend.diagnostics import Place
from tilefold.compiler.frontend.source import Source
from tilefold.driver.faults import Fault
from tilefold.driver.lowering import Program
from tilefold.runtime.engine import Argument, LaunchConfig
from tilefold.runtime.sim.diagnosis import DiagnosedLaunch, Diagnosis, Finding, diagnose
from tilefold.runtime.sim.faults import Site
from tilefold.runtime.sim.sim_engine import SimEngine, SimProgram

STAGES = ("cute", "instr")
"""The default stages of a check: as it was written, where tensors have their shapes, and the
instructions.
"""

Judge = Callable[[Diagnosis], Iterator[tuple[str, Place | None]]]
"""The conditions that the arguments fail after a launch, in words, and where they stand."""


@dataclass(frozen=True)
class Checked:
    """A launch of a program that is to be checked; `label` names it in reports, and `judge` looks at its results."""

    label: str
    program: Program
    kernel: str
    config: LaunchConfig
    arguments: Callable[[], Mapping[str, Argument]]
    engine: SimEngine
    judge: Judge

    def faults(self, stages: Sequence[str]) -> Iterator[Fault]:
        """The faults at some stages, those at which the program can be. LaunchError for a launch that cannot begin."""
        source = self.program.source
        engine = replace(self.engine, tensor_cores=self.program.tensor_cores)
        for stage in stages:
            if not self.program.has(stage):
                continue
            module = self.program.reached(stage, self.program.simulated_target(stage))
            launch = DiagnosedLaunch(
                SimProgram(module, self.kernel, self.program.module), self.config, self.arguments, engine
            )
            diagnosis = diagnose(launch)
            for finding in diagnosis.findings:
                yield make_report_finding(self.label, stage, finding, source)
            yield from self._failed(stage, diagnosis)

    def _failed(self, stage: str, diagnosis: Diagnosis) -> Iterator[Fault]:
        if diagnosis.arguments is not None and all(finding.is_remark for finding in diagnosis.findings):
            for text, place in self.judge(diagnosis):
                yield Fault(self.label, (stage,), Code.CHECK_FAILED, text, place=place)


def make_report_finding(label: str, stage: str, finding: Finding, source: Source) -> Fault:
    """A finding of a launch in a report, in the words and with the lines of the source."""
    message, hint = source.spelled(finding.message), source.spelled(finding.hint)
    place, other = _place(finding.site, source), _place(finding.other, source)
    if place is not None and finding.parameter:
        place = _declared(place, finding.parameter, source)
    return Fault(
        label, (stage,), finding.code, message, hint, place, other, finding.role, finding.note, finding.is_remark
    )


def _place(site: Site | None, source: Source) -> Place | None:
    if site is None or not site.file:
        return None
    return Place(site.file, site.line, site.column, text=source.line_of(site.file, site.line))


_BEGIN = re.compile(r"(\bdef\s+|@)\w+\s*\(")
"""The name of a kernel and the bracket before its parameters, in Python and in the IR."""
_MOST_LINES = 100


def _declared(kernel: Place, parameter: str, source: Source) -> Place:
    """The place of a parameter's name in the declaration of a kernel, or of the kernel where its name is not there."""
    name = re.compile(rf"(?<!\w)%?{re.escape(parameter)}(?!\w)")
    begin: re.Match[str] | None = None
    for line in range(kernel.line, kernel.line + _MOST_LINES):
        text = source.line_of(kernel.file, line)
        at = 0
        if begin is None:
            begin = _BEGIN.search(text)
            at = len(text) if begin is None else begin.end()
        if match := name.search(text, at):
            return Place(kernel.file, line, match.start() + 1, match.end() + 1, text)
    return kernel
