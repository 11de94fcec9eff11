# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute-fold-static`: replaces `cute` operations whose results are known by constants."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import BoolAttr, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator, is_side_effect_free, is_speculatable

from ...dialects.cute.arithmetic import CompareOp
from ...dialects.cute.constructors import StaticOp
from ...dialects.cute.types import CuteType
from ..writing.emitter import Emitter


@dataclass(frozen=True)
class CuteFoldStaticPass(ModulePass):
    """Replaces values whose types are static by `cute.static`, comparisons of such values by i1 constants.

    Erases pure operations whose results are no longer used, so that static input leaves only constants.

    Before:

        %s = cute.get_shape(%l) : !cute.layout<"(4,8):(1,4)"> -> !cute.shape<"(4,8)">
        %n = cute.size(%s) : (!cute.shape<"(4,8)">) -> !cute.int_tuple<"32">

    After:

        %n = cute.static : !cute.int_tuple<"32">
    """

    name = "cute-fold-static"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in reversed(list(op.walk())):  # users before their operands
            if not isinstance(inner, StaticOp) and is_pure(inner):
                fold(inner)


def is_pure(op: Operation) -> bool:
    """Whether an operation does nothing but compute its results, so that it can be erased where they are not used."""
    return not op.regions and not op.has_trait(IsTerminator) and is_side_effect_free(op) and is_speculatable(op)


def fold(op: Operation) -> None:
    """Replaces the results of a pure operation that are known by constants, and erases it if no other is used."""
    emitter = Emitter(op)
    if isinstance(op, CompareOp) and (known := op.static_result) is not None and op.results[0].uses:
        emitter.replace([emitter.value(arith.ConstantOp(BoolAttr.from_bool(known)))])
        return
    for result in op.results:
        if result.uses and isinstance(result.type, CuteType) and result.type.is_static:
            constant = emitter.value(StaticOp.create(result_types=[result.type]))
            constant.name_hint = result.name_hint
            result.replace_all_uses_with(constant)
    if not any(result.uses for result in op.results):
        Rewriter.erase_op(op)
