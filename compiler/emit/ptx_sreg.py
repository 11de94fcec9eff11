# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: special registers, with the ranges that the launch guarantees.

LLVM narrows arithmetic by the ranges: a thread index below 128 needs 7 bits.
"""

from xdsl.ir import Operation, SSAValue

from ...base.target import MAX_GRID
from ...dialects.ptx import SregOp
from .writer import FunctionWriter, Rule, rule


def _register(w: FunctionWriter, result: SSAValue, name: str, low: int, high: int) -> None:
    """Reads a special register whose value is in low..high, both included."""
    above = high + 1 if high + 1 < 2**31 else high + 1 - 2**32  # LLVM writes the bound as a signed i32
    w.define(result, f"call range(i32 {low}, {above}) i32 @llvm.nvvm.read.ptx.sreg.{name}()")


def _sreg(w: FunctionWriter, op: SregOp) -> None:
    name, axis = op.register.data.split(".")
    at = "xyz".index(axis)
    size = w.threads[at]
    match name:
        case "tid" if size == 1:
            w.bind(op.result, "0")
        case "tid":
            _register(w, op.result, f"tid.{axis}", 0, size - 1)
        case "ntid":
            w.bind(op.result, str(size))
        case "ctaid":
            _register(w, op.result, f"ctaid.{axis}", 0, MAX_GRID[at] - 1)
        case _:
            _register(w, op.result, f"nctaid.{axis}", 1, MAX_GRID[at])


PTX_SREG: tuple[tuple[type[Operation], Rule], ...] = (rule(SregOp, _sreg),)
