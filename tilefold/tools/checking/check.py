# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks launches: runs them on the simulator at several stages, and gathers all their faults. Of programs that
begin on the host these are the launches that the host makes, with the arguments that it passes.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.frontend.diagnostics import Place
from tilefold.compiler.frontend.source import Source
from tilefold.driver import host_program
from tilefold.driver.faults import AS_GIVEN, Fault, Report, merge
from tilefold.driver.gaps import Gap, GapKind, assumed_by, gap_for, gap_of, place_of_site, unreached
from tilefold.driver.host_program import Arguments, Host, values_of
from tilefold.driver.lowering import Program
from tilefold.runtime.cute_ir.host_engine import HostEngine
from tilefold.runtime.cute_ir.rules import KernelLaunch
from tilefold.runtime.engine import Argument, LaunchConfig
from tilefold.runtime.sim.diagnosis import MOST, DiagnosedLaunch, Diagnosis, Finding, diagnose
from tilefold.runtime.sim.faults import Site
from tilefold.runtime.sim.outdated_values import CUT, DEPENDS, ORDER, examine_outdated
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.reached import Reached
from tilefold.runtime.sim.sim_engine import SimEngine, discard
from tilefold.runtime.sim.warp import Warp

STAGES = ("cute", "instr")
"""The default stages of a check: as it was written, where tensors have their shapes, and the
instructions.
"""

Judge = Callable[[Diagnosis], Iterator[tuple[str, Place | None]]]
"""The conditions that the arguments fail after a launch, in words, and where they stand."""


@dataclass(frozen=True)
class Outcome:
    """The result of a launch at some stages: its faults, its gaps, and the code reached at the first of them."""

    faults: tuple[Fault, ...] = ()
    gaps: tuple[Gap, ...] = ()
    reached: Reached | None = None
    steps: int = 0


def no_conditions(diagnosis: Diagnosis) -> Iterator[tuple[str, Place | None]]:
    """The judge of launches without conditions."""
    return iter(())


@dataclass(frozen=True)
class Checked:
    """A launch of a program that is to be checked; `label` names it in reports, and `judge` looks at its results. A
    `partial` one may leave elements of its outputs unwritten.
    """

    label: str
    program: Program
    kernel: str
    config: LaunchConfig
    arguments: Callable[[], Mapping[str, Argument]]
    engine: SimEngine
    judge: Judge = no_conditions
    partial: bool = False

    def outcome(self, stages: Sequence[str]) -> Outcome:
        """The faults and gaps at some stages, those at which the program can be. LaunchError for a launch that cannot
        begin.
        """
        outcomes = [self._at(stage) for stage in stages if self.program.has(stage)]
        assumed = assumed_by(self.engine.options, self.engine.texts, self.label)
        return Outcome(
            tuple(fault for outcome in outcomes for fault in outcome.faults),
            (*assumed, *(gap for outcome in outcomes for gap in outcome.gaps)),
            outcomes[0].reached if outcomes else None,
        )

    def _at(self, stage: str) -> Outcome:
        source = self.program.source
        engine = replace(self.engine, tensor_cores=self.program.tensor_cores)
        try:
            with self.program.explaining():
                module = self.program.reached(stage, self.program.simulated_target(stage))
        except TilefoldError as error:
            if (gap := gap_of(error, self.label)) is None:
                raise
            return Outcome(gaps=(gap,))
        program = SimProgram(module, self.kernel, self.program.module)
        launch = DiagnosedLaunch(program, self.config, self.arguments, engine, self.partial)
        return examined(self.label, stage, launch, source, self.judge)


def examined(label: str, stage: str, launch: DiagnosedLaunch, source: Source, judge: Judge = no_conditions) -> Outcome:
    """The faults and gaps of a launch. LaunchError for a launch that cannot begin."""
    diagnosis = diagnose(launch)
    faults = [make_report_finding(label, stage, finding, source) for finding in diagnosis.findings]
    gaps: list[Gap] = []
    if diagnosis.arguments is not None and all(finding.is_remark for finding in diagnosis.findings):
        faults += [Fault(label, (stage,), Code.CHECK_FAILED, text, place=place) for text, place in judge(diagnosis)]
        if all(fault.is_remark for fault in faults):
            found = examine_outdated(launch, diagnosis, lambda other: next((text for text, _ in judge(other)), None))
            faults += [make_report_finding(label, stage, finding, source) for finding in found.findings]
            for site in found.depends:
                place = place_of_site(site, source)
                gaps.append(Gap(GapKind.ASSUMPTION, DEPENDS, label, place=place, hint=ORDER))
            if found.newest_after is not None and not found.findings:
                hint = "check a smaller problem, with fewer atomic accesses"
                gaps.append(Gap(GapKind.ASSUMPTION, CUT.format(found.newest_after), label, hint=hint))
            gaps += [_assumption(label, site, text, source) for site, text in found.assumed.items()]
        gaps += [_assumption(label, site, text, source) for site, text in diagnosis.assumed.items()]
    if (ended := diagnosis.unfinished) is not None:
        message, hint = source.spelled(ended.message), source.spelled(ended.hint)
        gaps.append(gap_for(ended.code, message, hint, place_of_site(ended.site, source), label))
    if diagnosis.is_cut:
        gaps.append(Gap(GapKind.BUDGET, f"the search ended after {MOST} faults", label))
    return Outcome(tuple(faults), tuple(gaps), diagnosis.reached, diagnosis.steps)


def _assumption(label: str, site: Site, text: str, source: Source) -> Gap:
    return Gap(GapKind.ASSUMPTION, source.spelled(text), label, place=place_of_site(site, source))


@dataclass(frozen=True)
class Examination:
    """The launches of a program with some arguments, which `input` describes: their names, the stages at which they
    ran, their outcomes, and gaps that concern all of them. Without a `source` nothing ran.
    """

    labels: Sequence[str]
    stages: Sequence[str]
    outcomes: Sequence[Outcome]
    source: Source | None
    gaps: Sequence[Gap] = ()
    input: str = AS_GIVEN

    @property
    def faults(self) -> list[Fault]:
        """The faults and remarks of all launches."""
        return [replace(fault, input=self.input) for outcome in self.outcomes for fault in outcome.faults]


Replay = Callable[[], Mapping[str, Any]]
"""Makes the data that repeat a check."""


def reported(examinations: Sequence[Examination], replay: Replay | None = None) -> Report:
    """The report on launches, with the code that none of them has reached as gaps."""
    outcomes = [outcome for examined in examinations for outcome in examined.outcomes]
    ran = [outcome.reached for outcome in outcomes if outcome.reached is not None]
    reached = reduce(Reached.joined, ran) if ran else None
    faults = merge([fault for examined in examinations for fault in examined.faults])
    gaps = [gap for examined in examinations for gap in examined.gaps]
    gaps += [gap for outcome in outcomes for gap in outcome.gaps]
    source = next((examined.source for examined in examinations if examined.source is not None), None)
    if reached is not None and source is not None and all(fault.is_remark for fault in faults):
        gaps += unreached(reached, source)
    labels = dict.fromkeys(label for examined in examinations for label in examined.labels)
    stages = dict.fromkeys(stage for examined in examinations for stage in examined.stages)
    inputs = dict.fromkeys(examined.input for examined in examinations)
    return Report(tuple(labels), tuple(stages), faults, tuple(dict.fromkeys(gaps)), reached, tuple(inputs), replay)


def make_report_finding(label: str, stage: str, finding: Finding, source: Source) -> Fault:
    """A finding of a launch in a report, in the words and with the lines of the source."""
    message, hint = source.spelled(finding.message), source.spelled(finding.hint)
    place, other = place_of_site(finding.site, source), place_of_site(finding.other, source)
    if place is not None and finding.parameter:
        place = _declared(place, finding.parameter, source)
    return Fault(
        label, (stage,), finding.code, message, hint, place, other, finding.role, finding.note, finding.is_remark
    )


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


def check_host(host: Host, entry: str, stages: Sequence[str]) -> Examination:
    """The faults of the launches that `@entry` makes. Raises TilefoldError (E4003) for stages that such kernels do not
    have, and for faults of the host itself, with the place in the file.
    """
    for stage in stages:
        if stage not in host_program.STAGES:
            known = f"stages: {', '.join(host_program.STAGES)}"
            raise TilefoldError(
                Code.CLI_VALUE, f"--stage {stage}: kernels launched by a host do not run at this stage", known
            )
    labels: list[str] = []
    outcomes: list[Outcome] = []

    def launcher(launch: KernelLaunch, arguments: Arguments, warp: Warp) -> None:
        labels.append(launch.kernel)
        for stage in stages:
            engine = replace(host.simulator, budget=host.left(warp), sink=discard)
            ready = host.ready(launch, stage, engine)
            values = values_of(ready, arguments)
            made = DiagnosedLaunch(ready.code, launch.config, lambda values=values: values, engine)
            outcome = examined(launch.kernel, stage, made, host.program.source)
            warp.launch.spend(outcome.steps, launch.site)
            outcomes.append(outcome if stage == stages[0] else replace(outcome, reached=None))

    gaps: list[Gap] = []
    try:
        with host.program.explaining():
            HostEngine(launcher, host.environment, host.simulator.limits, discard).run(host.program.module, entry)
    except TilefoldError as error:
        if (gap := gap_of(error)) is None:
            raise
        gaps.append(gap)
    return Examination(labels, stages, outcomes, host.program.source, gaps)
