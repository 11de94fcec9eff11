# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cache hints as properties of operations, and the policies that are their operands."""

from typing import ClassVar

from xdsl.dialects.builtin import I64, Float32Type, FloatAttr, StringAttr, f32, i64
from xdsl.ir import SSAValue
from xdsl.irdl import opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...layout.atoms.cache_hints import POLICIES, hint_requires, with_policy
from ...layout.atoms.cache_hints import check_hint as check_text
from ..definitions import irdl_op_definition, refusing
from .base import PtxOp


def check_hint(instruction: str, hint: str, allowed: frozenset[str]) -> None:
    """Refuses, as a verifier does, a hint that an `instruction` does not have."""
    with refusing():
        check_text(instruction, hint, allowed)


def modifiers(hint: StringAttr | None, policy: SSAValue | None) -> str:
    """The modifiers of an instruction with a hint and a policy: `.L2::cache_hint.L2::128B`, or nothing."""
    text = "" if hint is None else hint.data
    if policy is not None:
        text = with_policy(text)
    return f".{text}" if text else ""


def with_hint(op: PtxOp, hint: StringAttr | None, policy: SSAValue | None) -> tuple[int, int]:
    """The oldest target that has the instruction, its hint and a policy: sm and ten times the PTX version."""
    sm, ptx = hint_requires(modifiers(hint, policy))
    return max(op.SINCE[0], sm), max(op.SINCE[1], ptx)


@irdl_op_definition
class CreatePolicyOp(PtxOp):
    """`%p = ptx.createpolicy "L2::evict_last" fraction 0.5`: an L2 cache policy for accesses to global memory (PTX ISA,
    createpolicy).

    The priority applies to the given fraction of the accesses, or to all without `fraction`; a second priority, as in
    `"L2::evict_last.L2::evict_first"`, applies to the others. `ptx.ld`, `ptx.st` and `ptx.cp.async` take a policy as
    operand. Its bits mean nothing else, and in the simulator they are zeros.
    """

    name = "ptx.createpolicy"
    priority = prop_def(StringAttr)
    fraction = opt_prop_def(FloatAttr[Float32Type])
    result = result_def(I64)
    traits = traits_def(Pure())
    assembly_format = "$priority (`fraction` $fraction^)? attr-dict"
    SINCE: ClassVar = 80, 74

    def __init__(self, priority: str, fraction: float = 1.0):
        given = None if fraction == 1.0 else FloatAttr(fraction, f32)
        super().__init__(properties={"priority": StringAttr(priority), "fraction": given}, result_types=[i64])

    @property
    def share(self) -> float:
        """The fraction of the accesses that have the first priority."""
        return 1.0 if self.fraction is None else self.fraction.value.data

    def mnemonic(self) -> str:
        return f"createpolicy.fractional.{self.priority.data}.b64"

    def verify_(self) -> None:
        check_hint("policy", self.priority.data, POLICIES)
        if not 0 < self.share <= 1:
            raise VerifyException(f"the fraction is {self.share:g}; it must be greater than 0 and at most 1")
