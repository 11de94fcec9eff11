# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every operation on floats and every conversion, at the edges of each type (`tests.fuzz` has random kernels).

The simulator at every stage, the CPU after LLVM's passes, and the PTX of all kinds of targets have the numbers that
exact arithmetic gives.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tilefold.base.target import Target
from tilefold.passes.errors import LoweringError

from tests.emit.float_edges import IDS, KERNELS, results
from tests.emit.float_kernels import NARROW, UNARY, Kernel, resizes_to
from tests.emit.harness import kernel, llvm_of, ptx_of
from tests.emit.numbers import FORMATS, decoded, encoded, rounded
from tests.emit.ptx_interpreter import run_ptx
from tests.fuzz.engines import Totals, on_cpu, on_interpreter, on_simulator
from tests.fuzz.floats import problem_of
from tests.fuzz.problem import Problem


def check_everywhere(problem: Problem) -> None:
    totals = Totals()
    on_simulator(problem, totals)
    on_cpu(problem, totals)
    on_interpreter(problem, totals)


@pytest.mark.parametrize(("make", "type"), KERNELS, ids=IDS)
@pytest.mark.sampled(1)
def test_every_operation_at_the_edges_of_its_type(make: Callable[[str], Kernel], type: str) -> None:
    k = make(type)
    check_everywhere(problem_of(k, results(k)))


@pytest.mark.parametrize("type", ["f16", "bf16"])
def test_every_number_of_16_bits(type: str) -> None:
    """All functions of one number and all conversions to floats, of all of them."""
    k = Kernel(threads=512, blocks=64)
    k.input(type, decoded(np.arange(k.elements), type))
    with np.errstate(all="ignore"):
        for op in UNARY:
            k.unary(op, "%in0")
        for wide in ("f32", "f64", *NARROW):
            k.resize("%in0", wide)
        product = k.binary("arith.mulf", k.resize("%in0", "f32"), k.resize("%in0", "f32"))
        for narrow in resizes_to("f32", "f16", "bf16"):
            k.resize(product, narrow)
    totals, problem = Totals(), problem_of(k, results(k))
    on_cpu(problem, totals)
    on_interpreter(problem, totals)


@pytest.mark.parametrize("type", ["f16", "bf16"])
@pytest.mark.parametrize("op", [np.add, np.subtract, np.multiply, np.divide])
def test_what_llvm_narrows_is_rounded_as_if_once(op: Callable[..., Any], type: str) -> None:
    """Operations of 16-bit types by way of f32, where results are subnormal, ordinary and too large.

    Of significands, all of one operand by all of bf16, and every ninth of f16.
    """
    form = FORMATS[type]
    significands = np.arange(1 << form.digits - 1, 1 << form.digits, 1 if type == "bf16" else 9, dtype=np.float64)
    least, greatest = form.least, int(np.log2(form.greatest)) - form.digits
    for exponent in (*range(least, least + 4), -form.digits, 0, greatest):
        left = np.ldexp(significands, exponent)[:, None]
        for other in (
            range(least - exponent - 24, least - exponent + 3) if op in (np.multiply, np.divide) else (0, 3, 9)
        ):
            scale = other if op is np.multiply else -other - 2 * form.digits if op is np.divide else exponent + other
            right = rounded(np.ldexp(significands, scale), type)[None, :]
            with np.errstate(all="ignore"):
                exact = op(left, right)
            np.testing.assert_array_equal(rounded(rounded(exact, "f32"), type), rounded(exact, type))


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120"])
def test_vectors_are_rounded_as_their_elements(arch: str) -> None:
    """Products of 8 numbers at once in bf16, and in f32 to 16 bits."""
    vector, wide = "vector<8xbf16>", "vector<8xf32>"
    body = f"""
    %x = ptx.ld %a align 16 : !ptx.ptr<global> -> {vector}
    %y = ptx.ld %b align 16 : !ptx.ptr<global> -> {vector}
    %p = arith.mulf %x, %y : {vector}
    %wx = arith.extf %x : {vector} to {wide}
    %wy = arith.extf %y : {vector} to {wide}
    %w = arith.mulf %wx, %wy : {wide}
    %q = arith.truncf %w : {wide} to {vector}
    %h = arith.truncf %w : {wide} to vector<8xf16>
    ptx.st %p, %c align 16 : {vector}, !ptx.ptr<global>
    ptx.st %q, %d align 16 : {vector}, !ptx.ptr<global>
    ptx.st %h, %e align 16 : vector<8xf16>, !ptx.ptr<global>
    """
    x = rounded(np.array([2.0**-67, 3e38, 1e6, 1.0, 2.0**-60, -0.0, np.inf, 257.0]), "bf16")
    y = rounded(np.array([3 * 2.0**-68, 3e38, 1e-4, 2.0**-133, 2.0**-74 * 1.0078125, 5.0, 0.0, 257.0]), "bf16")
    with np.errstate(all="ignore"):
        product = x * y
    single = rounded(product, "f32")
    arrays = [encoded(each, "bf16").astype(np.uint16) for each in (x, y)] + [np.zeros(8, np.uint16) for _ in range(3)]
    args = ", ".join(f"%{name}: !ptx.ptr<global> align 16" for name in "abcde")
    run_ptx(ptx_of(kernel(body, args, threads="1"), Target(arch)), 1, 1, arrays)
    for type, found, wanted in zip(("bf16", "bf16", "f16"), arrays[2:], (product, single, single), strict=True):
        np.testing.assert_array_equal(decoded(found, type), rounded(wanted, type))


@pytest.mark.parametrize("op", ["math.fma %x, %x, %x : bf16", "vector.fma %v, %v, %v : vector<2xbf16>"])
def test_bf16_is_not_fused_where_no_instruction_does(op: str) -> None:
    """By way of f32 the result would be rounded twice."""
    body = f"%v = vector.broadcast %x : bf16 to vector<2xbf16>\n%r = {op}"
    with pytest.raises(LoweringError, match="fma of bf16 needs sm_80") as caught:
        llvm_of(kernel(body, "%x: bf16"), Target("sm_75"))
    assert caught.value.code == "E2102"
