# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of stage `instr` that are calls in machine code. They slow down a kernel with multiplications by
warpgroups: the assembler ends each of these before it starts the next.
"""

from collections.abc import Iterator

from xdsl.dialects import arith, math
from xdsl.ir import Operation

from ...dialects.ptx import EntryOp, InlineOp, PrintfOp
from ...dialects.ptx.base import float_bits, split_vector
from ...dialects.ptx.effects import Act, Group, does


def multiplies_by_warpgroups(entry: EntryOp) -> bool:
    """Whether a kernel has `wgmma`, as an operation or in a text of its own."""
    return any(
        does(op, Act.ISSUES, Group.WGMMA) or (isinstance(op, InlineOp) and "wgmma" in op.text.data)
        for op in entry.walk()
    )


def find_calls(entry: EntryOp) -> Iterator[Operation]:
    """The operations of a kernel with multiplications by warpgroups that call the device's printf, or the
    assembler's subroutines for f64. Emission writes other quotients and roots without a call.
    """
    if multiplies_by_warpgroups(entry):
        yield from (op for op in entry.walk() if isinstance(op, PrintfOp) or _is_of_f64(op))


def _is_of_f64(op: Operation) -> bool:
    """Whether an operation is a quotient or root of f64."""
    return isinstance(op, arith.DivfOp | math.SqrtOp) and float_bits(split_vector(op.result.type)[0]) == 64
