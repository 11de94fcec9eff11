# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The result of a search for the pass that changes a program, and its words."""

from dataclasses import dataclass

from tilefold.driver.trial import Difference, Outcome
from tilefold.runtime.sim.faults import Site
from tilefold.runtime.sim.memory.journal import Sighting
from tilefold.tools.bisection.emission import Discrepancy
from tilefold.tools.bisection.emitted import PtxCulprit
from tilefold.tools.bisection.steps import Step, change


@dataclass(frozen=True)
class Culprit:
    """The first pass after which a launch does something else: the steps before and after it, the difference, and the
    operations that wrote the smallest element that differs, before and after the pass, or that of a fault.
    """

    before: Step
    after: Step
    difference: Difference
    wrote: Sighting | None = None
    writes: Sighting | None = None
    fault: Site | None = None

    @property
    def sites(self) -> list[Site]:
        """The operations that wrote the element or are at fault, without repetitions."""
        sites = [writer.site for writer in (self.wrote, self.writes) if writer is not None]
        return list(dict.fromkeys([*sites, *([] if self.fault is None else [self.fault])]))

    @property
    def change(self) -> str:
        """How the pass changes the operations of these lines of the source, as a diff."""
        return change(self.before, self.after, self.sites)

    def __str__(self) -> str:
        lines = [f"pass {self.after.number}, {self.after.name}, changes what it does: {self.difference.text}"]
        if self.difference.argument is not None:
            lines += [f"  before: {_writer(self.wrote)}", f"  after:  {_writer(self.writes)}"]
        diff = self.change
        if diff:
            lines += ["the IR of these lines before and after the pass:", diff]
        return "\n".join(lines)


@dataclass(frozen=True)
class Verdict:
    """The outcome of a program as it was written, the stage up to which it stays the same, and the pass that changes
    that, None if no pass does. `emission` says how the PTX differs from stage `instr`, `emitted` how a launch of the
    PTX does, and `notes` the assembler's changes to it, which are not a fault of the kernel.
    """

    reference: Outcome
    stage: str
    culprit: Culprit | None = None
    emission: tuple[Discrepancy, ...] = ()
    emitted: PtxCulprit | None = None
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the kernel has no fault, and no pass changes it."""
        return self.culprit is None and self.reference.fault is None and not self.emission and self.emitted is None

    def __str__(self) -> str:
        fault, lines = self.reference.fault, list[str]()
        if fault is not None:
            lines.append(f"the kernel has a fault as written: {fault.code}: {fault.message}")
            if fault.hint:
                lines.append(f"  hint: {fault.hint}")
        elif not self.passed:
            lines.append(f"your kernel is right {_at(self.stage)}")
        if self.culprit is not None:
            lines.append(str(self.culprit))
        elif not self.emission and self.emitted is None:
            same = "faults in the same way" if fault is not None else "does the same"
            lines.append(f"the kernel {same} after every pass")
        lines += [f"the PTX is wrong: {discrepancy}" for discrepancy in self.emission]
        if self.emitted is not None:
            lines.append(str(self.emitted))
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)


def step_line(step: Step, outcome: Outcome | None, difference: Difference | None) -> str:
    """A line about a step: the outcome of the launch there, compared with the program as it was written."""
    name = (
        f"{step.number:>3} {step.name}"
        if step.name
        else f"    as written{f', {_at(step.stage)}' if step.stage else ''}"
    )
    if outcome is None:
        return f"{name}: {'the simulator cannot run it' if step.changed else 'no change'}"
    if difference is not None:
        return f"{name}: DIFFERS: {difference.text}"
    if outcome.fault is not None:
        return f"{name}: {outcome.fault.code}"
    return f"{name}: {'same' if step.name else 'runs'} ({outcome.seconds * 1e3:.0f} ms)"


def _at(stage: str) -> str:
    return f"at stage '{stage}'" if stage else "as it was written"


def _writer(writer: Sighting | None) -> str:
    return "nothing writes it" if writer is None else f"written by {writer.site}, {writer}"
