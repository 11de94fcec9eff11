# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions to and from floats of 4 and 6 bits and scale factors, against ml_dtypes, from the operation and from its
PTX.
"""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.element_types import BY_PTX
from tilefold.base.target import Target
from tilefold.compiler.frontend.source import plain_source

from tests.kernels.harness import simulate
from tilefold.driver.launches import Changes, read_launches
from tilefold.driver.lowering import load

TYPES: dict[str, Any] = {
    "e2m1": ml_dtypes.float4_e2m1fn, "e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn,
}  # fmt: skip
NUMBERS = np.array(
    [0, 0.2, 0.25, 0.3, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 7, 30, 1e9, 0.0625, 0.03, 0.09, 1.0625, 1.1875, 27, 29,
     -0.25, -0.75, -1.25, -5, -100, 6.0, 2.0, 0.5, 4.49, 0.126, 2.25, -2.75], np.float32
)  # fmt: skip
HEAD = """gpu.module @kernels {
  ptx.entry @k(%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16) threads(32) {
    %t = ptx.sreg "tid.x"
    %four = arith.constant 4 : i32
    %eight = arith.constant 8 : i32
    %to = arith.muli %t, %four : i32
    %q = ptx.ptr_add %B, %to : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
"""
TAIL = """
    ptx.st %r, %q align 4 : i32, !ptx.ptr<global>
    ptx.ret
  }
}
run.launch @kernels::@k grid(1) {
  run.arg "A" : !tile.tensor<%A, gmem, align<16>, "(32):(1)"> = "arange"
  run.arg "B" : !tile.tensor<i32, gmem, align<16>, "(32):(1)"> = "poison"
}
"""


def converted(body: str, given: NDArray[Any], element: str, stage: str, target: str = "sm_120a") -> NDArray[Any]:
    """What each thread stores."""
    text = HEAD + body + TAIL.replace("%A", element)
    program = load(plain_source(text, "k.cute"))
    (launch,) = read_launches(program.module, program.source, Changes())
    arguments = [replace(launch.arguments[0], values=given), *launch.arguments[1:]]
    ran = simulate(program, replace(launch, arguments=tuple(arguments)), stage, Target(target))
    return ran.array("B").view(np.uint32)


LOADED = """    %p = ptx.ptr_add %A, %to : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    %x = ptx.ld %p align 4 : !ptx.ptr<global> -> f32
    %zero = arith.constant 1.0 : f32
"""


def narrowed(form: str, stage: str, byte: bool, numbers: NDArray[Any] = NUMBERS) -> NDArray[Any]:
    """The bits of each number, in the upper half of a pair whose lower half is 1."""
    pair = "i8" if byte else "i16"
    body = (
        f'{LOADED}    %v = ptx.cvt "{form}" %x, %zero : (f32, f32) -> {pair}\n    %r = arith.extui %v : {pair} to i32'
    )
    return converted(body, numbers, "f32", stage)


@pytest.mark.parametrize("stage", ["instr", "ptx"])
@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.sampled(2)
def test_to_narrow_floats(name: str, relu: str, stage: str) -> None:
    bits = 4 if name == "e2m1" else 8
    got = narrowed(f"rn.satfinite{relu}.{name}x2.f32", stage, name == "e2m1")
    top = BY_PTX[name].greatest
    expected = np.clip(np.where(NUMBERS < 0, 0, NUMBERS) if relu else NUMBERS, -top, top).astype(TYPES[name])
    one = np.ones(1, TYPES[name]).view(np.uint8)[0]
    assert np.array_equal(got, expected.view(np.uint8).astype(np.uint32) << bits | one)


@pytest.mark.parametrize("stage", ["instr", "ptx"])
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.sampled(2)
def test_from_narrow_floats(name: str, stage: str) -> None:
    """Each pair of codes, those of the thread and of 16 threads on."""
    bits, width = (4, "i8") if name == "e2m1" else (8, "i16")
    body = (
        f"    %w = arith.trunci %word : i32 to {width}\n"
        f'    %h = ptx.cvt "rn.f16x2.{name}x2" %w : ({width}) -> vector<2xf16>\n'
        "    %c = vector.bitcast %h : vector<2xf16> to vector<1xi32>\n"
        "    %r = vector.extract %c[0] : i32 from vector<1xi32>"
    )
    load_word = LOADED.replace("f32", "i32").replace("%x", "%word").replace("1.0", "1")
    codes = np.arange(32, dtype=np.uint8) * 2 % (1 << (4 if bits == 4 else 6))
    words = codes.astype(np.int32) | np.roll(codes, 16).astype(np.int32) << bits
    got = converted(load_word + body, words, "i32", stage).view(np.float16).reshape(32, 2)
    assert np.array_equal(got[:, 0], codes.view(TYPES[name]).astype(np.float16))
    assert np.array_equal(got[:, 1], np.roll(codes, 16).view(TYPES[name]).astype(np.float16))


@pytest.mark.parametrize("stage", ["instr", "ptx"])
@pytest.mark.parametrize("form", ["rz", "rp", "rz.satfinite", "rp.satfinite"])
@pytest.mark.sampled(2)
def test_to_scale_factors(form: str, stage: str) -> None:
    numbers = np.array(
        [0.0, 1.0, 1.5, 3.0, 2.0**-127, 2.0**-140, 2.0**127, 1.5 * 2.0**127, -3.0, math.inf, math.nan] * 3, np.float32
    )[:32]
    got = narrowed(f"{form}.ue8m0x2.f32", stage, False, numbers) >> 8
    for number, code in zip(numbers.tolist(), got.tolist(), strict=True):
        if math.isnan(number):
            assert code == 0xFF
        elif abs(number) > 2.0**127:
            top = 0xFE if "satfinite" in form or (form == "rz" and not math.isinf(number)) else 0xFF
            assert code == top
        elif number == 0:
            assert code == 0
        else:
            exponent = math.log2(abs(number))
            whole = math.floor(exponent) if "rz" in form else math.ceil(exponent)
            assert code == max(whole + 127, 0)


RANDOM = {
    "e4m3": (ml_dtypes.float8_e4m3fn, 3, -6), "e5m2": (ml_dtypes.float8_e5m2, 2, -14),
    "e2m3": (ml_dtypes.float6_e2m3fn, 3, 0), "e3m2": (ml_dtypes.float6_e3m2fn, 2, -2),
    "e2m1": (ml_dtypes.float4_e2m1fn, 1, 0), "bf16": (ml_dtypes.bfloat16, 7, -126), "f16": (np.float16, 10, -14),
}  # fmt: skip


def rounded(x: float, fraction: int, least: int, random: Fraction) -> float:
    """A number cut after some bits, away from 0 where the rest and a random fraction are 1 or more."""
    size = Fraction(abs(x))
    exponent = least if not size else max(math.frexp(abs(x))[1] - 1, least)
    unit = Fraction(2) ** (exponent - fraction)
    return math.copysign(float(math.floor(size / unit + random) * unit), x)


@pytest.mark.parametrize("stage", ["instr", "ptx"])
@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.sampled(5)
def test_random_bits_round_up_or_down(name: str, stage: str) -> None:
    """A thread's number is the first operand, in the highest place; its random bits are thread * 8 of 256."""
    type, fraction, least = RANDOM[name]
    count, bits = (2, 16) if name.endswith("16") else (4, BY_PTX[name].bits)
    share = 32 // count
    width = 13 if name == "f16" else share
    word = "i16" if name == "e2m1" else "vector<2xf16>" if name == "f16" else "vector<2xbf16>" if count == 2 else "i32"
    saturated = "" if count == 2 else ".satfinite"
    place = 13 - 8 + 16 if name == "f16" else 24
    body = (
        f"{LOADED}    %place = arith.constant {1 << place + 3} : i32\n    %bits = arith.muli %t, %place : i32\n"
        f'    %v = ptx.cvt "rs{saturated}.{name}x{count}.f32" %x, {", ".join(["%zero"] * (count - 1))}, %bits : '
        f"({', '.join(['f32'] * count)}, i32) -> {word}\n"
    )
    body += {
        "i32": "    %zero_word = arith.constant 0 : i32\n    %r = arith.ori %v, %zero_word : i32",
        "i16": "    %r = arith.extui %v : i16 to i32",
    }.get(
        word,
        f"    %c = vector.bitcast %v : {word} to vector<1xi32>\n    %r = vector.extract %c[0] : i32 from vector<1xi32>",
    )
    numbers = np.where(np.abs(NUMBERS) > 1e4, 3.14159, NUMBERS).astype(np.float32)
    got = converted(body, numbers, "f32", stage, "sm_100a") >> (16 if name == "e2m1" else 32) - (
        bits if bits != 6 else 8
    )
    top = BY_PTX[name].greatest
    for thread, number in enumerate(numbers.tolist()):
        random = Fraction(thread * 8, 256)
        assert width >= 8
        expected = np.array(min(max(rounded(number, fraction, least, random), -top), top)).astype(type)
        assert got[thread] & 0xFFFF == int(expected.view(np.uint16 if bits == 16 else np.uint8)), (thread, number)
