# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on pairs of Float32: two instructions each, which sm_100 has as one. `rnd` is the rounding, "rn" alone or
the member of an enumeration with this value: TilefoldError (E5002) for another.
"""

from typing import Any, TypeAlias

from ...base.errors import Code, TilefoldError
from .math import fma

Pair: TypeAlias = tuple[Any, Any]


def _check_rounding(rnd: object) -> None:
    if getattr(rnd, "value", rnd) not in (None, "rn"):
        hint = "leave rnd out, or write cute.arch.inline_ptx"
        raise TilefoldError(Code.BUILD_VALUE, f"pairs are rounded to the nearest, not by {rnd!r}", hint)


def fma_packed_f32x2(src_a: Pair, src_b: Pair, src_c: Pair, *, rnd: object = None) -> Pair:
    """`a * b + c` of pairs, rounded once."""
    _check_rounding(rnd)
    return fma(src_a[0], src_b[0], src_c[0]), fma(src_a[1], src_b[1], src_c[1])


def mul_packed_f32x2(src_a: Pair, src_b: Pair, *, rnd: object = None) -> Pair:
    """The products of pairs."""
    _check_rounding(rnd)
    return src_a[0] * src_b[0], src_a[1] * src_b[1]


def add_packed_f32x2(src_a: Pair, src_b: Pair, *, rnd: object = None) -> Pair:
    """The sums of pairs."""
    _check_rounding(rnd)
    return src_a[0] + src_b[0], src_a[1] + src_b[1]


def sub_packed_f32x2(src_a: Pair, src_b: Pair, *, rnd: object = None) -> Pair:
    """The differences of pairs."""
    _check_rounding(rnd)
    return src_a[0] - src_b[0], src_a[1] - src_b[1]
