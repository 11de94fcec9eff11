# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is settled once the operations of a kernel are known: which of its coordinates are used, which thread of a warp
issues its tensor copies, and the registers with which it is launched.
"""

from dataclasses import replace
from math import prod

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from ...base.occupancy import REGISTERS
from ...base.target import MAX_SET_REGISTERS
from ...dialects.kernel import LaunchBounds
from ...dialects.ptx import ElectSyncOp, SetMaxNRegOp
from ...dialects.tile import CopyOp, PrefetchOp, TileKernelOp, TmaType
from ...passes.analysis.thread_values import ThreadValues
from .scalars.casts import register_of


def bounds_of(body: Block, bounds: LaunchBounds) -> LaunchBounds:
    """The bounds of a kernel: one whose warpgroups ask for registers (setmaxnreg inc) is launched with no more than the
    least number that one asks for, since the instruction cannot take registers away.
    """
    asked = [op.n.value.data for op in body.walk() if isinstance(op, SetMaxNRegOp) and op.inc is not None]
    if not asked or bounds.max_registers is not None:
        return bounds
    fitting = min(REGISTERS // (prod(bounds.threads) * (bounds.min_blocks or 1)), MAX_SET_REGISTERS)
    return bounds if fitting <= min(asked) else replace(bounds, max_registers=min(asked))


def drop_unused_coordinates(body: Block) -> None:
    """Erases the conversions of coordinates (x, y, z are read at once) that nothing uses."""
    for op in list(body.walk()):
        if isinstance(op, arith.IndexCastOp) and not op.result.uses and register_of(op.result) is not None:
            Rewriter.erase_op(op)


def elect_copies(kernel: TileKernelOp) -> None:
    """Puts tensor copies, and their prefetches, behind `ptx.elect.sync`, unless a condition around them selects threads
    of a warp: then the program itself has chosen the thread.
    """
    copies = [op for op in kernel.walk() if _is_tensor_copy(op)]
    if not copies or kernel.block == (1, 1, 1):
        return
    threads = ThreadValues(kernel)
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


def _is_tensor_copy(op: Operation) -> bool:
    if isinstance(op, PrefetchOp):
        return op.tiles is not None
    return isinstance(op, CopyOp) and op.tiled_copy is not None and isinstance(op.tiled_copy.type, TmaType)
