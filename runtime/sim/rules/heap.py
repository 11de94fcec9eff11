# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The heap of a kernel: malloc and free (CUDA C++ Programming Guide, Dynamic Global Memory Allocation and Operations);
and discard, which makes bytes undefined (PTX ISA, discard).

An allocation lies behind a gap that no access may touch, and memory that was freed is not given again, so that an
access beyond an allocation, or after free, is a fault as elsewhere. The gap holds the heap's record of it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....dialects import ptx
from ..events import Step
from ..faults import site_of
from ..memory.arena import ABSENT, UNWRITTEN, Allocation
from ..memory.spaces import Space
from ..translate import Translator
from ..warp import Warp

ALIGN = 16
"""The alignment of allocations, and the bytes of a gap."""
DISCARDED = 128
"""The bytes that one discard makes undefined."""
_LIVE, _FREED = 1, 2


@dataclass(frozen=True, slots=True)
class _Heap:
    """The heap from an offset in global memory on. Its first word holds the bytes that are in use, the gap before each
    allocation its size and whether it lives.
    """

    space: Space
    start: int
    size: int

    def words(self, offset: int) -> NDArray[np.uint64]:
        """The two words at a multiple of 16 bytes, which can be changed."""
        return self.space.arena.data[16][offset // 16].view(np.uint64)

    def take(self, bytes: int) -> int:
        """The offset of new undefined bytes; -1 where the heap has too few."""
        head, arena = self.words(self.start), self.space.arena
        if not head[0]:
            arena.remove(self.start, self.size)
            head[0] = ALIGN
        begin, room = self.start + int(head[0]) + ALIGN, -(-max(bytes, 1) // ALIGN) * ALIGN
        if begin + room + ALIGN > self.start + self.size:
            return -1
        self.words(begin - ALIGN)[:] = bytes, _LIVE
        head[0] += ALIGN + room
        arena.state[1][begin : begin + bytes] = UNWRITTEN
        gap = f"the gap behind an allocation of {bytes} bytes by malloc"
        arena.parts += (
            Allocation("an allocation by malloc", begin, bytes),
            Allocation(gap, begin + bytes, room - bytes + ALIGN),
        )
        return begin

    def give(self, offset: int) -> str | None:
        """Ends an allocation. The problem if none begins there."""
        begins = self.start < offset < self.start + int(self.words(self.start)[0]) + ALIGN and not offset % ALIGN
        known = self.words(offset - ALIGN) if begins else np.zeros(2, np.uint64)
        if known[1] == _FREED:
            return "frees memory that is already freed"
        if known[1] != _LIVE or self.space.arena.state[1][offset - ALIGN, 0] != ABSENT:
            return "frees an address that malloc has not returned"
        self.space.arena.remove(offset, int(known[0]))
        known[1] = _FREED
        return None


def discard(op: ptx.InlineOp, t: Translator) -> Step:
    """The step of the text DISCARD."""
    space = t.spaces.of(ptx.GLOBAL.space.data)
    assert space is not None
    access, (pointer,) = t.access(op, space.row, "store", ALIGN), t.slots(op.args)

    def step(warp: Warp) -> None:
        for part in range(0, DISCARDED, ALIGN):
            rows = space.claim(warp, access, warp.registers[pointer] + part)
            space.arena.state[ALIGN][rows] = UNWRITTEN

    return step


def heap_call(op: ptx.InlineOp, t: Translator) -> Step:
    """The step of a text in HEAP_CALLS."""
    space, site = t.spaces.of(ptx.GLOBAL.space.data), site_of(op)
    assert space is not None
    given, heap_slot = t.slots(op.args)

    def heap_of(warp: Warp) -> _Heap:
        start = int(warp.select(warp.registers[heap_slot])[0]) - space.base
        return _Heap(space, start, next(a.size for a in space.arena.allocations if a.start == start))

    def free(warp: Warp) -> None:
        heap = heap_of(warp)
        for lane, address in zip(
            warp.lane_numbers().tolist(), warp.select(warp.registers[given]).tolist(), strict=True
        ):
            problem = heap.give(address - space.base) if address else None
            if problem is not None:
                hint = "give free each address that malloc has returned once"
                warp.fault(Code.SIM_OUT_OF_BOUNDS, site, lane, f"{problem}: {space.show(address)}", hint)

    if not op.res:
        return free
    result = t.slot(op.res[0])

    def malloc(warp: Warp) -> None:
        heap = heap_of(warp)
        sizes = warp.select(warp.registers[given]).astype(np.uint64).tolist()
        found = [heap.take(int(size)) for size in sizes]
        addresses = np.array([space.address(at) if at >= 0 else 0 for at in found], np.int64)
        warp.registers[result] = warp.in_lanes(addresses)

    return malloc
