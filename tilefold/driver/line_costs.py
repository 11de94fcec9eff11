# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Costs by lines: the numbers, and the table of them for a terminal."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

from tilefold.base.spaces import GMEM, SMEM, Traffic, traffic_of
from tilefold.base.target import SECTOR_BYTES, WARP, Target
from tilefold.runtime.sim.tcgen05.column_events import ColumnEvent
from tilefold.runtime.sim.timeline import Event

SCHEDULERS = 4
"""The instructions of warps that a multiprocessor issues in a cycle."""
SECTORS = 2
"""The sectors of global memory that a multiprocessor receives in a cycle: 64 bytes from the L2 cache."""


@dataclass(frozen=True, slots=True)
class AccessRow:
    """The accesses by one instruction at one line to one memory: those of a launch together, with the fields of
    `AccessCount`. `distinct` are the bytes of global memory that they concern, each counted once; `waste` says in words
    which lanes meet in which bank, and how sectors are wasted.
    """

    mnemonic: str
    space: str
    requests: int
    transactions: int
    minimum: int
    distinct: int = 0
    waste: str = ""

    @property
    def efficiency(self) -> float:
        """The share of the transactions that the accesses need at least."""
        return self.minimum / self.transactions if self.transactions else 1.0

    @property
    def bytes(self) -> int:
        """The bytes of the sectors of global memory."""
        match traffic_of(self.space):
            case Traffic.SECTORS:
                return self.transactions * SECTOR_BYTES
            case Traffic.WAVEFRONTS | Traffic.UNCOUNTED:
                return 0

    @property
    def cycles(self) -> float:
        """The cycles that one multiprocessor takes for the transactions."""
        match traffic_of(self.space):
            case Traffic.SECTORS:
                return self.transactions / SECTORS
            case Traffic.WAVEFRONTS | Traffic.UNCOUNTED:
                return self.transactions


@dataclass(slots=True)
class LineCost:
    """A line of the source: the PTX instructions with effects that warps execute for it, its accesses to memory, and
    remarks.
    """

    file: str
    line: int
    text: str
    issued: int = 0
    accesses: list[AccessRow] = field(default_factory=list[AccessRow])
    notes: list[str] = field(default_factory=list[str])

    @property
    def cycles(self) -> float:
        """The cycles that one multiprocessor would take for all blocks: those of the unit that is busy longest."""
        units = [self.issued / SCHEDULERS]
        units += [sum(a.cycles for a in self.accesses if a.space == space) for space in (SMEM.ptx, GMEM.ptx)]
        return max(units)

    @property
    def place(self) -> str:
        """`file:line`."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Costs:
    """The lines of a launch, the most costly first, and the timeline of its warps, if requested."""

    label: str
    target: Target
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lines: tuple[LineCost, ...]
    events: tuple[Event, ...] = ()
    columns: tuple[ColumnEvent, ...] = ()
    """When columns of tensor memory were held and used."""

    @property
    def warps(self) -> int:
        """The warps of the launch."""
        return prod(self.grid) * -(-prod(self.block) // WARP)

    def __str__(self) -> str:
        return _table(self)


_HEAD = ("cycles", "line", "issued", "instruction", "by warps", "transactions", "least", "", "bytes", "distinct")
_LEFT = {1, 3, 7}


def _table(costs: Costs) -> str:
    """A table of the lines that access memory or have a remark, the most costly first, and the others together."""
    shown = [line for line in costs.lines if line.accesses or line.notes]
    others = [line for line in costs.lines if not (line.accesses or line.notes)]
    grid, block = ("x".join(map(str, size)) for size in (costs.grid, costs.block))
    rows = [row for line in shown for row in _rows(line)]
    if others:
        total, issued = sum(line.cycles for line in others), sum(line.issued for line in others)
        rows.append(((f"{total:.0f}", f"{len(others)} others", str(issued), *[""] * 7), []))
    widths = [max(len(cells[n]) for cells in (_HEAD, *(cells for cells, _ in rows))) for n in range(len(_HEAD))]
    lines = [
        f"{costs.label}: grid {grid}, block {block}, simulated for {costs.target}",
        join_cells(_HEAD, widths, _LEFT),
    ]
    for cells, notes in rows:
        lines.append(join_cells(cells, widths, _LEFT))
        lines += [f"{' ' * (widths[0] + 2)}{note}" for note in notes]
    return "\n".join(lines) + "\n"


def _rows(line: LineCost) -> list[tuple[tuple[str, ...], list[str]]]:
    """The cells of a line: a row for each of its accesses, or one where it has none, and the notes after each."""
    place = f"{Path(line.file).name}:{line.line}" if line.file else "?"
    first = (f"{line.cycles:.0f}", place, str(line.issued))
    accesses = sorted(line.accesses, key=lambda access: -access.cycles)
    cells = [_access(access) for access in accesses] or [("",) * 7]
    heads = [first, *[("", "", "")] * (len(cells) - 1)]
    notes = [[access.waste] if access.waste else [] for access in accesses] or [[]]
    notes[-1] = [*notes[-1], *line.notes]
    return [((*head, *row), extra) for head, row, extra in zip(heads, cells, notes, strict=True)]


def _access(access: AccessRow) -> tuple[str, ...]:
    traffic = traffic_of(access.space)
    bytes = (str(access.bytes), str(access.distinct)) if traffic is Traffic.SECTORS else ("", "")
    unit = traffic.value
    return (access.mnemonic, str(access.requests), str(access.transactions), str(access.minimum), unit, *bytes)


def join_cells(cells: Sequence[str], widths: Sequence[int], left: Container[int]) -> str:
    """A row of a table: the columns of the numbers `left` begin at the left, the others end at the right."""
    return "  ".join(
        cell.ljust(width) if n in left else cell.rjust(width)
        for n, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ).rstrip()
