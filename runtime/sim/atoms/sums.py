# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of products as GPUs take them, bit for bit: a `Summation` on the fragments of a matrix instruction."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ....base.element_types import BY_PTX
from ....layout.atoms.numbers import Types
from ....layout.atoms.summation import LEAST_EXPONENT, AlignedSum, FusedChain, SplitChain, Summation
from ...engine import NumPyArray
from ..values import fused_multiply_add
from .native_sums import compiled, scratch

MultiplyAdd: TypeAlias = Callable[[NumPyArray, NumPyArray, NumPyArray], NumPyArray]
"""D of fragments (count, elements) of A, B and C."""

_SHORT = 8
"""N of the instructions of a warp."""


def multiply_add(how: Summation, types: Types, at_a: NumPyArray, at_b: NumPyArray, at_c: NumPyArray) -> MultiplyAdd:
    """A * B + C of element types (D, A, B, C). Tables tell where the elements (M, K), (K, N) and (M, N) of matrices are
    in their fragments.

    A and B come in f32 or f64, exactly; C and D have the type of the accumulator, and the same places.
    """
    if isinstance(how, FusedChain):
        return _fused_chain(at_a, at_b, at_c)
    if isinstance(how, SplitChain):
        return _split_chain(how, at_a, at_b, at_c)
    assert isinstance(how, AlignedSum), "products with scales have a function of their own"
    return _aligned_sum(how, types, at_a, at_b, at_c)


def _fused_chain(at_a: NumPyArray, at_b: NumPyArray, at_c: NumPyArray) -> MultiplyAdd:
    from_d = np.argsort(at_c.ravel())

    def execute(a: NumPyArray, b: NumPyArray, c: NumPyArray) -> NumPyArray:
        total = c.take(at_c, axis=1)
        for k in range(at_a.shape[1]):
            total = fused_multiply_add(
                a.take(at_a[:, k, None], axis=1), b.take(at_b[k], axis=1)[:, None], total, c.dtype
            )
        return total.reshape(c.shape).take(from_d, axis=1)

    return execute


def _split_chain(how: SplitChain, at_a: NumPyArray, at_b: NumPyArray, at_c: NumPyArray) -> MultiplyAdd:
    from_d, single = np.argsort(at_c.ravel()), np.dtype(np.float32)
    start = np.float32(-0.0 if how.negative else 0.0)

    def execute(a: NumPyArray, b: NumPyArray, c: NumPyArray) -> NumPyArray:
        total = c.take(at_c, axis=1).astype(single)
        for first in range(0, at_a.shape[1], how.terms):
            part = np.full_like(total, start)
            for k in range(first, first + how.terms):
                left, right = a.take(at_a[:, k, None], axis=1), b.take(at_b[k], axis=1)[:, None]
                part = fused_multiply_add(left, right, part, single)
            total = total + part
        made = total.astype(c.dtype).reshape(c.shape).take(from_d, axis=1)
        return _with_one_nan(made)

    return execute


def _with_one_nan(made: NumPyArray) -> NumPyArray:
    """NaN as GPUs write it in f16 and f32: all bits but the sign."""
    missing = np.isnan(made)
    bits = 8 * made.itemsize
    nan = np.array((1 << bits - 1) - 1, f"u{bits // 8}").view(made.dtype)
    return np.where(missing, nan, made) if missing.any() else made


def _aligned_sum(how: AlignedSum, types: Types, at_a: NumPyArray, at_b: NumPyArray, at_c: NumPyArray) -> MultiplyAdd:
    accumulator, *operands = types[:3]
    order = [k for step in how.steps for k in step]
    tables = [np.ascontiguousarray(x, np.int32) for x in (at_a[:, order], at_b[order], at_c)]
    (m, n), k, terms = at_c.shape, len(order), len(how.steps[0])
    exponents = [BY_PTX["f16" if how.as_f16 else name].exponent for name in operands] + [BY_PTX[accumulator].exponent]
    nearest = accumulator == "f16"
    numbers = (
        how.fraction,
        LEAST_EXPONENT,
        *[2 - (1 << bits - 1) for bits in exponents],
        BY_PTX[accumulator].fraction + 1 if nearest else how.significand,
        (1 << exponents[2] - 1) - 1,
        nearest,
    )
    wide, narrow = scratch(m, n, k)

    def execute(a: NumPyArray, b: NumPyArray, c: NumPyArray) -> NumPyArray:
        function = compiled(n, terms) if n == _SHORT else compiled(None, 0)
        left, right, before = [np.ascontiguousarray(x, np.float32) for x in (a, b, c)]
        start = np.zeros_like(before) if how.accumulates_last else before
        result, doubles, integers = np.empty_like(before), np.empty(wide), np.empty(narrow, np.int32)
        arrays = *tables, left, right, start, result, doubles, integers
        sizes = len(c), m, n, k, terms, a.shape[1], b.shape[1], c.shape[1]
        function(*sizes, *numbers, *[x.ctypes.data for x in arrays])
        total = result.astype(c.dtype, copy=False)
        if how.accumulates_last:
            total = total + c
        return _with_one_nan(total)

    return execute
