# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`base-prepare`: the step of the public CuTe IR between its own passes and the conversion to LLVM."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.canonicalize import CanonicalizePass
from xdsl.transforms.loop_invariant_code_motion import LoopInvariantCodeMotionPass
from xdsl.transforms.reconcile_unrealized_casts import ReconcileUnrealizedCastsPass

from ..cse import CsePass
from ..writing.constant_folding import fold_constants


@dataclass(frozen=True)
class BasePreparePass(ModulePass):
    """Canonicalises, merges common subexpressions, hoists loop-invariant operations, and reconciles casts.

    Each step except `cse` is xDSL's pass for that purpose. This pass first folds integer arithmetic of constants, since
    xDSL does not fold divisions, comparisons and selections.

    Before: `%2 = arith.divsi %c7, %c2 : i32`. After: `%2 = arith.constant 3 : i32`.
    """

    name = "base-prepare"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        while fold_constants(op):  # a branch that is decided leaves more constants
            CanonicalizePass().apply(ctx, op)
        for step in (
            CanonicalizePass(),
            CsePass(),
            LoopInvariantCodeMotionPass(),
            ReconcileUnrealizedCastsPass(),
        ):
            step.apply(ctx, op)
