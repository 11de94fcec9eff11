# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gaps of a check: operations without a model, work that was cut, code that no input reached, assumptions."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.frontend.diagnostics import Diagnostic, Place, ProgramError, Severity
from tilefold.compiler.frontend.source import Source
from tilefold.runtime.options import SimOptions
from tilefold.runtime.sim.faults import Site
from tilefold.runtime.sim.reached import Arm, Reached


class GapKind(StrEnum):
    """The kinds of gaps."""

    UNSUPPORTED = "unsupported"
    """An instruction, an operation or a type that tilefold does not execute."""
    BUDGET = "budget"
    """Steps, time or memory ended before the launch did, or the search for faults ended at its limit."""
    GRID = "grid"
    """Fewer blocks ran than the program launches."""
    STAGE = "stage"
    """A stage that was asked for did not run."""
    COVERAGE = "coverage"
    """Code that no input reached."""
    ASSUMPTION = "assumption"
    """The verdict holds only if this does."""


_KINDS = {
    Code.SIM_UNSUPPORTED: GapKind.UNSUPPORTED,
    Code.PTX_UNSUPPORTED: GapKind.UNSUPPORTED,
    Code.EMIT_UNSUPPORTED: GapKind.UNSUPPORTED,
    Code.SIM_EXACT: GapKind.UNSUPPORTED,
    Code.SIM_STEPS: GapKind.BUDGET,
    Code.SIM_MEMORY: GapKind.BUDGET,
    Code.SIM_SECONDS: GapKind.BUDGET,
    Code.LLVM_TIMEOUT: GapKind.BUDGET,
    Code.LLVM_EFFORT: GapKind.BUDGET,
}
"""Errors that are not faults of a kernel: they end its check."""


@dataclass(frozen=True)
class Gap:
    """Something that a check did not see. `code` is the code of the error that caused it, if any."""

    kind: GapKind
    message: str
    launch: str = ""
    code: Code | None = None
    place: Place | None = None
    hint: str = ""

    def render(self) -> str:
        """The gap as the compiler's warnings are."""
        text = f"incomplete: {self.message}"
        return Diagnostic(Severity.WARNING, text, self.place, self.code, self.hint).render()

    def as_dict(self) -> dict[str, Any]:
        """The gap as plain data."""
        data: dict[str, object] = {"kind": self.kind.value, "message": self.message}
        if self.launch:
            data["launch"] = self.launch
        if self.code is not None:
            data["code"] = self.code.id
        if self.hint:
            data["hint"] = self.hint
        if self.place is not None:
            data["place"] = {"file": self.place.file, "line": self.place.line, "column": self.place.column}
        return data


def gap_of(error: TilefoldError, launch: str = "") -> Gap | None:
    """The gap that an error leaves; None for an error that says something of the program."""
    kind = _KINDS.get(error.code)
    if kind is None:
        return None
    place = error.diagnostics[0].place if isinstance(error, ProgramError) else None
    return Gap(kind, getattr(error, "fault", error.message), launch, error.code, place, error.hint)


def gap_for(code: Code, message: str, hint: str, place: Place | None, launch: str) -> Gap:
    """The gap that an error with this code leaves."""
    return Gap(_KINDS[code], message, launch, code, place, hint)


def assumed_by(options: SimOptions, texts: Iterable[str], launch: str) -> Iterator[Gap]:
    """Assumptions of a launch on the simulator: that there are no faults that its options leave out, and that
    functions in Python do the same as the PTX as `texts` that they stand for.
    """
    if not options.races:
        yield Gap(GapKind.ASSUMPTION, "the check did not look for data races", launch, hint="leave out --no-races")
    if options.exact:
        text = "floats were exact numbers, so the check did not look at rounding"
        yield Gap(GapKind.ASSUMPTION, text, launch, hint="leave out --exact")
    for text in texts:
        yield Gap(GapKind.ASSUMPTION, f"PTX as text does what its function in Python does: {text[:80]!r}", launch)


def place_of_site(site: Site | None, source: Source) -> Place | None:
    """The place of an operation in the source; None for an unknown one."""
    if site is None or not site.file:
        return None
    return Place(site.file, site.line, site.column, text=source.line_of(site.file, site.line))


def unreached(reached: Reached, source: Source) -> Iterator[Gap]:
    """The code that no input has reached: the outermost arms of branches and loops, and runs of blocks."""
    missed = [arm for arm, ran in reached.arms.items() if not ran and arm not in reached.idle]
    blocks = [arm for arm in missed if arm.name == "block"]
    for arm in missed:
        inner = reached.lines.get((arm.site.file, arm.site.line)) is False
        if arm.name != "block" and not inner:
            yield _gap(f"no thread executes {arm}", reached.first[arm], source)
    blocks = [arm for arm in blocks if reached.lines.get((arm.site.file, arm.site.line)) is False]
    for _, run in groupby(sorted(blocks, key=_order), lambda arm: _reached_before(arm, reached)):
        arms = list(run)
        first, last = arms[0].site, arms[-1].site
        until = f" to {last.line_name}" if last.line != first.line else ""
        yield _gap(f"no thread executes {first.line_name}{until}", first, source)


def _order(arm: Arm) -> tuple[str, int, int]:
    return arm.site.file, arm.site.line, arm.site.column


def _reached_before(arm: Arm, reached: Reached) -> tuple[str, int]:
    """The last line before an arm that a thread has reached: the same for arms with nothing reached between them."""
    file, line = arm.site.file, arm.site.line
    return file, max((n for (other, n), ran in reached.lines.items() if ran and other == file and n < line), default=0)


def _gap(text: str, site: Site, source: Source) -> Gap:
    hint = "check arguments with which a thread reaches it, too, for example by --fuzz"
    return Gap(GapKind.COVERAGE, text, place=place_of_site(site, source), hint=hint)


def coverage(reached: Reached) -> dict[str, Any]:
    """The lines and branches of a kernel that were reached, as plain data."""
    missed = sorted({(file, line) for (file, line), ran in reached.lines.items() if not ran})
    return {
        "lines": {"reached": sum(reached.lines.values()), "total": len(reached.lines)},
        "branches": {"reached": sum(reached.arms.values()), "total": len(reached.arms)},
        "missed_lines": [{"file": file, "line": line} for file, line in missed],
    }
