# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for TMA copies, of boxes that tensor maps describe (PTX ISA, cp.async.bulk.tensor)."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from ....base.errors import Code
from ....base.spaces import GMEM, SMEM
from ....dialects import ptx
from ....dialects.ptx.effects import Act, Group, does, proxy_of
from ....layout.algebra.inttuple import show
from ....layout.atoms.instructions import MATRIX
from ....layout.tma.recipe import PlacedMap
from ....layout.tma.tensor_map import SHARED_ALIGNMENT
from ..events import Step
from ..faults import site_of
from ..launch import Completion
from ..memory import bulk as memory
from ..memory.arena import Access
from ..memory.boxes import (
    Box,
    box_at,
    fill_box,
    find_misplaced,
    packing_of,
    pattern,
    places_of,
    rows_at,
    swizzle_text,
)
from ..memory.tensor_maps import map_at
from ..ordering import bulk
from ..ordering.asynchronous import AsyncOperation, InFlight, Source
from ..ordering.bulk import Change, Reduction
from ..ordering.cluster import map_to_rank, plain_address, rank_of
from ..translate import Rules, Translator
from ..warp import Warp
from .ptx_bulk import change_of, mbarrier_at, ranks_of
from .ptx_mbarrier import Barriers


class _Request(NamedTuple):
    """A copy of a lane: its map, its box, its address in shared memory, 0 where there is none, and the bytes of a map
    in memory, which must stay as they are.
    """

    lane: int
    placed: PlacedMap
    box: Box
    address: int
    maps: tuple[Source, ...]


class _Copies:
    """The copies of boxes by one operation, a box for each active lane."""

    def __init__(self, op: ptx.TmaCopyOp, t: Translator, shared: SSAValue | None = None) -> None:
        self.site, self.spaces = site_of(op), t.spaces
        self.map, self.coords = t.slot(op.map), t.slots(op.coords)
        self.shared = None if shared is None else t.slot(shared)
        self.stores = does(op, Act.ISSUES, Group.BULK)
        self.proxy, self.by_rows = proxy_of(op), op.by_rows
        self.outer = t.access(op, GMEM, "bulk", ptx.BULK_UNIT)
        self.inner = t.access(op, SMEM, "bulk", ptx.BULK_UNIT)

    def requests(self, warp: Warp) -> Iterator["_Request"]:
        """The copy of each active lane."""
        slots = (self.map, *self.coords) if self.shared is None else (self.map, *self.coords, self.shared)
        values = np.stack([warp.select(warp.registers[slot]) for slot in slots], axis=1)
        warp.note(self.site, "copies a box by", values)
        for lane, (at, *coords) in zip(warp.lane_numbers().tolist(), values.tolist(), strict=True):
            address: int = 0 if self.shared is None else coords.pop()
            placed, read = warp.launch.parameter_map(int(at)), None
            if placed is None:
                placed, read = map_at(self.spaces.global_, warp, self.outer, lane, int(at))
                if warp.launch.reached is not None:
                    placed = replace(placed, address=int(warp.launch.reached.place(placed.address)))
            maps = () if read is None else (read,)
            if not self.by_rows:
                self._check_place(warp, lane, placed, address)
                self._check_coordinates(warp, lane, placed, coords)
                yield _Request(lane, placed, box_at(placed, tuple(coords)), address, maps)
                continue
            column, *rows = coords
            if len(placed.map.box) != MATRIX or placed.map.box[1] != 1:
                text = f"the map of single rows has 2 dimensions and boxes of one row, not boxes {placed.map.box}"
                self._fault(warp, lane, text, "make a map of a matrix whose boxes have one row", Code.SIM_DESCRIPTOR)
            for row in rows:
                self._check_coordinates(warp, lane, placed, [column, row])
            whole, box = rows_at(placed, column, tuple(rows))
            self._check_place(warp, lane, whole, address)
            yield _Request(lane, whole, box, address, maps)

    def _check_place(self, warp: Warp, lane: int, placed: PlacedMap, address: int) -> None:
        if address % SHARED_ALIGNMENT:
            text = f"{self.spaces.shared.show(address)} of a TMA copy is not a multiple of {SHARED_ALIGNMENT} bytes"
            self._fault(warp, lane, f"the shared address {text}", "align the tile in shared memory")
        period = pattern(placed)
        if address % period and placed.map.shared_bytes % period == 0:
            text = f"{self.spaces.shared.show(address)}, which is not a multiple of {period} bytes"
            hint = f"align the tile to {period} bytes: the swizzle applies to addresses, not to offsets in the tile"
            self._fault(warp, lane, f"a swizzled box begins at the shared address {text}", hint)

    def _check_coordinates(self, warp: Warp, lane: int, placed: PlacedMap, coords: list[int]) -> None:
        """Refuses coordinates at which an H200 stops with an illegal instruction, and stores in which it writes more
        than it should: both measured, neither in the PTX ISA.
        """
        bits, unit = placed.map.bits, ptx.BULK_UNIT
        first, row = coords[0] * bits // 8, placed.map.dims[0] * bits // 8
        if first % unit:
            text = f"a box begins {first} bytes from the start of a row, which is not a multiple of {unit}"
            self._fault(warp, lane, text, f"the first coordinate is a multiple of {8 * unit // bits} elements")
        if not self.stores:
            return
        if placed.map.padded:
            text = f"stores elements of {bits} bits without the bytes that pad them, which the simulator does not model"
            self._fault(warp, lane, text, "store them by threads", Code.SIM_UNSUPPORTED)
        if min(coords) < 0:
            text = f"a stored box begins at the coordinates {show(tuple(coords))}, before the tensor"
            self._fault(warp, lane, text, "only loads may begin at coordinates below 0", Code.SIM_OUT_OF_BOUNDS)
        if row % unit and first < row < first + placed.map.box[0] * bits // 8:
            text = f"a box that is stored ends the rows of the tensor, of {row} bytes, by a whole {unit} bytes"
            hint = f"GPUs write the {unit - row % unit} bytes after them too: store tensors whose rows are multiples of"
            self._fault(warp, lane, text, f"{hint} {unit} bytes", Code.SIM_OUT_OF_BOUNDS)

    def _fault(self, warp: Warp, lane: int, text: str, hint: str, code: Code = Code.SIM_MISALIGNED) -> NoReturn:
        warp.fault(code, self.site, lane, text, hint)

    def inside(self, warp: Warp, lane: int, box: Box, reads: bool) -> tuple[Access, NDArray[np.int64]]:
        """The rows of the tensor that are in a box, and an access of their width, for its faults."""
        access = replace(self.outer, width=box.width)
        rows = memory.rows_at(self.spaces.global_, warp, access, lane, box.addresses[box.inside], reads)
        _add(self.outer, access)
        return access, rows

    def stored(
        self, warp: Warp, lane: int, placed: PlacedMap, box: Box, address: int
    ) -> tuple[Source, NDArray[np.uint8]]:
        """The rows of shared memory that go to the tensor, and their bytes."""
        access = replace(self.inner, width=box.width)
        places = places_of(placed, address, box.width)[box.inside]
        rows = memory.rows_at(self.spaces.shared, warp, access, lane, places, reads=True)
        _add(self.inner, access)
        self._check_swizzle(warp, lane, placed, places, rows, box.width)
        content = memory.read(self.spaces.shared, warp, access, lane, rows)
        memory.remark_fenced_late(self.spaces.shared, warp, access, lane, rows)
        return Source(self.spaces.shared, rows, box.width, np.full(len(rows), lane)), content

    def _check_swizzle(
        self, warp: Warp, lane: int, placed: PlacedMap, places: NDArray[np.int64], rows: NDArray[np.int64], width: int
    ) -> None:
        """A fault where a TMA copy has written the rows by a swizzle that puts other bytes there."""
        space, bits = self.spaces.shared, placed.map.swizzle_bits
        written = space.swizzles[rows * width // ptx.BULK_UNIT]
        wrong = find_misplaced(places, bits, written)
        if space.shadow is None or not wrong.any():
            return
        wrong &= space.shadow.by_async(rows, width)
        if wrong.any():
            at = int(wrong.argmax())
            where, before = space.show_row(int(rows[at]), width), swizzle_text(int(written[at]) - 1)
            text = f"reads {where} by {swizzle_text(bits)}, where a TMA copy has written by {before}"
            hint = "let both tensor maps have the swizzle of the tile's layout"
            warp.fault(Code.SIM_DESCRIPTOR, self.site, lane, text, hint)

    def store(
        self,
        warp: Warp,
        lane: int,
        rows: NDArray[np.int64],
        width: int,
        stored: tuple[Source, NDArray[np.uint8]],
        further: tuple[Source, ...],
        change: Change | None = None,
    ) -> None:
        """Starts writing rows of the tensor, as a part of the lane's bulk group."""
        source, content = stored
        lanes, space = np.full(len(rows), lane), self.spaces.global_
        groups = warp.bulk_groups[lanes]
        of_all = self.site, self.proxy, warp, lanes, groups, space, rows, width, content, source
        space.hold(warp, rows, width)
        warp.block.cluster.reads_late = True
        operation = AsyncOperation(*of_all) if change is None else Reduction(*of_all, change=change)
        operation.further = further
        warp.state(InFlight).stores.append(operation)


def _add(total: Access, part: Access) -> None:
    """Takes over the counts of an access of another width, which began as a copy."""
    total.requests, total.threads = part.requests, part.threads
    total.transactions, total.minimum = part.transactions, part.minimum


def _load(op: ptx.TensorLoadOp, t: Translator) -> Step:
    copies, barriers, bar = _Copies(op, t, op.dst), Barriers(op, op.bar, t, "async"), t.slot(op.bar)
    mask = None if op.multicast is None else t.slot(op.multicast)
    multicast = copies.inner if mask is None else t.access(op, SMEM, "multicast", ptx.BULK_UNIT)
    space, outer, units, pair = t.spaces.shared, t.spaces.global_, ptx.BULK_UNIT, op.pair is not None

    def step(warp: Warp) -> None:
        bars = warp.select(warp.registers[bar]).tolist()
        masks = [None] * warp.active if mask is None else warp.select(warp.registers[mask]).tolist()
        for at, chosen, (lane, placed, box, address, maps) in zip(bars, masks, copies.requests(warp), strict=True):
            access, read = copies.inside(warp, lane, box, reads=True)
            content = fill_box(placed, box, memory.read(outer, warp, access, lane, read))
            source = Source(outer, read, box.width, np.full(len(read), lane)) if len(read) else None
            places, packing = places_of(placed, address, units), packing_of(placed)
            for number, rank in enumerate(ranks_of(warp, copies.site, lane, chosen)):
                where = at if chosen is None else map_to_rank(at, rank)
                barrier = mbarrier_at(warp, barriers, lane, _in_pair(warp, at, rank) if pair else where)
                rows = memory.rows_at(space, warp, multicast if number else copies.inner, lane, places, reads=False)
                rows += (rank - warp.block.rank) * (space.arena.span // units)
                memory.claim(
                    space, warp, copies.inner, lane, rows, content, placed.map.swizzle_bits, origins=box.origins,
                    packing=packing,
                )  # fmt: skip
                space.hold(warp, rows, units)
                lanes = np.full(len(rows), lane)
                operation = AsyncOperation(
                    copies.site, copies.proxy, warp, lanes, np.zeros_like(lanes), space, rows, units, content, source,
                    further=maps,
                )  # fmt: skip
                warp.block.cluster.reads_late = True
                warp.state(InFlight).loads.append(operation)
                barrier.add(operation, placed.map.bytes)
                if warp.launch.completion is Completion.EARLY:
                    barrier.land()

    return step


def _in_pair(warp: Warp, address: int, rank: int) -> int:
    """The address of the mbarrier of a copy to the block of a rank: in that block or the other one of its pair, the one
    as even or odd as that of `address`.
    """
    chosen = rank & ~1 | int(rank_of(warp, address)) & 1
    return int(map_to_rank(plain_address(address), chosen))


def _store(op: ptx.TensorStoreOp, t: Translator) -> Step:
    copies, space = _Copies(op, t, op.src), t.spaces.global_

    def step(warp: Warp) -> None:
        for lane, placed, box, address, maps in copies.requests(warp):
            stored = copies.stored(warp, lane, placed, box, address)
            access, rows = copies.inside(warp, lane, box, reads=False)
            if len(rows):
                memory.claim(space, warp, access, lane, rows, stored[1])
                copies.store(warp, lane, rows, box.width, stored, maps)

    return step


def _reduce(op: ptx.TensorReduceOp, t: Translator) -> Step:
    copies, space, kind = _Copies(op, t, op.src), t.spaces.global_, op.kind.data

    def step(warp: Warp) -> None:
        for lane, placed, box, address, maps in copies.requests(warp):
            stored = copies.stored(warp, lane, placed, box, address)
            access, rows = copies.inside(warp, lane, box, reads=False)
            if not len(rows):
                continue
            change = change_of(kind, placed.element, space.arena.data[box.width], t.launch.exact)
            others = bulk.reductions(warp.block.cluster, change.kind)
            memory.claim_reduction(space, warp, access, lane, rows, others)
            copies.store(warp, lane, rows, box.width, stored, maps, change)

    return step


def _prefetch(op: ptx.TensorPrefetchOp, t: Translator) -> Step:
    copies = _Copies(op, t)

    def step(warp: Warp) -> None:
        for lane, _, box, _, _ in copies.requests(warp):
            copies.inside(warp, lane, box, reads=True)

    return step


def _prefetch_map(op: ptx.PrefetchTensorMapOp, t: Translator) -> None:
    return None


PTX_TMA: Rules = {
    ptx.TensorLoadOp: _load,
    ptx.TensorStoreOp: _store,
    ptx.TensorReduceOp: _reduce,
    ptx.TensorPrefetchOp: _prefetch,
    ptx.PrefetchTensorMapOp: _prefetch_map,
}
