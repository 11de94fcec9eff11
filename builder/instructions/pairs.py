# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on pairs of Float32: two instructions each, which sm_100 has as one. `rnd` is the rounding, "rn" alone or
the member of an enumeration with this value: TilefoldError (E5002) for another. And pairs that become 8-bit floats.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import VectorType, i32

from ...base.errors import Code, TilefoldError
from ..scalars.casts import in_vector
from ..scalars.dtypes import Float32, Int32, as_dtype
from ..scalars.values import Scalar, convert, wrap
from ..tracing.state import insert_value
from .math import exp, fma

Pair: TypeAlias = tuple[Any, Any]


def _check_rounding(rnd: object, ftz: bool) -> None:
    if ftz:
        hint = "leave ftz out, or write cute.arch.inline_ptx"
        raise TilefoldError(Code.BUILD_VALUE, "pairs keep their subnormal numbers", hint)
    if getattr(rnd, "value", rnd) not in (None, "rn"):
        hint = "leave rnd out, or write cute.arch.inline_ptx"
        raise TilefoldError(Code.BUILD_VALUE, f"pairs are rounded to the nearest, not by {rnd!r}", hint)


def calc_packed_f32x2_op(
    src_a: Pair,
    src_b: Pair,
    src_c: Pair | None,
    calc_func: Callable[..., Pair],
    *,
    rnd: object = None,
    ftz: bool = False,
) -> Pair:
    """The result of a function of two pairs, or of three."""
    given = (src_a, src_b) if src_c is None else (src_a, src_b, src_c)
    return calc_func(*given, rnd=rnd, ftz=ftz)


def fma_packed_f32x2(src_a: Pair, src_b: Pair, src_c: Pair, *, rnd: object = None, ftz: bool = False) -> Pair:
    """`a * b + c` of pairs, rounded once."""
    _check_rounding(rnd, ftz)
    return fma(src_a[0], src_b[0], src_c[0]), fma(src_a[1], src_b[1], src_c[1])


def mul_packed_f32x2(src_a: Pair, src_b: Pair, *, rnd: object = None, ftz: bool = False) -> Pair:
    """The products of pairs."""
    _check_rounding(rnd, ftz)
    return src_a[0] * src_b[0], src_a[1] * src_b[1]


def add_packed_f32x2(src_a: Pair, src_b: Pair, *, rnd: object = None, ftz: bool = False) -> Pair:
    """The sums of pairs."""
    _check_rounding(rnd, ftz)
    return src_a[0] + src_b[0], src_a[1] + src_b[1]


def exp_packed_f32x2(src_a: Pair) -> Pair:
    """e to the power of both, by an approximation (PTX ISA, ex2.approx)."""
    return exp(src_a[0], fastmath=True), exp(src_a[1], fastmath=True)


def sub_packed_f32x2(src_a: Pair, src_b: Pair, *, rnd: object = None, ftz: bool = False) -> Pair:
    """The differences of pairs."""
    _check_rounding(rnd, ftz)
    return src_a[0] - src_b[0], src_a[1] - src_b[1]


def pack_float8(a: Scalar, b: Scalar, c: Scalar, d: Scalar, dtype: object) -> Any:
    """Four numbers as 8-bit floats of type `dtype` in an Int32, `a` in its lowest byte, by two conversions of pairs
    (PTX ISA, cvt). Numbers beyond the greatest become the greatest. TilefoldError (E5002) for another type.
    """
    target = as_dtype(dtype)
    if target.kind != "float" or target.bits != 8:
        hint = "give cute.Float8E4M3FN or cute.Float8E5M2"
        raise TilefoldError(Code.BUILD_VALUE, f"{target} is no 8-bit float", hint)
    wide = in_vector([convert(x, Float32).ssa for x in (a, b, c, d)])
    four = VectorType(target.ir, [4])
    narrow = insert_value(arith.TruncFOp(wide, four))
    word = insert_value(vector.BitcastOp(narrow, VectorType(i32, [1])))
    return wrap(insert_value(vector.ExtractOp(word, [0], i32)), Int32)
