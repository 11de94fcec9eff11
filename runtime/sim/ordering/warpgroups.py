# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Warpgroups: which warps execute an instruction together, and the registers that they have.

The simulator executes one warp after the other. So the instructions of a warpgroup are collected: the first warp to
execute its n-th determines the instruction, and the n-th of the others must be the same.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

from ....base.errors import Code
from ....base.occupancy import REGISTERS
from ....base.target import MAX_SET_REGISTERS, REGISTER_UNIT, WARP, WARPGROUP
from ....dialects.kernel import LaunchBounds
from ..faults import Site
from ..warp import Block, Warp

WARPS = WARPGROUP // WARP
"""The warps of a warpgroup."""
T = TypeVar("T")


@dataclass(slots=True)
class PendingInstructions(Generic[T]):
    """The instructions of a kind that not all `warps` of a warpgroup have executed yet, by their numbers."""

    warps: int = WARPS
    counts: dict[Warp, int] = field(default_factory=lambda: {})
    pending: dict[int, tuple[T, set[Warp]]] = field(default_factory=lambda: {})

    def join(self, warp: Warp, made: T) -> T:
        """The next instruction of a warp: that of the first warp to get there, or else `made`."""
        number = self.counts.get(warp, 0)
        self.counts[warp] = number + 1
        instruction, warps = self.pending.setdefault(number, (made, set()))
        warps.add(warp)
        if len(warps) == self.warps:
            del self.pending[number]
        return instruction


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the registers of a warpgroup, to a number for each thread."""

    number: int
    grows: bool
    site: Site

    def __str__(self) -> str:
        return f"setmaxnreg {'inc' if self.grows else 'dec'} {self.number}"


@dataclass(slots=True, eq=False)
class Warpgroup:
    """Four warps of a block, their multiplications and changes of registers. The last warps of a block may be fewer,
    which then can only change registers.
    """

    warps: Sequence[Warp]
    multiplications: PendingInstructions[object] = field(default_factory=lambda: PendingInstructions[object]())
    agent: int | None = None
    """The agent of its reads of shared memory, once it has multiplied."""
    changes: PendingInstructions[Change] = field(init=False)

    def __post_init__(self) -> None:
        self.changes = PendingInstructions(len(self.warps))

    def __str__(self) -> str:
        return f"warps {self.warps[0].index} to {self.warps[-1].index}"


@dataclass(slots=True, eq=False)
class Warpgroups:
    """The warpgroups of a block that have executed an instruction together, by their numbers, and who has the registers
    of the block, once they have been moved.
    """

    block: Block
    groups: dict[int, Warpgroup] = field(default_factory=dict[int, Warpgroup])
    registers: "RegisterPool | None" = None


def warpgroup_of(warp: Warp, site: Site) -> Warpgroup:
    """The warpgroup of a warp that executes an instruction of warpgroups. SimulationError (E3208) where not all lanes
    of the warp do, or the block ends within the warpgroup.
    """
    group = warps_around(warp, site)
    if len(group.warps) < WARPS or group.warps[-1].lanes < WARP:
        threads = warp.block.cluster.config.threads
        text = f"warp {warp.index} belongs to no whole warpgroup: the block has {threads} threads"
        hint = f"warpgroups are four warps each, counted from 0: give the block a multiple of {WARPGROUP} threads"
        warp.fault(Code.SIM_CONVERGENCE, site, None, text, hint)
    return group


def warps_around(warp: Warp, site: Site) -> Warpgroup:
    """The warpgroup of a warp, or as many warps of one as the block has. SimulationError (E3208) where not all lanes of
    the warp execute the instruction.
    """
    if warp.active < WARP:
        text = f"{warp.active} lanes execute the instruction of a warpgroup; all {WARP} of the warp must"
        warp.fault(Code.SIM_CONVERGENCE, site, None, text, "move it out of divergent control flow")
    number = warp.index // WARPS
    groups = warp.block.state(Warpgroups).groups
    if number not in groups:
        groups[number] = Warpgroup(warp.block.warps[number * WARPS : (number + 1) * WARPS])
        warp.block.cluster.end_checks.append(partial(_refuse_partial, groups[number]))
    return groups[number]


def _refuse_partial(group: Warpgroup, ended: Collection[Warp]) -> None:
    """SimulationError (E3208) for a change of registers that a warp which has ended did not make, and others of its
    warpgroup did.
    """
    for change, warps in group.changes.pending.values():
        for warp in group.warps:
            if warp in ended and warp not in warps:
                made = ", ".join(str(other.index) for other in group.warps if other in warps)
                text = f"warp {warp.index} ends without {change}, which {made} of {group} have executed"
                hint = "let all four warps execute it, also those that have no work"
                warp.fault(Code.SIM_CONVERGENCE, change.site, None, text, hint)


@dataclass(slots=True)
class RegisterPool:
    """The registers of a block: those of each warp, for a thread, and those that no warp has."""

    held: dict[Warp, int]
    free: int = 0

    def missing(self, warp: Warp, number: int) -> int:
        """The registers that the pool lacks for a warp to have `number` for each thread."""
        return max(0, (number - self.held[warp]) * WARP - self.free)

    def change(self, warp: Warp, number: int) -> None:
        """Gives a warp `number` registers for each thread."""
        self.free -= (number - self.held[warp]) * WARP
        self.held[warp] = number

    def describe(self) -> str:
        """Who has which registers, in words."""
        parts = [f"warp {warp.index} has {number} a thread" for warp, number in self.held.items()]
        return f"{self.free} are free, {', '.join(parts)}"


def pool_of(block: Block, bounds: LaunchBounds, greatest: int) -> RegisterPool:
    """The registers with which a block begins: the kernel's number for each thread, or all that fit, and then at most
    the greatest number that an instruction of the kernel sets (so does ptxas 13).
    """
    given = bounds.max_registers
    if given is None:
        fitting = REGISTERS // (block.cluster.config.threads * (bounds.min_blocks or 1))
        given = min(fitting, MAX_SET_REGISTERS, greatest) // REGISTER_UNIT * REGISTER_UNIT
    return RegisterPool(dict.fromkeys(block.warps, given))
