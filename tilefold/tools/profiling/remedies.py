# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Changes of a kernel that cost less, tried by launching it again: other layouts of shared memory, and no barrier.

A change counts where the launch has no fault and leaves the same bytes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from tilefold.base.errors import TilefoldError
from tilefold.base.spaces import SMEM
from tilefold.base.target import Target
from tilefold.compiler.pass_runner import InternalError
from tilefold.dialects.ptx import BarSyncOp, EntryOp, SmemAddrOp
from tilefold.driver.lowering import Program
from tilefold.driver.trial import Outcome, Trial, difference
from tilefold.layout.algebra.core import ComposedLayout
from tilefold.layout.text.layouts import to_text
from tilefold.runtime.engine import AccessCount, Counters, RunResult
from tilefold.runtime.sim.faults import Site, site_of
from tilefold.runtime.sim.memory.sampler import Sampled, Sampler
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import discard
from tilefold.tools.profiling.relayout import Candidate, allocation_at, candidates, with_layout

MAX_SECONDS = 5.0
"""A launch that takes longer is not repeated."""
MAX_TRIED = 3
"""The layouts of one tensor that are tried of each kind, the best first."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change at a line, in words."""

    file: str
    line: int
    text: str


@dataclass(frozen=True)
class Reference:
    """The launch of a kernel as it is, with which others are compared."""

    trial: Trial
    outcome: Outcome
    counters: Counters
    seconds: float

    def run(self, module: ModuleOp) -> RunResult | None:
        """The launch of another program; None if it has a fault or other results."""
        trial, arguments = self.trial, self.trial.arguments()
        engine = replace(trial.engine, options=replace(trial.engine.options, races=True), sink=discard)
        result = engine.attempt(SimProgram(module, trial.kernel), trial.config, arguments)
        if result is None or difference(self.outcome, Outcome(arguments, result.output)) is not None:
            return None
        return result


def layouts(
    program: Program, target: Target, kernel: EntryOp, sampler: Sampler, reference: Reference
) -> Iterator[Remedy]:
    """For each tensor in shared memory whose accesses have bank conflicts, the layouts that take fewer wavefronts."""
    for op in kernel.walk():
        if not isinstance(op, SmemAddrOp) or op.bytes is None or not isinstance(op.location, FileLineColLoc):
            continue
        begin, end = op.offset.value.data, op.offset.value.data + op.bytes.value.data
        accesses = _within(sampler, begin, end)
        location, now = str(op.location), _wavefronts(reference.counters, accesses)
        if now[0] <= now[1] or not program.has("cute"):
            continue
        allocation = allocation_at(program.reached("cute"), location)
        if allocation is None:
            continue
        name, line = op.result.name_hint, op.location.line.data
        about = f"the tensor %{name} of line {line}" if name else f"the tensor of line {line}"
        site = max((site for site, _ in accesses), key=lambda site: _excess(reference.counters, site))
        proposed = candidates(allocation.result.type, begin, [sampled for _, sampled in accesses])
        if reference.seconds > MAX_SECONDS:
            yield Remedy(site.file, site.line, _untried_note(proposed, reference.seconds))
            continue
        texts: list[str] = []
        for swizzled in (True, False):
            kind = [c for c in proposed if isinstance(c.layout, ComposedLayout) is swizzled][:MAX_TRIED]
            text = next(filter(None, (_try(program, target, location, c, reference, now[0]) for c in kind)), None)
            texts += [] if text is None else [text]
        for text in texts or ["none of the swizzles and paddings tried removes its conflicts"]:
            yield Remedy(site.file, site.line, f"{about}: {text}")


def _untried_note(proposed: list[Candidate], seconds: float) -> str:
    hint = f"not simulated, since a launch takes {seconds:.0f} s; launch fewer blocks by --grid"
    return (
        f"{to_text(proposed[0].layout)} would take {proposed[0].wavefronts} wavefronts ({hint})" if proposed else hint
    )


def _within(sampler: Sampler, begin: int, end: int) -> list[tuple[Site, Sampled]]:
    """The operations that access shared memory between two offsets, where all their accesses lie there."""
    return [
        (site, sampled)
        for (site, space), sampled in sampler.sampled.items()
        if space == SMEM.ptx
        and sampled.patterns
        and all(begin <= p.offsets.min() and p.offsets.max() < end for p in sampled.patterns.values())
    ]


def _wavefronts(counters: Counters, accesses: list[tuple[Site, Sampled]]) -> tuple[int, int]:
    """The wavefronts of some operations in a launch, and the least."""
    chosen = [access for site, _ in accesses for access in _at(counters, site)]
    return sum(a.transactions for a in chosen), sum(a.minimum for a in chosen)


def _excess(counters: Counters, site: Site) -> int:
    return sum(access.excess for access in _at(counters, site))


def _at(counters: Counters, site: Site) -> list[AccessCount]:
    """The accesses of an operation to shared memory."""
    return [a for a in counters.accesses if (a.space, a.op, a.location) == (SMEM.ptx, site.op, site.location)]


def _try(
    program: Program, target: Target, location: str, candidate: Candidate, reference: Reference, now: int
) -> str | None:
    """The gain of a layout, in words; None if the kernel cannot have it, or does something else with it."""
    try:
        module = with_layout(program.reached("cute"), location, candidate.layout)
        changed = Program(program.source, module, program.context, target)
        result = reference.run(changed.reached("instr", target))
    except (TilefoldError, VerifyException, InternalError):
        return None
    if result is None:
        return None
    saved = reference.counters.wavefronts()[0] - result.counters.wavefronts()[0]
    if saved <= 0:
        return None
    cost = f", {candidate.bytes} bytes more" if candidate.bytes > 0 else ""
    return f'"{to_text(candidate.layout)}" takes {now - saved} wavefronts instead of {now}{cost}, simulated'


def barriers(module: ModuleOp, kernel: EntryOp, reference: Reference) -> Iterator[Remedy]:
    """The barriers without which the launch has no race and leaves the same bytes."""
    places = {str(op.location): site_of(op) for op in kernel.walk() if isinstance(op, BarSyncOp)}
    for location, site in places.items():
        if not site.file:
            continue
        if reference.seconds > MAX_SECONDS:
            hint = f"a launch takes {reference.seconds:.0f} s; launch fewer blocks by --grid"
            yield Remedy(site.file, site.line, f"not tried without this barrier: {hint}")
            continue
        without = module.clone()
        removed: list[Operation] = [
            op for op in without.walk() if isinstance(op, BarSyncOp) and str(op.location) == location
        ]
        for op in removed:
            op.detach()
            op.erase()
        if reference.run(without) is not None:
            text = "the launch has no race and the same results without this barrier, simulated"
            yield Remedy(site.file, site.line, text)
