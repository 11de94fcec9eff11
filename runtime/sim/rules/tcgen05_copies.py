# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for loads from tensor memory, stores, copies from shared memory and shifts (PTX ISA, tcgen05)."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from ....base.errors import Code
from ....base.spaces import SMEM
from ....base.target import WARP
from ....dialects.ptx.tcgen05.copies import (
    TensorLoadReducedOp,
    TensorLoadRegistersOp,
    TensorShiftOp,
    TensorStoreRegistersOp,
    TmaCopySharedOp,
)
from ....layout.atoms.tcgen05_shapes import COPY_SHAPES, UNPACKED, shape_named
from ..events import Step
from ..faults import Site, site_of
from ..memory import bulk
from ..tcgen05.arithmetic import PLACES, unpacked
from ..tcgen05.cells import Area, TensorCells, Words, area
from ..tcgen05.columns import peers
from ..tcgen05.matrices import ROW, shared_matrix
from ..tcgen05.order import Region, Use
from ..tcgen05.pipe import TensorWork, issue
from ..translate import Rules, Translator
from ..values import Value, varies
from ..warp import Warp

_HALF = WARP // 2
"""The lanes of a half of 16x32bx2."""


def check_whole(warp: Warp, site: Site, instruction: str) -> None:
    """A fault (E3208) unless all lanes of a full warp are active."""
    if not warp.is_whole:
        text = f"{warp.active} lanes execute {instruction}; all {WARP} of the warp must"
        warp.fault(Code.SIM_CONVERGENCE, site, None, text, "move it out of divergent control flow")


def one_lane(warp: Warp, site: Site, instruction: str) -> int:
    """The lane that executes an instruction of one thread. A fault where several do."""
    lanes = warp.lane_numbers()
    if len(lanes) != 1:
        text = f"{len(lanes)} lanes of the warp execute {instruction}, and each issues it"
        warp.fault(Code.SIM_TENSOR_ISSUE, site, int(lanes[0]), text, "let one thread execute it: ptx.elect.sync")
    return int(lanes[0])


def same(warp: Warp, value: Value) -> int:
    """The value in the only active lane."""
    return int(warp.select(value)[0]) if varies(value) else int(value)


@lru_cache(maxsize=256)
def _cells(shape: str, count: int, packed: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The lanes and columns of a shape executed `count` times, (lanes of the warp, registers[, 2])."""
    form = shape_named(shape)
    found = [[form.cell(t, j) for j in range(count * form.registers)] for t in range(WARP)]
    lanes, columns = np.moveaxis(np.array(found), 2, 0)
    if packed:
        lanes, columns = lanes[..., None].repeat(2, axis=2), columns[..., None] * 2 + np.arange(2)
    return lanes, columns


class CellAccess:
    """Loads and stores of a shape, executed `count` times, by one operation of the program."""

    def __init__(self, site: Site, t: Translator, name: str, shape: str, count: int, packed: bool,
                 distance: int) -> None:  # fmt: skip
        self.site, self.form, self.cells = site, shape_named(shape), TensorCells(site, t)
        self.packed, self.distance, self.name = packed, distance, name
        self.lanes, self.columns = _cells(shape, count, packed)

    def _area(self, warp: Warp, address: Value) -> tuple[Area, tuple[Region, ...]]:
        """The cells from an address on, of the warp's own lanes, and their regions: of two halves one each, since other
        accesses may use the columns between them.
        """
        check_whole(warp, self.site, self.name)
        lane, column = self.cells.address(warp, address)
        first = self.cells.own_lane(warp, lane, self.form.lanes)
        columns = self.columns + column
        if self.distance:
            far = np.where(np.arange(WARP) < _HALF, 0, self.distance)
            columns = columns + far.reshape(-1, *[1] * (columns.ndim - 1))
        found = area(warp.block.rank, self.lanes + first, columns, 2 if self.packed else 4)
        parts = [found]
        if self.distance:
            halves = slice(_HALF), slice(_HALF, None)
            parts = [area(warp.block.rank, found.lanes[half], found.columns[half], found.width) for half in halves]
        for part in parts:
            self.cells.check_columns(warp, part)
        return found, tuple([part.region for part in parts])

    def load(self, warp: Warp, address: Value) -> Words:
        """The registers of a load, (lanes of the warp, registers)."""
        found, regions = self._area(warp, address)
        self.cells.begin(warp, Use(self.site, warp, 0, "ld", regions, ()))
        words = self.cells.read(warp, found)
        if self.packed:
            low, high = words[..., 0] & np.uint32(0xFFFF), words[..., 1] & np.uint32(0xFFFF)
            words = low | high << np.uint32(16)
        return np.ascontiguousarray(words)

    def store(self, warp: Warp, address: Value, words: Words) -> None:
        """A store of registers, (lanes of the warp, registers)."""
        found, regions = self._area(warp, address)
        self.cells.begin(warp, Use(self.site, warp, 0, "st", (), regions))
        if self.packed:
            words = np.stack([words & np.uint32(0xFFFF), words >> np.uint32(16)], axis=2)
        self.cells.write(warp, found, words)


def _access(op: TensorLoadRegistersOp | TensorStoreRegistersOp | TensorLoadReducedOp, t: Translator) -> CellAccess:
    return CellAccess(site_of(op), t, op.mnemonic(), op.shape.data, op.count, op.packs, op.distance)


def _load(op: TensorLoadRegistersOp, t: Translator) -> Step:
    access, address, result = _access(op, t), t.slot(op.address), t.slot(op.result)

    def step(warp: Warp) -> None:
        warp.registers[result] = access.load(warp, warp.registers[address]).view(np.int32)

    return step


def _load_reduced(op: TensorLoadReducedOp, t: Translator) -> Step:
    access, address, result, reduced = _access(op, t), t.slot(op.address), t.slot(op.result), t.slot(op.reduced)
    act, *more, type = op.kind.data.split(".")

    def step(warp: Warp) -> None:
        words = access.load(warp, warp.registers[address])
        warp.registers[result] = words.view(np.int32)
        if type != "f32":
            numbers = words.view(np.int32 if type == "s32" else np.uint32)
            warp.registers[reduced] = (numbers.min if act == "min" else numbers.max)(axis=1).view(np.int32)
            return
        values = words.view(np.float32)
        values = np.abs(values) if "abs" in more else values
        if "NaN" in more:
            warp.registers[reduced] = (values.min if act == "min" else values.max)(axis=1)
        else:
            warp.registers[reduced] = (np.fmin if act == "min" else np.fmax).reduce(values, axis=1)

    return step


def _store(op: TensorStoreRegistersOp, t: Translator) -> Step:
    access, address, value, count = _access(op, t), t.slot(op.address), t.slot(op.value), op.registers

    def step(warp: Warp) -> None:
        given = np.broadcast_to(np.asarray(warp.registers[value]), (WARP, count))
        access.store(warp, warp.registers[address], np.ascontiguousarray(given).view(np.uint32))

    return step


class SharedCopies:
    """Copies of a shape from shared memory by one operation of the program, for a block or a pair; where the elements
    are narrow, of 4 or 6 `bits`, each gets a byte.
    """

    def __init__(self, op: Operation, t: Translator, name: str, shape: str, blocks: int, bits: int = 0) -> None:
        self.site, self.cells, self.shape = site_of(op), TensorCells(site_of(op), t), COPY_SHAPES[shape]
        self.blocks, self.name, self.bits = blocks, name, bits
        self.shared, self.access = t.spaces.shared, t.access(op, SMEM, "matrix", ROW)
        self.lanes = np.array([self.shape.lanes(row) for row in range(self.shape.rows)])

    def start(self, warp: Warp, lane: int, address: Value, descriptor: int) -> None:
        """Starts a copy of the matrix of a descriptor to the cells from an address on."""
        shape, cells, shared = self.shape, self.cells, self.shared
        first, column = cells.address(warp, address)
        rows: list[NDArray[np.int64]] = []
        found: list[tuple[Area, Words]] = []
        for block in peers(warp, self.blocks, self.site):
            part = area(block.rank, self.lanes[:, :, None] + first, column + np.arange(shape.columns)[None, None])
            cells.check_columns(warp, part)
            given = shared_matrix(descriptor & (1 << 64) - 1, shape.rows, 4 * shape.columns, 8, False)
            if given.problem:
                warp.fault(Code.SIM_DESCRIPTOR, self.site, lane, f"the descriptor of the matrix: {given.problem}")
            at = bulk.rows_at(shared, warp, self.access, lane, given.addresses.ravel(), reads=True)
            at = at + (block.rank - warp.block.rank) * (shared.arena.span // ROW)
            content = bulk.read(shared, warp, self.access, lane, at)
            if self.bits:
                content = unpacked(content, self.bits) << PLACES[self.bits]
            words = np.ascontiguousarray(content).view(np.uint32).reshape(shape.rows, 1, shape.columns)
            found.append((part, np.broadcast_to(words, part.lanes.shape)))
            rows.append(at)
        use = Use(self.site, warp, lane, "cp", (), tuple([part.region for part, _ in found]), shape.name)
        cells.begin(warp, use)
        for part, words in found:
            cells.write(warp, part, words, lane)
        issue(TensorWork(use, shared, np.unique(np.concatenate(rows)), ROW))


def _copy(op: TmaCopySharedOp, t: Translator) -> Step:
    name, site, address, matrix = op.mnemonic(), site_of(op), t.slot(op.address), t.slot(op.matrix)
    bits = 0 if op.unpack is None else UNPACKED[op.unpack.data]
    copies = SharedCopies(op, t, name, op.shape.data, op.blocks, bits)

    def step(warp: Warp) -> None:
        lane = one_lane(warp, site, name)
        copies.start(warp, lane, warp.registers[address], same(warp, warp.registers[matrix]))

    return step


def _shift(op: TensorShiftOp, t: Translator) -> Step:
    site, cells, name = site_of(op), TensorCells(site_of(op), t), op.mnemonic()
    address, blocks, shared = t.slot(op.address), op.blocks, t.spaces.shared

    def step(warp: Warp) -> None:
        lane = one_lane(warp, site, name)
        first, column = cells.address(warp, warp.registers[address])
        if first % WARP:
            text = f"shifts rows from lane {first} of tensor memory on, which is not a multiple of {WARP}"
            cells.fault(warp, Code.SIM_TENSOR_LANES, text, "begin at lane 0, 32, 64 or 96", lane)
        lanes, columns = np.arange(first, 128)[:, None], column + np.arange(8)[None]
        parts = [area(block.rank, lanes, columns) for block in peers(warp, blocks, site)]
        for part in parts:
            cells.check_columns(warp, part)
        regions = tuple([part.region for part in parts])
        use = Use(site, warp, lane, "shift", regions, regions)
        cells.begin(warp, use)
        for part in parts:
            words = cells.read(warp, part, lane)
            cells.write(warp, part, np.concatenate([words[1:], words[-1:]]), lane)
        issue(TensorWork(use, shared, np.zeros(0, np.int64), ROW))

    return step


TCGEN05_COPIES: Rules = {
    TensorLoadRegistersOp: _load,
    TensorLoadReducedOp: _load_reduced,
    TensorStoreRegistersOp: _store,
    TmaCopySharedOp: _copy,
    TensorShiftOp: _shift,
}
