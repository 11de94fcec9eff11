# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arithmetic of matrix instructions whose operands have scales, D = (A * scales) * (B * scales) + C.

Where a `ScaledSum` says how a GPU takes the sum, results are that GPU's, bit for bit. Without one, products are exact,
the sum is taken in double precision, and the result is rounded once, to nearest even.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ....base.element_types import BY_PTX
from ....base.errors import Code
from ....layout.algebra.core import Layout
from ....layout.atoms.contract import Role
from ....layout.atoms.mma_atom import MmaAtom
from ....layout.atoms.summation import LEAST_EXPONENT, ScaledSum, Summation
from ...arrays.storage import distances
from ...engine import NumPyArray
from ..faults import SimulationError, Site
from ..warp import Warp
from .mma_arithmetic import DTYPES, Places, Values, widen

ScaledExecutor: TypeAlias = Callable[[Values, Values, Values, NumPyArray, NumPyArray], Values]
"""D of A, B and C, and of the bytes (lanes, scales) of the scales of A and B, for all lanes of a warp."""

_ZERO = -4096
"""An exponent less than any other."""
_NAN = np.uint32(0x7FFFFFFF)
"""The only NaN that tensor cores give."""


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    """The numbers of a type of a byte or less: by their bits the value, its raw exponent, and its significand."""

    values: NumPyArray
    exponents: NumPyArray
    significands: NumPyArray


def _numbers(name: str, *, signed: bool) -> _Numbers:
    """The numbers of a PTX type. An exponent is the encoded one: subnormal numbers have the least."""
    element = BY_PTX[name]
    kept = element.bits - (not signed and not element.unsigned)  # of an e4m3 without sign that bit is ignored
    bits = np.arange(256, dtype=np.uint8) & np.uint8((1 << kept) - 1)
    values = bits.view(DTYPES[name]).astype(np.float64)
    finite = np.where(np.isfinite(values), values, 0.0)
    least = 2 - (1 << element.exponent - 1)
    exponents = np.maximum(np.frexp(np.abs(finite))[1] - 1, least if element.fraction else -127)
    return _Numbers(values, exponents, np.ldexp(finite, -exponents))


def scale_lanes(layout: Layout, rows: int, thread: int) -> NumPyArray:
    """The lanes whose registers have the scales of each row, where the instruction selects the `thread`-th."""
    lanes, values = layout[0].size, layout[1].size
    row_of = distances(layout).reshape(lanes, values, order="F")[:, 0] % rows
    return np.array([np.flatnonzero(row_of == row)[thread] for row in range(rows)])


def scaled_executor(
    atom: MmaAtom, how: Summation | None, threads: tuple[int, int] = (0, 0), exact: object = None
) -> ScaledExecutor:
    """The function that multiplies as the atom does; `threads` say which lanes have the scales of A and B.

    SimulationError (E3201) in exact arithmetic, which has no numbers for scales.
    """
    if exact is not None:
        raise SimulationError(Code.SIM_UNSUPPORTED, f"there is no exact arithmetic for the scales of {atom.name}")
    places, (m, n, k) = Places(atom), atom.shape
    operands = [atom.contract.operand(role) for role in (Role.SCALE_A, Role.SCALE_B)]
    lanes = [scale_lanes(x.layout, rows, t) for x, rows, t in zip(operands, (m, n), threads, strict=True)]
    scales = _numbers(operands[0].element, signed=False)
    of_a, of_b = (_numbers(atom.types[i], signed=True) for i in (1, 2))
    widen_c: Callable[[Values], NumPyArray] = widen("f32")
    at_a, at_b, at_c = places.a[0], places.b[0], places.c[0]
    each = atom.products.scaled
    assert how is None or isinstance(how, ScaledSum)
    group = 16 if how is None else how.exact

    def execute(a: Values, b: Values, c: Values, scales_a: NumPyArray, scales_b: NumPyArray) -> Values:
        bits_a, bits_b = _codes(a, at_a), _codes(b, at_b)
        one = [_per_group(x[..., i, :], k, group, each) for x, i in ((scales_a, lanes[0]), (scales_b, lanes[1]))]
        first, second = one[0][..., :, None, :], one[1][..., None, :, :]  # (..., M, 1, groups) and (..., 1, N, groups)
        left, right = of_a.values[bits_a][..., :, None, :], np.swapaxes(of_b.values[bits_b], -1, -2)[..., None, :, :]
        sums = _grouped(left * right, group)
        exponents = scales.exponents[first] + scales.exponents[second]
        if group == 1:  # the exponents of the products count too
            exponents = exponents + of_a.exponents[bits_a][..., :, None, :]
            exponents = exponents + np.swapaxes(of_b.exponents[bits_b], -1, -2)[..., None, :, :]
            terms = sums * scales.values[first] * scales.values[second]
        else:
            factors = scales.significands[first] * scales.significands[second]
            terms = np.ldexp(sums * factors, scales.exponents[first] + scales.exponents[second])
            terms = np.where(np.isnan(scales.values[first] + scales.values[second]), np.nan, terms)
        before = widen_c(c).reshape(*c.shape[:-2], -1).take(at_c, axis=-1)
        total = _plain(terms, before) if how is None else _as_gpu(how, terms, exponents, before)
        return total.reshape(*total.shape[:-2], -1).take(places.d, axis=-1).reshape(*total.shape[:-2], *c.shape[-2:])

    def each_warp(a: Values, b: Values, c: Values, scales_a: NumPyArray, scales_b: NumPyArray) -> Values:
        given = [_by_warps(x) for x in (a, b, c, scales_a, scales_b)]
        d = execute(*given)
        return d.reshape(*d.shape[:-3], -1, d.shape[-1])

    return each_warp


def _by_warps(x: NumPyArray) -> NumPyArray:
    """The lanes of several warps apart: (..., warps, 32, values)."""
    return x.reshape(*x.shape[:-2], -1, 32, x.shape[-1])


def _codes(values: NumPyArray, at: NumPyArray) -> NumPyArray:
    """The bits of the elements of a matrix: (..., rows, columns)."""
    bits = np.ascontiguousarray(values).view(np.uint8)
    return bits.reshape(*bits.shape[:-2], -1).take(at, axis=-1)


def _per_group(scales: NumPyArray, k: int, group: int, each: int) -> NumPyArray:
    """The scale of each group of products along K."""
    return scales.take(np.arange(0, k, group) // each, axis=-1)


def _grouped(products: NumPyArray, group: int) -> NumPyArray:
    """Exact sums of neighbouring products along K, the last mode."""
    if group == 1:
        return products
    return products.reshape(*products.shape[:-1], -1, group).sum(axis=-1)


def _plain(terms: NumPyArray, before: NumPyArray) -> NumPyArray:
    return (terms.sum(axis=-1) + before).astype(np.float32)


def _as_gpu(how: ScaledSum, terms: NumPyArray, exponents: NumPyArray, before: NumPyArray) -> NumPyArray:
    """Terms truncated to a multiple of 2**(M - fraction), summed exactly, and truncated to f32."""
    known = np.where(np.isfinite(terms), terms, 0.0)
    start = np.where(np.isfinite(before), before, 0.0)
    own = np.where(start != 0, np.maximum(np.frexp(start)[1] - 1, -126), _ZERO)
    top = np.maximum(np.where(known != 0, exponents, _ZERO).max(axis=-1), np.maximum(own, LEAST_EXPONENT))
    aligned = np.trunc(np.ldexp(known, (how.fraction - top)[..., None])).sum(axis=-1)
    total = _toward_zero(np.ldexp(aligned + np.trunc(np.ldexp(start, how.fraction - top)), top - how.fraction))
    if not (np.isfinite(terms).all() and np.isfinite(before).all()):
        with np.errstate(invalid="ignore"):
            special = terms.sum(axis=-1) + before
        total = np.where(np.isfinite(special), total, special.astype(np.float32))
        total = np.where(np.isnan(special), _NAN.view(np.float32), total)
    return total


def _toward_zero(x: NumPyArray) -> NumPyArray:
    """Numbers in double precision truncated to f32; infinity from 2**128 on, and no negative zero."""
    with np.errstate(over="ignore"):
        near = x.astype(np.float32)
    near = np.where(np.abs(near.astype(np.float64)) > np.abs(x), np.nextafter(near, np.float32(0)), near)
    return np.where(np.abs(x) >= 2.0**128, np.copysign(np.float32(np.inf), near), near) + np.float32(0)


def check_shifted(warp: Warp, site: Site, atom: MmaAtom, *operands: NumPyArray) -> None:
    """A fault (E3229) for bytes of A or B whose element of 4 bits is not in bits 2 to 5."""
    for matrix, element, content in zip("AB", atom.types[1:3], operands, strict=True):
        if element == "e2m1" and (wrong := (content & 0xC3).reshape(-1, *content.shape[-2:]).any(axis=(0, 2))).any():
            lane = int(warp.lane_numbers()[wrong.argmax()])
            text = f"a byte of {matrix} has an element of 4 bits outside bits 2 to 5, where {atom.name} reads it"
            cure = "shift the bytes of ldmatrix (b4x16_p64) left by 2"
            warp.fault(Code.SIM_SCALES, site, lane, text, cure)


def check_scales(warp: Warp, site: Site, atom: MmaAtom, scales: Sequence[NumPyArray], threads: tuple[int, int]) -> None:
    """A fault (E3229) where the lanes that the instruction reads have no scale but 0, and others have some."""
    rows = atom.shape[:2]
    for role, given, of, thread in zip((Role.SCALE_A, Role.SCALE_B), scales, rows, threads, strict=True):
        lanes = scale_lanes(atom.contract.operand(role).layout, of, thread)
        held: NumPyArray = (_by_warps(given).reshape(-1, 32, given.shape[-1]) != 0).any(axis=(0, 2))
        if held.any() and not held[lanes].any():
            lane = int(np.flatnonzero(held)[0])
            read = f"lanes {', '.join(map(str, lanes[:3]))}, ..."
            text = f"{role.value} are 0 in all lanes that {atom.name} reads ({read}), but not in lane {lane}"
            warp.fault(Code.SIM_SCALES, site, lane, text, "give each lane the scale of its row, or select other lanes")
