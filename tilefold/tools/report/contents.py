# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The contents of a report, gathered from a program and its launches."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target
from tilefold.compiler.reports.kernel_report import KernelReport, make_report
from tilefold.compiler.reports.listing import Hunk, Lister, Listing, changed_lines, hunks
from tilefold.compiler.reports.source_map import CodeLine, SourceMap, Spot
from tilefold.dialects.kernel import KernelOp, kernels_in
from tilefold.dialects.ptx import EntryOp
from tilefold.driver.faults import Fault, merge
from tilefold.driver.gaps import Gap
from tilefold.driver.line_costs import Costs
from tilefold.driver.lowering import Program, passes_to_instr
from tilefold.driver.ptx_module import plain_name, plain_symbol
from tilefold.driver.ptx_program import PtxProgram
from tilefold.driver.source_text import ptx_source_map, source_map
from tilefold.passes.check_stage import CheckStagePass
from tilefold.runtime.sim.faults import site_of

_ENTRY = re.compile(r"^[ \t]*(?:\.visible[ \t]+|\.weak[ \t]+)?\.entry\b", re.MULTILINE)
_FRAME = frozenset(("// begin inline asm", "// end inline asm"))
"""The lines around a text of PTX."""


@dataclass(frozen=True)
class Observation:
    """The results of a launch at some stages: its faults and gaps, or the costs of its lines, or why they are
    `missing`.
    """

    label: str
    stages: tuple[str, ...]
    faults: tuple[Fault, ...] = ()
    gaps: tuple[Gap, ...] = ()
    costs: Costs | None = None
    missing: str = ""


@dataclass(frozen=True)
class PassStep:
    """A pass that has run: its time in seconds, and the lines that it has changed. `stage` is the one that it ends, and
    `listing` the program then, if it ends one.
    """

    number: int
    name: str
    seconds: float
    hunks: Sequence[Hunk]
    stage: str = ""
    listing: Listing | None = None

    @property
    def changes(self) -> tuple[int, int]:
        """The lines removed and added."""
        return changed_lines(self.hunks)


@dataclass(frozen=True)
class Note:
    """Something to be said of a line: its kind, such as `error`, and the text."""

    kind: str
    text: str


@dataclass(frozen=True)
class LineCode:
    """Lines of PTX that stem from one line of the source, and the operations there; none if they stand above."""

    spot: Spot | None
    operations: Sequence[CodeLine]
    ptx: Sequence[CodeLine]


@dataclass
class Contents:
    """A program's report."""

    program: Program
    target: Target
    written: Listing
    passes: list[PassStep]
    code: SourceMap
    kernels: tuple[KernelReport, ...] = ()
    costs: list[Costs] = field(default_factory=list[Costs])
    faults: tuple[Fault, ...] = ()
    gaps: tuple[Gap, ...] = ()
    checked: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    """The stages at which the launches were checked."""
    notes: dict[Spot, list[Note]] = field(default_factory=dict[Spot, list[Note]])
    missing: list[str] = field(default_factory=list[str])

    def beside(self) -> Iterator[LineCode]:
        """The PTX, line by line of the source, beside the operations at stage `instr` that it came from."""
        operations: dict[Spot, list[CodeLine]] = {}
        for line in self.code.forms["ir"]:
            if line.spot is not None:
                operations.setdefault(line.spot, []).append(line)
        for spot, lines in groupby(self.code.forms["ptx"], key=lambda line: line.spot):
            shown = [line for line in lines if line.text.strip() not in _FRAME]
            yield LineCode(spot, operations.pop(spot, []) if spot is not None else [], shown)

    @property
    def first(self) -> Spot | None:
        """The first line of the kernel that is launched first, or of the first; None for a program without one."""
        kernels = [op for op in self.program.module.walk() if isinstance(op, KernelOp)]
        kernel = min(kernels, key=lambda op: self.launched(op.sym_name.data), default=None)
        site = None if kernel is None else site_of(kernel)
        if site is not None and site.file:
            return site.file, site.line
        if (line := _first_entry(self.program.source.text)) is not None:  # of PTX
            return self.program.source.name, line
        return next((spot for spot in self.code.spots() if spot[0] == self.program.source.name), None)

    def launched(self, kernel: str) -> int:
        """The place of a kernel among those that were checked; their number for one that was not."""
        names = [label.partition(" ")[0].rpartition("::")[2] for label in self.checked]
        return names.index(kernel) if kernel in names else len(names)

    def sources(self) -> Iterator[tuple[str, list[tuple[int, str]]]]:
        """The files that any code is from, each with its numbered lines; of others than the program's own those from
        the first to the last that has code.
        """
        spots = {*self.code.spots(), *self.notes, *([self.first] if self.first else [])}
        source = self.program.source
        for file in sorted({file for file, _ in spots}, key=lambda file: (file != source.name, file)):
            lines = [line for name, line in spots if name == file]
            count = source.text.count("\n") + 1
            whole = file == source.name and count >= max(lines)
            numbers = range(1, count + 1) if whole else range(max(1, min(lines) - 1), max(lines) + 1)
            yield file, [(number, source.line_of(file, number)) for number in numbers]


def _passes(program: Program, target: Target, lister: Lister, written: Listing) -> Iterator[PassStep]:
    """The passes that lead to stage `instr`, run once more on a copy of the program."""
    module, last = program.module.clone(), written
    lister.follow(program.module, module)
    for number, applied in enumerate(passes_to_instr(program, target), 1):
        began = time.perf_counter()
        applied.apply(program.context, module)
        took = time.perf_counter() - began
        before, last = last, lister.list(module)
        changes = hunks(before.lines, last.lines) if before is not last and before.text != last.text else []
        stage = applied.stage if isinstance(applied, CheckStagePass) else ""
        yield PassStep(number, str(applied), took, changes, stage, last if stage else None)


def contents_of(program: Program, launches: Iterable[Observation], target: Target | None = None) -> Contents:
    """Gathers a report. Raises ProgramError if a pass refuses the program, LaunchError for a launch that cannot
    begin.
    """
    if isinstance(program, PtxProgram):
        return _contents_of_ptx(program, launches)
    target = target or program.simulated_target("instr")
    program.reached("instr", target)  # verifies it, and reports the errors of passes
    lister = Lister()
    written = lister.list(program.module)
    contents = Contents(
        program, target, written, list(_passes(program, target, lister, written)), source_map(program, target)
    )
    contents.missing += [f"{form}: {why}" for form, why in contents.code.missing.items()]
    _resources(contents)
    _remarks(contents)
    _add_launches(contents, launches)
    return contents


def _contents_of_ptx(program: PtxProgram, launches: Iterable[Observation]) -> Contents:
    """The report of a program that was read from PTX: no pass of tilefold's compiler has a part in it."""
    target = Target(program.read.module.target)
    code, cubin = ptx_source_map(program, target)
    contents = Contents(program, target, Lister().list(program.module), [], code)
    contents.missing += [f"{form}: {why}" for form, why in code.missing.items()]
    if cubin is not None:
        named = replace(cubin, kernels={plain_symbol(name): used for name, used in cubin.kernels.items()})
        text = program.read.compiled_text or program.source.text
        kernels = make_report(text, named, target, kernels_in(program.module, EntryOp)).kernels
        contents.kernels = tuple(replace(kernel, name=plain_name(kernel.name)) for kernel in kernels)
    _add_launches(contents, launches)
    return contents


def _resources(contents: Contents) -> None:
    try:
        built, cubin = contents.program.build(contents.target), contents.program.cubin(contents.target)
    except TilefoldError as error:
        contents.missing.append(f"resources: {error.message}")
        return
    contents.kernels = make_report(built.ptx, cubin, contents.target, contents.program.entries(contents.target)).kernels


def _remarks(contents: Contents) -> None:
    for remark in contents.program.remarks(contents.target, compiled=True):
        if remark.place is not None:
            _note(contents, (remark.place.file, remark.place.line), "remark", f"{remark.op}: {remark.text}")


def _add_launches(contents: Contents, launches: Iterable[Observation]) -> None:
    """Notes the faults of launches, and the costs of their lines."""
    faults, gaps, labels = list[Fault](), list[Gap](), list[str]()
    for observed in launches:
        labels.append(observed.label)
        contents.stages = observed.stages
        faults += observed.faults
        gaps += observed.gaps
        if observed.missing:
            contents.missing.append(f"costs of {observed.label}: {observed.missing}")
        if observed.costs is None:
            continue
        contents.costs.append(observed.costs)
        for line in observed.costs.lines:
            spot = line.file, line.line
            wasteful = [access for access in line.accesses if access.waste]
            _forget(contents, spot, [access.mnemonic for access in wasteful], line.notes)
            for text in [access.waste for access in wasteful] + line.notes:
                _note(contents, spot, "cost", text)
    contents.faults, contents.gaps, contents.checked = merge(faults), tuple(gaps), tuple(labels)
    for fault in contents.faults:
        hint = f"; {fault.hint}" if fault.hint else ""
        if fault.place is not None:
            _note(contents, (fault.place.file, fault.place.line), "error", f"{fault.code}: {fault.message}{hint}")
        if fault.other is not None and fault.role:
            _note(contents, (fault.other.file, fault.other.line), "note", fault.role)


def _forget(contents: Contents, spot: Spot, measured: Sequence[str], told: Sequence[str]) -> None:
    """Removes the compiler's remarks on a line that tell the same as its measured costs: on instructions of which the
    costs are `measured`, and those whose texts are `told` again.
    """
    notes = contents.notes.get(spot, [])
    again = tuple(f": {text}" for text in told)
    notes[:] = [
        note
        for note in notes
        if note.kind != "remark" or not (note.text.partition(": ")[0] in measured or note.text.endswith(again))
    ]


def _first_entry(ptx: str) -> int | None:
    """The line of the first kernel in a text of PTX; None for a text without one, such as text that is not PTX."""
    found = _ENTRY.search(ptx)
    return None if found is None else ptx.count("\n", 0, found.start()) + 1


def _note(contents: Contents, spot: Spot, kind: str, text: str) -> None:
    notes, note = contents.notes.setdefault(spot, []), Note(kind, text)
    if note not in notes:
        notes.append(note)
