# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which values of a kernel are the same in all threads of a block, as its operations alone show."""

from xdsl.dialects import arith, scf
from xdsl.ir import Block, SSAValue

from ...dialects.arith.semantics import constant_of
from ...dialects.gpu import CoordinateOp, ThreadIdOp
from ...dialects.ptx import EntryOp, SregOp

_OF_THREADS = f"{ThreadIdOp.REGISTER}."


def is_of_block(value: SSAValue) -> bool:
    """Whether a value follows from constants, the kernel's numbers, and coordinates and sizes of blocks, clusters and
    the grid, by arithmetic and conditions on such values. Loads and loops count as different in each thread.
    """
    if constant_of(value) is not None:
        return True
    owner = value.owner
    if isinstance(owner, Block):
        return isinstance(owner.parent_op(), EntryOp)
    match owner:
        case SregOp():
            return not owner.register.data.startswith(_OF_THREADS)
        case CoordinateOp():
            return not owner.REGISTER.startswith(ThreadIdOp.REGISTER)
        case scf.IfOp():
            ends = [region.block.last_op for region in owner.regions]
            chosen = [end.operands[owner.results.index(value)] for end in ends if end is not None]
            return is_of_block(owner.cond) and all(map(is_of_block, chosen))
        case _:
            is_arithmetic = owner.name.startswith(f"{arith.Arith.name}.") and not owner.regions
            return is_arithmetic and all(map(is_of_block, owner.operands))
