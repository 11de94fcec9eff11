# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Remarks: the choices of the compiler for a program that it compiles, and the costs of the result.

Passes leave remarks on operations (`passes.writing.emitter`); they are collected at each stage, and named after the
first at which they stand. Facts about a whole program are found in the program as written and at stage `instr`:
partitions among other threads than the block has, loops and how they end up, the instructions of accesses to elements,
and the costs of accesses to shared and global memory. Those about the code that LLVM and the assembler make are in
`.fragment_remarks` and `.assembler_remarks`.

Of the fragments that lie in local memory instead of registers, as LLVM leaves them, a remark says why: at the accesses
whose index only the run knows, at the operations that take an address, or else at the fragment.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from math import prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.gpu import ThreadIdOp
from ...dialects.ptx import (
    EntryOp,
    InlineOp,
    LoadOp,
    LocalAllocOp,
    SetMaxNRegOp,
    StoreOp,
)
from ...dialects.ptx.effects import Act, Agent, Mbarrier, NamedBarrier, agent_of, does
from ...dialects.tile import LoadOp as TileLoadOp
from ...dialects.tile import StoreOp as TileStoreOp
from ...dialects.tile import TileKernelOp
from ...dialects.tile.threads import ThreadViewOp, is_thread_x
from ...passes.analysis.local_memory import LocalFragment, local_fragments
from ...passes.analysis.loop_hints import cannot_unroll, trip_values, unroll_count
from ...passes.analysis.wgmma_fragments import find_calls
from ...passes.writing.emitter import remarks_in
from ..emit.ptx_memory import FRAGMENT
from ..frontend.diagnostics import Diagnostic, Place, Severity, place_of
from ..frontend.source import Source
from .access_costs import access_costs
from .tensor_core_limits import tensor_core_limits


@dataclass(frozen=True, slots=True)
class Remark:
    """A remark: its place in the source, the stage (or pass) that led to it, the operation that it is about, and the
    text. `place` is None if an operation has no place.
    """

    place: Place | None
    stage: str
    op: str
    text: str

    @property
    def diagnostic(self) -> Diagnostic:
        """The remark as a user reads it."""
        return Diagnostic(Severity.REMARK, f"{self.op}: {self.text}", self.place)

    def as_dict(self) -> dict[str, str | int]:
        """The remark as a dictionary for JSON."""
        place = {} if self.place is None else asdict(self.place)
        where = {key: place[key] for key in ("file", "line", "column") if key in place}
        return {**where, "stage": self.stage, "op": self.op, "text": self.text}


class Remarks:
    """Remarks as they are collected: each once, in the order of the source."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._found: dict[tuple[str, str, str], Remark] = {}

    def add(self, stage: str, op: Operation, text: str, name: str = "") -> None:
        """Adds a remark about an operation, called `name`, unless it is there already."""
        place = place_of(op.location, self._source)
        text = self._source.spelled(text)
        made = Remark(place, stage, name or op.name, text)
        self._found.setdefault((str(place), made.op, text), made)

    def collect(self, stage: str, module: ModuleOp) -> None:
        """Adds the remarks on operations of a program, but for those that an earlier stage has: an operation hands its
        remark on to the one that takes its place.
        """
        earlier = {(place, text) for place, _, text in self._found}
        for op, text in remarks_in(module):
            if (str(place_of(op.location, self._source)), self._source.spelled(text)) not in earlier:
                self.add(stage, op, text)

    def all(self) -> tuple[Remark, ...]:
        """All remarks, in the order of the source."""
        return in_order(self._found.values())


def in_order(remarks: Iterable[Remark]) -> tuple[Remark, ...]:
    """Remarks in the order of the source: those without a place last, of one place as they come."""

    def key(remark: Remark) -> tuple[bool, str, int, int]:
        place = remark.place
        return (True, "", 0, 0) if place is None else (False, place.file, place.line, place.column)

    return tuple(sorted(remarks, key=key))


def collect_remarks(stages: Sequence[tuple[str, ModuleOp]], source: Source) -> tuple[Remark, ...]:
    """The remarks about a program, given at each stage from the one at which it was written to `instr`."""
    remarks = Remarks(source)
    for stage, module in stages:
        remarks.collect(stage, module)
    (_, written), (last, module) = stages[0], stages[-1]
    found = _partitions(written), _loops(written, module), _elements(written, module)
    for op, text in chain(*found, tensor_core_limits(written, module)):
        remarks.add(last, op, text)
    for entry in module.walk():
        if isinstance(entry, EntryOp):
            for op in find_calls(entry):
                remarks.add(last, op, _SERIALISED)
            for cost in access_costs(entry):
                remarks.add(last, cost.op, str(cost), cost.mnemonic)
    return remarks.all()


def _partitions(written: ModuleOp) -> Iterator[tuple[Operation, str]]:
    """Partitions among other threads than the block has, where each thread of the block takes the part of its x.

    They are no news in a kernel that is specialised by warps, where a branch has the threads that take part.
    """
    for kernel in written.walk():
        if not isinstance(kernel, TileKernelOp) or _is_specialised(kernel):
            continue
        threads = kernel.launch_bounds.threads[0]
        for op in kernel.walk():
            if isinstance(op, ThreadViewOp) and op.sharing not in (None, threads) and is_thread_x(op.coords[0]):
                yield op, f"shares the tensor among {op.sharing} threads, but the block has {threads}"


def _is_specialised(kernel: TileKernelOp) -> bool:
    """Whether branches of a kernel are for warps with work of their own: they wait for others, hand registers over, or
    meet at a barrier of fewer threads than the block has, in a branch that the thread's index decides.
    """
    threads = prod(kernel.launch_bounds.threads)
    branches = [op for op in kernel.walk() if isinstance(op, scf.IfOp)]
    return any(
        does(op, Act.WAITS, Mbarrier)
        or isinstance(op, SetMaxNRegOp)
        or (_is_of_some(op, threads) and _depends_on_thread(branch.cond))
        for branch in branches
        for op in branch.walk()
    )


def _is_of_some(op: Operation, threads: int) -> bool:
    """Whether an operation is a barrier of fewer threads than a number."""
    is_barrier = does(op, Act.ARRIVES, NamedBarrier)
    number = op.properties.get("threads")
    return is_barrier and isinstance(number, IntegerAttr) and number.value.data < threads


def _depends_on_thread(value: SSAValue) -> bool:
    """Whether a value is computed from the thread's index in its block."""
    waiting, seen = [value], set[SSAValue]()
    while waiting:
        value = waiting.pop()
        if value in seen or isinstance(value.owner, Block):
            continue
        if isinstance(value.owner, ThreadIdOp):
            return True
        seen.add(value)
        waiting.extend(value.owner.operands)
    return False


def _loops(written: ModuleOp, module: ModuleOp) -> Iterator[tuple[Operation, str]]:
    """The outcome for each loop of the program as written."""
    left = {str(op.location): op for op in module.walk() if isinstance(op, scf.ForOp)}
    for loop in written.walk():
        if isinstance(loop, scf.ForOp):
            now = left.get(str(loop.location))
            yield loop, "unrolled completely, to join its narrow accesses" if now is None else _unrolling(now)


def _elements(written: ModuleOp, module: ModuleOp) -> Iterator[tuple[Operation, str]]:
    """Which instructions the accesses to single elements have become; those of fragments become none."""
    made: dict[str, Counter[str]] = {}
    for op in module.walk():
        if isinstance(op, LoadOp | StoreOp) and (mnemonic := op.mnemonic()) is not None:
            made.setdefault(str(op.location), Counter())[mnemonic] += 1
    for op in written.walk():
        if isinstance(op, TileLoadOp | TileStoreOp):
            for mnemonic, count in made.get(str(op.location), Counter()).items():
                yield op, f"{count} instruction{'s' if count != 1 else ''} {mnemonic}"


_SERIALISED = (
    "a call in a kernel with multiplications by warpgroups: the assembler ends each of them before it starts the next "
    "(C7509)"
)


def _unrolling(loop: scf.ForOp) -> str:
    count, trips = unroll_count(loop), trip_values(loop)
    known = "" if trips is None else f": {len(trips)} iteration{'s' if len(trips) != 1 else ''}"
    if count is None:
        unknown = ": its number of iterations is known only at run time" if cannot_unroll(loop) else ""
        return f"stays a loop{known or unknown}"
    if count == 1:
        return f"stays a loop, in machine code too{known}"
    return f"unrolled, {count} iterations at a time{known}" if count else f"unrolled completely{known}"


def is_for_warpgroups(entry: EntryOp) -> bool:
    """Whether a kernel has instructions that the assembler may slow down."""
    return any(
        agent_of(op) is Agent.WARPGROUP
        or (isinstance(op, InlineOp) and ("wgmma" in op.text.data or "setmaxnreg" in op.text.data))
        for op in entry.walk()
    )


_DEPOT = "__local_depot"  # the stack of a kernel in LLVM's PTX; `$` and names of kernels do not begin so


def fragments_in_memory(
    entries: Sequence[EntryOp], llvm: Mapping[str, Sequence[str]]
) -> dict[str, list[LocalFragment]]:
    """The fragments of each kernel of stage `instr` that are in the stack memory `llvm`, the names of it by kernel."""
    found: dict[str, list[LocalFragment]] = {}
    for entry in entries:
        allocs = [op for op in entry.walk() if isinstance(op, LocalAllocOp)]
        known = {fragment.alloc: fragment for fragment in local_fragments(entry)}
        numbers = {int(name.split(".")[1]) for name in llvm.get(entry.sym_name.data, ()) if name.startswith(FRAGMENT)}
        found[entry.sym_name.data] = [
            known.get(alloc, LocalFragment(alloc)) for number, alloc in enumerate(allocs) if number in numbers
        ]
    return found


def fragment_remarks(fragments: Sequence[LocalFragment], source: Source) -> tuple[Remark, ...]:
    """A remark at each place that puts one of the fragments in local memory."""
    remarks = Remarks(source)
    for fragment in fragments:
        for op, text in _reasons(fragment):
            remarks.add("ptx", op, text, "fragment")
    return remarks.all()


def has_stack(ptx: str) -> bool:
    """Whether a kernel of a PTX text has stack memory."""
    return _DEPOT in ptx


def _reasons(fragment: LocalFragment) -> Iterator[tuple[Operation, str]]:
    where = f"all {fragment.bytes} bytes lie in local memory instead of registers"
    for access in fragment.accesses:
        cure = (
            "mark the loops around it {unroll}"
            if access in fragment.by_loops
            else "choose the element by conditions on the index, or keep the elements in shared memory"
        )
        yield access, f"the index is known only at run time, so {where}; {cure}"
    escapes = list(fragment.escapes())
    for op in escapes:
        yield op, f"{op.name} takes the address of a fragment, so {where}"
    if not fragment.accesses and not escapes:
        yield fragment.alloc, f"{where}, although each index is known to the compiler"
