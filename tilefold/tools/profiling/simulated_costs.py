# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The costs of a kernel's lines, as a launch on the simulator finds them, and cheaper alternatives."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tilefold.base.spaces import SMEM, find_worst_bank
from tilefold.base.target import SECTOR_BYTES, Target
from tilefold.compiler.frontend.diagnostics import place_of
from tilefold.dialects.kernel import KernelOp
from tilefold.dialects.ptx import EntryOp, PtxOp
from tilefold.driver.line_costs import AccessRow, Costs, LineCost
from tilefold.driver.lowering import Program
from tilefold.driver.trial import Outcome, Trial
from tilefold.passes.writing.emitter import remarks_in
from tilefold.runtime.engine import AccessCount, Counters
from tilefold.runtime.sim.faults import Site, site_of
from tilefold.runtime.sim.memory.sampler import Sampler
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import discard
from tilefold.runtime.sim.timeline import Timeline
from tilefold.tools.profiling.remedies import Reference, Remedy, barriers, layouts


def costs_of(program: Program, label: str, trial: Trial, *, tries: bool = True, events: int = 0) -> Costs:
    """Launches a program at its default stage and counts by lines. With `tries` the launch runs again with other
    layouts of shared memory, and without each of its barriers. So many events of its timeline are kept.

    Raises SimulationError for a kernel that does something wrong, ProgramError if a pass refuses the program.
    """
    stage = program.simulated_stage
    target = program.simulated_target(stage)
    trial = replace(trial, engine=replace(trial.engine, tensor_cores=program.tensor_cores))
    module = program.reached(stage, target)
    kernel = SimProgram(module, trial.kernel).find()
    sampler = Sampler()
    timeline = Timeline(most=events, other=sampler, target=target)
    arguments = trial.arguments()
    engine = replace(trial.engine, sink=discard, journal=timeline if events else sampler)
    result = engine.launch(SimProgram(module, trial.kernel), trial.config, arguments)
    lines = _lines(program, kernel, result.counters, sampler)
    _remark(program, target, lines)
    remedies: list[Remedy] = []
    if tries and isinstance(kernel, EntryOp) and len(kernel.body.blocks) == 1:
        reference = Reference(trial, Outcome(arguments, result.output), result.counters, result.seconds)
        remedies = [*layouts(program, target, kernel, sampler, reference), *barriers(module, kernel, reference)]
    for remedy in remedies:
        line = lines.setdefault((remedy.file, remedy.line), _line(program, remedy.file, remedy.line))
        line.notes.append(remedy.text)
    ordered = sorted(lines.values(), key=lambda line: (-line.cycles, line.file, line.line))
    of_launch = label, target, trial.config.grid, trial.config.block
    return Costs(*of_launch, tuple(ordered), tuple(timeline.events), tuple(timeline.columns))


def _line(program: Program, file: str, line: int) -> LineCost:
    return LineCost(file, line, program.source.line_of(file, line).strip())


def _lines(program: Program, kernel: KernelOp, counters: Counters, sampler: Sampler) -> dict[tuple[str, int], LineCost]:
    lines: dict[tuple[str, int], LineCost] = {}
    for place, count in counters.lines.items():
        file, _, number = place.rpartition(":")
        if count.warps:
            line = lines[file, int(number)] = _line(program, file, int(number))
            line.issued = count.warps
    names = _mnemonics(kernel)
    for (location, op, space, _), accesses in _together(counters.accesses).items():
        file, line, column = location.rsplit(":", 2) if location else ("", "0", "0")
        site = Site(op, file, int(line), int(column))
        requests, transactions, minimum = map(sum, zip(*map(_numbers, accesses), strict=True))
        named = names.get((location, op), [op])
        name = next((name for name in named if f".{space}" in name), named[0])
        row = AccessRow(name, space, requests, transactions, minimum)
        row = replace(row, distinct=sampler.distinct(site), waste=_waste(row, sampler, site))
        lines.setdefault((file, int(line)), _line(program, file, int(line))).accesses.append(row)
    return lines


def _numbers(access: AccessCount) -> tuple[int, int, int]:
    return access.requests, access.transactions, access.minimum


def _together(accesses: tuple[AccessCount, ...]) -> Mapping[tuple[str, str, str, int], list[AccessCount]]:
    groups: dict[tuple[str, str, str, int], list[AccessCount]] = {}
    for access in accesses:
        groups.setdefault((access.location, access.op, access.space, access.width), []).append(access)
    return groups


def _mnemonics(kernel: KernelOp) -> dict[tuple[str, str], list[str]]:
    """The instructions by their place and the name of the operation."""
    names: dict[tuple[str, str], list[str]] = {}
    for op in kernel.walk():
        if isinstance(op, PtxOp) and (mnemonic := op.mnemonic()) is not None:
            names.setdefault((site_of(op).location, op.name), []).append(mnemonic)
    return names


def _waste(row: AccessRow, sampler: Sampler, site: Site) -> str:
    """Why the accesses take more transactions than they need, in words; empty where they do not."""
    sampled = sampler.sampled.get((site, row.space))
    if row.transactions <= row.minimum or sampled is None:
        return ""
    worst = sampled.worst() if sampled.patterns else None
    if row.space == SMEM.ptx:
        if worst is None:
            return ""
        ways, bank, lanes = find_worst_bank(worst.offsets.tolist(), worst.lanes.tolist(), sampled.width)
        return f"{ways}-way bank conflict: lanes {_ranges(lanes)} want different words of bank {bank}"
    measured, least = row.transactions / row.requests, row.minimum / row.requests
    text = f"{measured:.3g} sectors a request where {least:.3g} would do, an efficiency of {100 * row.efficiency:.0f} %"
    return text if worst is None else text + _why_scattered(worst.offsets, sampled.width)


def _why_scattered(offsets: NDArray[np.int64], width: int) -> str:
    """Why an access touches more sectors than its bytes fill, where that is plain."""
    steps, begin = np.unique(np.diff(offsets)), int(offsets[0]) % SECTOR_BYTES
    if len(steps) == 1 and abs(steps[0]) > width:
        return f": neighbouring lanes access elements {abs(steps[0])} bytes apart"
    if len(steps) == 1 and begin:
        return f": it begins {begin} bytes after the start of a sector"
    return ""


def _ranges(numbers: list[int]) -> str:
    """Ascending numbers in words: `0, 4, 8 ... 28` where they have one step."""
    steps = {b - a for a, b in pairwise(numbers)}
    if len(numbers) > 4 and len(steps) == 1:
        return f"{numbers[0]}, {numbers[1]}, {numbers[2]} ... {numbers[-1]}"
    return ", ".join(map(str, numbers))


def _remark(program: Program, target: Target, lines: Mapping[tuple[str, int], LineCost]) -> None:
    """Adds the remarks that say why accesses are narrower than they could be."""
    if not program.has("atoms"):
        return
    for op, text in remarks_in(program.reached("atoms", target)):
        place = place_of(op.location)
        line = None if place is None else lines.get((place.file, place.line))
        if line is not None and " rejected: " in text and text not in line.notes:
            line.notes.append(text)
