# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for the ptx dialect's addresses, loads, stores and allocations (PTX ISA, sections of these names)."""

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....base.spaces import LOCAL_WINDOW
from ....dialects import ptx
from ....dialects.arith.integer_range import wrap_signed
from ....dialects.ptx.address import fixed_pairs
from ..events import Step
from ..faults import site_of
from ..memory.arena import NAMED
from ..memory.provenance import element_at, fragment_name, key_of, name_of_view
from ..memory.spaces import Space
from ..translate import Rules, Translator
from ..values import Lanes, Value, ValueKind, add_address, per_lane, varies
from ..warp import Warp


def to_bytes(warp: Warp, value: Value, kind: ValueKind) -> NDArray[np.uint8]:
    """A value in each active lane as its bytes in memory: an array (active, bytes)."""
    lanes = per_lane(value, warp.lanes, kind)
    if warp.active_lanes is not None:
        lanes = lanes[warp.active_lanes]
    return np.ascontiguousarray(lanes).view(np.uint8).reshape(warp.active, kind.bytes)


def from_bytes(warp: Warp, content: NDArray[np.uint8], kind: ValueKind) -> Lanes:
    """The inverse of `to_bytes`: a value whose lanes that are not active hold zeros."""
    values = np.ascontiguousarray(content).view(kind.dtype)
    if kind.count is None:
        values = values[:, 0]
    return warp.in_lanes(values)


def space_of(t: Translator, type: ptx.PtrType) -> Space | None:
    """The state space of a pointer type; None for local."""
    return t.spaces.of(type.space.data)


def _ptr_add(op: ptx.PtrAddOp, t: Translator) -> Step:
    if op.within is None:
        return t.compute(op.result, add_address, op.ptr, op.offset)
    pointer, offset, result, bounds = t.slot(op.ptr), t.slot(op.offset), t.slot(op.result), t.slots(op.bounds)
    within, view = op.within, name_of_view(op, op.ptr)

    def step(warp: Warp) -> None:
        registers = warp.registers
        address = add_address(registers[pointer], registers[offset])
        fixed = fixed_pairs(within, [registers[slot] for slot in bounds])
        registers[result] = warp.led_outside(address, view, fixed)

    return step


def _inttoptr(op: ptx.IntToPtrOp, t: Translator) -> Step:
    reached = t.launch.reached if op.result.type == ptx.GLOBAL else None
    window = LOCAL_WINDOW if op.result.type == ptx.LOCAL else 0

    def place(number: Value) -> Value:
        given = (number.astype(np.int64) if varies(number) else number) - window
        return given if reached is None else reached.place(given)

    return t.compute(op.result, place, op.number)


def _ptrtoint(op: ptx.PtrToIntOp, t: Translator) -> Step:
    kind = t.kind(op.result)
    window = LOCAL_WINDOW if op.ptr.type == ptx.LOCAL else 0

    def number(address: Value) -> Value:
        address = address + window
        return address.astype(kind.dtype) if varies(address) else wrap_signed(address, kind.bits)

    return t.compute(op.result, number, op.ptr)


def _load(op: ptx.LoadOp, t: Translator) -> Step:
    pointer, result, kind = t.slot(op.ptr), t.slot(op.result), t.kind(op.result)
    space, site = space_of(t, op.ptr.type), site_of(op)
    if space is None:
        local, width = t.spaces.local, kind.bytes

        def from_local(warp: Warp) -> None:
            registers = warp.registers
            registers[result] = from_bytes(warp, local.load(warp, site, registers[pointer], width), kind)

        return from_local
    access = t.access(op, space.row, "load", kind.bytes)
    access.constant = op.cache is not None and op.cache.data.split(".")[0] == "nc"

    def step(warp: Warp) -> None:
        registers = warp.registers
        registers[result] = from_bytes(warp, space.load(warp, access, registers[pointer]), kind)

    return step


def _store(op: ptx.StoreOp, t: Translator) -> Step:
    value, pointer, kind = t.slot(op.value), t.slot(op.ptr), t.kind(op.value)
    space, site = space_of(t, op.ptr.type), site_of(op)
    if space is None:
        local = t.spaces.local

        def to_local(warp: Warp) -> None:
            registers = warp.registers
            local.store(warp, site, registers[pointer], to_bytes(warp, registers[value], kind))

        return to_local
    access = t.access(op, space.row, "store", kind.bytes)

    def step(warp: Warp) -> None:
        registers = warp.registers
        space.store(warp, access, registers[pointer], to_bytes(warp, registers[value], kind))

    return step


def _store_bulk(op: ptx.StoreBulkOp, t: Translator) -> Step:
    space, pointer, bytes, site = t.spaces.shared, t.slot(op.ptr), t.slot(op.bytes), site_of(op)
    access, width = t.access(op, space.row, "store", ptx.BULK_WORD), ptx.BULK_WORD

    def step(warp: Warp) -> None:
        sizes = warp.select(warp.registers[bytes])
        warp.note(site, "stores bytes by", sizes[:, None])
        if (sizes % width).any():
            index = int(np.argmax(sizes % width != 0))
            lane, text = (
                int(warp.lane_numbers()[index]),
                f"fills {sizes[index]} bytes, which is not a multiple of {width}",
            )
            warp.fault(Code.SIM_MISALIGNED, site, lane, text, f"fill a multiple of {width} bytes")
        before, lanes, address = warp.mask_state(), warp.lane_numbers(), warp.registers[pointer]
        for offset in range(0, int(sizes.max(initial=0)), width):
            filled = np.zeros(warp.lanes, bool)
            filled[lanes[sizes > offset]] = True
            warp.narrow(filled)
            space.store(warp, access, add_address(address, offset), np.zeros((warp.active, width), np.uint8))
        warp.restore(before)

    return step


def _createpolicy(op: ptx.CreatePolicyOp, t: Translator) -> Step:
    return t.compute(op.result, lambda: 0)  # how data is cached changes nothing that the simulator models


def _local_alloc(op: ptx.LocalAllocOp, t: Translator) -> Step:
    key = key_of(op, op.result, op.bytes.value.data)

    def element(byte: int) -> str | None:
        type = t.launch.facts.fragments().get(key)
        return None if type is None else element_at(type, byte)

    allocation = t.local(op.bytes.value.data, fragment_name(op.result.name_hint), element)
    result, local = t.slot(op.result), t.spaces.local

    def step(warp: Warp) -> None:
        warp.registers[result] = allocation.start
        local.define(warp, allocation)

    return step


def _smem_alloc(op: ptx.SmemAllocOp, t: Translator) -> None:
    name = op.result.name_hint
    called = "shared memory" if name is None else f"{NAMED}%{name}"
    t.constant(op.result, t.shared(op.bytes.value.data, op.align.value.data, called))


def _smem_addr(op: ptx.SmemAddrOp, t: Translator) -> None:
    t.constant(op.result, t.shared_start + op.offset.value.data)


PTX_MEMORY: Rules = {
    ptx.PtrAddOp: _ptr_add,
    ptx.IntToPtrOp: _inttoptr,
    ptx.PtrToIntOp: _ptrtoint,
    ptx.CreatePolicyOp: _createpolicy,
    ptx.LoadOp: _load,
    ptx.StoreOp: _store,
    ptx.StoreBulkOp: _store_bulk,
    ptx.LocalAllocOp: _local_alloc,
    ptx.SmemAllocOp: _smem_alloc,
    ptx.SmemAddrOp: _smem_addr,
}
