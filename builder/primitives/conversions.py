# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions of two floats at once, and moves of bits and bytes between registers of 32 bits, as primitives."""

from collections.abc import Iterator
from typing import cast

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import IntegerAttr, IntegerType, VectorType, i32
from xdsl.ir import Attribute, SSAValue

from ...base.errors import Code, TilefoldError
from ...dialects import ptx
from ...dialects.ptx.convert import CVT_FORMS
from ..instructions.bits import bitcast
from ..instructions.bits import prmt as bytes_of
from ..instructions.math import maximum, minimum
from ..scalars.dtypes import Float32, Int32, as_dtype, dtype_of
from ..scalars.operators import Operand
from ..scalars.values import Int, Scalar, convert, wrap
from ..tracing.state import insert_value
from .enums import CVTPackFloat, FPRoundingMode, PermuteMode, SaturationModeKind

_HALF = 16
"""The bits of half a register."""


def cvt_packfloat_f32(
    a: Scalar,
    b: Scalar,
    c: Scalar,
    kind: CVTPackFloat,
    *,
    rnd: FPRoundingMode = FPRoundingMode.RN,
    sat: SaturationModeKind = SaturationModeKind.NONE,
    relu: bool = False,
    extract_hi: bool = False,
) -> Int:
    """Two Float32 as a pair of floats of a kind in an Int32, `a` in its upper half (PTX ISA, cvt). A pair of less than
    32 bits is in the lower half, and the upper one is 0; with `extract_hi` it is in the upper half, and the lower one
    is that of `c`. Raises TilefoldError (E5002) for a conversion that PTX lacks, and for a `c` other than 0 without
    `extract_hi`.
    """
    pair = _converted(f"{kind.value}.f32", [convert(a, Float32).ssa, convert(b, Float32).ssa], rnd, sat, relu)
    if kind in (CVTPackFloat.F16X2, CVTPackFloat.BF16X2):
        return pair
    if extract_hi:
        return pair << _HALF | convert(c, Int32) & ((1 << _HALF) - 1)
    if not _is_zero(convert(c, Int32).ssa):
        hint = "give Int32(0), or set extract_hi"
        raise TilefoldError(Code.BUILD_VALUE, "a conversion to the lower half does not use c", hint)
    return pair


def cvt_packfloat(
    src: Scalar,
    c: Scalar,
    from_kind: CVTPackFloat,
    to_kind: CVTPackFloat,
    *,
    rnd: FPRoundingMode = FPRoundingMode.RN,
    sat: SaturationModeKind = SaturationModeKind.NONE,
    relu: bool = False,
    extract_hi: bool = False,
) -> Int:
    """The pair of floats in the lower half of an Int32, with `extract_hi` in the upper one, as a pair of another kind
    in an Int32 (PTX ISA, cvt). Raises TilefoldError (E5002) for a conversion that PTX lacks, and for a `c` other than
    0.
    """
    if not _is_zero(convert(c, Int32).ssa):
        raise TilefoldError(Code.BUILD_VALUE, "the conversion of a pair does not use c", "give Int32(0)")
    word = convert(src, Int32)
    form = _form(f"{to_kind.value}.{from_kind.value}", rnd, sat, relu)
    (operand,) = CVT_FORMS[form].operands
    word = word >> _HALF if extract_hi else word
    if isinstance(operand, IntegerType):
        given = insert_value(arith.TruncIOp(word.ssa, cast("IntegerType", operand)))
    else:
        single = insert_value(vector.BroadcastOp(word.ssa, VectorType(i32, [1])))
        given = insert_value(vector.BitcastOp(single, operand))
    return _word(insert_value(ptx.CvtOp(form, [given])))


def convert_and_pack_integer(a: Scalar, b: Scalar, result_type: Attribute, *, is_signed: bool = True) -> Int:
    """Two Int32 as integers of 16 bits in an Int32, `a` in its upper half; those beyond the limits become the limits
    (PTX ISA, cvt.pack). Raises TilefoldError (E5002) for another type.
    """
    if dtype_of(result_type).bits != _HALF:
        raise TilefoldError(
            Code.BUILD_VALUE, f"integers are converted to 16 bits, not to {result_type}", "give the type of 16 bits"
        )
    least, greatest = (-(1 << 15), (1 << 15) - 1) if is_signed else (0, (1 << 16) - 1)
    high, low = (minimum(maximum(convert(x, Int32), least), greatest) for x in (a, b))
    return high << _HALF | low & ((1 << _HALF) - 1)


def mov_b32(value: Scalar, *, target_type: object) -> Operand:
    """The bits of a value of 32 bits as another type. Raises TilefoldError (E5002) for other widths."""
    if as_dtype(target_type).bits != 32:
        raise TilefoldError(
            Code.BUILD_VALUE, f"{target_type} does not have 32 bits", "cute.arch.bitcast takes other widths"
        )
    return bitcast(value, target_type)


def prmt(lo: Scalar, selector: Scalar, mode: PermuteMode = PermuteMode.DEFAULT, *, hi: Scalar = 0) -> Int:
    """Four of the eight bytes of two registers, an Int32: each of the four lowest nibbles of the selector names a byte,
    0 to 3 of `lo` and 4 to 7 of `hi`; with its highest bit, the byte's sign (PTX ISA, prmt).
    """
    return convert(bytes_of(lo, hi, selector), Int32)


def _converted(types: str, values: list[SSAValue], rnd: FPRoundingMode, sat: SaturationModeKind, relu: bool) -> Int:
    return _word(insert_value(ptx.CvtOp(_form(types, rnd, sat, relu), values)))


def _form(types: str, rnd: FPRoundingMode, sat: SaturationModeKind, relu: bool) -> str:
    """The modifiers of a conversion. PTX writes `relu` before `satfinite` for 16 bits, and after it for fewer."""
    words = (["satfinite"] if sat is SaturationModeKind.SATFINITE else []) + (["relu"] if relu else [])
    for order in (words, words[::-1]):
        form = ".".join([rnd.value, *order, types])
        if form in CVT_FORMS:
            return form
    of_types = ", ".join(sorted(_others(types))) or "none"
    message = f"PTX has no conversion cvt.{'.'.join([rnd.value, *words, types])}"
    raise TilefoldError(Code.BUILD_VALUE, message, f"between these types: {of_types}")


def _others(types: str) -> Iterator[str]:
    """The conversions between the same types."""
    return (form for form in CVT_FORMS if form.endswith(f".{types}"))


def _word(pair: SSAValue) -> Int:
    """A pair as an Int32."""
    if isinstance(pair.type, IntegerType):
        return wrap(insert_value(arith.ExtUIOp(pair, i32)), Int32)
    single = insert_value(vector.BitcastOp(pair, VectorType(i32, [1])))
    return wrap(insert_value(vector.ExtractOp(single, [0], i32)), Int32)


def _is_zero(ssa: SSAValue) -> bool:
    """Whether a value is the number 0."""
    owner = ssa.owner
    return isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr) and not owner.value.value.data
