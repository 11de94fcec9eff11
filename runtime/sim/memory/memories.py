# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memories of a launch, by the rows of the table of spaces; those of a block whose cells have a lane and a column,
and whose columns the kernel allocates while it runs; and the seats of clusters that run at the same time.
"""

from dataclasses import dataclass, field
from typing import Any, final
from zlib import crc32

import numpy as np

from ....base.errors import Code
from ....base.spaces import GMEM, LANE_SHIFT, SMEM, Allocation, Cells, Sharer
from ....base.spaces import Space as MemorySpace
from ...engine import NumPyArray
from ..faults import SimulationError, Site
from ..launch import LaunchState, Loads
from ..warp import Cluster, Warp
from .arena import ABSENT, UNWRITTEN, Access, Arena
from .local import LocalSpace
from .spaces import Space

_READS = 4
"""The part of the host's memory, as its divisor, for keeping the reads of blocks that run at the same time apart."""


@final
@dataclass(slots=True)
class CellSpace(Space):
    """A state space of cells. Its bytes lie lane by lane, so that a row is one of neighbouring columns. Columns that
    nothing has allocated are absent.
    """

    columns: dict[int, dict[int, int]] = field(default_factory=dict[int, dict[int, int]])
    """The first columns of a block's allocations and their numbers, by the rank of the block."""

    sites: dict[int, Site] = field(default_factory=dict[int, Site])
    """The operation that made an allocation, by its first column."""

    @property
    def form(self) -> Cells:
        """The form of its addresses."""
        assert isinstance(self.row.form, Cells), "the row says so"
        return self.row.form

    def private(self) -> tuple[Any, ...]:
        return *Space.private(self), self.columns

    def assume(self, memory: tuple[Any, ...]) -> None:
        *rest, self.columns = memory
        Space.assume(self, tuple(rest))

    def reset(self) -> None:
        Space.reset(self)
        self.arena.state[1][:] = ABSENT
        self.columns = {}

    def offsets(self, at: NumPyArray) -> NumPyArray:
        """The bytes before the cells at some addresses, -1 for no cell."""
        form, number = self.form, at.astype(np.int64)
        lanes, columns = number >> LANE_SHIFT, number & ((1 << LANE_SHIFT) - 1)
        inside = (lanes >= 0) & (lanes < form.lanes) & (columns < form.columns)
        return np.where(inside, (lanes * form.columns + columns) * (form.unit_bits // 8), -1)

    def address(self, offset: int) -> int:
        """The address of the cell that has the byte at an offset."""
        lane, column = divmod(offset // (self.form.unit_bits // 8), self.form.columns)
        return lane << LANE_SHIFT | column

    def show(self, address: int) -> str:
        """An address in words."""
        return f"lane {address >> LANE_SHIFT}, column {address & ((1 << LANE_SHIFT) - 1)}"

    def allocate(self, warp: Warp, access: Access, count: int) -> int:
        """The address of `count` new columns of the warp's block, whose cells are undefined. SimulationError (E3202) if
        the block has too few adjacent ones left.
        """
        held = self.columns.setdefault(warp.block.rank, {})
        first = 0
        for start, number in sorted(held.items()):
            if start - first >= count:
                break
            first = start + number
        if first + count > self.form.columns:
            text = f"allocates {count} columns of {self.row.name}, of which {sum(held.values())} of "
            text += f"{self.form.columns} are allocated"
            warp.fault(Code.SIM_OUT_OF_BOUNDS, access.site, None, text, "free columns first, or allocate fewer")
        held[first], self.sites[first] = count, access.site
        self._mark(warp, first, count, UNWRITTEN)
        if self.journal is not None:
            self.journal.holds(warp, first, count, access.site)
        return first

    def free(self, warp: Warp, access: Access, address: int, count: int) -> None:
        """Ends the life of columns. SimulationError (E3202) unless one allocation made exactly them."""
        held = self.columns.setdefault(warp.block.rank, {})
        if held.get(address) != count:
            text = f"frees {count} columns of {self.row.name} from {self.show(address)} on, which no allocation made"
            warp.fault(Code.SIM_OUT_OF_BOUNDS, access.site, None, text, "free the whole allocation, once")
        del held[address]
        if self.journal is not None:
            self.journal.frees(warp, address)
        self._mark(warp, address, count, ABSENT)

    def _mark(self, warp: Warp, first: int, count: int, state: int) -> None:
        unit, form = self.form.unit_bits // 8, self.form
        cells = self.arena.state[1].reshape(-1, self.arena.span)[warp.block.rank][: form.lanes * form.columns * unit]
        cells.reshape(form.lanes, -1)[:, first * unit : (first + count) * unit] = state

    def end(self, cluster: Cluster) -> None:
        """The end of a cluster. SimulationError (E3217) for columns that nothing has freed."""
        for rank, held in self.columns.items():
            for first, count in held.items():
                warp = next(warp for warp in cluster.warps if warp.block.rank == rank)
                text = f"the block ends with {count} columns of {self.row.name}, from column {first} on, allocated"
                warp.fault(Code.SIM_EXIT, self.sites[first], None, text, "free them before the end of the kernel")


def cell_space(row: MemorySpace, races: bool) -> CellSpace:
    """The memory of a row whose addresses are lanes and columns, before anything is allocated there."""
    assert isinstance(row.form, Cells)
    space = CellSpace(row, 0, races, Arena(0))
    space.arena.allocate(row.name, row.form.lanes * row.form.columns * row.form.unit_bits // 8)
    return space


@dataclass(frozen=True, slots=True)
class Memories:
    """The memory of a launch."""

    global_: Space
    shared: Space
    local: LocalSpace
    of_cells: dict[MemorySpace, CellSpace] = field(default_factory=dict[MemorySpace, CellSpace])
    """The memories whose columns a kernel allocates, those that it uses."""

    @staticmethod
    def make(
        *, races: bool = False, global_base: int = 0, shared_base: int = 0, guard: int = Arena.ALIGN
    ) -> "Memories":
        """Memory without contents: global memory leaves `guard` bytes around each allocation; `races` says whether
        the launch checks for races.
        """
        global_, shared = Space(GMEM, global_base, races, Arena(guard)), Space(SMEM, shared_base, races)
        return Memories(global_, shared, LocalSpace())

    def keep_versions(self, loads: Loads | None) -> None:
        """Keeps the values that places have held, if loads find outdated ones."""
        if loads is not None and loads.seed is not None and self.global_.races:
            from ..ordering.outdated import Outdated

            self.global_.outdated = self.shared.outdated = Outdated(loads)

    @property
    def of_blocks(self) -> tuple[Space, ...]:
        """The memories that each block has for itself."""
        return self.shared, *self.of_cells.values()

    def reset(self) -> None:
        """Makes the memory of blocks undefined, for new ones."""
        for space in self.of_blocks:
            space.reset()

    def end(self, cluster: Cluster) -> None:
        """The end of a cluster. SimulationError (E3217) for columns that it has not freed."""
        for space in self.of_cells.values():
            space.end(cluster)

    def digest(self) -> int:
        """A checksum of all bytes and their states."""
        arenas = [space.arena for space in (self.global_, *self.of_blocks)]
        arrays = [part for arena in arenas for part in (arena.data[1], arena.state[1])]
        total = 0
        for part in (*arrays, *self.local.contents()):
            total = crc32(part.data, total)
        return total

    def of(self, space: MemorySpace) -> Space | None:
        """The memory of a state space; None for local."""
        match space.allocation:
            case Allocation.COMPILER:
                return None
            case Allocation.STATIC | Allocation.MAPPED:
                return self.shared
            case Allocation.PARAMETER | Allocation.CONSTANT:
                return self.global_
            case Allocation.RUN_TIME:
                return self.cells(space)

    def cells(self, space: MemorySpace) -> CellSpace:
        """The memory of a space whose columns a kernel allocates. SimulationError (E3201) for another such space."""
        if space not in self.of_cells:
            if not isinstance(space.form, Cells) or space.sharer is not Sharer.BLOCK:
                text = f"the simulator lacks {space}: of memory that kernels allocate it has only cells of a block"
                raise SimulationError(Code.SIM_UNSUPPORTED, text)
            made = self.of_cells[space] = cell_space(space, self.shared.races)
            made.journal = self.global_.journal
        return self.of_cells[space]


@dataclass(slots=True)
class Seats:
    """The places of the clusters that run at the same time. The memory of the one that goes on is in `spaces`, that of
    the others is kept here.
    """

    spaces: Memories
    kept: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    taken: int = 0
    """The seat of the cluster that goes on."""

    def build(self, launch: LaunchState, resident: int | None, site: Site) -> None:
        """Creates global memory, and that of clusters with `resident` blocks, or of all clusters. SimulationError
        (E3211) where the launch's budget does not allow it.
        """
        spaces, grids, budget = self.spaces, launch.grids, launch.budget.bytes
        size, clusters = launch.in_step or grids.most_blocks, len(grids.clusters(launch.in_step))
        count = clusters if resident is None else min(-(-resident // size), clusters)
        # entries of 8 bytes, for each 4 bytes in most kernels
        tables = max(1, budget // (_READS * 2 * size * spaces.global_.arena.span))
        readers = 1 if launch.in_step else size * min(count, tables)
        threads, warps = grids.most_threads, grids.most_warps
        shadow = 8 if spaces.global_.races else 0  # bytes for each byte: of its last write, and of its last reads
        need = spaces.global_.arena.allocated * (2 + shadow * (1 + readers))
        need += count * size * sum(s.arena.allocated for s in spaces.of_blocks) * (2 + shadow * (2 + warps))
        need += count * size * 2 * spaces.local.frame.size * threads
        if need > budget:
            text = f"the launch needs {need} bytes on the host, but its budget is {budget}"
            hint = "use smaller arguments, allow more by --max-memory, or leave out the race check by --no-races"
            raise SimulationError(Code.SIM_MEMORY, text, hint, site=site)
        spaces.global_.build(readers=readers)
        for _ in range(count):
            for space in spaces.of_blocks:
                space.build(size, warps)
            spaces.local.build(size * threads)
            self.kept.append(self._memory())
        self.taken = count - 1
        launch.begun = [[] for _ in range(count)]

    def take(self, seat: int) -> None:
        """Resumes the cluster of a seat."""
        if seat != self.taken:
            self.kept[self.taken] = self._memory()
            *blocks, local = self.kept[seat]
            for space, memory in zip(self.spaces.of_blocks, blocks, strict=True):
                space.assume(memory)
            self.spaces.local.assume(local)
            self.taken = seat

    def _memory(self) -> tuple[object, ...]:
        return *(space.private() for space in self.spaces.of_blocks), self.spaces.local.private()

    def digest(self) -> int:
        """A checksum of all bytes of all seats, and their states."""
        mine, total = self.taken, 0
        for seat in range(len(self.kept)):
            self.take(seat)
            total = crc32(self.spaces.digest().to_bytes(4, "little"), total)
        self.take(mine)
        return total
