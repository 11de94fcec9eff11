# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for accesses to multicast memory (PTX ISA, sections multimem.*): an access to the memory of each device in
turn, by the rules of atomic accesses.
"""

from typing import TypeAlias

import numpy as np

from ....base.errors import Code
from ....dialects import ptx
from ..events import Step
from ..faults import Site, site_of
from ..memory.arena import Access, Atomic
from ..translate import Rules, Translator
from ..values import Value, ValueKind, narrow
from ..warp import Warp
from .ptx_atomic import changes
from .ptx_memory import from_bytes, to_bytes

_Op: TypeAlias = ptx.MultimemLdReduceOp | ptx.MultimemStOp | ptx.MultimemRedOp


def _places(warp: Warp, site: Site, address: Value) -> list[Value]:
    """The addresses in the memory of each device that a multicast address of the active lanes stands for, all lanes of
    one multicast; a fault for another address.
    """
    at = warp.select(address)
    for multicast in warp.launch.multicasts:
        inside = (at >= multicast.start) & (at < multicast.start + multicast.size)
        if inside.all():
            return [warp.in_lanes(at - multicast.start + part) for part in multicast.parts]
        if inside.any():
            at = at[~inside]
    lane = int(warp.lane_numbers()[0])
    text = f"the address {int(at[0]):#x} is not one of multicast memory"
    hint = "multimem takes addresses of a multicast tensor; ld, st and red take those of one device"
    warp.fault(Code.SIM_OUT_OF_BOUNDS, site, lane, text, hint)


def _access(op: _Op, t: Translator, what: str, kind: ValueKind) -> Access:
    """The access by an operation to the memory of any device."""
    access = t.access(op, t.spaces.global_.row, what, kind.bytes)
    access.scope, access.home = op.scope_name, None  # the address is outside the memory that is accessed
    return access


def _ld_reduce(op: ptx.MultimemLdReduceOp, t: Translator) -> Step:
    pointer, result, kind = t.slot(op.ptr), t.slot(op.result), t.kind(op.result)
    space, site, acquires = t.spaces.global_, site_of(op), op.order_name == "acquire"
    access = _access(op, t, "load", kind)
    combine = changes(op.kind.data, kind, t.launch.exact)
    is_sum_of_halves = kind.is_float and kind.dtype.itemsize == 2 and op.kind.data == "add"

    def step(warp: Warp) -> None:
        addresses = _places(warp, site, warp.registers[pointer])
        parts = [space.observe(warp, access, address, acquires=acquires) for address in addresses]
        if is_sum_of_halves:  # it is rounded once
            wide = sum(part.view(kind.dtype).astype(np.float32) for part in parts)
            total = np.ascontiguousarray(narrow(np.asarray(wide, np.float64), kind.dtype)).view(np.uint8)
        else:
            total = parts[0]
            for part in parts[1:]:
                total = combine(total, part)
        warp.registers[result] = from_bytes(warp, total.reshape(len(parts[0]), -1), kind)

    return step


def _st(op: ptx.MultimemStOp, t: Translator) -> Step:
    pointer, value, kind = t.slot(op.ptr), t.slot(op.value), t.kind(op.value)
    space, site, releases = t.spaces.global_, site_of(op), op.order_name == "release"
    access = _access(op, t, "store", kind)

    def step(warp: Warp) -> None:
        content = to_bytes(warp, warp.registers[value], kind)
        for address in _places(warp, site, warp.registers[pointer]):
            space.publish(warp, access, address, content, releases=releases)

    return step


def _red(op: ptx.MultimemRedOp, t: Translator) -> Step:
    pointer, value, kind = t.slot(op.ptr), t.slot(op.value), t.kind(op.value)
    space, site, releases = t.spaces.global_, site_of(op), op.order_name == "release"
    change = changes(op.kind.data, kind, t.launch.exact)
    access = _access(op, t, "atomic", kind)

    def step(warp: Warp) -> None:
        given = to_bytes(warp, warp.registers[value], kind)
        how = Atomic(lambda number, before: change(before, given[number]), False, releases, False)
        for address in _places(warp, site, warp.registers[pointer]):
            space.update(warp, access, address, how)

    return step


PTX_MULTIMEM: Rules = {
    ptx.MultimemLdReduceOp: _ld_reduce,
    ptx.MultimemStOp: _st,
    ptx.MultimemRedOp: _red,
}
