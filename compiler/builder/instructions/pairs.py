# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on pairs of Float32: two instructions each, which sm_100 has as one."""

from typing import Any, TypeAlias

from .math import fma

Pair: TypeAlias = tuple[Any, Any]


def fma_packed_f32x2(src_a: Pair, src_b: Pair, src_c: Pair) -> Pair:
    """`a * b + c` of pairs, rounded once."""
    return fma(src_a[0], src_b[0], src_c[0]), fma(src_a[1], src_b[1], src_c[1])


def mul_packed_f32x2(src_a: Pair, src_b: Pair) -> Pair:
    """The products of pairs."""
    return src_a[0] * src_b[0], src_a[1] * src_b[1]


def add_packed_f32x2(src_a: Pair, src_b: Pair) -> Pair:
    """The sums of pairs."""
    return src_a[0] + src_b[0], src_a[1] + src_b[1]


def sub_packed_f32x2(src_a: Pair, src_b: Pair) -> Pair:
    """The differences of pairs."""
    return src_a[0] - src_b[0], src_a[1] - src_b[1]
