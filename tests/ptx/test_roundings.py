# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floating-point instructions and conversions of PTX with every rounding, against fractions."""

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilefold
from tests.ptx.texts import kernel

FORMATS: dict[str, tuple[int, int, Any]] = {
    "f16": (10, -14, np.float16), "bf16": (7, -126, ml_dtypes.bfloat16),
    "f32": (23, -126, np.float32), "f64": (52, -1022, np.float64),
}  # fmt: skip
"""The bits of the fraction, the least exponent and NumPy's type."""
MODES = ("rn", "rz", "rm", "rp")
REGISTERS = {"f16": "%h", "bf16": "%h", "f32": "%f", "f64": "%g"}


def _exact(opcode: str, a: Fraction, b: Fraction, c: Fraction) -> Fraction:
    match opcode:
        case "add" | "sub":
            return a + b if opcode == "add" else a - b
        case "mul" | "fma":
            return a * b + (c if opcode == "fma" else 0)
        case "div":
            return a / b
        case _:
            return 1 / a


OPERANDS = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "div": 2, "rcp": 1}
"""The instructions and how many operands each has."""
LANES = 32


def _rounded(x: Fraction, format: str, mode: str) -> float:
    """The number of a format that a rounding gives for an exact one."""
    fraction, least, _ = FORMATS[format]
    size, sign = abs(x), -1 if x < 0 else 1
    if not size:
        return 0.0
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    unit = Fraction(2) ** (max(exponent, least) - fraction)
    whole, rest = divmod(size / unit, 1)
    nearest = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    up = {"rn": nearest, "rz": False, "rm": sign < 0 and rest > 0, "rp": sign > 0 and rest > 0}[mode]
    value, greatest = (whole + up) * unit, (2 - Fraction(2) ** -fraction) * Fraction(2) ** (1 - least)
    if value > greatest:
        return sign * (
            float("inf") if {"rn": True, "rz": False, "rm": sign < 0, "rp": sign > 0}[mode] else float(greatest)
        )
    return sign * float(value)


def _run(lines: list[str], numbers: Any, result: str) -> Any:
    """The results, by instruction and lane, of instructions that write R from the operands A, B and C."""
    dtype = numbers.dtype
    source = (
        next(name for name, (_, _, held) in FORMATS.items() if held == dtype)
        if dtype.kind == "f"
        else f"s{8 * dtype.itemsize}"
    )
    to, from_ = np.dtype(FORMATS[result][2]), dtype.itemsize
    given = REGISTERS.get(source) or ("%r" if from_ == 4 else "%d")
    body = f"""ld.param.u64 %d1, [A]; ld.param.u64 %d2, [X]; mov.u32 %r1, %tid.x;
        mad.wide.u32 %d3, %r1, {from_}, %d2; mad.wide.u32 %d4, %r1, {to.itemsize}, %d1;"""
    body += "".join(f"ld.global.b{8 * from_} {given}{20 + k}, [%d3+{k * LANES * from_}];" for k in range(3))
    for number, line in enumerate(lines):
        for letter, register in (
            ("A", f"{given}20"),
            ("B", f"{given}21"),
            ("C", f"{given}22"),
            ("R", f"{REGISTERS[result]}9"),
        ):
            line = line.replace(letter, register)
        body += f"{line}; st.global.b{8 * to.itemsize} [%d4+{number * LANES * to.itemsize}], {REGISTERS[result]}9;\n"
    out = np.zeros((len(lines), LANES), to)
    module = tilefold.load_ptx(kernel(f"{body} ret;", ".param .u64 A, .param .u64 X"))
    module["k"](out.view(f"u{to.itemsize}"), numbers.view(f"u{from_}")).launch(grid=1, block=LANES)
    return out.astype(np.float64)


def _numbers(type: str) -> Any:
    random = np.random.default_rng(0)
    dtype = np.dtype(FORMATS[type][2])
    fraction, least, _ = FORMATS[type]
    greatest = (2 - 2.0**-fraction) * 2.0 ** (1 - least)
    ordinary = random.standard_normal((3, LANES)) * 2.0 ** random.integers(-20, 12, (3, LANES))
    edges = random.choice(np.array([1.0, 1.5, -2.5, 1e-8, 65519.0, 65520.0, greatest, -greatest]), (3, LANES))
    return np.where(random.random((3, LANES)) < 0.7, ordinary, edges).astype(dtype)


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_arithmetic_rounds_as_it_says(type: str) -> None:
    forms = [(opcode, mode) for opcode in OPERANDS for mode in MODES]
    lines = [f"{op}.{mode}.{type} R, {', '.join('ABC'[: OPERANDS[op]])}" for op, mode in forms]
    numbers = _numbers(type)
    for (opcode, mode), results in zip(forms, _run(lines, numbers, type), strict=True):
        exact = [_exact(opcode, *(Fraction(float(x)) for x in lane)) for lane in numbers.T]
        assert results.tolist() == [_rounded(x, type, mode) for x in exact], f"{opcode}.{mode}"


@pytest.mark.parametrize(("source", "target"), [
    ("f32", "f16"), ("f32", "bf16"), ("f64", "f32"), ("f64", "f16"), ("s32", "f32"), ("s64", "f64"), ("s64", "f16"),
])  # fmt: skip
def test_conversions_round_as_they_say(source: str, target: str) -> None:
    lines = [f"cvt.{mode}.{target}.{source} R, A" for mode in MODES]
    if source[0] == "s":
        words = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, (3, LANES))
        numbers: Any = (words >> np.arange(LANES) * 2 % 62).astype(f"i{int(source[1:]) // 8}")
    else:
        numbers = _numbers(source)
    for mode, results in zip(MODES, _run(lines, numbers, target), strict=True):
        exact = [Fraction(int(x)) if source[0] == "s" else Fraction(float(x)) for x in numbers[0]]
        assert results.tolist() == [_rounded(x, target, mode) for x in exact], mode


def test_bounds_of_conversions() -> None:
    numbers = np.array([[np.nan, np.inf, -np.inf, 1e30, -1e30, 0.3, -0.3, 70000.0] * 4] * 3, np.float32)
    forms = ["rn.sat", "rz.relu", "rn.satfinite", "rn.relu.satfinite"]
    results = _run([f"cvt.{form}.f16.f32 R, A" for form in forms], numbers, "f16")[:, :8]
    near, below = float(np.float16(0.3)), float(np.nextafter(np.float16(0.3), np.float16(0)))
    below = below if near > 0.3 else near
    nan, inf, most = np.nan, np.inf, 65504.0
    np.testing.assert_array_equal(results, [
        [0, 1, 0, 1, 0, near, 0, 1], [nan, inf, 0, most, 0, below, 0, most],
        [nan, most, -most, most, -most, near, -near, most], [nan, most, 0, most, 0, near, 0, most],
    ])  # fmt: skip
