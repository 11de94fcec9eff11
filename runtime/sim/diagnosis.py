# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All faults of a launch, each with the other access that it concerns: the launch is run again, with the faults that
are known forgiven, until it ends without another. Blocks are missing where a coordinate of tiles is a block's and the
grid is smaller than the number of tiles.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects import arith, gpu
from xdsl.ir import SSAValue

from ...base.errors import Code
from ...base.spaces import GMEM, SMEM
from ...dialects.kernel import KernelOp
from ...dialects.tile import LocalTileOp, TensorType
from ...layout.algebra.coordinates import fixed_modes
from ...layout.algebra.core import plain_layout
from ..engine import Argument, LaunchConfig, RunResult, TensorArgument
from .faults import SimulationError, Site, site_of
from .late_writes import Neighbours, late_write, sightings_of
from .memory.journal import Journal, SeenEnoughError, Sighting
from .memory.provenance import name_of
from .memory.refusals import ATOMIC, BLOCK_BARRIER, PAIR, WARP_SYNC
from .number_faults import FAULTS
from .origins import origin_of
from .preparation import SimProgram
from .reached import Reached
from .sim_engine import SimEngine
from .unwritten import COVER, Elements, Stores, least_store

MOST = 20
"""The most faults that one launch reports."""

FORGIVABLE = frozenset({Code.SIM_RACE, Code.SIM_UNINITIALISED, Code.SIM_CONSTANT, Code.SIM_PHASE}) | FAULTS
"""Faults after which a launch can go on: the access takes place, undefined bytes read as 0, and numbers stay."""

UNFINISHED = frozenset({Code.SIM_UNSUPPORTED, Code.SIM_STEPS, Code.SIM_MEMORY, Code.SIM_SECONDS, Code.SIM_EXACT})
"""Errors that say nothing of the kernel: the simulator lacks something, or a budget has ended."""

_MOST_NUMBERS = 4
"""The most numbers that go wrong otherwise before the search for an integer that wraps ends."""
_LOST = "several threads read and rewrite this element, so updates are lost: use ptx.atom or ptx.red"
_IN_BLOCK = (WARP_SYNC, BLOCK_BARRIER, PAIR)
_AFTER = 2
"""How many accesses behind a race show whether a thread rewrites the bytes it has read."""
_OWNING = frozenset({"ptx.mbarrier.init", "ptx.mbarrier.inval"})


@dataclass(frozen=True)
class Finding:
    """A fault of a launch: its code, message and hint, the operation, and the other access that it concerns, with its
    role in words.
    """

    code: Code
    message: str
    hint: str = ""
    site: Site | None = None
    other: Site | None = None
    role: str = ""
    note: str = ""
    is_remark: bool = False
    """Whether it is a remark and not a fault."""
    parameter: str = ""
    """The parameter of the kernel that it concerns, if `site` is the kernel."""


@dataclass(frozen=True)
class Diagnosis:
    """The faults of a launch, and its arguments afterwards where it came to its end."""

    findings: tuple[Finding, ...]
    arguments: Mapping[str, Argument] | None
    steps: int = 0
    exact: Mapping[str, object] = field(default_factory=dict[str, Any])
    """The tensors among the arguments as arrays of exact numbers, where the launch ran in exact arithmetic."""
    reached: Reached | None = None
    """The lines and arms that the launch has executed, where it came to its end."""
    unfinished: Finding | None = None
    """Why the launch did not come to its end, where that is no fault of the kernel."""
    outdated: Mapping[Site, str] = field(default_factory=dict[Site, str])
    """The accesses that have found outdated values, each with its place."""
    is_as_in_order: bool = True
    """Whether some order of the threads has the same execution."""
    newest_after: int | None = None
    """The number of atomic accesses after which all find the newest values; None where there were no more."""
    assumed: Mapping[Site, str] = field(default_factory=dict[Site, str])
    """The operations at which the launch takes something for granted that PTX leaves open, with that in words."""
    atomic_accesses: int = 0
    """The number of those that may find others."""
    is_cut: bool = False
    """Whether the search ended at its limit of faults."""


@dataclass(frozen=True)
class DiagnosedLaunch:
    """A launch that can be repeated: `arguments` makes them anew each time. A partial one may leave elements of its
    outputs unwritten.
    """

    program: SimProgram
    config: LaunchConfig
    arguments: Callable[[], Mapping[str, Argument]]
    engine: SimEngine
    is_partial: bool = False

    def run(
        self, forgiven: frozenset[tuple[Code, Site]] | None, journal: Journal
    ) -> tuple[Mapping[str, Argument], RunResult]:
        """Runs it with an observer, and with some faults forgiven, or all that can be; the arguments afterwards, and
        the result. Raises SimulationError.
        """
        arguments = self.arguments()
        engine = replace(self.engine, forgiven=forgiven, journal=journal)
        return arguments, engine.launch(self.program, self.config, arguments)


def diagnose(launch: DiagnosedLaunch, most: int = MOST) -> Diagnosis:
    """The faults of a launch in the order in which they occur, up to a limit; without any, the arguments of which the
    kernel has left elements unwritten.
    """
    forgiven: frozenset[tuple[Code, Site]] = frozenset()
    findings: list[Finding] = []
    pairs: set[frozenset[Site | None]] = set()
    while len(findings) < most:
        journal = Journal()
        try:
            arguments, result = launch.run(forgiven, journal)
        except SimulationError as fault:
            if fault.code in UNFINISHED:
                unfinished = Finding(fault.code, fault.fault, fault.hint, fault.site)
                return Diagnosis(tuple(findings), None, unfinished=unfinished, outdated=journal.outdated)
            known = fault.origin is not None and (fault.code, fault.origin) in forgiven
            finding = _explain(launch, fault)
            pair = frozenset((fault.origin, finding.other))
            if finding.other is None or finding.note or pair not in pairs:
                findings.append(finding)
                pairs.add(pair)
            elif finding.hint != WARP_SYNC:  # the same two accesses, seen from the other one, and of other warps
                findings = [
                    replace(earlier, hint=finding.hint)
                    if earlier.hint == WARP_SYNC and frozenset((earlier.site, earlier.other)) == pair
                    else earlier
                    for earlier in findings
                ]
            findings = [_widen(finding, journal) for finding in findings]
            if known or fault.origin is None or fault.code not in FORGIVABLE:
                return Diagnosis(tuple(findings), None, outdated=journal.outdated)
            forgiven |= {(fault.code, fault.origin)}
        else:
            findings = [_widen(finding, journal) for finding in findings]
            left = [] if findings or launch.is_partial else list(_find_unwritten(launch, arguments, journal))
            remarks = [Finding(code, text, site=site, is_remark=True) for site, (code, text) in journal.remarks.items()]
            missed = [
                Finding(Code.SIM_GRID, text, hint, site)
                for site, text, hint in find_uncovered(launch.program.find(), launch.config)
            ]
            diagnoses = *findings, *left, *missed, *remarks
            communication = journal.communication
            in_order = communication is None or not communication.is_cyclic()
            return Diagnosis(
                diagnoses, arguments, result.counters.steps, result.exact, journal.reached,
                outdated=journal.outdated, is_as_in_order=in_order,
                assumed=journal.assumed, newest_after=None if communication is None else communication.kept,
                atomic_accesses=0 if communication is None else communication.count,
            )  # fmt: skip
    return Diagnosis(tuple(findings), None, is_cut=True)


def _widen(finding: Finding, journal: Journal) -> Finding:
    """A race within a warp whose operation races with other warps, too: a barrier of the warp would not do."""
    is_wider = finding.hint == WARP_SYNC and finding.site in journal.wider
    return replace(finding, hint=BLOCK_BARRIER) if is_wider else finding


def _explain(launch: DiagnosedLaunch, fault: SimulationError) -> Finding:
    """A fault, with the other access to its byte: that which nothing orders, or the write that comes too late."""
    finding = Finding(fault.code, fault.fault, fault.hint, fault.site)
    if fault.other is not None:
        return replace(finding, other=fault.other, role="which began here")
    if fault.code in (Code.SIM_OUT_OF_BOUNDS, Code.SIM_CONVERGENCE):
        found = _wrapped(launch, fault) or origin_of(launch.program.find(), fault)
        return finding if found is None else replace(finding, other=found[0], role=found[1])
    if fault.at is None or fault.origin is None:
        return finding
    is_late = fault.code == Code.SIM_UNINITIALISED and fault.at[0] != SMEM.ptx  # another cluster may write the byte
    is_enough = _BothSeen(fault) if fault.code == Code.SIM_RACE and fault.rival is not None else None
    journal = Journal(fault.at, within=None if is_late else fault.block, is_enough=is_enough)
    with suppress(SimulationError, SeenEnoughError):  # records made before another fault count
        launch.run(None, journal)
    sightings = sightings_of(journal, fault)
    if fault.code != Code.SIM_UNINITIALISED:
        other = _earlier(sightings, fault)
        if other is None:
            return finding
        role = f"thread {_thread(other)} {'writes' if other.writes else 'reads'} it here"
        if fault.hint in _IN_BLOCK and _updates(sightings, fault) & _updates(sightings, fault, other):
            finding = replace(finding, hint=_LOST)
        return replace(finding, other=other.site, role=role)
    late = late_write(sightings, fault)
    if late is None:
        return replace(finding, note="nothing in the launch writes this byte", **_near(launch, fault))
    later, hint = late
    return replace(finding, other=later.site, role=f"thread {_thread(later)} writes it here, later", hint=hint)


class _BothSeen:
    """Whether the two accesses of a race have been seen and, where each thread may read and rewrite the element, some
    more of both.
    """

    def __init__(self, fault: SimulationError) -> None:
        self._fault, self._looked = fault, 0
        self._left = {(fault.block, fault.thread): 0, fault.rival: 0}
        if fault.hint in _IN_BLOCK:
            self._left = dict.fromkeys(self._left, _AFTER)
        self._rival = self._own = False

    def __call__(self, sightings: Sequence[Sighting]) -> bool:
        for sighting in sightings[self._looked :]:
            who = sighting.block, sighting.thread
            if self._own and self._rival and self._left.get(who):
                self._left[who] -= 1
            self._rival |= who == self._fault.rival
            self._own |= self._rival and _is_of(sighting, self._fault)
        self._looked = len(sightings)
        return self._own and self._rival and not any(self._left.values())


def _near(launch: DiagnosedLaunch, fault: SimulationError) -> dict[str, object]:
    """The place for a fault of a byte that nothing writes: the write next to it, or the read."""
    journal = Neighbours(fault.at)
    with suppress(SimulationError):
        launch.run(None, journal)
    if journal.nearest is not None:
        return {"other": journal.nearest, "role": f"bytes {journal.distance} away are written here"}
    if fault.origin is None or fault.site is None or fault.origin.line == fault.site.line:
        return {}
    return {"other": fault.origin, "role": "it is read here"}


def _wrapped(launch: DiagnosedLaunch, fault: SimulationError) -> tuple[Site, str] | None:
    """The operation that wraps an integer on which the address of an access outside memory depends, and its role."""
    if fault.code is not Code.SIM_OUT_OF_BOUNDS:
        return None
    engine = replace(launch.engine, options=replace(launch.engine.options, numbers=True))
    forgiven: frozenset[tuple[Code, Site]] = frozenset()
    for _ in range(_MOST_NUMBERS):
        try:
            replace(launch, engine=engine).run(forgiven, Journal())
        except SimulationError as number:
            if number.code is Code.SIM_INDEX and number.site is not None:
                return number.site, f"{number.fault}; the address comes from here"
            if number.origin is None or number.code not in FAULTS:
                return None
            forgiven |= {(number.code, number.origin)}
    return None


def _earlier(sightings: Sequence[Sighting], fault: SimulationError) -> Sighting | None:
    """The earlier access that conflicts with that of a fault, by the thread that the fault names if it is there."""
    mine = next((sighting for sighting in sightings if _is_of(sighting, fault)), None)
    if mine is None:
        return None
    anyone = fault.code != Code.SIM_RACE
    is_atomic = _is_atomic(mine) and "scope" not in fault.fault  # other atomic accesses do not conflict
    latest = named = other = None
    for sighting in sightings:
        if _is_of(sighting, fault):
            if named is not None:
                return named
            other = other or latest
        if (
            (anyone or _of_other_threads(sighting, mine))
            and (sighting.writes or mine.writes)
            and not (is_atomic and _is_atomic(sighting))
        ):
            latest = sighting
            named = sighting if (sighting.block, sighting.thread) == fault.rival else named
    return other


def _updates(sightings: Sequence[Sighting], fault: SimulationError, other: Sighting | None = None) -> set[Site]:
    """The operations, no atomic ones, by which a thread writes the byte after it has read it: that of a fault, or
    another.
    """
    who = (fault.block, fault.thread) if other is None else (other.block, other.thread)
    own = [sighting for sighting in sightings if (sighting.block, sighting.thread) == who]
    first = next((index for index, sighting in enumerate(own) if not sighting.writes), len(own))
    return {sighting.site for sighting in own[first:] if sighting.writes and not _is_atomic(sighting)}


def _is_atomic(sighting: Sighting) -> bool:
    op = sighting.site.op
    return op in ATOMIC or ("mbarrier" in op and op not in _OWNING)


def _is_of(sighting: Sighting, fault: SimulationError) -> bool:
    return (sighting.site, sighting.block, sighting.thread) == (fault.origin, fault.block, fault.thread)


def _of_other_threads(sighting: Sighting, other: Sighting) -> bool:
    return (sighting.block, sighting.thread) != (other.block, other.thread)


def _thread(sighting: Sighting) -> str:
    x, y, z = sighting.thread
    i, j, k = sighting.block
    return f"({x},{y},{z}) of block ({i},{j},{k})"


def _find_unwritten(launch: DiagnosedLaunch, arguments: Mapping[str, Argument], journal: Journal) -> Iterator[Finding]:
    """The arguments that had no values before the launch, and have elements without one after it, each with the store
    that writes the fewest.
    """
    kernel = launch.program.find()
    for name, argument in arguments.items():
        if not isinstance(argument, TensorArgument) or argument.initialised:
            continue
        elements = Elements(argument)
        missing = elements.missing(journal)
        if missing is None:
            continue
        stores = Stores(start=journal.place(argument.storage), size=argument.storage.nbytes)
        launch.run(frozenset(), stores)
        site, role = least_store(kernel, name, elements, stores) or (None, "")
        text = f"argument {name}: {missing}"
        yield Finding(Code.SIM_UNWRITTEN, text, COVER, site_of(kernel), site, role, parameter=name)


_AXES = "xyz"


def find_uncovered(kernel: KernelOp, config: LaunchConfig) -> Iterator[tuple[Site, str, str]]:
    """The views of tiles that the grid covers in part: the site of each, the problem in words, and a hint."""
    for op in kernel.walk():
        if not isinstance(op, LocalTileOp) or not isinstance(op.source.type, TensorType):
            continue
        if op.source.type.space.data is not GMEM:
            continue
        whole = op.relayout(op.source.type.layout.data)
        shape = plain_layout(whole).shape
        for value, tiles in fixed_modes(op.coordinate(whole, list(op.coords)), shape):
            axis = _axis(value)
            if axis is None or type(tiles) is not int or config.grid[axis] >= tiles:
                continue
            blocks, name = config.grid[axis], name_of(op.source) or "a tensor"
            text = f"{op.name}: the grid has {blocks} blocks in {_AXES[axis]} for {tiles} tiles of {name}"
            yield site_of(op), text, f"launch {tiles} blocks in {_AXES[axis]}, or let a block loop over several tiles"


def _axis(value: object) -> int | None:
    """The axis of the grid whose coordinate a value is; None for another value."""
    if not isinstance(value, SSAValue):
        return None
    while isinstance(owner := value.owner, arith.IndexCastOp):
        value = owner.input
    return _AXES.index(str(owner.dimension.data)) if isinstance(owner, gpu.BlockIdOp) else None
