# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""When the columns of tensor memory are held and used, by the clock of a timeline."""

from dataclasses import dataclass, field

from ..faults import Site
from ..warp import Cluster, Warp
from .order import Use

HELD = "held"
"""The kind of an event from the allocation of columns to their release."""
READ = "operands"
"""The kind of columns that a multiplication reads beside its accumulator: A and scales."""


@dataclass(frozen=True, slots=True)
class ColumnEvent:
    """Columns of a block from `first` up to `end`, from one cycle to another: `held`, or used by a warp's `mma`,
    `cp`, `shift`, `ld` or `st`.
    """

    kind: str
    block: tuple[int, int, int]
    warp: int
    first: int
    end: int
    begin: int
    over: int
    site: Site

    @property
    def text(self) -> str:
        """The columns, the block, the warp and the operation, in words."""
        block = ",".join(map(str, self.block))
        what = self.site.location if self.kind == HELD else f"{self.kind} at {self.site.location}"
        return f"columns {self.first} to {self.end - 1} of block ({block}), warp {self.warp}: {what}"


@dataclass(slots=True)
class ColumnRecorder:
    """The events of a launch, up to `most`. Uses and allocations without an end are open."""

    most: int
    events: list[ColumnEvent] = field(default_factory=list[ColumnEvent])
    _held: dict[tuple[Cluster, int, int], tuple[Warp, int, int, Site]] = field(default_factory=lambda: {})
    _used: list[tuple[Use, int]] = field(default_factory=list[tuple[Use, int]])

    def clear(self) -> None:
        """Forgets all."""
        self.events.clear()
        self._held.clear()
        self._used.clear()

    def holds(self, warp: Warp, first: int, count: int, site: Site, now: int) -> None:
        """The block of a warp has allocated columns."""
        self._held[warp.block.cluster, warp.block.rank, first] = warp, count, now, site

    def frees(self, warp: Warp, first: int, now: int) -> None:
        """The block of a warp has freed the columns that it allocated from `first` on."""
        owner, count, since, site = self._held.pop((warp.block.cluster, warp.block.rank, first))
        self._add(ColumnEvent(HELD, owner.block.coordinate, owner.index, first, first + count, since, now, site))

    def uses(self, use: Use, now: int) -> None:
        """A use begins."""
        if len(self.events) + len(self._used) < self.most:
            self._used.append((use, now))

    def polls(self, now: int) -> None:
        """Notes the completed uses."""
        if not any(use.is_over for use, _ in self._used):
            return
        open = [(use, since) for use, since in self._used if not use.is_over]
        for use, since in self._used:
            if use.is_over:
                self._end(use, since, now)
        self._used = open

    def _end(self, use: Use, since: int, now: int) -> None:
        blocks = {warp.block.rank: warp.block for warp in (*use.warp.block.cluster.warps, use.warp)}
        regions = [(use.does, part) for part in use.writes]
        regions += [(use.does if use.does == "ld" else READ, part) for part in use.reads if part not in use.writes]
        for kind, part in regions:
            block = blocks.get(part.rank, use.warp.block).coordinate
            self._add(ColumnEvent(kind, block, use.warp.index, part.first, part.end, since, now, use.site))

    def _add(self, event: ColumnEvent) -> None:
        if len(self.events) < self.most:
            self.events.append(event)
