# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`expand-math`: on the way from stage `instr` to LLVM IR."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ..base.errors import Code
from ..dialects.math.functions import Function, function_of
from ..dialects.ptx.base import float_bits, split_vector
from .errors import LoweringError
from .writing.emitter import Emitter, extract_elements, join_vector
from .writing.ssa_arithmetic import SsaArithmetic, SsaNumber


@dataclass(frozen=True)
class ExpandMathPass(ModulePass):
    """Replaces functions of `math` by the operations that compute them in f32, element by element.

    It extends f16 and bf16 before and rounds after. With the flag `afn`, one instruction approximates the function;
    with all flags (`fast`), it treats subnormal numbers as 0. docs/language.md lists the errors of the other functions.

    Before:

        %y = math.exp %x fastmath<fast> : f32

    After:

        %s = arith.mulf %x, %log2e : f32
        %y = ptx.ex2.approx ftz %s : f32
    """

    name = "expand-math"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        expand_functions(op)


def expand_functions(op: Operation) -> None:
    """Does so inside of an operation. Raises LoweringError (E2201) for functions of f64."""
    for inner in list(op.walk()):
        function = function_of(inner)
        if function is not None:
            _expand(inner, function)


def _expand(op: Operation, function: Function) -> None:
    element, count = split_vector(op.results[0].type)
    bits = float_bits(element)
    if bits is None or bits > 32:
        raise LoweringError(
            Code.EMIT_UNSUPPORTED,
            f"'{op.name}' has no instruction for {element}",
            op,
            "PTX has this function in f32 only",
        )
    emitter = Emitter(op)
    values = [_compute(emitter, function, value) for value in extract_elements(emitter, op.operands[0])]
    emitter.replace([join_vector(emitter, values) if count else values[0]])


def _compute(emitter: Emitter, function: Function, x: SSAValue) -> SSAValue:
    element = x.type
    wide = x if element == f32 else emitter.value(arith.ExtFOp(x, f32))
    result = function(SsaArithmetic(emitter), SsaNumber(emitter, wide)).value
    return result if element == f32 else emitter.value(arith.TruncFOp(result, element))
