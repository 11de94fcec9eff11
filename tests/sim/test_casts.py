# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants, conversions and select."""

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.sim.harness import compute, rounded

INT: dict[str, Any] = {
    "i1": np.int8,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
}
BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}
FLOAT: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


def values_of(type: str) -> list[int]:
    bits = BITS[type]
    return [0, 1] if bits == 1 else [0, 1, -1, 100, -(1 << (bits - 1)), (1 << (bits - 1)) - 1]


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) and bits > 1 else value


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize(
    ("op", "source", "target"),
    [
        *[("extsi", a, b) for a, b in [("i1", "i8"), ("i8", "i32"), ("i16", "i64"), ("i32", "i64"), ("i1", "i64")]],
        *[("extui", a, b) for a, b in [("i1", "i8"), ("i8", "i32"), ("i16", "i64"), ("i32", "i64"), ("i1", "i64")]],
        *[("trunci", a, b) for a, b in [("i64", "i32"), ("i32", "i8"), ("i16", "i1"), ("i64", "i1")]],
        *[("index_cast", a, b) for a, b in [("index", "i32"), ("i32", "index"), ("i64", "index"), ("index", "i8")]],
    ],
)
def test_between_integers(op: str, source: str, target: str, uniform: bool) -> None:
    values = values_of(source)
    inputs = {"a": (source, np.array(values, INT[source]))}
    got = compute(f"%r = arith.{op} %a : {source} to {target}", target, INT[target], inputs, uniform)
    before, after = BITS[source], BITS[target]
    read = [v & ((1 << before) - 1) if op == "extui" else (-v if before == 1 else v) for v in values]
    assert got.tolist() == [signed(v, after) for v in read]


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("target", sorted(FLOAT))
@pytest.mark.parametrize("op", ["sitofp", "uitofp"])
def test_integers_to_floats(op: str, target: str, uniform: bool) -> None:
    values = [0, 1, -1, 2**24 + 1, -12345, 2**31 - 1, -(2**31)]
    body = f"%r = arith.{op} %a : i32 to {target}"
    got = compute(body, target, FLOAT[target], {"a": ("i32", np.array(values, np.int32))}, uniform)
    read = [v & 0xFFFFFFFF if op == "uitofp" else v for v in values]
    with np.errstate(over="ignore"):
        want = np.array(read, np.float64).astype(FLOAT[target])
    assert got.tolist() == want.tolist()


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("op", ["sitofp", "uitofp"])
def test_integers_to_bf16_are_rounded_once(op: str, uniform: bool) -> None:
    """Beyond a tie by less than f64 can tell apart from it."""
    tie = (1 << 62) + (1 << 54)
    values = [tie, tie + 1, tie - 1, -tie, -tie - 1, -tie + 1, -1, -(2**63)]
    body = f"%r = arith.{op} %a : i64 to bf16"
    got = compute(body, "bf16", ml_dtypes.bfloat16, {"a": ("i64", np.array(values, np.int64))}, uniform)
    read = [v & 2**64 - 1 if op == "uitofp" else v for v in values]
    assert got.tolist() == [rounded(Fraction(v), "bf16") for v in read]


@pytest.mark.parametrize("target", sorted(FLOAT))
@pytest.mark.parametrize(("op", "expected"), [("sitofp", -1.0), ("uitofp", 1.0)])
def test_true_as_a_float(op: str, expected: float, target: str) -> None:
    """A true i1 is -1 as a signed integer, as a constant too."""
    constant = "%p = arith.constant true\n"
    zeros = np.zeros(2, np.int32)
    body = f"{constant}%r = arith.{op} %p : i1 to {target}"
    assert compute(body, target, FLOAT[target], {"a": ("i32", zeros)}).tolist() == [expected] * 2
    for uniform in (False, True):
        inputs = {"a": ("i1", np.array([0, 1], np.int8))}
        got = compute(f"%r = arith.{op} %a : i1 to {target}", target, FLOAT[target], inputs, uniform)
        assert got.tolist() == [0.0, expected]


@pytest.mark.parametrize("uniform", [False, True])
def test_floats_to_integers(uniform: bool) -> None:
    values = [0.0, 1.9, -1.9, 1e30, -1e30, math.inf, -math.inf, math.nan, 3e9]
    inputs = {"a": ("f32", np.array(values, np.float32))}
    got = compute("%r = arith.fptosi %a : f32 to i32", "i32", np.int32, inputs, uniform)
    low, high = -(2**31), 2**31 - 1
    assert got.tolist() == [0, 1, -1, high, low, high, low, 0, high]
    got = compute("%r = arith.fptoui %a : f32 to i32", "i32", np.uint32, inputs, uniform)
    assert got.tolist() == [0, 1, 0, 2**32 - 1, 0, 2**32 - 1, 0, 0, 3_000_000_000]


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize(
    ("op", "source", "target"),
    [
        ("truncf", "f32", "f16"),
        ("truncf", "f32", "bf16"),
        ("extf", "f16", "f32"),
        ("extf", "bf16", "f64"),
        ("truncf", "f64", "f32"),
    ],
)
def test_between_floats(op: str, source: str, target: str, uniform: bool) -> None:
    values = np.array([0, 1, -1.5, 0.1, 3.14159, 1e-7, math.inf, 65519.0]).astype(FLOAT[source])
    got = compute(f"%r = arith.{op} %a : {source} to {target}", target, FLOAT[target], {"a": (source, values)}, uniform)
    assert got.tolist() == values.astype(FLOAT[target]).tolist()


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize(
    ("source", "target"), [("f32", "i32"), ("i32", "f32"), ("f16", "i16"), ("i16", "bf16"), ("f64", "i64")]
)
def test_bitcast(source: str, target: str, uniform: bool) -> None:
    types = {**INT, **FLOAT}
    values = np.array([0, 1, -2, 77]).astype(types[source])
    got = compute(
        f"%r = arith.bitcast %a : {source} to {target}", target, types[target], {"a": (source, values)}, uniform
    )
    assert got.tobytes() == values.tobytes()


@pytest.mark.parametrize(
    ("text", "type", "dtype", "value"),
    [
        ("-5 : i32", "i32", np.int32, -5),
        ("4294967295 : i32", "i32", np.int32, -1),
        ("1.5 : f16", "f16", np.float16, 1.5),
        ("0.1 : bf16", "bf16", ml_dtypes.bfloat16, 0.10009765625),
        ("7 : index", "index", np.int64, 7),
        ("true", "i1", np.int8, 1),
    ],
)
def test_constants(text: str, type: str, dtype: Any, value: float) -> None:
    got = compute(f"%r = arith.constant {text}", type, dtype, {"a": ("i32", np.zeros(3, np.int32))})
    assert got.tolist() == [value] * 3


def test_select() -> None:
    condition = np.array([0, 1, 0, 1], np.int8)
    a, b = np.arange(4, dtype=np.float32), -np.arange(4, dtype=np.float32)
    inputs = {"c": ("i1", condition), "a": ("f32", a), "b": ("f32", b)}
    for uniform in (False, True):
        got = compute("%r = arith.select %c, %a, %b : f32", "f32", np.float32, inputs, uniform)
        assert got.tolist() == [0, 1, -2, 3]
    constants = "%x = arith.constant 1 : i32\n%y = arith.constant -1 : i32\n"
    got = compute(constants + "%r = arith.select %c, %x, %y : i32", "i32", np.int32, {"c": ("i1", condition)})
    assert got.tolist() == [-1, 1, -1, 1]
