# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for tensor maps in memory and the fences of their proxy (PTX ISA, tensormap.replace, tensormap.cp_fenceproxy
and fence.proxy.tensormap).
"""

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....base.spaces import GMEM
from ....dialects import ptx
from ..events import Step
from ..faults import site_of
from ..memory.spaces import Space
from ..memory.tensor_maps import begin_map, change_field, encode
from ..ordering.clocks import TENSOR_MAPS
from ..ordering.knowledge import acquire_map, fence_proxy, meet_lanes
from ..translate import Rules, Translator
from ..values import Value
from ..warp import Warp
from .ptx_memory import from_bytes, space_of

_UNIT = ptx.BULK_UNIT
_OFFSETS = range(0, ptx.MAP_BYTES, _UNIT)


class _Memory:
    """The maps of the active lanes in a memory."""

    def __init__(self, op: ptx.PtxOp, space: Space | None, t: Translator) -> None:
        assert space is not None, "the verifier checks this"
        self.space = space
        self.reads, self.writes = (t.access(op, space.row, kind, _UNIT) for kind in ("load", "store"))

    def first_of_equal(self, warp: Warp, address: Value, given: Value) -> None:
        """Leaves of the active lanes that do the same to a map the first one, as if they took turns."""
        acts = np.stack([warp.select(address), warp.select(given)], axis=1)
        chosen = np.zeros(warp.lanes, bool)
        chosen[warp.lane_numbers()[np.unique(acts, axis=0, return_index=True)[1]]] = True
        warp.narrow(chosen)

    def load(self, warp: Warp, address: Value) -> NDArray[np.uint8]:
        """The bytes of each lane's map, an array (active, 128)."""
        return np.concatenate([self.space.load(warp, self.reads, address + offset) for offset in _OFFSETS], axis=1)

    def store(self, warp: Warp, address: Value, content: NDArray[np.uint8]) -> None:
        """Writes an array (active, 128)."""
        for offset in _OFFSETS:
            part = np.ascontiguousarray(content[:, offset : offset + _UNIT])
            self.space.store(warp, self.writes, address + offset, part)


def _copy(op: ptx.CopyTensorMapOp, t: Translator) -> Step:
    source, target, memory = t.slot(op.map), t.slot(op.ptr), _Memory(op, space_of(t, op.ptr.type), t)
    others = _Memory(op, t.spaces.global_, t)

    def step(warp: Warp) -> None:
        before = warp.mask_state()
        memory.first_of_equal(warp, warp.registers[target], warp.registers[source])
        maps = [warp.launch.parameter_map(at) for at in warp.select(warp.registers[source]).tolist()]
        given = [encode(placed) for placed in maps if placed is not None]
        content = np.stack(given) if len(given) == len(maps) else others.load(warp, warp.registers[source])
        memory.store(warp, warp.registers[target], content)
        warp.restore(before)

    return step


def _load(op: ptx.LoadTensorMapOp, t: Translator) -> Step:
    source, result, offset = t.slot(op.map), t.slot(op.result), op.offset.value.data
    space, access, kind = t.spaces.global_, t.access(op, GMEM, "load", 8), t.kind(op.result)

    def step(warp: Warp) -> None:
        address = warp.registers[source]
        maps = [warp.launch.parameter_map(at) for at in warp.select(address).tolist()]
        given = [encode(placed)[offset : offset + 8] for placed in maps if placed is not None]
        content = np.stack(given) if len(given) == len(maps) else space.load(warp, access, address + offset)
        warp.registers[result] = from_bytes(warp, content, kind)

    return step


def _replace(op: ptx.TensorMapReplaceOp, t: Translator) -> Step:
    pointer, memory, site = t.slot(op.ptr), _Memory(op, space_of(t, op.ptr.type), t), site_of(op)
    field, name = ptx.MAP_FIELDS[op.field.data], op.field.data
    word = 0 if op.word is None else field.words.index(op.word.data)
    value = None if op.value is None else t.slot(op.value)
    reached = t.launch.reached if name == "global_address" else None

    def step(warp: Warp) -> None:
        before, address = warp.mask_state(), warp.registers[pointer]
        given = word if value is None else warp.registers[value]
        if reached is not None:
            given = reached.place(given)
        memory.first_of_equal(warp, address, given)
        content = memory.load(warp, address)
        for lane, row, new in zip(warp.lane_numbers().tolist(), content, warp.select(given).tolist(), strict=True):
            if not begin_map(row):
                text, hint = "there is no tensor map at the address", "copy one there first, by ptx.tensormap.copy"
                warp.fault(Code.TENSOR_MAP, site, lane, text, hint)
            change_field(row, name, op.dimension, new & ((1 << field.bits) - 1))
        memory.store(warp, address, content)
        warp.restore(before)

    return step


def _acquire(op: ptx.FenceTensorMapAcquireOp, t: Translator) -> Step:
    pointer = t.slot(op.ptr)

    def step(warp: Warp) -> None:
        for address in np.unique(warp.select(warp.registers[pointer])).tolist():
            acquire_map(warp, address)

    return step


def _cp_fence(op: ptx.TensorMapCpFenceOp, t: Translator) -> Step:
    site, target, source = site_of(op), t.slot(op.dst), t.slot(op.src)
    reads, writes = _Memory(op, t.spaces.shared, t), _Memory(op, t.spaces.global_, t)

    def step(warp: Warp) -> None:
        if warp.mask is not None:
            text = "the thread does not execute this instruction, which threads of its warp do"
            hint = "let all threads of a warp execute it"
            warp.fault(Code.SIM_CONVERGENCE, site, int((~warp.mask).argmax()), text, hint)
        before, lanes = warp.mask_state(), np.arange(warp.lanes)
        for number, offset in enumerate(_OFFSETS):  # a lane moves each 16 bytes, which is not documented
            warp.narrow(lanes == number % warp.lanes)
            content = reads.space.load(warp, reads.reads, warp.registers[source] + offset)
            writes.space.store(warp, writes.writes, warp.registers[target] + offset, content)
        warp.restore(before)
        meet_lanes(warp, lanes)
        fence_proxy(warp, (TENSOR_MAPS,))

    return step


PTX_TENSOR_MAP: Rules = {
    ptx.CvtaTensorMapOp: lambda op, t: t.compute(op.result, lambda address: address, op.ptr),
    ptx.CopyTensorMapOp: _copy,
    ptx.LoadTensorMapOp: _load,
    ptx.TensorMapReplaceOp: _replace,
    ptx.FenceTensorMapReleaseOp: lambda op, t: lambda warp: fence_proxy(warp, (TENSOR_MAPS,)),
    ptx.FenceTensorMapAcquireOp: _acquire,
    ptx.TensorMapCpFenceOp: _cp_fence,
}
