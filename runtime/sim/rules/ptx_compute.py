# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for functions and conversions of registers (PTX ISA, sections ex2 to tanh, cvt, prmt, dp4a)."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ....base.element_types import BY_PTX, ElementType
from ....dialects import ptx
from ...arrays.storage import pack, unpack
from ...engine import NumPyArray, numpy_type
from ..events import Step
from ..translate import Rules, Translator
from ..values import Value, fused_multiply_add, narrow, round_to_tf32
from ..values.approximations import approximate

Doubles = NDArray[np.float64]
Words = NDArray[np.int64]


def _approximate(op: ptx.ApproximateOp, t: Translator) -> Step:
    dtype, name, flushes = t.kind(op.result).dtype, op.FUNCTION, op.flushes
    return t.compute(op.result, lambda value: approximate(name, value, dtype, flushes), op.value)


def _relu(x: Doubles) -> Doubles:
    """Negative values and -0 become +0, as measured on an H200; NaN stays."""
    return np.where(x <= 0, 0.0, x)


def saturate(x: Doubles, element: ElementType) -> NumPyArray:
    """Numbers as 8-bit floats; larger values become the greatest (satfinite)."""
    return np.asarray(narrow(np.clip(x, -element.greatest, element.greatest), numpy_type(element)))


def _sixteen_bits(x: Doubles, element: ElementType) -> NumPyArray:
    """Numbers as floats of 16 bits; the bits of every NaN are 0x7FFF."""
    made = np.asarray(narrow(x, numpy_type(element)))
    return np.where(np.isnan(x), np.uint16(0x7FFF), made.view(np.uint16)).astype(np.uint16).view(made.dtype)


def _power(x: Doubles, *, up: bool, saturated: bool) -> NDArray[np.uint8]:
    """Numbers as scale factors (ue8m0): the power of 2 below, or above; the sign is ignored. Greater ones become NaN
    or, `saturated`, the greatest.
    """
    size = np.abs(x)
    fraction, exponent = np.frexp(np.where(np.isfinite(size), size, 1.0))
    wanted = exponent - 1 + (up & (fraction > 0.5)) + 127
    codes = np.where(size == 0, 0, np.clip(wanted, 0, 0xFF))
    codes = np.where(np.isinf(size), 0xFF, codes)
    if saturated:
        codes = np.minimum(codes, 0xFE)
    return np.where(np.isnan(size), 0xFF, codes).astype(np.uint8)


def _cvt(op: ptx.CvtOp, t: Translator) -> Step:
    t.kind(op.result)
    form = op.form.data
    return t.compute(op.result, round_to_tf32 if form.startswith("rna.tf32.") else cvt_of(form), *op.values)


def cvt_of(form: str) -> Callable[..., Value]:
    """The function of a conversion of `CVT_FORMS` to several floats, of values as those of `ptx.cvt`: pairs of 16 bits
    each are arrays (lanes, 2), the lower half first, narrower ones integers.
    """
    modifiers = form.split(".")
    if modifiers[0] == "rs":
        return _cvt_random(modifiers)
    target, source = (BY_PTX[name.removesuffix("x2")] for name in modifiers[-2:])
    relu = "relu" in modifiers

    def numbers(given: tuple[Value, ...]) -> Doubles:
        """The numbers to convert: an array (lanes, 2), the lower half first."""
        if len(given) == 2:
            columns = np.broadcast_arrays(*[np.atleast_1d(np.asarray(x, np.float64)) for x in reversed(given)])
            return np.stack(columns, axis=1)
        if source.bits == 4:
            codes = unpack(np.atleast_1d(np.asarray(given[0], np.int8)).view(np.uint8)[:, None], 4)
            return codes.view(numpy_type(source)).astype(np.float64)
        if source.bits <= 8:
            words = np.atleast_1d(np.asarray(given[0], np.int16)).view(np.uint8).reshape(-1, 2)
            words = words & np.uint8((1 << source.bits) - 1)
            return words.view(numpy_type(source)).astype(np.float64)
        return np.asarray(given[0]).astype(np.float64)

    def pair(*given: Value) -> Value:
        x = numbers(given)
        x = _relu(x) if relu else x
        if target.bits > 8:
            x = _toward_zero(x, target) if modifiers[0] == "rz" else x
            x = np.clip(x, -target.greatest, target.greatest) if "satfinite" in modifiers else x
            return _sixteen_bits(x, target)
        if target.fraction:
            codes = np.ascontiguousarray(saturate(x, target)).view(np.uint8)
        else:
            codes = _power(x, up=modifiers[0] == "rp", saturated="satfinite" in modifiers)
        words = pack(codes, 4).view(np.int8)[:, 0] if target.bits == 4 else codes.view(np.int16)[:, 0]
        return int(words[0]) if len(words) == 1 else words

    return pair


def _cvt_random(modifiers: list[str]) -> Callable[..., Value]:
    """A conversion that rounds by random bits."""
    count = int(modifiers[-2][-1])
    target, share = BY_PTX[modifiers[-2][:-2]], 32 // count
    width = min(share, 13) if modifiers[-2] == "f16x2" else share

    def converted(*given: Value) -> Value:
        *columns, words = np.broadcast_arrays(*[np.atleast_1d(np.asarray(x)) for x in given])
        x = np.stack(columns[::-1], axis=1).astype(np.float64)
        random = words.astype(np.int64)[:, None] >> share * np.arange(count) & (1 << width) - 1
        x = round_randomly(_relu(x) if "relu" in modifiers else x, target, random / (1 << width))
        if target.bits > 8:
            x = np.clip(x, -target.greatest, target.greatest) if "satfinite" in modifiers else x
            return _sixteen_bits(x, target)
        codes = np.ascontiguousarray(saturate(x, target)).view(np.uint8)
        packed = pack(codes, 4).view(np.int16) if target.bits == 4 else codes.view(np.int32)
        return int(packed[0, 0]) if len(packed) == 1 else packed[:, 0]

    return converted


def round_randomly(x: Doubles, target: ElementType, random: Doubles) -> Doubles:
    """Numbers with as many bits as an element type has: away from 0 if the fraction that is cut off, plus a random
    one, is 1 or more.
    """
    finite = np.isfinite(x)
    size = np.abs(np.where(finite, x, 0.0))
    _, exponent = np.frexp(size)
    least = 2 - (1 << target.exponent - 1)
    unit = np.exp2((np.maximum(exponent - 1, least) - target.fraction).astype(np.float64))
    return np.where(finite, np.copysign(np.floor(size / unit + random) * unit, x), x)


def _toward_zero(x: Doubles, target: ElementType) -> Doubles:
    """Numbers as an element type holds them, without their further bits; the greatest for finite ones beyond it."""
    bounded = np.clip(round_randomly(x, target, np.zeros_like(x)), -target.greatest, target.greatest)
    return np.where(np.isinf(x), x, bounded)


def _on_words(op: ptx.PrmtOp | ptx.Dp4aOp, t: Translator, function: Callable[..., Words]) -> Step:
    """Computes modulo 2**32 with the operands as 64-bit integers."""

    def computed(*values: Value) -> Value:
        value = on_words(function, *values).view(np.int32)
        return int(value) if value.ndim == 0 else value

    return t.compute(op.result, computed, *op.operands)


def on_words(function: Callable[..., Words], *values: Value) -> NDArray[np.uint32]:
    """A function of 64-bit integers, modulo 2**32."""
    return np.asarray(function(*[np.asarray(value, np.int64) for value in values])).astype(np.uint32)


def permute(a: Words, b: Words, selector: Words) -> Words:
    """Four of the eight bytes of two words, or their signs (PTX ISA, prmt)."""
    both = (a & 0xFFFFFFFF) | (b & 0x7FFFFFFF) << 32
    top = (b >> 24) & 0xFF
    total = np.zeros_like(a + b + selector)
    for place in range(4):
        nibble = selector >> 4 * place
        byte = np.where(nibble & 7 == 7, top, both >> 8 * (nibble & 7)) & 0xFF
        sign = np.where(byte & 0x80 != 0, 0xFF, 0)
        total |= np.where(nibble & 8 != 0, sign, byte) << 8 * place
    return total


def _dp4a(op: ptx.Dp4aOp, t: Translator) -> Step:
    signed = [name == "s32" for name in op.form.data.split(".")]

    def byte(word: Words, place: int, is_signed: bool) -> Words:
        bits = word >> 8 * place & 0xFF
        return (bits ^ 0x80) - 0x80 if is_signed else bits

    def total(a: Words, b: Words, c: Words) -> Words:
        products = [byte(a, place, signed[0]) * byte(b, place, signed[1]) for place in range(4)]
        return np.asarray(c + sum(products))

    return _on_words(op, t, total)


def _pairs(op: ptx.F32x2Op, t: Translator) -> Step:
    kind = op.form.data.partition(".")[0]

    def computed(*values: Value) -> Value:
        given = [np.asarray(value, np.float32) for value in values]
        if kind == "fma":
            a, b, c = given
            return fused_multiply_add(a, b, c, np.dtype(np.float32))
        with np.errstate(all="ignore"):
            return {"add": np.add, "sub": np.subtract, "mul": np.multiply}[kind](*given)

    return t.compute(op.result, computed, *op.values)


def _extreme_of_three(op: ptx.MinMax3Op, t: Translator) -> Step:
    least, keeps = op.form.data.startswith("min"), op.form.data.endswith("NaN")
    extreme = (np.minimum if least else np.maximum) if keeps else (np.fmin if least else np.fmax)

    def computed(*values: Value) -> Value:
        a, b, c = np.broadcast_arrays(*[np.asarray(value, np.float32) for value in values])
        found = extreme(extreme(a, b), c)
        found = np.where(found == 0, np.where(_negative_zero(least, a, b, c), np.float32(-0.0), np.float32(0)), found)
        return np.where(np.isnan(found), np.uint32(0x7FFFFFFF).view(np.float32), found)[()]

    return t.compute(op.result, computed, op.a, op.b, op.c)


def _negative_zero(least: bool, *values: NumPyArray) -> NDArray[np.bool_]:
    """Whether -0 is the least, or the greatest, of the zeros among values: -0 is less than +0."""
    negative = [(value == 0) & np.signbit(value) for value in values]
    positive = [(value == 0) & ~np.signbit(value) for value in values]
    return np.any(negative, axis=0) if least else ~np.any(positive, axis=0)


PTX_COMPUTE: Rules = {
    ptx.F32x2Op: _pairs,
    ptx.MinMax3Op: _extreme_of_three,
    ptx.ApproximateOp: _approximate,
    ptx.CvtOp: _cvt,
    ptx.PrmtOp: lambda op, t: _on_words(op, t, permute),
    ptx.Dp4aOp: _dp4a,
}
