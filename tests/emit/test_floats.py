# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every operation on floats and every conversion, at the edges of each type (`tests.fuzz` has random kernels).

The simulator at every stage, the CPU after LLVM's passes, and the PTX of all kinds of targets have the numbers that
exact arithmetic gives.
"""

from collections.abc import Callable

import numpy as np
import pytest
from tilefold.dialects.target import Target
from tilefold.passes.errors import LoweringError

from tests.emit.float_edges import IDS, KERNELS, results
from tests.emit.float_kernels import NARROW, UNARY, Kernel, resizes_to
from tests.emit.harness import kernel, llvm_of
from tests.emit.numbers import decoded
from tests.fuzz.engines import Totals, on_cpu, on_interpreter, on_simulator
from tests.fuzz.floats import problem_of
from tests.fuzz.problem import Problem


def check_everywhere(problem: Problem) -> None:
    totals = Totals()
    on_simulator(problem, totals)
    on_cpu(problem, totals)
    on_interpreter(problem, totals)


@pytest.mark.parametrize(("make", "type"), KERNELS, ids=IDS)
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


@pytest.mark.parametrize("op", ["math.fma %x, %x, %x : bf16", "vector.fma %v, %v, %v : vector<2xbf16>"])
def test_bf16_is_not_fused_where_no_instruction_does(op: str) -> None:
    """By way of f32 the result would be rounded twice."""
    body = f"%v = vector.broadcast %x : bf16 to vector<2xbf16>\n%r = {op}"
    with pytest.raises(LoweringError, match="fma of bf16 needs sm_80") as caught:
        llvm_of(kernel(body, "%x: bf16"), Target("sm_75"))
    assert caught.value.code == "E2102"
