# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cost of each access to shared and global memory, computed at stage `instr` without running the kernel."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd
from types import MappingProxyType

from xdsl.ir import Operation, SSAValue

from ...base.spaces import GMEM, SMEM, Space, Traffic, sectors, wavefronts
from ...base.target import SECTOR_BYTES, WARP
from ...dialects.ptx import (
    GLOBAL,
    SHARED,
    AtomCasOp,
    AtomOp,
    CpAsyncOp,
    EntryOp,
    LdMatrixOp,
    LoadAcquireOp,
    LoadOp,
    PtrType,
    RedOp,
    StMatrixOp,
    StoreOp,
    StoreReleaseOp,
    value_bytes,
)
from . import lane_values as lv
from .lane_analysis import WarpValues
from .lane_values import LaneValue
from .ranges import Ranges

MATRIX_ROWS, ROW_BYTES = 8, 16
"""The lanes that give the address of a row, for each register of matrices."""
ADDRESS_BITS: Mapping[Space, int] = MappingProxyType({SMEM: 18, GMEM: 64})
"""The bits of an address that can be set: in shared memory, no block has more than 256 KiB."""
_LANES_UNKNOWN = "which threads take part is known only when the kernel runs"
_ADDRESS_UNKNOWN = "the address is known only when the kernel runs"


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """An access to memory, `width` bytes a lane, and its cost when each warp of a block executes it once.

    `warps` are those in which any lane takes part. `transactions` are wavefronts of shared memory (passes over the
    banks) or sectors of global memory (32 bytes) that they need together, and `least` those that they would need at
    best. The result holds for every block and every iteration of the loops around it; where an unknown offset moves
    it against the sectors, `most` is greater than `transactions`. Where it depends on values known only when the
    kernel runs, `unknown` names it, and the numbers are 0.

    A tensor in global memory is assumed to begin at a multiple of 32 bytes, as allocations do.
    """

    op: Operation
    space: Space
    width: int
    warps: int = 0
    transactions: int = 0
    most: int = 0
    least: int = 0
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class _Addressed:
    """The address that each of the first `lanes` of a warp gives, and the bytes there. With `size`, a lane that it is 0
    for does not read.
    """

    pointer: SSAValue
    width: int
    lanes: int = WARP
    size: SSAValue | None = None

    @property
    def space(self) -> Space:
        """The memory that is accessed."""
        assert isinstance(self.pointer.type, PtrType)
        return self.pointer.type.space.data


def memory_accesses(entry: EntryOp) -> list[MemoryAccess]:
    """The accesses of a kernel at stage `instr`, in its order; an asynchronous copy has the one to global memory
    first.
    """
    x, y, z = entry.block
    ranges = Ranges(entry)
    warps = [WarpValues(entry, number, ranges) for number in range(-(-x * y * z // WARP))]
    return [_count_costs(op, where, warps) for op in entry.walk() for where in _find_addresses(op)]


def _find_addresses(op: Operation) -> list[_Addressed]:
    match op:
        case LoadOp() if op.ptr.type in (GLOBAL, SHARED):
            return [_Addressed(op.ptr, value_bytes(op.result.type) or 0)]
        case StoreOp() if op.ptr.type in (GLOBAL, SHARED):
            return [_Addressed(op.ptr, value_bytes(op.value.type) or 0)]
        case CpAsyncOp():
            width = op.bytes.value.data
            return [_Addressed(op.src, width, size=op.src_size), _Addressed(op.dst, width)]
        case LdMatrixOp() | StMatrixOp():
            return [_Addressed(op.ptr, ROW_BYTES, MATRIX_ROWS * op.registers)]
        case LoadAcquireOp() if op.ptr.type == GLOBAL:
            return [_Addressed(op.ptr, value_bytes(op.result.type) or 0)]
        case StoreReleaseOp() | AtomOp() | RedOp() | AtomCasOp() if op.ptr.type == GLOBAL:
            return [_Addressed(op.ptr, value_bytes(op.value.type) or 0)]
        case _:
            return []


def _count_costs(op: Operation, where: _Addressed, warps: list[WarpValues]) -> MemoryAccess:
    space, width = where.space, where.width
    used = total = most = least = 0
    for warp in warps:
        address, lanes = warp.of(where.pointer), _find_active(op, where, warp)
        if lanes is None:
            return MemoryAccess(op, space, width, unknown=_LANES_UNKNOWN)
        if address is None or address.bits < ADDRESS_BITS[space] or (address.mask | address.step) % width:
            return MemoryAccess(op, space, width, unknown=_ADDRESS_UNKNOWN)
        if lanes:
            counts = _count_transactions(space, address, lanes, width)
            if counts is None:
                return MemoryAccess(op, space, width, unknown=_ADDRESS_UNKNOWN)
            used, total, most, least = used + 1, total + counts[0], most + counts[1], least + counts[2]
    return MemoryAccess(op, space, width, used, total, most, least)


def _find_active(op: Operation, where: _Addressed, warp: WarpValues) -> tuple[int, ...] | None:
    """The lanes that access memory whenever the warp does; None where that is not known."""
    lanes = warp.active(op)
    if lanes is None:
        return None
    lanes = tuple(lane for lane in lanes if lane < where.lanes)
    if where.size is None:
        return lanes
    size = warp.of(where.size)
    if size is None or not (size.is_exact or size.is_uniform):
        return None
    return tuple(lane for lane in lanes if size.known[lane]) if size.is_exact else lanes


def _places(address: LaneValue, lanes: tuple[int, ...]) -> list[int]:
    return [address.known[lane] % (1 << address.bits) for lane in lanes]


def _count_transactions(
    space: Space, address: LaneValue, lanes: tuple[int, ...], width: int
) -> tuple[int, int, int] | None:
    """The fewest and the most transactions that an access can need, and the least for its bytes; None if that is
    not known.
    """
    step = 0
    match space.traffic:
        case Traffic.WAVEFRONTS:
            # a term that all lanes add or xor permutes the banks, and changes no conflict
            now, best = wavefronts(_places(address, lanes), lanes, width)
            return now, now, best
        case Traffic.UNCOUNTED:
            return None
        case Traffic.SECTORS:
            step = address.step % SECTOR_BYTES
    if step:
        shifted = lv.as_shift(address)
        if shifted is None:
            return None
        address, step = shifted, shifted.step
    places = _places(address, lanes)
    # a term that all lanes xor permutes the sectors; so does a sum, in steps of a sector
    moves = range(0, SECTOR_BYTES, gcd(step, SECTOR_BYTES)) if step else range(1)
    counts = [sectors([place + move for place in places], width) for move in moves]
    numbers = [count for count, _ in counts]
    return min(numbers), max(numbers), counts[0][1]
