# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions to and from floats of 4 and 6 bits and scale factors, against ml_dtypes, from the operation and from its
PTX.
"""

import math
from dataclasses import replace
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


def converted(body: str, given: NDArray[Any], element: str, stage: str) -> NDArray[Any]:
    """What each thread stores."""
    text = HEAD + body + TAIL.replace("%A", element)
    program = load(plain_source(text, "k.cute"))
    (launch,) = read_launches(program.module, program.source, Changes())
    arguments = [replace(launch.arguments[0], values=given), *launch.arguments[1:]]
    ran = simulate(program, replace(launch, arguments=tuple(arguments)), stage, Target("sm_120a"))
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
