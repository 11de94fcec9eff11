# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of PTX by their names, `add.rz.f32`, as functions of NumPy's arrays: those for which the reader of PTX
has no operation (PTX ISA, fns, fma, cvt, and the roundings of floats).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np

from ....base.element_types import BY_PTX
from ....layout.tma.recipe import OOB_NAN
from ...engine import NumPyType, numpy_type
from ..values import Value, fused_multiply_add
from .conversions import conversion
from .roundings import rounded_instruction

_WORD = np.dtype(np.uint32)


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction: `run` takes the operands, arrays of these types, and returns the result."""

    run: Callable[..., Value]
    operands: tuple[NumPyType, ...]


def instruction_of(word: str) -> Instruction | None:
    """The instruction of a name; None for one that has an operation, or that there is not."""
    if (known := _OTHERS.get(word)) is not None:
        return known
    if (converted := conversion(word)) is not None:
        return Instruction(converted[0], (converted[1],))
    name, _, type = word.removesuffix(".f32" if word.startswith("cvt.") else "").rpartition(".")
    opcode, *modifiers = name.split(".")
    if type not in ("f32", "f64") or not set(modifiers) - {"rn"}:
        return None
    dtype = numpy_type(BY_PTX[type])
    rounded = rounded_instruction(opcode, tuple(modifiers), dtype)
    return None if rounded is None else Instruction(rounded[0], (dtype,) * rounded[1])


def _fns(x: Value, base: Value, offset: Value) -> Value:
    """The place of the |offset|-th one from place `base` on, up or down; of 0, that at the place (PTX ISA, fns)."""
    place, count = base.astype(np.int64), offset.view("i4").astype(np.int64)
    step, left = np.where(count < 0, -1, 1), np.maximum(np.abs(count), 1)
    found: Value = np.full(place.shape, 0xFFFFFFFF, np.int64)
    for tries in range(32):
        bit: Value = x >> np.clip(place, 0, 31).astype(x.dtype) & 1
        is_one: Value = (place >= 0) & (place < 32) & (bit == 1)
        left = left - is_one
        np.copyto(found, place, where=is_one & (left == 0) & ((count != 0) | (tries == 0)))
        place = place + step
    return found.astype(x.dtype)


def _fma_or_zero(dtype: NumPyType, relu: bool, a: Value, b: Value, c: Value) -> Value:
    """fma.oob: 0 where a factor is the NaN that copies leave outside a tensor, whose sign does not count (measured)."""
    value = np.asarray(fused_multiply_add(a, b, c, dtype)).astype(np.float64)
    if relu:
        value = np.where(value <= 0, 0.0, value)
    outside = [x.view(np.uint16) & 0x7FFF == OOB_NAN for x in (a, b)]
    value = np.where(outside[0] | outside[1], 0.0, value)
    bits = np.where(np.isnan(value), 0.0, value).astype(dtype).view(np.uint16)
    return np.where(np.isnan(value), np.uint16(0x7FFF), bits)


def _out_of_bounds(name: str) -> Mapping[str, Instruction]:
    dtype = numpy_type(BY_PTX[name])
    return {
        f"fma.rn.oob{suffix}.{name}": Instruction(partial(_fma_or_zero, dtype, bool(suffix)), (dtype,) * 3)
        for suffix in ("", ".relu")
    }


_OTHERS: Mapping[str, Instruction] = MappingProxyType(
    {"fns.b32": Instruction(_fns, (_WORD,) * 3), **_out_of_bounds("f16"), **_out_of_bounds("bf16")}
)
