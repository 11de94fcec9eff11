# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on pairs of f32, and extremes of three numbers (PTX ISA, add, sub, mul and fma with .f32x2; min, max)."""

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr, VectorType, f32
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import EqAttrConstraint, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..definitions import irdl_op_definition, operand, prop, row, text
from .base import PtxOp
from .warp import check_word

_F32 = EqAttrConstraint(f32)
PAIR = VectorType(f32, [2])
"""A pair of f32, which has a register of 64 bits."""


@irdl_op_definition
class F32x2Op(PtxOp):
    """`%r = ptx.f32x2 "fma.rn" %a, %b, %c : vector<2xf32>, ... -> vector<2xf32>`: the sum, difference, product, or
    a * b + c, of pairs of f32, each rounded to nearest even (PTX ISA, add, sub, mul and fma with .f32x2).
    """

    name = "ptx.f32x2"
    SINCE: ClassVar[tuple[int, int]] = (100, 86)
    FORMS: ClassVar[dict[str, int]] = {"add.rn": 2, "sub.rn": 2, "mul.rn": 2, "fma.rn": 3}
    """How many operands each has."""
    form = prop_def(StringAttr)
    values = var_operand_def(VectorType)
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$form $values attr-dict `:` type($values) `->` type($result)"

    def __init__(self, form: str, values: Sequence[SSAValue | Operation]):
        super().__init__(operands=[values], properties={"form": StringAttr(form)}, result_types=[PAIR])

    def mnemonic(self) -> str:
        return f"{self.form.data}.f32x2"

    def verify_(self) -> None:
        check_word("f32x2", self.form.data, tuple(self.FORMS))
        wanted = self.FORMS[self.form.data]
        if [*self.values.types, self.result.type] != [PAIR] * (wanted + 1):
            raise VerifyException(f"{self.mnemonic()} takes {wanted} operands of type {PAIR}, and gives one")


@row
class MinMax3Op(PtxOp):
    """`%r = ptx.minmax3 "max.NaN" %a, %b, %c`: the least, `min`, or the greatest of three f32. With `NaN` it is NaN
    where one of them is, otherwise a NaN does not count (PTX ISA, min and max).
    """

    name = "ptx.minmax3"
    SINCE: ClassVar[tuple[int, int]] = (100, 88)
    FORMS: ClassVar[tuple[str, ...]] = ("min", "min.NaN", "max", "max.NaN")
    form: StringAttr = prop(converter=text)
    a: SSAValue = operand(_F32)
    b: SSAValue = operand(_F32)
    c: SSAValue = operand(_F32)
    result = result_def(_F32)
    traits = traits_def(Pure())
    assembly_format = "$form $a `,` $b `,` $c attr-dict"

    def mnemonic(self) -> str:
        return f"{self.form.data}.f32"

    def verify_(self) -> None:
        check_word("minmax3", self.form.data, self.FORMS)
