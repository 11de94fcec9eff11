# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of matrices whose blocks have scale factors (PTX ISA, tcgen05.mma with .block_scale).

A row has a scale factor for each 16 or 32 elements along K. Factor k of row r is byte k of a cell in column r / 32 and
lane r % 32, and again in the other three quarters of the lanes. As a GPU sums (MMA-Sim, arXiv 2511.10909): each product
of kind::mxf8f6f4 has the exponents of its scale factors added; of the fp4 kinds the exact sums of 16 products are
multiplied by the factors' significands. Addends are then aligned, and truncated.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....base.element_types import BY_PTX
from ....layout.atoms.summation import LEAST_EXPONENT
from ....layout.atoms.umma_descriptors import InstructionDescriptor
from ...engine import NumPyArray

_FRACTION, _FP4_FRACTION = 25, 35
_GROUP = 16
"""The products of fp4 kinds that are summed exactly."""
_LEAST_F32 = -126


@dataclass(frozen=True, slots=True)
class Scales:
    """The scale factors of A (M, factors) and B (N, factors) as numbers; NaN where the byte stands for none."""

    a: NumPyArray
    b: NumPyArray


def factors_in(codes: NDArray[np.uint8], is_e8m0: bool) -> NumPyArray:
    """The numbers that bytes stand for: ue8m0 is a power of two, ue4m3 is e4m3 without its sign."""
    if is_e8m0:
        return np.where(codes == 0xFF, np.nan, np.exp2(codes.astype(np.float64) - 127))
    exponent, fraction = (codes >> 3 & 15).astype(np.float64), (codes & 7).astype(np.float64)
    value = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * np.exp2(exponent - 10))
    return np.where(codes & 0x7F == 0x7F, np.nan, value)


def scaled_product(
    given: InstructionDescriptor, a: NumPyArray, b: NumPyArray, d: NumPyArray, by: Scales, measured: bool
) -> NumPyArray:
    """A (M, K) * B (N, K) + D in f32, with the scale factors of A and B; as a GPU sums where it is `measured`."""
    share = a.shape[1] // by.a.shape[1]
    left, right = a * by.a.repeat(share, axis=1), b * by.b.repeat(share, axis=1)
    if not measured:
        return (np.matmul(left, right.T) + d.astype(np.float64)).astype(np.float32)
    if given.kind.is_dense_fp4:
        return _of_groups(a, b, d, by)
    terms = left[:, None, :] * right[None, :, :]
    scale_a, scale_b = _exponent(by.a, -127).repeat(share, axis=1), _exponent(by.b, -127).repeat(share, axis=1)
    least_a, least_b = map(_least, given.types[1:])
    own = _exponent(a, least_a) + scale_a
    exponents = own[:, None, :] + (_exponent(b, least_b) + scale_b)[None, :, :]
    return _aligned(terms, exponents, d, _FRACTION)


def _of_groups(a: NumPyArray, b: NumPyArray, d: NumPyArray, by: Scales) -> NumPyArray:
    """The sums of fp4 kinds: exact sums of groups, scaled."""
    groups, factors = a.shape[1] // _GROUP, by.a.shape[1]
    sums = np.einsum("mgk,ngk->mng", a.reshape(len(a), groups, -1), b.reshape(len(b), groups, -1))
    of_a, of_b = [x.repeat(groups // factors, axis=1) for x in (by.a, by.b)]
    exponents = _exponent(of_a, -6)[:, None] + _exponent(of_b, -6)[None]
    return _aligned(sums * of_a[:, None] * of_b[None], exponents, d, _FP4_FRACTION)


def _least(name: str) -> int:
    """The exponent of subnormal numbers of an element type."""
    return 2 - (1 << BY_PTX[name].exponent - 1)


def _exponent(values: NumPyArray, least: int) -> NumPyArray:
    """The encoded exponents of numbers."""
    _, exponents = np.frexp(np.where(np.isfinite(values), values, 1.0))
    return np.maximum(exponents - 1, least)


def _aligned(terms: NumPyArray, exponents: NumPyArray, d: NumPyArray, fraction: int) -> NumPyArray:
    """The sum of addends (M, N, addends) with these exponents and of D, aligned to the greatest exponent, each
    truncated to this many bits behind it; truncated to f32.
    """
    wide = d.astype(np.float64)
    bad = ~np.isfinite(terms).all(axis=2) | ~np.isfinite(wide)
    addends = np.concatenate(
        [np.where(np.isfinite(terms), terms, 0), np.where(np.isfinite(wide), wide, 0)[..., None]], axis=2
    )
    own = np.concatenate([exponents, _exponent(wide, _LEAST_F32)[..., None]], axis=2)
    top = np.where(addends == 0, LEAST_EXPONENT, own).max(axis=2)
    unit = np.exp2((top - fraction).astype(np.float64))
    total = np.trunc(addends / unit[..., None]).sum(axis=2) * unit
    narrow = total.astype(np.float32)
    narrow.view(np.uint32)[np.abs(narrow.astype(np.float64)) > np.abs(total)] -= 1  # the next one toward zero
    nan = np.array(0x7FFFFFFF, np.uint32).view(np.float32)
    special = (np.where(np.isnan(terms), np.nan, terms).sum(axis=2) + wide).astype(np.float32)
    return np.where(bad, np.where(np.isnan(special), nan, special), narrow + np.float32(0))
