# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory of a launch, by the rows of the table of spaces."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from zlib import crc32

from ....base.errors import Code as ErrorCode
from ....base.spaces import GMEM, SMEM, Allocation, Cells, Sharer
from ....base.spaces import Space as MemorySpace
from ..faults import SimulationError
from ..warp import Cluster
from .arena import Arena
from .local import LocalSpace
from .spaces import Space

if TYPE_CHECKING:
    from .cells import CellSpace


@dataclass(frozen=True, slots=True)
class Memories:
    """The memory of a launch."""

    global_: Space
    shared: Space
    local: LocalSpace
    of_cells: "dict[MemorySpace, CellSpace]" = field(default_factory=dict[MemorySpace, "CellSpace"])
    """The memories whose columns a kernel allocates, those that it uses."""

    @staticmethod
    def make(
        *, races: bool = False, global_base: int = 0, shared_base: int = 0, guard: int = Arena.ALIGN
    ) -> "Memories":
        """Memory without contents: global memory leaves `guard` bytes around each allocation; `races` says whether
        races are looked for.
        """
        global_, shared = Space(GMEM, global_base, races, Arena(guard)), Space(SMEM, shared_base, races)
        return Memories(global_, shared, LocalSpace())

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

    def cells(self, space: MemorySpace) -> "CellSpace":
        """The memory of a space whose columns a kernel allocates. SimulationError (E3201) for another such space."""
        if space not in self.of_cells:
            if not isinstance(space.form, Cells) or space.sharer is not Sharer.BLOCK:
                text = f"the simulator has no {space}, which kernels allocate: it has such of cells of a block"
                raise SimulationError(ErrorCode.SIM_UNSUPPORTED, text)
            from .cells import cell_space

            self.of_cells[space] = cell_space(space, self.shared.races)
        return self.of_cells[space]
