# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on pairs of Float32: two instructions each, which sm_100 has as one. `rnd` is the rounding, "rn" alone or
the member of an enumeration with this value: TilefoldError (E5002) for another.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from ...base.errors import Code, TilefoldError
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
