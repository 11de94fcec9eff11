# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cells of tensor memory: their contents, and checked uses of them."""

from dataclasses import dataclass
from typing import NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....base.spaces import LANE_SHIFT, TMEM, Cells
from ....base.target import WARP, WARPGROUP
from ....layout.tmem.cells import WITHIN_CELL
from ..faults import Site
from ..memory.arena import ABSENT, READY, UNWRITTEN
from ..memory.memories import CellSpace
from ..translate import Translator
from ..values import Value, varies
from ..warp import Warp
from .order import Region, TensorOrder, Use, lane_bits

Words: TypeAlias = NDArray[np.uint32]
Places: TypeAlias = NDArray[np.int64]

assert isinstance(TMEM.form, Cells)
LANES, COLUMNS = TMEM.form.lanes, TMEM.form.columns
_CELL_BYTES = 4


@dataclass(frozen=True, slots=True)
class Area:
    """Cells of a block by lanes and columns, arrays of one shape, and the region that has them. The first
    `width` bytes of each cell are used.
    """

    region: Region
    lanes: Places
    columns: Places
    width: int = _CELL_BYTES


def area(rank: int, lanes: Places, columns: Places, width: int = _CELL_BYTES) -> Area:
    """Cells, which fill their columns."""
    lanes, columns = np.broadcast_arrays(lanes, columns)
    region = Region(rank, lane_bits(lanes), int(columns.min()), int(columns.max()) + 1)
    return Area(region, lanes, columns, width)


class TensorCells:
    """The tensor memory of the blocks of a launch, for one operation of the program."""

    def __init__(self, site: Site, t: Translator) -> None:
        self.site, self.space, self.outer = site, t.spaces.cells(TMEM), t.spaces.global_
        self.is_ordered = t.spaces.shared.races

    def words(self, rank: int) -> tuple[Words, NDArray[np.uint8]]:
        """The words of a block's cells, and the states of their bytes."""
        return words_of(self.space, rank)

    def fault(self, warp: Warp, code: Code, text: str, hint: str, lane: int | None = 0) -> NoReturn:
        """Raises a fault of a lane."""
        warp.fault(code, self.site, lane, text, hint)

    def address(self, warp: Warp, value: Value, what: str = "addresses") -> tuple[int, int]:
        """The lane and the column of the address that all active lanes give."""
        given = warp.select(value) if varies(value) else np.array([value])
        if (given != given[0]).any():
            lane = int(warp.lane_numbers()[(given != given[0]).argmax()])
            text = f"the lanes of a warp pass different {what} of tensor memory"
            self.fault(warp, Code.SIM_TENSOR_LANES, text, "let all lanes have the address of the warp", lane)
        number = int(given[0]) & 0xFFFFFFFF
        return (number & (1 << WITHIN_CELL) - 1) >> LANE_SHIFT, number & 0xFFFF

    def own_lane(self, warp: Warp, lane: int, spanned: int) -> int:
        """The first lane that a load or a store of a warp reaches, by the lane of its address: the warp's own part may
        be given there, or be left out.
        """
        first = warp.index % (WARPGROUP // WARP) * WARP
        part, inner = lane // WARP * WARP, lane % WARP
        if part not in (0, first):
            text = (
                f"reaches lane {lane} of tensor memory; warp {warp.index} reaches lanes {first} to {first + WARP - 1}"
            )
            self.fault(
                warp, Code.SIM_TENSOR_LANES, text, "give the address the lane 32 * (number of the warp % 4), or lane 0"
            )
        if inner not in ((0,) if spanned == WARP else (0, 16)):
            text = f"a shape of {spanned} lanes begins at lane {inner} of the warp's {WARP}"
            self.fault(warp, Code.SIM_TENSOR_LANES, text, "begin at the first lane, or the 16th for shapes of 16 lanes")
        return first + inner

    def check_columns(self, warp: Warp, given: Area) -> None:
        """A fault for columns that the block has not allocated."""
        region = given.region
        if region.end > COLUMNS or region.lanes >> LANES:
            place = f"column {region.end - 1}" if region.end > COLUMNS else f"lane {region.lanes.bit_length() - 1}"
            text = f"reaches {place} of tensor memory, which has {LANES} lanes and {COLUMNS} columns"
            self.fault(warp, Code.SIM_TENSOR_COLUMNS, text, "check the address and the number of columns")
        _, state = self.words(region.rank)
        absent = (state[0, region.first : region.end] == ABSENT).any(axis=1)
        if absent.any():
            column = region.first + int(absent.argmax())
            text = f"reaches column {column} of tensor memory, which the block has not allocated"
            self.fault(
                warp, Code.SIM_TENSOR_COLUMNS, text, "allocate enough columns, and use them before they are freed"
            )

    def begin(self, warp: Warp, use: Use) -> None:
        """Enters a use. The fault of one that comes too early."""
        order = warp.block.cluster.state(TensorOrder)
        clash = order.clash(use) if self.is_ordered else None
        if clash is not None:
            self._show_writes(use)
            where = f"lane {clash.lane}, column {clash.column} of tensor memory"
            if clash.rank != warp.block.rank:
                where += f" in the block of rank {clash.rank}"
            cell = Region(clash.rank, 1 << clash.lane, clash.column, clash.column + 1)
            verb = "writes" if any(part.overlaps(cell) for part in use.writes) else "reads"
            earlier, code = clash.before.describe(), Code.SIM_TENSOR_BUSY
            text = f"{verb} {where}, which {earlier} may still be {'writing' if clash.writes else 'reading'}"
            hint = clash.lacks
            if clash.fence_alone:
                text, code = (
                    f"{verb} {where} after {earlier}, without a tcgen05 fence in between",
                    Code.SIM_TENSOR_FENCE,
                )
            elif clash.before.does == use.does == "mma" and clash.before.warp.block is not warp.block:
                text, code = f"{text}: both blocks of a pair issue multiplications", Code.SIM_TENSOR_PAIR
                hint = "let a thread of the even block issue those of the pair"
            warp.fault(code, self.site, use.lane, text, hint, other=clash.before.site)
        order.add(use)
        if self.outer.journal is not None:
            self.outer.journal.uses(use)

    def read(self, warp: Warp, given: Area, lane: int = 0) -> Words:
        """The words of cells. The fault of undefined ones."""
        self._show(warp, given, lane, writes=False)
        data, state = self.words(given.region.rank)
        states = state[given.lanes, given.columns, : given.width]
        words = data[given.lanes, given.columns]
        missing = states != READY
        if missing.any():
            place = tuple(int(i[0]) for i in np.nonzero(missing))[:-1]
            cell_lane, column = int(given.lanes[place]), int(given.columns[place])
            number = (given.region.rank * LANES + cell_lane) * COLUMNS + column
            where = f"tensor memory at lane {cell_lane}, column {column}"
            value = warp.undefined(self.site, lane, where, (self.space.name, number * _CELL_BYTES))
            words = np.where((states == UNWRITTEN).any(axis=-1), np.uint32(value * 0x01010101), words)
        return words

    def write(self, warp: Warp, given: Area, words: Words, lane: int = 0) -> None:
        """Writes words to cells."""
        self._show(warp, given, lane, writes=True)
        data, state = self.words(given.region.rank)
        if given.width == _CELL_BYTES:
            data[given.lanes, given.columns] = words
        else:
            kept = data[given.lanes, given.columns] & np.uint32(0xFFFF0000)
            data[given.lanes, given.columns] = kept | words & np.uint32(0xFFFF)
        state[given.lanes, given.columns, : given.width] = READY

    def _show_writes(self, use: Use) -> None:
        """Tells the observer of the writes of a use that comes too early, which does not take place."""
        for region in use.writes:
            lanes = np.array([lane for lane in range(LANES) if region.lanes >> lane & 1])
            columns = np.arange(region.first, region.end)
            self._show(use.warp, area(region.rank, lanes[:, None], columns[None]), use.lane, writes=True)

    def _show(self, warp: Warp, given: Area, lane: int, *, writes: bool) -> None:
        """Tells the observer of accesses."""
        if (journal := self.outer.journal) is not None:
            width = given.width
            cells = (given.region.rank * LANES + given.lanes) * COLUMNS + given.columns
            rows = cells.ravel() * (_CELL_BYTES // width)
            before = warp.mask_state()
            warp.spread(lane, len(rows))
            journal.see(self.space.name, warp, self.site, rows, width, writes=writes)
            warp.restore(before)


def words_of(space: CellSpace, rank: int) -> tuple[Words, NDArray[np.uint8]]:
    """The words of a block's cells, (lanes, columns), and the states of their bytes."""
    arena, size = space.arena, LANES * COLUMNS * _CELL_BYTES
    start = rank * arena.span
    words = arena.data[1].reshape(-1)[start : start + size].view(np.uint32)
    states = arena.state[1].reshape(-1)[start : start + size]
    return words.reshape(LANES, COLUMNS), states.reshape(LANES, COLUMNS, _CELL_BYTES)
