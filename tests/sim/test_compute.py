# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions and conversions of registers, against Python's math and the texts of the PTX ISA."""

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.sim.harness import compute

WORD = st.integers(-(2**31), 2**31 - 1)
F32: dict[str, Callable[[float], float]] = {
    "ex2": lambda x: 2.0**x,
    "lg2": lambda x: math.log2(x) if x > 0 else (-math.inf if x == 0 else math.nan),
    "rcp": lambda x: 1 / x if x else math.copysign(math.inf, x),
    "rsqrt": lambda x: 1 / math.sqrt(x) if x > 0 else (math.inf if x == 0 else math.nan),
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
}
POINTS = np.array([0.0, 1.0, -1.0, 0.5, 3.0, -2.25, 1e-3, 100.0], np.float32)


def unary(name: str, x: NDArray[Any], type: str, dtype: Any) -> NDArray[Any]:
    return compute(f"%r = ptx.{name} %x : {type}", type, dtype, {"x": (type, x)})


@pytest.mark.parametrize("name", F32)
def test_functions_are_near_those_of_math(name: str) -> None:
    got = unary(f"{name}.approx", POINTS, "f32", np.float32)
    expected = np.array([F32[name](float(x)) for x in POINTS])
    error = 2.0**-10.9 if name == "tanh" else 2.0**-22.4
    near = np.abs(POINTS) < 4 if name in ("sin", "cos") else slice(None)
    np.testing.assert_allclose(got[near], expected[near], rtol=error, atol=2.0**-20.9 if name in ("sin", "cos") else 0)


def test_ftz_makes_subnormal_numbers_zero() -> None:
    x = np.array([-130.0, -126.0, 1.0], np.float32)
    assert unary("ex2.approx", x, "f32", np.float32).tolist() == [2.0**-130, 2.0**-126, 2.0]
    assert unary("ex2.approx ftz", x, "f32", np.float32).tolist() == [0.0, 2.0**-126, 2.0]
    tiny = np.array([1e-39, -1e-39], np.float32)
    assert unary("rcp.approx ftz", tiny, "f32", np.float32).tolist() == [math.inf, -math.inf]
    assert unary("sqrt.approx ftz", tiny, "f32", np.float32).tolist() == [0.0, -0.0]
    low = np.array([-130.0], ml_dtypes.bfloat16)
    assert unary("ex2.approx", low, "bf16", ml_dtypes.bfloat16).astype(np.float32).tolist() == [0.0]


@pytest.mark.parametrize(("type", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_functions_of_pairs(type: str, dtype: Any) -> None:
    x = np.linspace(-3, 3, 32).astype(dtype)
    text = f"""
        %p = vector.broadcast %x : {type} to vector<2x{type}>
        %n = arith.negf %x : {type}
        %v = vector.insert %n, %p[1] : {type} into vector<2x{type}>
        %t = ptx.tanh.approx %v : vector<2x{type}>
        %r = vector.extract %t[1] : {type} from vector<2x{type}>"""
    got = compute(text, type, dtype, {"x": (type, x)})
    assert got.tobytes() == unary("tanh.approx", -x, type, dtype).tobytes()
    np.testing.assert_allclose(got.astype(np.float64), np.tanh(-x.astype(np.float64)), rtol=2**-7)


EIGHT = {"e4m3": (ml_dtypes.float8_e4m3fn, 448.0), "e5m2": (ml_dtypes.float8_e5m2, 57344.0)}


def half_of(index: int) -> str:
    return f"%r = vector.extract %v[{index}] : f16 from vector<2xf16>"


@pytest.mark.parametrize("name", EIGHT)
def test_every_8_bit_float_widens_and_comes_back(name: str) -> None:
    dtype, limit = EIGHT[name]
    for start in range(0, 256, 32):
        bits = np.arange(start, start + 32, dtype=np.uint8)
        words = (bits.astype(np.int32) | 0x3800).astype(np.int16)
        for half in (0, 1):
            given = words if half == 0 else words.byteswap()
            text = f'%v = ptx.cvt "rn.f16x2.{name}x2" %x : (i16) -> vector<2xf16>\n{half_of(half)}'
            got = compute(text, "f16", np.float16, {"x": ("i16", given)})
            np.testing.assert_array_equal(got, bits.view(dtype).astype(np.float16))
        back = f"""
            %v = ptx.cvt "rn.f16x2.{name}x2" %x : (i16) -> vector<2xf16>
            %r = ptx.cvt "rn.satfinite.{name}x2.f16x2" %v : (vector<2xf16>) -> i16"""
        got = compute(back, "i16", np.int16, {"x": ("i16", words)}).view(np.uint8)[::2].view(dtype).astype(np.float64)
        np.testing.assert_array_equal(got, np.clip(bits.view(dtype).astype(np.float64), -limit, limit))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-600, 600, width=32), min_size=2, max_size=2), st.booleans())
def test_pairs_of_8_bit_floats_are_rounded_to_the_nearest(pair: list[float], relu: bool) -> None:
    numbers = np.unique(np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64))
    numbers = numbers[np.isfinite(numbers)]
    text = f'%r = ptx.cvt "rn.satfinite{".relu" if relu else ""}.e4m3x2.f32" %a, %b : (f32, f32) -> i16'
    inputs = {name: ("f32", np.array([x], np.float32)) for name, x in zip("ab", pair, strict=True)}
    upper, lower = compute(text, "i16", np.int16, inputs).view(ml_dtypes.float8_e4m3fn)[::-1].astype(np.float64)
    for x, y in ((pair[0], upper), (pair[1], lower)):
        wanted = max(x, 0) if relu else x
        assert abs(y - wanted) == min(abs(numbers - wanted)) or abs(wanted) > 448 == abs(y)


def test_pairs_of_16_bit_floats() -> None:
    a, b = np.array([1.5, -2.0, 2.0], np.float32), np.array([-1.0, 3.0, 1e9], np.float32)
    for half, expected in ((1, [1.5, 0.0, 2.0]), (0, [0.0, 3.0, math.inf])):
        text = f'%v = ptx.cvt "rn.relu.f16x2.f32" %a, %b : (f32, f32) -> vector<2xf16>\n{half_of(half)}'
        assert compute(text, "f16", np.float16, {"a": ("f32", a), "b": ("f32", b)}).tolist() == expected


def test_tf32_rounds_half_away_from_zero() -> None:
    x = np.array([1 + 2**-11, -1 - 2**-11, 1 + 2**-12, math.inf, 3.0], np.float32)
    got = compute('%r = ptx.cvt "rna.tf32.f32" %x : (f32) -> f32', "f32", np.float32, {"x": ("f32", x)})
    assert got.tolist() == [1 + 2**-10, -1 - 2**-10, 1.0, math.inf, 3.0]


def signed(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


@settings(max_examples=40, deadline=None)
@given(WORD, WORD, WORD, st.booleans())
def test_prmt_selects_bytes(a: int, b: int, selector: int, uniform: bool) -> None:
    both = (a % 2**32).to_bytes(4, "little") + (b % 2**32).to_bytes(4, "little")
    chosen: list[int] = []
    for place in range(4):
        nibble = selector >> 4 * place & 15
        byte = both[nibble & 7]
        chosen.append((255 if byte & 128 else 0) if nibble & 8 else byte)
    inputs = {name: ("i32", np.array([x], np.int32)) for name, x in (("a", a), ("b", b), ("s", selector))}
    got = compute("%r = ptx.prmt %a, %b, %s", "i32", np.int32, inputs, uniform)
    assert got.tolist() == [int.from_bytes(bytes(chosen), "little", signed=True)]


@settings(max_examples=40, deadline=None)
@given(WORD, WORD, WORD, st.sampled_from(["s32", "u32"]), st.sampled_from(["s32", "u32"]))
def test_dp4a_adds_products_of_bytes(a: int, b: int, c: int, first: str, second: str) -> None:
    def bytes_of(word: int, type: str) -> list[int]:
        raw = (word % 2**32).to_bytes(4, "little")
        return [x - 256 if type == "s32" and x > 127 else x for x in raw]

    total = c + sum(x * y for x, y in zip(bytes_of(a, first), bytes_of(b, second), strict=True))
    inputs = {name: ("i32", np.array([x], np.int32)) for name, x in (("a", a), ("b", b), ("c", c))}
    got = compute(f'%r = ptx.dp4a "{first}.{second}" %a, %b, %c', "i32", np.int32, inputs)
    assert got.tolist() == [signed(total)]
