# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`expand-conversions`: on the way from stage `index` to stage `instr`."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from ..dialects.ptx.base import float_bits, split_vector


@dataclass(frozen=True)
class ExpandConversionsPass(ModulePass):
    """Replaces conversions from and to 8-bit floats by `cvt`, two numbers at a time in vectors.

    Numbers beyond the greatest become the greatest (satfinite).

    Before:

        %e = arith.truncf %x : vector<2xf32> to vector<2xf8E4M3FN>

    After:

        %p = ptx.cvt "rn.satfinite.e4m3x2.f32" %x1, %x0 : (f32, f32) -> i16
        %v = vector.insert %p, ... : i16 into vector<1xi16>
        %e = vector.bitcast %v : vector<1xi16> to vector<2xf8E4M3FN>
    """

    name = "expand-conversions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, arith.TruncFOp) and _is_narrow(inner.result.type):
                from .writing.float8_conversions import narrow

                narrow(inner)
            elif isinstance(inner, arith.ExtFOp) and _is_narrow(inner.input.type):
                from .writing.float8_conversions import widen

                widen(inner)


def _is_narrow(type: Attribute) -> bool:
    return float_bits(split_vector(type)[0]) == 8
