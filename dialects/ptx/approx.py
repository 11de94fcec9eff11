# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Approximations of functions by one instruction (PTX ISA, sections ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from xdsl.dialects.builtin import UnitAttr, VectorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import AnyAttr, VarConstraint, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..definitions import fields, flag, operand, optional_prop, row
from ..element_types import FLOATS
from .base import PtxOp

TYPE_SUFFIX: Mapping[Attribute, str] = MappingProxyType({
    type: suffix
    for float_type, element in FLOATS.items()
    for type, suffix in ((float_type(), element.ptx), (VectorType(float_type(), [2]), f"{element.ptx}x2"))
})  # fmt: skip
"""How PTX spells the types of floating-point registers, also of pairs."""

Forms = Mapping[str, tuple[int, int]]
_F32: Forms = MappingProxyType({"f32": (70, 60)})
_HALVES: Forms = MappingProxyType({"f16": (75, 70), "f16x2": (75, 70), "bf16": (90, 78), "bf16x2": (90, 78)})


@fields
class ApproximateOp(PtxOp):
    """A function of one value. `FUNCTION` is its name in PTX, `FORMS` the oldest sm and PTX version of each type."""

    FUNCTION: ClassVar[str]
    FORMS: ClassVar[Forms] = _F32
    T: ClassVar[VarConstraint] = VarConstraint("T", AnyAttr())
    value: SSAValue = operand(T)
    ftz: UnitAttr | None = optional_prop(converter=flag, default=False)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "(`ftz` $ftz^)? $value attr-dict `:` type($value)"

    @property
    def form(self) -> str:
        """The type as PTX spells it."""
        return TYPE_SUFFIX[self.value.type]

    @property
    def flushes(self) -> bool:
        """Whether subnormal operands and results count as zero."""
        return self.ftz is not None or (self.FUNCTION == "ex2" and self.form.startswith("bf16"))

    def requires(self) -> tuple[int, int]:
        return self.FORMS[self.form]

    def mnemonic(self) -> str:
        return f"{self.FUNCTION}.approx{'.ftz' if self.flushes else ''}.{self.form}"

    def verify_(self) -> None:
        if TYPE_SUFFIX.get(self.value.type) not in self.FORMS:
            raise VerifyException(f"{self.FUNCTION}.approx has {', '.join(self.FORMS)}; not {self.value.type}")
        if self.ftz is not None and (self.form != "f32" or self.FUNCTION == "tanh"):
            raise VerifyException(f"{self.FUNCTION}.approx.{self.form} has no ftz")


@row
class Ex2Op(ApproximateOp):
    """`%r = ptx.ex2.approx ftz %x : f32`: 2 to the power of x (PTX ISA, ex2).

    The greatest relative error is 2^-22.5 in f32, 2^-9.9 in f16, 2^-7 in bf16, which always flushes subnormal numbers.
    """

    name = "ptx.ex2.approx"
    FUNCTION: ClassVar[str] = "ex2"
    FORMS: ClassVar[Forms] = MappingProxyType({**_F32, **_HALVES})


@row
class Lg2Op(ApproximateOp):
    """`%r = ptx.lg2.approx %x : f32`: the logarithm to base 2 (PTX ISA, lg2).

    The greatest error is 2^-22 absolute where x is in (0.5, 2), and 2^-22 relative elsewhere.
    """

    name = "ptx.lg2.approx"
    FUNCTION: ClassVar[str] = "lg2"


@row
class RcpOp(ApproximateOp):
    """`%r = ptx.rcp.approx %x : f32`: 1 / x, with an error of at most 1 ulp (PTX ISA, rcp)."""

    name = "ptx.rcp.approx"
    FUNCTION: ClassVar[str] = "rcp"


@row
class RsqrtOp(ApproximateOp):
    """`%r = ptx.rsqrt.approx %x : f32`: 1 / sqrt(x), with a relative error of at most 2^-22.9 (PTX ISA, rsqrt)."""

    name = "ptx.rsqrt.approx"
    FUNCTION: ClassVar[str] = "rsqrt"


@row
class SqrtOp(ApproximateOp):
    """`%r = ptx.sqrt.approx %x : f32`: the square root, with a relative error of at most 2^-23 (PTX ISA, sqrt)."""

    name = "ptx.sqrt.approx"
    FUNCTION: ClassVar[str] = "sqrt"


@row
class SinOp(ApproximateOp):
    """`%r = ptx.sin.approx %x : f32`: the sine, with an absolute error of at most 2^-20.5 where x is within -pi and pi
    (PTX ISA, sin).
    """

    name = "ptx.sin.approx"
    FUNCTION: ClassVar[str] = "sin"


@row
class CosOp(ApproximateOp):
    """`%r = ptx.cos.approx %x : f32`: the cosine, with an absolute error of at most 2^-20.5 where x is within -pi and
    pi (PTX ISA, cos).
    """

    name = "ptx.cos.approx"
    FUNCTION: ClassVar[str] = "cos"


@row
class TanhOp(ApproximateOp):
    """`%r = ptx.tanh.approx %x : f32`: the hyperbolic tangent (PTX ISA, tanh).

    The greatest relative error is 2^-11 in f32, the greatest absolute error 2^-10.987 in f16 and 2^-8 in bf16.
    """

    name = "ptx.tanh.approx"
    FUNCTION: ClassVar[str] = "tanh"
    FORMS: ClassVar[Forms] = MappingProxyType({"f32": (75, 70), **_HALVES})
