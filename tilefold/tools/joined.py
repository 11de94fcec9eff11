# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The places where one tool needs the result of another: a report shows faults and costs, a reduction bisects."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence

from xdsl.passes import ModulePass

from tilefold.driver.lowering import PTX_STAGE, Program
from tilefold.driver.trial import Outcome, Trial
from tilefold.runtime.sim.faults import SimulationError
from tilefold.tools.bisection.bisect import bisect, wrong_emission
from tilefold.tools.bisection.emission import Discrepancy
from tilefold.tools.checking.check import STAGES, Checked
from tilefold.tools.editing.highlighting import CuteLexer
from tilefold.tools.profiling.simulated_costs import costs_of
from tilefold.tools.reduction.failure import Failure, FailureKind
from tilefold.tools.report.contents import Observation
from tilefold.tools.report.page import Page, report_page

MAX_EVENTS = 20_000
"""The most events of a launch that its timeline has, of the first blocks."""
MAX_SECONDS = 2.0
"""A launch whose check takes longer is not repeated with other layouts and without barriers."""


def report_on(program: Program, launches: Sequence[Checked]) -> Page:
    """The page about a program and its launches. Raises ProgramError if a pass refuses the program, LaunchError for a
    launch that cannot begin.
    """
    stages = STAGES if program.simulated_stage != PTX_STAGE else (PTX_STAGE,)
    return report_page(program, (_observe(launch, stages) for launch in launches), CuteLexer())


def _observe(checked: Checked, stages: tuple[str, ...]) -> Observation:
    """The faults of a launch at some stages; the costs of its lines where it has none."""
    began = time.perf_counter()
    outcome = checked.outcome(stages)
    took = time.perf_counter() - began
    if outcome.faults:
        return Observation(checked.label, stages, outcome.faults, outcome.gaps)
    trial = Trial(checked.kernel, checked.config, checked.arguments, checked.engine)
    try:
        costs = costs_of(checked.program, checked.label, trial, tries=took < MAX_SECONDS, events=MAX_EVENTS)
    except SimulationError as error:
        return Observation(checked.label, stages, gaps=outcome.gaps, missing=error.message)
    return Observation(checked.label, stages, gaps=outcome.gaps, costs=costs)


class Bisection:
    """The search for the pass that a failing program fails in (`reduction.failure.Search`)."""

    def first(self, program: Program, trial: Trial, passes: Sequence[ModulePass]) -> tuple[Failure | None, Outcome]:
        """The first pass that changes a launch, or else the discrepancy of the PTX; and the outcome as written."""
        verdict = bisect(program, trial, passes)
        if verdict.culprit is not None:
            return Failure(FailureKind.PASS, verdict.culprit.after.name), verdict.reference
        return next(_discrepancies(verdict.emission), None), verdict.reference

    def emission(self, program: Program, trial: Trial) -> Failure | None:
        """How the PTX of stage `instr` differs from its operations, if it does."""
        target = program.simulated_target("instr")
        module = program.reached("instr", target)
        found = wrong_emission(module, trial.kernel, target, trial.run(module).executed)
        return next(_discrepancies(found), None)


def _discrepancies(found: Iterable[Discrepancy]) -> Iterator[Failure]:
    """Discrepancies of the PTX without the numbers of its lines, which a reduction changes."""
    for discrepancy in found:
        yield Failure(FailureKind.EMISSION, re.sub(r" in line \d+", "", discrepancy.text))
