# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on pairs of Float32: two instructions each, which sm_100 has as one. `rnd` is the rounding, "rn", "rz",
"rm" or "rp", or the member of an enumeration with such a value: TilefoldError (E5002) for another. `ftz` takes
subnormal numbers as 0 (PTX ISA, add, sub, mul and fma). And pairs that become 8-bit floats.
"""

import operator
from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects import arith, vector
from xdsl.dialects.builtin import VectorType, i32

from ...base.errors import Code, TilefoldError
from ..scalars.casts import in_vector
from ..scalars.dtypes import Float32, Int32, as_dtype
from ..scalars.operators import Operand
from ..scalars.values import Int, Scalar, convert, wrap
from ..tracing.state import insert_value
from .inline import inline_ptx
from .math import exp, fma

Pair: TypeAlias = tuple[Operand, Operand]


_ROUNDINGS = ("rn", "rz", "rm", "rp")


def _suffix(rnd: object, ftz: bool) -> str:
    """The modifiers of rounding and `.ftz`; empty for the nearest with subnormal numbers."""
    word = getattr(rnd, "value", rnd) or "rn"
    if word not in _ROUNDINGS:
        hint = f"write one of {', '.join(_ROUNDINGS)}"
        raise TilefoldError(Code.BUILD_VALUE, f"operations on pairs do not support the rounding mode {rnd!r}", hint)
    return "" if word == "rn" and not ftz else f".{word}{'.ftz' * ftz}"


def _by_parts(name: str, plain: Callable[..., object], pairs: Sequence[Pair], rnd: object, ftz: bool) -> Pair:
    """An instruction on the first numbers of pairs and on the second ones: `plain`, or with a rounding of its own the
    instruction `name` as text.
    """
    suffix = _suffix(rnd, ftz)
    if not suffix:
        return plain(*(pair[0] for pair in pairs)), plain(*(pair[1] for pair in pairs))
    registers = ", ".join(f"${number}" for number in range(len(pairs) + 1))
    text, letters = f"{name}{suffix}.f32 {registers};", ",".join(["=f", *("f" for _ in pairs)])
    first, second = (
        inline_ptx(text, letters, *(convert(pair[at], Float32) for pair in pairs), results=Float32) for at in (0, 1)
    )
    return first, second


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
    return _by_parts("fma", fma, (src_a, src_b, src_c), rnd, ftz)


def mul_packed_f32x2(src_a: Pair, src_b: Pair, *, rnd: object = None, ftz: bool = False) -> Pair:
    """The products of pairs."""
    return _by_parts("mul", operator.mul, (src_a, src_b), rnd, ftz)


def add_packed_f32x2(src_a: Pair, src_b: Pair, *, rnd: object = None, ftz: bool = False) -> Pair:
    """The sums of pairs."""
    return _by_parts("add", operator.add, (src_a, src_b), rnd, ftz)


def exp_packed_f32x2(src_a: Pair) -> Pair:
    """e to the power of both, by an approximation (PTX ISA, ex2.approx)."""
    return exp(src_a[0], fastmath=True), exp(src_a[1], fastmath=True)


def sub_packed_f32x2(src_a: Pair, src_b: Pair, *, rnd: object = None, ftz: bool = False) -> Pair:
    """The differences of pairs."""
    return _by_parts("sub", operator.sub, (src_a, src_b), rnd, ftz)


def mul_bf16x2(a: Scalar, b: Scalar) -> Int:
    """The products of the pairs of BFloat16 in two Int32, as such a pair (PTX ISA, mul.bf16x2, sm_90)."""
    return inline_ptx("mul.bf16x2 $0, $1, $2;", "=r,r,r", convert(a, Int32), convert(b, Int32), results=Int32)


def pack_float8(a: Scalar, b: Scalar, c: Scalar, d: Scalar, dtype: object) -> Int:
    """Four numbers as 8-bit floats of type `dtype` in an Int32, `a` in its lowest byte, by two conversions of pairs
    (PTX ISA, cvt). Numbers beyond the greatest become the greatest. TilefoldError (E5002) for another type.
    """
    target = as_dtype(dtype)
    if target.kind != "float" or target.bits != 8:
        hint = "give cute.Float8E4M3FN or cute.Float8E5M2"
        raise TilefoldError(Code.BUILD_VALUE, f"{target} is not an 8-bit float", hint)
    wide = in_vector([convert(x, Float32).ssa for x in (a, b, c, d)])
    four = VectorType(target.ir, [4])
    narrow = insert_value(arith.TruncFOp(wide, four))
    word = insert_value(vector.BitcastOp(narrow, VectorType(i32, [1])))
    return wrap(insert_value(vector.ExtractOp(word, [0], i32)), Int32)
