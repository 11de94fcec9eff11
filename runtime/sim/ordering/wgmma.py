# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiplications by warpgroups in flight (PTX ISA, Asynchronous warpgroup-level matrix instructions).

A multiplication begins when the four warps have executed it. It reads shared memory, and owns the accumulators of each
warp, until that has waited for the group; the first such wait computes the result, of the bytes that
are in shared memory then. The reads are those of an agent of the warpgroup: whoever waits for the multiplication, or
synchronises with a thread that has, knows them.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ...engine import NumPyArray
from ..atoms.wgmma import Numbers, WgmmaArithmetic
from ..events import Suspension, Until
from ..faults import Site
from ..memory.arena import READY, Bytes
from ..memory.bulk import content_of
from ..memory.local import LocalSpace
from ..memory.matrices import ROW, Matrix
from ..memory.spaces import Space
from ..warp import Warp
from .asynchronous import InFlight
from .clocks import Clock
from .knowledge import learn
from .warpgroups import WARPS, Warpgroup, warpgroup_of

_AGAIN = "let all four warps execute the same instructions"


@dataclass(frozen=True, slots=True)
class WgmmaCall:
    """The properties that the four warps must agree on: the operation of the program, its descriptors, whether it
    accumulates, and the number of the group.
    """

    product: WgmmaArithmetic
    descriptors: tuple[int, ...]
    accumulates: bool
    group: int

    def __str__(self) -> str:
        listed = " and ".join(f"{value & (1 << 64) - 1:#018x}" for value in self.descriptors)
        more = "accumulating" if self.accumulates else "with new accumulators"
        return f"{self.product.atom.name} of {listed}, {more}, in group {self.group}"


@dataclass(slots=True, eq=False)
class InFlightWgmma:
    """A multiplication by a warpgroup: its matrices in shared memory, by operand, and the parts of the warps."""

    site: Site
    kind: WgmmaCall
    group: Warpgroup
    shared: Space
    matrices: dict[str, tuple[Matrix, NDArray[np.int64]]]
    """Each with the rows of 16 bytes in the space, and `missing` the stand-in for its undefined bytes."""
    missing: dict[str, int | None] = field(default_factory=dict[str, "int | None"])
    parts: "list[WgmmaShare]" = field(default_factory=lambda: [])
    result: Numbers | None = None
    known: Clock | None = None
    """The clock of who knows its reads, and that the four warps have executed it."""

    @property
    def has_begun(self) -> bool:
        """Whether all four warps have executed it."""
        return len(self.parts) == WARPS

    def complete(self) -> None:
        """Computes the result, once, and ends the reads of shared memory."""
        if self.result is not None:
            return
        product, parts = self.kind.product, sorted(self.parts, key=lambda part: part.warp.index)
        operands = {name: self._operand(name) for name in self.matrices}
        a = operands["A"] if "A" in operands else product.registers("A", [part.words_a for part in parts])
        words = (
            None
            if parts[0].metadata is None
            else np.concatenate([part.metadata for part in parts if part.metadata is not None])
        )
        self.result = product.result(a, operands["B"], self._accumulators(parts), words)
        for part in parts:
            part.before = None
        self._end_reads()

    def _accumulators(self, parts: "list[WgmmaShare]") -> Numbers | None:
        """The accumulators to add to: the result of the multiplication before, or the registers of the warps that have
        waited for that. None if it does not accumulate.
        """
        before = parts[0].before
        if not self.kind.accumulates:
            return None
        if before is not None and all(part.before is before for part in parts):
            return before.result
        return self.kind.product.registers("D", [part.accumulators() for part in parts])

    def _operand(self, name: str) -> Numbers:
        matrix, rows = self.matrices[name]
        content = content_of(self.shared, ROW, rows, self.missing[name])
        return self.kind.product.shared(name, content.reshape(*matrix.addresses.shape, ROW))

    def _end_reads(self) -> None:
        group, first = self.group, self.group.warps[0]
        cluster, launch = first.block.cluster, first.launch
        if self.shared.shadow is None:
            return
        if group.agent is None:
            group.agent = cluster.open_agents(f"a multiplication by {group}")
        for _, rows in self.matrices.values():
            self.shared.read_by(first, 0, rows, ROW, cluster.agent_of(group.agent))
        cluster.finished[group.agent] = launch.clock
        times = np.zeros(cluster.threads + len(cluster.finished), np.int64)
        times[cluster.threads + group.agent] = launch.tick()
        self.known = Clock(cluster.number, times)
        for part in self.parts:
            self.known = self.known.joined(part.executed)

    def describe(self) -> tuple[str, str]:
        """The multiplication, and the warps that it lacks, in words."""
        have = {part.warp for part in self.parts}
        lacking = ", ".join(str(warp.index) for warp in self.group.warps if warp not in have)
        return f"{self.site} of {self.group}", f"which warp {lacking} has not executed"


@dataclass(slots=True, eq=False)
class WgmmaShare:
    """A warp's part of a multiplication for which it has not waited: where its accumulators and its registers of A are,
    address and size in bytes, and their contents.
    """

    whole: InFlightWgmma
    warp: Warp
    local: LocalSpace
    d: tuple[int, int]
    a: tuple[int, int] | None
    words_d: Bytes
    words_a: Bytes
    before: InFlightWgmma | None
    """The multiplication before it that accumulates in the same registers, and has not been waited for."""
    executed: Clock | None
    """The knowledge of the warp when it executed it, where races are looked for."""
    metadata: NDArray[np.uint32] | None = None
    """The metadata of a sparse A, in the registers of the lanes."""
    is_committed: bool = False

    @property
    def origin(self) -> Site:
        """The operation of the program."""
        return self.whole.site

    @property
    def cure(self) -> str:
        """How to wait for it, as a hint."""
        wait = "wait for its group first: ptx.wgmma.wait_group 0"
        return wait if self.is_committed else f"make it part of a group by ptx.wgmma.commit_group, and {wait}"

    def describe(self, lane: int) -> str:
        """The multiplication in words."""
        state = "" if self.is_committed else ", which is in no group yet,"
        return f"{self.whole.site} of {self.whole.group}{state}"

    def writes(self, memory: object, byte: int) -> int | None:
        """The lane whose accumulators hold a byte of local memory; None if none do."""
        if memory is not self.local:
            return None
        thread, place = divmod(byte, self.local.size)
        lane = thread - self.warp.first_index
        return lane if 0 <= lane < self.warp.lanes and self.d[0] <= place < sum(self.d) else None

    def reads(self, memory: object, rows: NumPyArray, width: int) -> tuple[int, int] | None:
        """The first of some rows of shared memory that the multiplication reads, with lane 0; None if there is none."""
        whole = self.whole
        if memory is not whole.shared or whole.result is not None or self is not whole.parts[0]:
            return None
        first = rows * width
        for _, read in whole.matrices.values():
            if first.max() + width <= read.min() * ROW or (read.max() + 1) * ROW <= first.min():
                continue
            spans = np.isin(first // ROW, read) | np.isin((first + width - 1) // ROW, read)
            if spans.any():
                return int(spans.argmax()), 0
        return None

    def accumulators(self) -> Bytes:
        """The accumulators before it."""
        if self.before is None:
            return self.words_d
        assert self.before.result is not None, "a multiplication ends before those after it"
        return self.whole.kind.product.words(self.before.result, self.warp.index % WARPS)

    def refuse_end(self) -> None:
        """The end of the warp before it has waited: SimulationError (E3217)."""
        text = f"the thread ends while {self.describe(0)} still runs"
        self.warp.fault(Code.SIM_EXIT, self.whole.site, 0, text, self.cure)

    def land(self) -> None:
        """Ends the flight of the accumulators, unless a later multiplication has them."""
        running = shares_of(self.warp)
        later = running[running.index(self) + 1 :]
        if any(part.d == self.d for part in later):
            return
        whole = self.whole
        assert whole.result is not None
        words = self.local.words(self.warp, whole.site, *self.d)
        words.data[:] = whole.kind.product.words(whole.result, self.warp.index % WARPS)
        words.state[:] = READY
        words.touched[:] = whole.kind.product.shape_number


def shares_of(warp: Warp) -> list[WgmmaShare]:
    """The warp's parts of multiplications for which it has not waited."""
    return [part for part in warp.state(InFlight).multiplications if isinstance(part, WgmmaShare)]


def commit(warp: Warp, site: Site) -> None:
    """The warp's multiplications since the last commit become a group."""
    warpgroup_of(warp, site)
    in_flight = warp.state(InFlight)
    for part in in_flight.multiplications:
        part.is_committed = True
    in_flight.committed += 1


def wait(warp: Warp, site: Site, running: int) -> Suspension:
    """Waits for the warp's groups except for its `running` latest ones."""
    warpgroup_of(warp, site)
    in_flight = warp.state(InFlight)
    limit = in_flight.committed - running
    ending = [part for part in shares_of(warp) if part.is_committed and part.whole.kind.group < limit]
    if not all(part.whole.has_begun for part in ending):

        def describe() -> tuple[str, str]:
            wholes = [part.whole for part in ending]
            return next((whole for whole in wholes if not whole.has_begun), wholes[0]).describe()

        yield Until(lambda: all(p.whole.has_begun for p in ending), site, describe, Code.SIM_CONVERGENCE, _AGAIN)
    for part in ending:
        part.whole.complete()
    for part in ending:
        part.land()
    if ending:
        learn(warp, ending[-1].whole.known)
        in_flight.multiplications = [part for part in in_flight.multiplications if part not in ending]
