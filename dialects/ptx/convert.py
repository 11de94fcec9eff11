# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions of pairs and to types that `arith` does not reach, and bytes of registers (PTX ISA, cvt, prmt, dp4a)."""

from collections.abc import Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from xdsl.dialects.builtin import I32, StringAttr, VectorType, bf16, f16, f32, i8, i16, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ...base.target import TargetFamily, Targets
from ...layout.atoms.ptx_text import dp4a_mnemonic
from ..definitions import irdl_op_definition, operand, prop, row, text
from ..element_types import FLOATS, NARROW_FLOATS, ir_type
from .base import PtxOp
from .warp import check_word


class CvtForm(NamedTuple):
    """The types of a conversion, and the oldest sm and PTX version that have it; of `family` those with a suffix."""

    operands: tuple[Attribute, ...]
    result: Attribute
    requires: tuple[int, int]
    family: bool = False
    single: bool = False
    """Whether only single targets have it, and no family."""


def _list_forms() -> dict[str, CvtForm]:
    forms: dict[str, CvtForm] = {}
    for relu in ("", ".relu"):
        for element in FLOATS.values():
            if element.bits == 16:
                pair = VectorType(ir_type(element), [2])
                for rounding in ("rn", "rz"):
                    forms[f"{rounding}{relu}.{element.ptx}x2.f32"] = CvtForm((f32, f32), pair, (80, 70))
                    forms[f"{rounding}{relu}.satfinite.{element.ptx}x2.f32"] = CvtForm((f32, f32), pair, (80, 81))
            if element.bits == 8:
                to, pair = f"rn.satfinite{relu}.{element.ptx}x2", VectorType(f16, [2])
                forms[f"{to}.f32"] = CvtForm((f32, f32), i16, element.needs)
                forms[f"{to}.f16x2"] = CvtForm((pair,), i16, element.needs)
                forms[f"rn{relu}.f16x2.{element.ptx}x2"] = CvtForm((i16,), pair, element.needs)
    forms["rna.tf32.f32"] = CvtForm((f32,), f32, (80, 70))
    return forms | _list_narrow_forms() | _list_random_forms()


def _list_narrow_forms() -> dict[str, CvtForm]:
    """Those of floats of 4 and 6 bits, and of scale factors. Two floats of 4 bits are a byte."""
    forms: dict[str, CvtForm] = {}
    halves, brain = VectorType(f16, [2]), VectorType(bf16, [2])
    since = (100, 86)
    for element in NARROW_FLOATS.values():
        name, pair = element.ptx, i8 if element.bits == 4 else i16
        if not element.fraction:
            for rounding, saturated in product(("rz", "rp"), ("", ".satfinite")):
                forms[f"{rounding}{saturated}.{name}x2.f32"] = CvtForm((f32, f32), pair, since, True)
                forms[f"{rounding}{saturated}.{name}x2.bf16x2"] = CvtForm((brain,), pair, since, True)
            forms[f"rn.bf16x2.{name}x2"] = CvtForm((pair,), brain, since, True)
            continue
        for relu in ("", ".relu"):
            forms[f"rn.satfinite{relu}.{name}x2.f32"] = CvtForm((f32, f32), pair, since, True)
            forms[f"rn{relu}.f16x2.{name}x2"] = CvtForm((pair,), halves, since, True)
    return forms


def _list_random_forms() -> dict[str, CvtForm]:
    """Those that round up or down by random bits: of two numbers to a pair, and of four to 8, 6 or 4 bits each."""
    forms: dict[str, CvtForm] = {}
    for element in (*FLOATS.values(), *NARROW_FLOATS.values()):
        if element.bits == 16:
            pair = VectorType(ir_type(element), [2])
            for relu, saturated in product(("", ".relu"), ("", ".satfinite")):
                forms[f"rs{relu}{saturated}.{element.ptx}x2.f32"] = CvtForm(
                    (f32, f32, i32), pair, (100, 87), single=True
                )
        elif element.bits <= 8 and element.fraction:
            four = i16 if element.bits == 4 else i32
            for relu in ("", ".relu"):
                form = CvtForm((f32, f32, f32, f32, i32), four, (100, 87), single=True)
                forms[f"rs{relu}.satfinite.{element.ptx}x4.f32"] = form
    return forms


RANDOM_TARGETS = Targets(frozenset([TargetFamily(100, 87, "a"), TargetFamily(103, 88, "a")]))
"""The targets of conversions that round by random bits."""


CVT_FORMS: Mapping[str, CvtForm] = MappingProxyType(_list_forms())
"""The conversions by the modifiers of the instruction."""


@irdl_op_definition
class CvtOp(PtxOp):
    """`%r = ptx.cvt "rn.satfinite.e4m3x2.f32" %hi, %lo : (f32, f32) -> i16`: a conversion (PTX ISA, cvt).

    To a pair from two numbers, the first of which goes to the upper half, or from a pair of another type. With `relu`,
    negative numbers become 0. A pair of 8-bit floats is an i16. With `satfinite`, numbers beyond the greatest finite
    number become that number. `rna.tf32.f32` rounds an f32 to the precision of tf32, half away from zero.

    A pair of floats of 6 bits is an i16, of which each takes a byte, one of 4 bits an i8. Scale factors, `ue8m0`, are
    powers of 2: `rz` takes the one below, `rp` the one above; the sign is ignored. All these are instructions of
    targets with a suffix, from sm_100a on.

    `rs` rounds two or four numbers, the first of which goes to the highest place, up or down by random bits, the last
    operand: up if the fraction that is cut off, plus the random bits as a fraction, is 1 or more. Which bits of the
    word are those of which number is a model here: half of it for each of two (13 bits for f16), a byte for each of
    four, the highest for the first.
    """

    name = "ptx.cvt"
    form = prop_def(StringAttr)
    values = var_operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$form $values attr-dict `:` `(` type($values) `)` `->` type($result)"

    def __init__(self, form: str, values: Sequence[SSAValue | Operation]):
        super().__init__(
            operands=[values], properties={"form": StringAttr(form)}, result_types=[CVT_FORMS[form].result]
        )

    @property
    def targets(self) -> TargetFamily | Targets:
        form = CVT_FORMS[self.form.data]
        if form.single:
            return RANDOM_TARGETS
        return TargetFamily(*form.requires, "f") if form.family else super().targets

    def requires(self) -> tuple[int, int]:
        return CVT_FORMS[self.form.data].requires

    def mnemonic(self) -> str:
        return f"cvt.{self.form.data}"

    def verify_(self) -> None:
        check_word("cvt", self.form.data, tuple(CVT_FORMS))
        form = CVT_FORMS[self.form.data]
        if self.values.types != form.operands or self.result.type != form.result:
            listed = ", ".join(map(str, form.operands))
            raise VerifyException(f"cvt.{self.form.data} is ({listed}) -> {form.result}")


@row
class PrmtOp(PtxOp):
    """`%r = ptx.prmt %a, %b, %selector`: four of the eight bytes of two registers (PTX ISA, prmt).

    Each of the selector's lowest four nibbles names a byte, 0 to 3 of `a`, 4 to 7 of `b`; with its highest bit set,
    the byte's sign is repeated instead.
    """

    name = "ptx.prmt"
    MNEMONIC: ClassVar[str | None] = "prmt.b32"
    a: SSAValue = operand(I32)
    b: SSAValue = operand(I32)
    selector: SSAValue = operand(I32)
    result = result_def(I32)
    traits = traits_def(Pure())
    assembly_format = "$a `,` $b `,` $selector attr-dict"


@row
class Dp4aOp(PtxOp):
    """`%r = ptx.dp4a "s32.u32" %a, %b, %c`: c plus the products of the four bytes of a and b (PTX ISA, dp4a).

    The two types say whether the bytes of `a` and of `b` are signed.
    """

    name = "ptx.dp4a"
    form: StringAttr = prop(converter=text)
    a: SSAValue = operand(I32)
    b: SSAValue = operand(I32)
    c: SSAValue = operand(I32)
    result = result_def(I32)
    traits = traits_def(Pure())
    assembly_format = "$form $a `,` $b `,` $c attr-dict"
    FORMS: ClassVar[tuple[str, ...]] = ("s32.s32", "s32.u32", "u32.s32", "u32.u32")

    def mnemonic(self) -> str:
        return dp4a_mnemonic(self.form.data)

    def verify_(self) -> None:
        check_word("dp4a", self.form.data, self.FORMS)
