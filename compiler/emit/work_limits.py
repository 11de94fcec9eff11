# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The work that a kernel makes for LLVM, which nothing can interrupt: too much is refused before it begins."""

from xdsl.dialects import scf
from xdsl.ir import Block, Operation

from ...base.errors import Code
from ...dialects.ptx import EntryOp, WgmmaMmaAsyncOp
from ...layout.atoms.mma_registers import registers
from ...passes.analysis.loop_hints import own_copies, stays_a_loop
from ...passes.errors import LoweringError

MAX_LOOPS = 2000
"""Loops of a kernel once those around them are unrolled. LLVM rotates loops, and reduces their variables, in a time
that grows with the square of their number: 1000 take 4 seconds, 2000 14.
"""
MAX_OPERATIONS = 1 << 19
"""Operations of a kernel once its loops are unrolled: 160 thousand take LLVM 3 to 7 seconds, others in proportion."""


def check_effort(entry: EntryOp) -> None:
    """LoweringError for a kernel that is more work than LLVM is given."""
    operations, loops = _estimate_work(entry.body.block, 1)
    for number, most, noun in ((operations, MAX_OPERATIONS, "operations"), (loops, MAX_LOOPS, "loops")):
        if number > most:
            raise LoweringError(
                Code.LLVM_EFFORT,
                f"kernel '{entry.sym_name.data}' has {number} {noun} once its loops are unrolled; "
                f"the limit for LLVM is {most}",
                entry,
                "unroll less, use smaller tiles, or split the kernel",
            )


def _size(op: Operation) -> int:
    """The instructions of LLVM IR for an operation, where they are many: those for each accumulator."""
    return 5 * registers(op.atom, "D").count if isinstance(op, WgmmaMmaAsyncOp) else 1


def _estimate_work(block: Block, copies: int) -> tuple[int, int]:
    """The operations and loops of `copies` copies of a block, with those inside of them."""
    operations = loops = 0
    for op in block.ops:
        operations += copies * _size(op)
        if not op.regions:
            continue
        if stays_a_loop(op):
            loops += copies
        inside = copies * own_copies(op) if isinstance(op, scf.ForOp) else copies
        for region in op.regions:
            for inner in region.blocks:
                more, within = _estimate_work(inner, inside)
                operations += more
                loops += within
    return operations, loops
