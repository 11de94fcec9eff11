# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each access to shared memory costs, found at stage `instr` without running the kernel."""

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ..dialects.ptx import SHARED, CpAsyncOp, EntryOp, LdMatrixOp, LoadOp, StMatrixOp, StoreOp, value_bytes
from ..layout.banks import wavefronts
from .lane_analysis import WarpValues
from .lane_values import WARP
from .ranges import Ranges

MATRIX_ROWS, ROW_BYTES = 8, 16
"""For each register of matrices, so many lanes give the address of a row."""
ADDRESS_BITS = 18
"""The bits of an address in shared memory that can be set: no block has more than 256 KiB."""


@dataclass(frozen=True, slots=True)
class SharedAccess:
    """An access to shared memory, `width` bytes a lane, and what it costs when each warp of a block executes it once.

    `warps` are those in which any lane takes part, `wavefronts` the passes over the banks that they need together and
    `least` those that they would need at best. What is found holds for every block and every iteration of the loops
    around it. Where it depends on values known only when the kernel runs, `unknown` says what, and the numbers are 0.
    """

    op: Operation
    width: int
    warps: int = 0
    wavefronts: int = 0
    least: int = 0
    unknown: str = ""


def shared_accesses(entry: EntryOp) -> list[SharedAccess]:
    """The accesses of a kernel at stage `instr`, in its order."""
    x, y, z = entry.block
    ranges = Ranges(entry)
    warps = [WarpValues(entry, number, ranges) for number in range(-(-x * y * z // WARP))]
    found: list[SharedAccess] = []
    for op in entry.walk():
        accessed = _accessed(op)
        if accessed is not None:
            found.append(_costs(op, *accessed, warps))
    return found


def _accessed(op: Operation) -> tuple[SSAValue, int, int] | None:
    """The address in shared memory that each lane gives, the bytes there, and how many lanes of a warp give one."""
    match op:
        case LoadOp() if op.ptr.type == SHARED:
            return op.ptr, value_bytes(op.result.type) or 0, WARP
        case StoreOp() if op.ptr.type == SHARED:
            return op.ptr, value_bytes(op.value.type) or 0, WARP
        case CpAsyncOp():
            return op.dst, op.bytes.value.data, WARP
        case LdMatrixOp() | StMatrixOp():
            return op.ptr, ROW_BYTES, MATRIX_ROWS * op.registers
        case _:
            return None


def _costs(op: Operation, pointer: SSAValue, width: int, count: int, warps: list[WarpValues]) -> SharedAccess:
    used = total = least = 0
    for warp in warps:
        address, lanes = warp.of(pointer), warp.active(op)
        if lanes is None:
            return SharedAccess(op, width, unknown="which threads take part is known only when the kernel runs")
        if address is None or address.mask % width or address.step % width or address.bits < ADDRESS_BITS:
            return SharedAccess(op, width, unknown="the address is known only when the kernel runs")
        lanes = tuple(lane for lane in lanes if lane < count)
        if lanes:
            # what all lanes add or xor permutes the banks, and changes no conflict
            places = [address.known[lane] % (1 << address.bits) for lane in lanes]
            now, best = wavefronts(places, lanes, width)
            used, total, least = used + 1, total + now, least + best
    return SharedAccess(op, width, used, total, least)
