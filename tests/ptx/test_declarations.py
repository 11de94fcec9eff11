# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constant expressions, attributes of variables, and other names of functions."""

import numpy as np
import pytest
from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import Target

import tilefold
from tests.ptx.test_instructions import FUNCTIONS
from tests.ptx.test_printing import check_printed
from tests.ptx.texts import HEAD, STORE_LANE, kernel


def run(body: str, variables: str = "", shared: int = 0) -> list[int]:
    A = np.zeros(32, np.int32)
    text = kernel(f"{STORE_LANE}{body} st.global.u32 [%d4], %r2; ret;").replace(HEAD, f"{HEAD}{variables}\n")
    tilefold.load_ptx(text)["k"](A).launch(1, 32, shared=shared)
    check_printed(text, Target("sm_80"))
    return A.tolist()


@pytest.mark.parametrize(("expression", "value"), [
    ("1+2*3", 7), ("7-2-1", 4), ("-7/2", -3), ("-7 % (2+2)", 1), ("1<<3|1", 9), ("~0&0xF0", 0xF0), ("5>3?7:8", 7),
    ("!5 || 3 == 3 && 2 != 2", 0), ("2*(3+(4-1))", 12), ("0x10>>2^1", 5), ("-(3)", -3), ("3<=3 == 1", 1),
])  # fmt: skip
def test_constant_expressions(expression: str, value: int) -> None:
    placed = f".global .align 4 .b32 x[3] = {{5, {expression}, 6}};"
    assert run("ld.global.u32 %r2, [x+2*4-4];", placed) == [value] * 32
    if expression[0] not in "-!":  # an operand that begins with ! is a predicate, and -( has no meaning there
        assert run(f"mov.s32 %r2, {expression};") == [value] * 32


@pytest.mark.parametrize("expression", ["1/0", "1+", "1 ? 2", "1.5*2", f"{'(' * 200}1"])
def test_malformed_expressions(expression: str) -> None:
    with pytest.raises(TilefoldError) as caught:
        tilefold.load_ptx(f"{HEAD}.global .b32 x[2] = {{{expression}, 2}};\n")
    assert caught.value.code is Code.PTX_SYNTAX


def test_a_function_has_another_name() -> None:
    call = """{ .param .b32 given; .param .b32 back; st.param.b32 [given], %r1;
        call.uni (back), again, (given); ld.param.b32 %r2, [back]; }"""
    other = ".visible .func (.param .b32 r) again(.param .b32 a); .alias again, twice;"
    named = f"{FUNCTIONS.replace('.func', '.visible .func')}{other}"
    assert run(call, named) == [2 * lane for lane in range(32)]


def test_managed_memory_and_shared_memory_of_no_bytes() -> None:
    assert run("ld.global.u32 %r2, [x];", ".global .attribute(.managed) .align 4 .u32 x = 3;") == [3] * 32
    assert run("mov.u32 %r3, s; mov.u32 %r2, 4;", ".extern .shared .align 16 .b8 s[];") == [4] * 32
    with pytest.raises(TilefoldError) as caught:
        run("ld.shared.u32 %r2, [s];", ".extern .shared .align 16 .b8 s[];")
    assert caught.value.code is Code.SIM_OUT_OF_BOUNDS
