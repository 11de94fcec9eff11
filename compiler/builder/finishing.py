# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decisions that need all operations of a kernel: which of its coordinates are used, which thread of a warp
issues its tensor copies, which part of an MMA threads have that are beyond its own, and the registers with which the
kernel is launched.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from ...base.occupancy import REGISTERS
from ...base.target import MAX_SET_REGISTERS
from ...dialects.kernel import LaunchBounds
from ...dialects.ptx import ElectSyncOp, SetMaxNRegOp
from ...dialects.tile import CoordTensorType, CopyOp, PrefetchOp, TensorType, TiledMmaType, TileKernelOp
from ...dialects.tile.threads import ThreadViewOp, accesses, by_every_thread, is_thread_x
from ...layout.atoms.contract import Agent
from ...passes.analysis.thread_values import ThreadValues
from .scalars.casts import register_of


def bounds_of(body: Block, bounds: LaunchBounds) -> LaunchBounds:
    """The bounds of a kernel: one whose warpgroups ask for registers (setmaxnreg inc) is launched with no more than the
    least number that one asks for, since the instruction cannot take registers away.
    """
    requested = [op.n.value.data for op in body.walk() if isinstance(op, SetMaxNRegOp) and op.inc is not None]
    if not requested or bounds.max_registers is not None:
        return bounds
    fitting = min(REGISTERS // (prod(bounds.threads) * (bounds.min_blocks or 1)), MAX_SET_REGISTERS)
    return bounds if fitting <= min(requested) else replace(bounds, max_registers=min(requested))


def drop_unused_coordinates(body: Block) -> None:
    """Erases the conversions of coordinates (x, y, z are read at once) that nothing uses."""
    for op in list(body.walk()):
        if isinstance(op, arith.IndexCastOp) and not op.result.uses and register_of(op.result) is not None:
            Rewriter.erase_op(op)


def settle_threads(kernel: TileKernelOp) -> None:
    """Settles what depends on the threads that execute an operation."""
    copies = [op for op in kernel.walk() if _is_elected(op)]
    parts = [op for op in kernel.walk() if _is_part_beyond(op, kernel.block)]
    if kernel.block == (1, 1, 1) or not (copies or parts):
        return
    threads = ThreadValues(kernel)
    _elect(copies, threads)
    for op in parts:
        _wrap(op, threads)


def _wrap(op: Operation, threads: ThreadValues) -> None:
    """Takes the thread of a part of an MMA modulo the MMA's threads, as ThrMMA does, where others access the part.
    E0321 refuses a part that all threads access.
    """
    assert isinstance(op, ThreadViewOp)
    assert op.sharing is not None
    beyond = any(max(threads.executing(use), default=0) >= op.sharing for use in _uses(op.results[0]))
    if not beyond or any(map(by_every_thread, accesses(op.results[0]))):
        return
    index = op.coords[0]
    made = (count := arith.ConstantOp(IntegerAttr(op.sharing, IndexType())), arith.RemUIOp(index, count.result))
    for new in made:
        new.location = op.location
    block = op.parent_block()
    assert block is not None
    block.insert_ops_before(made, op)
    op.operands[list(op.operands).index(index)] = made[1].result


def _uses(value: SSAValue) -> Iterator[Operation]:
    """The operations on a tensor, itself or its views, that are not views."""
    for use in value.uses:
        views = [made for made in use.operation.results if isinstance(made.type, TensorType | CoordTensorType)]
        if not views:
            yield use.operation
        for view in views:
            yield from _uses(view)


def _is_part_beyond(op: Operation, block: tuple[int, int, int]) -> bool:
    """Whether it is a part of an MMA of a thread that may lie beyond the threads of the MMA."""
    return (
        isinstance(op, ThreadViewOp)
        and isinstance(op.operands[0].type, TiledMmaType)
        and is_thread_x(op.coords[0])
        and op.sharing is not None
        and block[0] > op.sharing
    )


def _elect(copies: list[Operation], threads: ThreadValues) -> None:
    """Puts copies that an elected thread issues, and prefetches of tensors, behind `ptx.elect.sync`, unless a condition
    around them selects threads of a warp: then the program itself has chosen the thread.
    """
    elected: dict[Block, SSAValue] = {}
    for op in copies:
        block = op.parent_block()
        if block is None or not threads.together(op):
            continue
        if block not in elected:
            election = ElectSyncOp()
            election.location = op.location
            block.insert_op_before(election, op)
            elected[block] = election.results[0]
        body = Block()
        branch = scf.IfOp(elected[block], [], Region(body))
        block.insert_op_before(branch, op)
        op.detach()
        body.add_ops([op, end := scf.YieldOp()])
        branch.location = end.location = op.location


def _is_elected(op: Operation) -> bool:
    """Whether an elected thread of a warp issues an operation, as the contract of its atom says."""
    if isinstance(op, PrefetchOp):
        return op.tiles is not None
    if not isinstance(op, CopyOp):
        return False
    if op.tma is not None:
        return op.tma.type.tma_copy.atom.contract.agent is Agent.ELECTED
    return op.copy_atom is not None and op.copy_atom.atom.contract.agent is Agent.ELECTED
