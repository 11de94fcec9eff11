# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions of a text on halves, and conversions to integers (PTX ISA, Half Precision Floating Point Instructions,
min and max, cvt).
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from ....base.element_types import ELEMENT_TYPES
from ....layout.tma.recipe import OOB_NAN
from ...engine import NumPyType, numpy_type
from ..values import Value, fused_multiply_add, narrow
from .arithmetic import MAXIMUM, MAXIMUM_NUMBER, MINIMUM, MINIMUM_NUMBER
from .roundings import flush, rounded_instruction

_FLOATS: Mapping[str, tuple[NumPyType, int]] = MappingProxyType({
    f"{element.ptx}{suffix}": (numpy_type(element), count)
    for element in ELEMENT_TYPES
    if element.kind == "float" and element.bits in (16, 32)
    for suffix, count in (("", 1), ("x2", 2))
    if count * element.bits <= 32
})  # fmt: skip
"""Types by their names, with the numbers that a register has."""
_OPERANDS: Mapping[str, int] = MappingProxyType({"add": 2, "sub": 2, "mul": 2, "fma": 3, "min": 2, "max": 2})
_MODIFIERS: Mapping[str, frozenset[str]] = MappingProxyType({
    "sum": frozenset(("rn", "sat")),
    "fma": frozenset(("rn", "sat", "relu", "oob")),
    "extreme": frozenset(("NaN", "xorsign", "abs", "ftz")),
})  # fmt: skip
_CONVERSION = re.compile(r"cvt((?:\.(?:rni|rzi|rmi|rpi|ftz|sat))*)\.([su])(8|16|32|64)\.(\w+)")
_ROUNDINGS: Mapping[str, Callable[[Value], Value]] = MappingProxyType(
    {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
)
_INTEGERS: Mapping[str, NumPyType] = MappingProxyType(
    {f"{letter}{bits}": np.dtype(f"{kind}{bits // 8}") for letter, kind in ("si", "uu") for bits in (8, 16, 32, 64)}
)


def narrow_instruction(word: str) -> tuple[Callable[..., Value], tuple[NumPyType, ...]] | None:
    """The function of an instruction on registers of 16 bits, or of pairs of them, or of an extreme of f32, and NumPy's
    types of its operands, whose bits it takes; None for another.
    """
    opcode, *modifiers, type = word.split(".")
    if opcode not in _OPERANDS or type not in (*_FLOATS, "f32x2"):
        return None
    if type == "f32x2":
        single = rounded_instruction(opcode, tuple(modifiers)) if opcode not in ("min", "max") else None
        return None if single is None else (_of_pairs(single[0]), (np.dtype(np.uint64),) * single[1])
    kind = "fma" if opcode == "fma" else "extreme" if opcode in ("min", "max") else "sum"
    given, (dtype, count) = frozenset(modifiers), _FLOATS[type]
    is_single = dtype == np.float32
    if not given <= _MODIFIERS[kind] or (is_single and (kind != "extreme" or not given & {"NaN", "xorsign"})):
        return None
    if (
        ("xorsign" in given) != ("abs" in given)
        or ("ftz" in given and not is_single)
        or (opcode == "fma") != (kind == "fma" and "rn" in given)
    ):
        return None
    bits = np.dtype(f"u{dtype.itemsize}")

    def run(*words: Value) -> Value:
        numbers = [np.ascontiguousarray(np.atleast_1d(x)).view(dtype).astype(np.float64) for x in words]
        if "ftz" in given:
            numbers = [flush(x.astype(np.float32)).astype(np.float64) for x in numbers]
        value = _value(opcode, given, numbers, dtype)
        if "oob" in given:
            value = np.where(_is_outside(words[0], bits) | _is_outside(words[1], bits), 0.0, value)
        made = np.ascontiguousarray(np.where(np.isnan(value), 0.0, value).astype(dtype)).view(bits)
        quiet = (1 << 8 * dtype.itemsize - 1) - 1
        return np.where(np.isnan(value), bits.type(quiet), made).view(f"u{dtype.itemsize * count}")

    return run, (np.dtype(f"u{dtype.itemsize * count}"),) * _OPERANDS[opcode]


def _is_outside(word: Value, bits: Value) -> Value:
    """Which numbers of 16 bits are the NaN that copies leave outside a tensor, whose sign does not count (measured)."""
    return np.ascontiguousarray(np.atleast_1d(word)).view(bits) & bits.type(0x7FFF) == OOB_NAN


def halves_comparison(
    type: str, compare: Callable[[Value, Value], object]
) -> tuple[tuple[Callable[..., Value], ...], NumPyType] | None:
    """The comparisons of the halves of two registers, `setp.eq.f16x2`, the lower half first, or the one of 16 bits, and
    NumPy's type of a register; None for other types.
    """
    dtype, count = _FLOATS.get(type, (None, 0))
    if dtype is None or dtype.itemsize != 2:
        return None

    def of_half(half: int) -> Callable[..., Value]:
        def run(*words: Value) -> Value:
            numbers = [np.ascontiguousarray(np.atleast_1d(x)).view(dtype)[half::count] for x in words]
            return compare(*(x.astype(np.float64) for x in numbers))

        return run

    return tuple(map(of_half, range(count))), np.dtype(f"u{2 * count}")


def _of_pairs(function: Callable[..., object]) -> Callable[..., Value]:
    """A function of f32 for both numbers of words of 64 bits."""

    def run(*words: Value) -> Value:
        pairs = [np.ascontiguousarray(np.atleast_1d(x)).view(np.float32) for x in words]
        return np.ascontiguousarray(function(*np.broadcast_arrays(*pairs))).view(np.uint64)

    return run


def _value(opcode: str, modifiers: frozenset[str], numbers: list[Value], dtype: NumPyType) -> Value:
    """The result in double precision, rounded to the type."""
    match opcode:
        case "fma":
            a, b, c = numbers
            value = fused_multiply_add(a, b, c, dtype)
        case "min" | "max":
            value = _extreme(opcode, modifiers, *numbers)
        case _:
            value = narrow({"add": np.add, "sub": np.subtract, "mul": np.multiply}[opcode](*numbers), dtype)
    value = np.asarray(value).astype(np.float64)
    if "sat" in modifiers:
        return np.minimum(np.fmax(value, 0.0), 1.0)  # NaN becomes 0
    return np.where(value <= 0, 0.0, value) if "relu" in modifiers else value


def _extreme(opcode: str, modifiers: frozenset[str], a: Value, b: Value) -> Value:
    keeps = "NaN" in modifiers
    pick = (MINIMUM if keeps else MINIMUM_NUMBER) if opcode == "min" else (MAXIMUM if keeps else MAXIMUM_NUMBER)
    if "abs" not in modifiers:
        return pick(a, b)
    return np.copysign(pick(np.abs(a), np.abs(b)), np.where(np.signbit(a) ^ np.signbit(b), -1.0, 1.0))


def to_integer(word: str) -> tuple[Callable[[Value], Value], tuple[NumPyType, ...]] | None:
    """The function of a conversion to an integer, of an integer, which keeps the lowest bits, or of a float, which is
    rounded and bounded, and NumPy's type of its operand; None for another.
    """
    known = _CONVERSION.fullmatch(word)
    if known is None:
        return None
    modifiers, target, source = set(known[1].split(".")) - {""}, _INTEGERS[known[2] + known[3]], known[4]
    least, greatest = int(np.iinfo(target).min), int(np.iinfo(target).max)
    if (given := _INTEGERS.get(source)) is not None:
        if not modifiers <= {"sat"}:
            return None

        def kept(x: Value) -> Value:
            if modifiers:
                bounds = max(least, int(np.iinfo(given).min)), min(greatest, int(np.iinfo(given).max))
                x = np.clip(x, given.type(bounds[0]), given.type(bounds[1]))
            return x.astype(target)

        return kept, (given,)
    dtype, count = _FLOATS.get(source, (None, 1)) if source != "f64" else (np.dtype(np.float64), 1)
    rounding = next((_ROUNDINGS[name] for name in modifiers if name in _ROUNDINGS), None)
    if dtype is None or count != 1 or rounding is None:
        return None
    of_nan = 1 << 8 * target.itemsize - 1 if source == "f64" or target.itemsize == 8 else 0

    def rounded(x: Value) -> Value:
        value = x.view(dtype).astype(np.float64)
        if "ftz" in modifiers and source == "f32":
            value = flush(value.astype(np.float32)).astype(np.float64)
        value = rounding(value)
        inside = (value > float(least)) & (value < float(greatest) + (target.itemsize < 8))
        exact = np.where(inside, value, 0.0).astype(target)
        bounded = np.where(value >= float(greatest), np.asarray(greatest, target), np.asarray(least, target))
        nan = np.array(of_nan, f"u{target.itemsize}").view(target)
        return np.where(np.isnan(value), nan, np.where(inside, exact, bounded))

    return rounded, (np.dtype(f"u{dtype.itemsize}"),)
