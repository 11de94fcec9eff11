# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for the ptx dialect's addresses, loads, stores, allocations and ldmatrix (PTX ISA, sections of these
names).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....dialects import ptx
from ....layout.errors import Code as ErrorCode
from ..faults import site_of
from ..spaces import Space
from ..translate import Rules, Step, Translator
from ..values import Kind, Lanes, Value, per_lane, varies, wrap
from ..warp import WARP, Warp


def to_bytes(warp: Warp, value: Value, kind: Kind) -> NDArray[np.uint8]:
    """A value in each active lane as its bytes in memory: an array (active, bytes)."""
    lanes = per_lane(value, warp.lanes, kind)
    if warp.active_lanes is not None:
        lanes = lanes[warp.active_lanes]
    return np.ascontiguousarray(lanes).view(np.uint8).reshape(warp.active, kind.bytes)


def from_bytes(warp: Warp, content: NDArray[np.uint8], kind: Kind) -> Lanes:
    """The inverse of `to_bytes`: a value whose lanes that are not active hold zeros."""
    values = np.ascontiguousarray(content).view(kind.dtype)
    if kind.count is None:
        values = values[:, 0]
    if warp.active_lanes is None:
        return values
    whole = np.zeros((warp.lanes, *values.shape[1:]), kind.dtype)
    whole[warp.active_lanes] = values
    return whole


def space_of(t: Translator, type: Any) -> Space | None:
    """The state space of a pointer type; None for local."""
    assert isinstance(type, ptx.PtrType)
    return {
        ptx.StateSpace.Global: t.spaces.global_,
        ptx.StateSpace.Shared: t.spaces.shared,
        ptx.StateSpace.Local: None,
    }[type.space.data]


def _ptr_add(op: ptx.PtrAddOp, t: Translator) -> Step:
    pointer, offset, result = t.slot(op.ptr), t.slot(op.offset), t.slot(op.result)

    def step(warp: Warp) -> None:
        registers = warp.registers
        registers[result] = add_address(registers[pointer], registers[offset])

    return step


def add_address(address: Value, offset: Value) -> Value:
    """A 64-bit address plus a signed offset of any width."""
    if varies(offset) and offset.dtype != np.int64:
        offset = offset.astype(np.int64)
    total = address + offset
    return wrap(total, 64) if isinstance(total, int) else total


def _load(op: ptx.LoadOp, t: Translator) -> Step:
    pointer, result, kind = t.slot(op.ptr), t.slot(op.result), t.kind(op.result)
    space, site = space_of(t, op.ptr.type), site_of(op)
    if space is None:
        local, width = t.spaces.local, kind.bytes

        def from_local(warp: Warp) -> None:
            registers = warp.registers
            registers[result] = from_bytes(warp, local.load(warp, site, registers[pointer], width), kind)

        return from_local
    access = t.access(op, space.name, "load", kind.bytes)

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
    access = t.access(op, space.name, "store", kind.bytes)

    def step(warp: Warp) -> None:
        registers = warp.registers
        space.store(warp, access, registers[pointer], to_bytes(warp, registers[value], kind))

    return step


def _local_alloc(op: ptx.LocalAllocOp, t: Translator) -> Step:
    allocation = t.local(op.bytes.value.data)
    result, local = t.slot(op.result), t.spaces.local

    def step(warp: Warp) -> None:
        warp.registers[result] = allocation.start
        local.define(warp, allocation)

    return step


def _smem_alloc(op: ptx.SmemAllocOp, t: Translator) -> None:
    t.constant(op.result, t.shared(op.bytes.value.data, op.align.value.data))


def _smem_addr(op: ptx.SmemAddrOp, t: Translator) -> None:
    t.constant(op.result, t.shared_start + op.offset.value.data)


def _ldmatrix(op: ptx.LdMatrixOp, t: Translator) -> Step:
    pointer, result, site = t.slot(op.ptr), t.slot(op.result), site_of(op)
    count, transposed = op.num.value.data, op.trans is not None
    shared = t.spaces.shared
    access = t.access(op, shared.name, "matrix", 16)

    def step(warp: Warp) -> None:
        if warp.active < WARP:
            text = f"ldmatrix is executed by {warp.active} lanes; all {WARP} of the warp must"
            warp.fault(ErrorCode.SIM_CONVERGENCE, site, None, text, "move it out of divergent control flow")
        address = warp.select(warp.registers[pointer])
        warp.narrow(np.arange(WARP) < 8 * count)  # only these lanes' addresses are used
        matrices = shared.load(warp, access, address).view(np.uint16).reshape(count, 8, 8)
        warp.narrow(np.ones(WARP, bool))
        if transposed:
            matrices = matrices.transpose(0, 2, 1)
        # Lane t receives of each matrix elements 2*(t % 4) and the next of row t / 4: reading row by row,
        # pair t.
        pairs = np.ascontiguousarray(matrices).view(np.int32).reshape(count, 32)
        warp.registers[result] = np.ascontiguousarray(pairs.T)

    return step


PTX_MEMORY: Rules = {
    ptx.PtrAddOp: _ptr_add,
    ptx.LoadOp: _load,
    ptx.StoreOp: _store,
    ptx.LocalAllocOp: _local_alloc,
    ptx.SmemAllocOp: _smem_alloc,
    ptx.SmemAddrOp: _smem_addr,
    ptx.LdMatrixOp: _ldmatrix,
}
