# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions from and to 8-bit floats: the same numbers before and after the pass, and what it refuses."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.passes.harness import apply, check_pass, entry
from tests.sim.harness import module_of

TYPES: dict[str, Any] = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}
LIMITS = {"f8E4M3FN": 448.0, "f8E5M2": 57344.0}
ARGS = "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16"
WIDE: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def both_ways(body: str, given: Any, out: Any) -> tuple[bytes, bytes]:
    """What a kernel of one thread leaves in %B, before and after the pass."""
    found: list[bytes] = []
    for module in (module_of(entry(body, ARGS, "1")), apply(entry(body, ARGS, "1"), "expand-conversions")):
        result = out.copy()
        args = {"A": TensorArgument(given.copy()), "B": TensorArgument(result)}
        SimEngine().launch(SimProgram(module, "k"), LaunchConfig((1, 1, 1), (1, 1, 1)), args)
        found.append(result.tobytes())
    return found[0], found[1]


@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("narrow", TYPES)
def test_numbers_are_rounded_and_saturated_alike(narrow: str, wide: str) -> None:
    numbers = np.array([0.0, -1.0625, 3.1875, 1e-3, 460.0, -1e5, np.inf, 0.017]).astype(WIDE[wide])[: 16 // 2]
    size = numbers.itemsize
    count = 16 // size
    vector = f"""
        %v = ptx.ld %A align 16 : !ptx.ptr<global> -> vector<{count}x{wide}>
        %r = arith.truncf %v : vector<{count}x{wide}> to vector<{count}x{narrow}>
        ptx.st %r, %B align {count} : vector<{count}x{narrow}>, !ptx.ptr<global>"""
    for start in range(0, len(numbers), count):
        given = numbers[start : start + count]
        before, after = both_ways(vector, given, np.zeros(count, np.uint8))
        expected = (
            np.clip(given.astype(np.float64), -LIMITS[narrow], LIMITS[narrow]).astype(np.float32).astype(TYPES[narrow])
        )
        assert before == after == expected.tobytes()
    scalar = f"""
        %v = ptx.ld %A align {size} : !ptx.ptr<global> -> {wide}
        %r = arith.truncf %v : {wide} to {narrow}
        ptx.st %r, %B align 1 : {narrow}, !ptx.ptr<global>"""
    for number in numbers:
        before, after = both_ways(scalar, np.array([number]), np.zeros(1, np.uint8))
        assert before == after


@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("narrow", TYPES)
def test_every_number_is_extended_exactly(narrow: str, wide: str) -> None:
    bits = np.arange(0, 256, 37, dtype=np.uint8)
    numbers = bits.view(TYPES[narrow])
    for number in numbers:
        body = f"""
            %v = ptx.ld %A align 1 : !ptx.ptr<global> -> {narrow}
            %r = arith.extf %v : {narrow} to {wide}
            ptx.st %r, %B align {WIDE[wide](0).itemsize} : {wide}, !ptx.ptr<global>"""
        out = np.zeros(1, WIDE[wide])
        before, after = both_ways(body, np.array([number]).view(np.uint8), out)
        assert before == after == np.array([number]).astype(WIDE[wide]).tobytes()
    body = f"""
        %v = ptx.ld %A align 4 : !ptx.ptr<global> -> vector<4x{narrow}>
        %r = arith.extf %v : vector<4x{narrow}> to vector<4x{wide}>
        ptx.st %r, %B align 16 : vector<4x{wide}>, !ptx.ptr<global>"""
    before, after = both_ways(body, bits[:4], np.zeros(4, WIDE[wide]))
    assert before == after == numbers[:4].astype(WIDE[wide]).tobytes()


def test_a_pair_is_one_instruction() -> None:
    check_pass(
        "expand-conversions",
        entry(
            "%v = ptx.ld %A align 16 : !ptx.ptr<global> -> vector<4xf32>\n"
            "%r = arith.truncf %v : vector<4xf32> to vector<4xf8E5M2>\n"
            "ptx.st %r, %B align 4 : vector<4xf8E5M2>, !ptx.ptr<global>",
            ARGS,
        ),
        """
        // CHECK-COUNT-2: ptx.cvt "rn.satfinite.e5m2x2.f32"
        // CHECK-NOT: arith.truncf
        """,
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%x = arith.constant 1.0 : f64\n%r = arith.truncf %x : f64 to f8E4M3FN", "from f64 to f8E4M3FN"),
        (
            "%x = arith.constant dense<1.0> : vector<3xf32>\n"
            "%r = arith.truncf %x : vector<3xf32> to vector<3xf8E4M3FN>",
            "a vector of 3 elements",
        ),
    ],
)
def test_refusals(line: str, said: str) -> None:
    text = entry(f"%v = ptx.ld %A align 1 : !ptx.ptr<global> -> f8E4M3FN\n{line}", ARGS)
    with pytest.raises(Exception, match=said):
        apply(text, "expand-conversions")


def test_there_is_no_arithmetic() -> None:
    text = entry("%v = ptx.ld %A align 1 : !ptx.ptr<global> -> f8E4M3FN\n%r = arith.addf %v, %v : f8E4M3FN", ARGS)
    with pytest.raises(ProgramError, match=r"E2201.*'arith\.addf' of 8-bit floats"):
        apply(text, "check-stage{stage=instr}")
