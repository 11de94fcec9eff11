# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of warpgroups, before LLVM sees them: whole warpgroups must execute them, with enough registers."""

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation

from ...base.errors import Code
from ...base.occupancy import REGISTERS
from ...base.target import MAX_REGISTERS, REGISTER_UNIT, WARP, WARPGROUP
from ...dialects.ptx import EntryOp, SetMaxNRegOp, WgmmaMmaAsyncOp
from ...dialects.ptx.effects import Agent, agent_of
from ...dialects.tile.wgmma_rules import OTHER_REGISTERS
from ...passes.analysis.lane_analysis import WarpValues
from ...passes.analysis.ranges import Ranges
from ...passes.analysis.wgmma_fragments import Fragments, WarpgroupFragments
from ...passes.errors import LoweringError


def check_warpgroups(entry: EntryOp, fragments: WarpgroupFragments) -> None:
    """Checks the instructions of warpgroups as far as the lanes that execute them are known.

    LoweringError: E2210 where a warpgroup does not execute one as a whole, E0325 for too many registers.
    """
    operations = [op for op in entry.walk() if agent_of(op) is Agent.WARPGROUP]
    if not operations:
        return
    ranges = Ranges(entry)
    x, y, z = entry.block
    warps = [WarpValues(entry, number, ranges) for number in range(-(-x * y * z // WARP))]
    for op in operations:
        _check_whole(op, warps)
    for op, running in fragments.running.items():
        _check_registers(op, entry, running)


def _check_whole(op: Operation, warps: Sequence[WarpValues]) -> None:
    """Checks that all lanes of the four warps of a warpgroup execute an operation, or none of them; registers may be
    set by the last warps of a block, however many these are.
    """
    partly = isinstance(op, SetMaxNRegOp)
    for first in range(0, len(warps), WARPGROUP // WARP):
        group = warps[first : first + WARPGROUP // WARP]
        active = [warp.active(op) for warp in group]
        counts = [len(lanes) for lanes in active if lanes is not None]
        threads = sum(len(warp.threads) for warp in group)
        known = sum(len(warp.threads) for warp, lanes in zip(group, active, strict=True) if lanes is not None)
        executing = sum(counts)
        if executing == 0 or (executing == known and (partly or threads == WARPGROUP)):
            continue
        where = f"warps {first} to {first + len(group) - 1}"
        if executing == known:
            message = f"{where} are not a whole warpgroup, which '{op.name}' requires"
            hint = f"give the block a multiple of {WARPGROUP} threads"
        else:
            message = f"{executing} of the {known} threads of {where} execute '{op.name}'"
            hint = "branch on a value that the four warps share, such as the thread's number divided by 128"
        raise LoweringError(Code.WARPGROUP, message, op, hint)


def _check_registers(op: WgmmaMmaAsyncOp, entry: EntryOp, running: Fragments) -> None:
    """Checks that the registers of the multiplications that run at the same time fit."""
    needed = sum(fragment.alloc.bytes.value.data // 4 for fragment in running)
    given, by = _registers(op, entry)
    if needed + OTHER_REGISTERS > given:
        raise LoweringError(
            Code.MMA_REGISTERS,
            f"accumulators and registers of A take {needed} registers of each thread at a time, which has {given} {by} "
            f"and needs at least {OTHER_REGISTERS} others",
            op,
            "use a narrower tile or more warpgroups, or move registers by ptx.setmaxnreg",
        )


def _registers(op: Operation, entry: EntryOp) -> tuple[int, str]:
    """The registers that a thread has at an operation, and who says so."""
    for before in _before(op):
        if isinstance(before, SetMaxNRegOp):
            return min(before.n.value.data, MAX_REGISTERS), "by setmaxnreg"
    bounds = entry.launch_bounds
    if bounds.max_registers is not None:
        return bounds.max_registers, "by max_registers"
    x, y, z = entry.block
    fitting = REGISTERS // (x * y * z * (bounds.min_blocks or 1)) // REGISTER_UNIT * REGISTER_UNIT
    return min(fitting, MAX_REGISTERS), "as that many fit a multiprocessor"


def _before(op: Operation) -> Iterator[Operation]:
    """The operations that have been executed before one, those around it included, the last first."""
    outer: Operation | None = op
    while outer is not None and not isinstance(outer, EntryOp):
        inner = outer.prev_op
        while inner is not None:
            yield inner
            inner = inner.prev_op
        outer = outer.parent_op()
