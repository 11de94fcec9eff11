# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`expand-math`: the operations that it writes. tests/emit/test_accuracy.py has their numbers."""

import pytest
from tilefold.compiler.frontend.program import print_program
from tilefold.compiler.pipeline import concerns
from tilefold.dialects.math.functions import ACCURATE, INSTRUCTIONS
from xdsl.ir import Operation

from tests.passes.harness import apply, check_pass, entry

ARGS = "%A: !ptx.ptr<global> align 16"


def program(operation: str, type: str = "f32", align: int = 4) -> str:
    return entry(
        f"%x = ptx.ld %A align {align} : !ptx.ptr<global> -> {type}\n%y = {operation} : {type}\n"
        f"ptx.st %y, %A align {align} : {type}, !ptx.ptr<global>",
        ARGS,
    )


@pytest.mark.parametrize(
    ("operation", "checks"),
    [
        ("math.exp %x fastmath<fast>", ("arith.mulf %x,", "ptx.ex2.approx ftz %", "ptx.st")),
        ("math.exp %x fastmath<afn>", ("arith.mulf %x,", "ptx.ex2.approx %", "ptx.st")),
        ("math.exp %x", ("maximumf", "minimumf", "math.fma", "arith.shli", "mulf", "mulf", "ptx.st")),
        ("math.exp2 %x", ("ptx.ex2.approx %x", "ptx.st")),
        ("math.rsqrt %x", ("ptx.rsqrt.approx %x", "ptx.st")),
        ("math.sqrt %x fastmath<fast>", ("ptx.sqrt.approx ftz %x", "ptx.st")),
        ("math.sqrt %x", ("math.sqrt %x", "ptx.st")),
        ("math.log %x fastmath<fast>", ("ptx.lg2.approx ftz %x", "arith.mulf", "ptx.st")),
        ("math.tanh %x fastmath<fast>", ("ptx.tanh.approx %x", "ptx.st")),
        ("math.tanh %x", ("ptx.rcp.approx ftz", "math.fma", "math.copysign", "ptx.st")),
        ("math.sin %x", ("cmpf ogt", "scf.if", "extui", "else", "scf.yield", "math.fma", "ptx.st")),
        ("math.cos %x fastmath<nnan,ninf>", ("scf.if", "ptx.st")),
    ],
)
def test_functions(operation: str, checks: tuple[str, ...]) -> None:
    check_pass("expand-math", program(operation), "\n".join(f"// CHECK: {line}" for line in checks))


def test_accurate_functions_have_no_approximations() -> None:
    for name in ("exp", "log", "log2", "log10", "sin", "cos", "erf"):
        text = print_program(apply(program(f"math.{name} %x"), "expand-math"))
        assert "approx" not in text, name
        assert f"math.{name} " not in text


def test_vectors_are_taken_apart_and_narrow_numbers_extended() -> None:
    check_pass(
        "expand-math",
        program("math.exp2 %x", "vector<2xf16>"),
        """
        // CHECK-COUNT-2: vector.extract %x
        // CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : f16 to f32
        // CHECK: %[[POWER:.*]] = ptx.ex2.approx %[[WIDE]] : f32
        // CHECK: arith.truncf %[[POWER]] : f32 to f16
        // CHECK: ptx.ex2.approx
        // CHECK: vector.insert
        """,
    )


@pytest.mark.parametrize("flags", ["afn", "fast", "nnan,afn"])
def test_flags_are_read_back(flags: str) -> None:
    text = print_program(apply(program(f"math.sin %x fastmath<{flags}>"), "cse"))
    again = print_program(apply(text, "cse"))
    assert text == again
    assert " fastmath<" in text
    check_pass("expand-math", text, "// CHECK: ptx.sin.approx")


@pytest.mark.parametrize("kind", [*ACCURATE, *INSTRUCTIONS])
def test_programs_with_a_function_are_not_left_out(kind: type[Operation]) -> None:
    assert concerns("expand-math", apply(program(f"{kind.name} %x"), "cse"))


@pytest.mark.parametrize("operation", ["math.exp %x", "math.sin %x fastmath<fast>", "math.erf %x"])
def test_double_precision_is_refused(operation: str) -> None:
    with pytest.raises(Exception, match=r"E2201.* has no instruction for f64"):
        apply(program(operation, "f64", 8), "expand-math")
    assert "math.sqrt" in print_program(apply(program("math.sqrt %x fastmath<fast>", "f64", 8), "expand-math"))
