# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: special registers, with the ranges that the launch guarantees.

LLVM narrows arithmetic by the ranges: a thread index below 128 needs 7 bits.
"""

from xdsl.ir import Operation

from ...dialects.ptx import SregOp
from .writer import FunctionWriter, Rule, rule


def _sreg(w: FunctionWriter, op: SregOp) -> None:
    name = op.register.data
    low, high = w.registers[name]
    if low == high:
        w.bind(op.result, str(low))
        return
    above = high + 1 if high + 1 < 2**31 else high + 1 - 2**32  # LLVM writes the bound as a signed i32
    intrinsic = f"@llvm.nvvm.read.ptx.sreg.{name.replace('cluster_', 'cluster.')}"
    w.define(op.result, f"call range(i32 {low}, {above}) i32 {intrinsic}()")


PTX_SREG: tuple[tuple[type[Operation], Rule], ...] = (rule(SregOp, _sreg),)
