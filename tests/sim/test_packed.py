# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on pairs of f32, and the extremes of three numbers, from the operation and from its PTX."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.target import Target
from tilefold.compiler.frontend.source import plain_source

from tests.kernels.harness import simulate
from tilefold.driver.launches import Changes, read_launches
from tilefold.driver.lowering import load

TEXT = """gpu.module @kernels {
  ptx.entry @k(%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16) threads(32) {
    %t = ptx.sreg "tid.x"
    %sixteen = arith.constant 16 : i32
    %from = arith.muli %t, %sixteen : i32
    %p = ptx.ptr_add %A, %from : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    %q = ptx.ptr_add %B, %from : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    %v = ptx.ld %p align 16 : !ptx.ptr<global> -> vector<4xf32>
    %x = vector.extract %v[0] : f32 from vector<4xf32>
    %y = vector.extract %v[1] : f32 from vector<4xf32>
    %z = vector.extract %v[2] : f32 from vector<4xf32>
    %eight = arith.constant 8 : i32
    %second = ptx.ptr_add %p, %eight : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    %xy = ptx.ld %p align 8 : !ptx.ptr<global> -> vector<2xf32>
    %zw = ptx.ld %second align 8 : !ptx.ptr<global> -> vector<2xf32>
BODY
    ptx.ret
  }
}
run.launch @kernels::@k grid(1) {
  run.arg "A" : !tile.tensor<f32, gmem, align<16>, "(32,4):(4,1)"> = "arange"
  run.arg "B" : !tile.tensor<f32, gmem, align<16>, "(32,4):(4,1)"> = "zeros"
}
"""
_EDGES = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1.5, 2.0**-140]


def run(body: str, values: NDArray[np.float32], stage: str) -> NDArray[np.float32]:
    program = load(plain_source(TEXT.replace("BODY", body), "k.cute"))
    (launch,) = read_launches(program.module, program.source, Changes())
    arguments = (replace(launch.arguments[0], values=values), *launch.arguments[1:])
    return simulate(program, replace(launch, arguments=arguments), stage, Target("sm_100a")).array("B")


def numbers() -> NDArray[np.float32]:
    drawn = np.random.default_rng(3).standard_normal((32, 4)) * 2.0 ** np.random.default_rng(4).integers(
        -20, 20, (32, 4)
    )
    return drawn.astype(np.float32)


@pytest.mark.parametrize("stage", ["instr", "ptx"])
@pytest.mark.parametrize("kind", ["add", "sub", "mul", "fma"])
@pytest.mark.sampled(2)
def test_pairs(kind: str, stage: str) -> None:
    operands, types = "%xy, %zw", "vector<2xf32>, vector<2xf32>"
    if kind == "fma":
        operands, types = f"{operands}, %xy", f"{types}, vector<2xf32>"
    body = f'    %r = ptx.f32x2 "{kind}.rn" {operands} : {types} -> vector<2xf32>\n'
    body += "    ptx.st %r, %q align 8 : vector<2xf32>, !ptx.ptr<global>"
    a = numbers()
    got = run(body, a, stage)[:, :2]
    x, y = a[:, :2].astype(np.float64), a[:, 2:].astype(np.float64)
    exact = {"add": x + y, "sub": x - y, "mul": x * y, "fma": x * y + x}[kind]
    if kind == "fma":  # the exact product and sum have more bits than f64, which rounds once more
        assert np.allclose(got, exact, rtol=2.0**-23)
    else:
        assert np.array_equal(got, exact.astype(np.float32))


@pytest.mark.parametrize("stage", ["instr", "ptx"])
@pytest.mark.parametrize("form", ["min", "min.NaN", "max", "max.NaN"])
@pytest.mark.sampled(2)
def test_extremes_of_three(form: str, stage: str) -> None:
    a = np.array(np.random.default_rng(5).choice(_EDGES, (32, 4)), np.float32)
    body = f'    %r = ptx.minmax3 "{form}" %x, %y, %z\n    ptx.st %r, %q align 4 : f32, !ptx.ptr<global>'
    for row, got in zip(a[:, :3].tolist(), run(body, a, stage)[:, 0], strict=True):
        known = [x for x in row if not math.isnan(x)]
        if not known or ("NaN" in form and len(known) < 3):
            assert got.view(np.uint32) == 0x7FFFFFFF
            continue
        ordered = sorted(known, key=lambda x: (x, math.copysign(1, x)))
        expected = ordered[0 if "min" in form else -1]
        assert (float(got), math.copysign(1, got)) == (expected, math.copysign(1, expected))


def test_an_extreme_with_a_number() -> None:
    a = numbers()
    body = """    %one = arith.constant 1.0 : f32
    %r = ptx.minmax3 "max" %x, %one, %y
    ptx.st %r, %q align 4 : f32, !ptx.ptr<global>"""
    assert np.array_equal(run(body, a, "instr")[:, 0], np.maximum(np.maximum(a[:, 0], 1), a[:, 1]))
