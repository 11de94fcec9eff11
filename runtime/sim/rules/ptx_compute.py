# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for functions and conversions of registers (PTX ISA, sections ex2 to tanh, cvt, prmt, dp4a)."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from ....base.element_types import BY_PTX, ElementType
from ....dialects import ptx
from ...numpy_types import numpy_type
from ..translate import Rules, Step, Translator
from ..values.approximations import approximate
from ..values.rounding import narrow, round_to_tf32
from ..values.values import Value
from ..warp import Warp

Doubles = NDArray[np.float64]


def _approximate(op: ptx.ApproximateOp, t: Translator) -> Step:
    value, result, dtype = t.slot(op.value), t.slot(op.result), t.kind(op.result).dtype
    name, flushes = op.FUNCTION, op.flushes

    def step(warp: Warp) -> None:
        registers = warp.registers
        registers[result] = approximate(name, registers[value], dtype, flushes)

    return step


def _relu(x: Doubles) -> Doubles:
    """Negative values and -0 become +0, as measured on an H200; NaN stays."""
    return np.where(x <= 0, 0.0, x)


def _saturate(x: Doubles, element: ElementType) -> NDArray[Any]:
    """Numbers as 8-bit floats; larger values become the greatest (satfinite)."""
    return np.asarray(narrow(np.clip(x, -element.greatest, element.greatest), numpy_type(element)))


def _cvt(op: ptx.CvtOp, t: Translator) -> Step:
    values, result = t.slots(op.values), t.slot(op.result)
    t.kind(op.result)
    modifiers = op.form.data.split(".")
    target, source = (BY_PTX[name.removesuffix("x2")] for name in modifiers[-2:])
    relu = "relu" in modifiers

    def numbers(warp: Warp) -> Doubles:
        """The numbers to convert: an array (lanes, 2), the lower half first."""
        given = [warp.registers[slot] for slot in values]
        if len(given) == 2:
            columns = np.broadcast_arrays(*[np.atleast_1d(np.asarray(x, np.float64)) for x in reversed(given)])
            return np.stack(columns, axis=1)
        if source.bits == 8:
            words = np.atleast_1d(np.asarray(given[0], np.int16))
            return words.view(np.uint8).reshape(-1, 2).view(numpy_type(source)).astype(np.float64)
        return np.asarray(given[0]).astype(np.float64)

    def tf32(warp: Warp) -> None:
        warp.registers[result] = round_to_tf32(warp.registers[values[0]])

    def pair(warp: Warp) -> None:
        x = numbers(warp)
        x = _relu(x) if relu else x
        if target.bits == 8:
            words = np.ascontiguousarray(_saturate(x, target)).view(np.int16)[:, 0]
            warp.registers[result] = int(words[0]) if len(words) == 1 else words
        else:
            warp.registers[result] = np.asarray(narrow(x, numpy_type(target)))

    return tf32 if target.stored else pair


def _words(t: Translator, values: tuple[SSAValue, ...]) -> Callable[[Warp], list[NDArray[np.int64]]]:
    slots = t.slots(values)
    return lambda warp: [np.asarray(warp.registers[slot], np.int64) for slot in slots]


def _as_i32(total: NDArray[np.int64]) -> Value:
    """Numbers modulo 2**32, in the form that an i32 has."""
    value = total.astype(np.uint32).astype(np.int32)
    return int(value) if value.ndim == 0 else value


def _prmt(op: ptx.PrmtOp, t: Translator) -> Step:
    result, words = t.slot(op.result), _words(t, (op.a, op.b, op.selector))

    def step(warp: Warp) -> None:
        a, b, selector = words(warp)
        both = (a & 0xFFFFFFFF) | (b & 0x7FFFFFFF) << 32
        top = (b >> 24) & 0xFF
        total = np.zeros_like(a + b + selector)
        for place in range(4):
            nibble = selector >> 4 * place
            byte = np.where(nibble & 7 == 7, top, both >> 8 * (nibble & 7)) & 0xFF
            sign = np.where(byte & 0x80 != 0, 0xFF, 0)
            total |= np.where(nibble & 8 != 0, sign, byte) << 8 * place
        warp.registers[result] = _as_i32(total)

    return step


def _dp4a(op: ptx.Dp4aOp, t: Translator) -> Step:
    result, words = t.slot(op.result), _words(t, (op.a, op.b, op.c))
    signed = [name == "s32" for name in op.form.data.split(".")]

    def byte(word: NDArray[np.int64], place: int, is_signed: bool) -> NDArray[np.int64]:
        bits = word >> 8 * place & 0xFF
        return (bits ^ 0x80) - 0x80 if is_signed else bits

    def step(warp: Warp) -> None:
        a, b, c = words(warp)
        products = [byte(a, place, signed[0]) * byte(b, place, signed[1]) for place in range(4)]
        warp.registers[result] = _as_i32(np.asarray(c + sum(products)))

    return step


PTX_COMPUTE: Rules = {
    ptx.ApproximateOp: _approximate,
    ptx.CvtOp: _cvt,
    ptx.PrmtOp: _prmt,
    ptx.Dp4aOp: _dp4a,
}
