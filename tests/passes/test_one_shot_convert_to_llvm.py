# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`one-shot-convert-to-llvm`: what it leaves computes the same, and what it refuses."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tilefold.base.target import Target
from tilefold.compiler.cute_ir.emit_gpu_binary import write_llvm
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.dialects.gpu import ModuleOp as GpuModuleOp
from xdsl.dialects.builtin import ModuleOp

from tests.emit import cpu
from tests.passes.harness import apply, check_pass, printed

PASS = "one-shot-convert-to-llvm"
INTEGERS = st.one_of(st.integers(-9, 9), st.integers(-(2**31), 2**31 - 1))
TOTAL = ("addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui")
DIVISIONS = ("divsi", "remsi", "divui", "remui")
SHIFTS = ("shli", "shrsi", "shrui")
COMPARISONS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
ORDERS = ("oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno")


def function(module: ModuleOp) -> str:
    """The LLVM IR of the device program in a module."""
    return write_llvm(next(op for op in module.walk() if isinstance(op, GpuModuleOp)), Target("sm_80"))


def run(body: str, operands: list[Any], result: str = "i32") -> Any:
    """What `%r` of a body is, whose `%a0`, `%a1`, ... are the operands, NumPy scalars."""
    kinds = {np.int32: "i32", np.int64: "i64", np.float32: "f32"}
    types = [kinds[type(operand)] for operand in operands]
    pointers = ", ".join(f"%p{i}: !llvm.ptr" for i in range(len(operands) + 1))
    loads = "\n".join(f"%a{i} = llvm.load %p{i} : !llvm.ptr -> {type}" for i, type in enumerate(types))
    store = f"llvm.store %r, %p{len(operands)} : {result}, !llvm.ptr"
    text = f"gpu.module @m {{ gpu.func @k({pointers}) kernel {{\n{loads}\n{body}\n{store}\ngpu.return\n}} }}"
    out = np.zeros(1, {"i32": np.int32, "i64": np.int64, "f32": np.float32, "i1": np.bool_}[result])
    arrays: list[NDArray[Any]] = [np.array([operand]) for operand in operands]
    cpu.run_on_cpu(function(apply(text, PASS)), [*arrays, out])
    return out[0]


def expected(name: str, a: int, b: int) -> int:
    """An operation of arith on i32, by its definition."""
    ua, ub = a % 2**32, b % 2**32
    quotient = 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    value = {
        "addi": lambda: a + b, "subi": lambda: a - b, "muli": lambda: a * b, "andi": lambda: a & b,
        "ori": lambda: a | b, "xori": lambda: a ^ b, "maxsi": lambda: max(a, b), "minsi": lambda: min(a, b),
        "maxui": lambda: max(ua, ub), "minui": lambda: min(ua, ub), "divsi": lambda: quotient,
        "remsi": lambda: a - quotient * b, "divui": lambda: ua // ub, "remui": lambda: ua % ub,
        "shli": lambda: a << b, "shrsi": lambda: a >> b, "shrui": lambda: ua >> b,
    }[name]() % 2**32  # fmt: skip
    return value - 2**32 if value >= 2**31 else value


@given(st.sampled_from((*TOTAL, *DIVISIONS, *SHIFTS)), INTEGERS, INTEGERS)
def test_integer_operations_keep_their_meaning(name: str, a: int, b: int) -> None:
    if name in SHIFTS:
        b %= 32
    elif name in DIVISIONS and (b == 0 or (a, b) == (-(2**31), -1)):
        b = 3
    assert run(f"%r = arith.{name} %a0, %a1 : i32", [np.int32(a), np.int32(b)]) == expected(name, a, b)


@given(st.sampled_from(COMPARISONS), INTEGERS, INTEGERS)
def test_integer_comparisons_keep_their_meaning(predicate: str, a: int, b: int) -> None:
    x, y = (a % 2**32, b % 2**32) if predicate[0] == "u" else (a, b)
    wanted = {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[predicate[-2:]]
    body = f"%c = arith.cmpi {predicate}, %a0, %a1 : i32\n%r = arith.select %c, %a0, %a1 : i32"
    assert run(body, [np.int32(a), np.int32(b)]) == (a if wanted else b)


@pytest.mark.parametrize("predicate", ORDERS)
@pytest.mark.parametrize(("a", "b"), [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0), (math.nan, 1.0)])
def test_float_comparisons_keep_their_meaning(predicate: str, a: float, b: float) -> None:
    unordered = math.isnan(a) or math.isnan(b)
    ordered = {
        "eq": a == b, "gt": a > b, "ge": a >= b, "lt": a < b, "le": a <= b, "ne": a != b,
    }  # fmt: skip
    if predicate in ("ord", "uno"):
        wanted = unordered == (predicate == "uno")
    else:
        wanted = predicate[0] == "u" if unordered else ordered[predicate[1:]]
    body = f"%c = arith.cmpf {predicate}, %a0, %a1 : f32\n%r = arith.extui %c : i1 to i32"
    assert run(body, [np.float32(a), np.float32(b)]) == wanted


@pytest.mark.parametrize(
    ("operation", "wanted"),
    [
        ("arith.addf %a0, %a1", 10.25), ("arith.subf %a0, %a1", 7.75), ("arith.mulf %a0, %a1", 11.25),
        ("arith.divf %a0, %a1", 7.2), ("arith.negf %a0", -9.0), ("arith.maxnumf %a0, %a1", 9.0),
        ("arith.minnumf %a0, %a1", 1.25), ("math.sqrt %a0", 3.0), ("math.floor %a1", 1.0), ("math.ceil %a1", 2.0),
        ("math.absf %a0", 9.0), ("math.fma %a0, %a1, %a1", 12.5), ("math.copysign %a0, %a1", 9.0),
    ],
)  # fmt: skip
def test_float_operations_keep_their_meaning(operation: str, wanted: float) -> None:
    assert run(f"%r = {operation} : f32", [np.float32(9.0), np.float32(1.25)], "f32") == np.float32(wanted)


@pytest.mark.parametrize("name", ["exp", "exp2", "log", "log2", "sin", "cos"])
def test_functions_are_intrinsics(name: str) -> None:
    text = f"func.func @f(%x: f32) -> f32 {{\n%r = math.{name} %x : f32\nreturn %r : f32\n}}"
    check_pass(PASS, text, f"// CHECK: llvm.intr.{name}(%x)")


def test_flags_are_kept() -> None:
    check_pass(
        PASS,
        "func.func @f(%x: f32, %i: i32) -> (f32, i32) {\n%f = arith.addf %x, %x fastmath<nnan> : f32\n"
        "%s = arith.addi %i, %i overflow<nsw> : i32\nreturn %f, %s : f32, i32\n}",
        """
        // CHECK: llvm.fadd %x, %x {fastmathFlags = #llvm.fastmath<nnan>}
        // CHECK: llvm.add %i, %i overflow<nsw>
        """,
    )


@given(st.integers(0, 300), st.integers(1, 300))
def test_nested_loops_and_branches_keep_their_meaning(a: int, b: int) -> None:
    """The greatest common divisor by subtraction, with a count of the odd numbers below it."""
    body = """
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %x = arith.index_cast %a0 : i32 to index
    %y = arith.index_cast %a1 : i32 to index
    %gcd:2 = scf.while (%u = %x, %v = %y) : (index, index) -> (index, index) {
      %more = arith.cmpi ne, %u, %zero : index
      scf.condition(%more) %u, %v : index, index
    } do {
    ^bb0(%u: index, %v: index):
      %less = arith.cmpi slt, %u, %v : index
      %w:2 = scf.if %less -> (index, index) {
        scf.yield %v, %u : index, index
      } else {
        %d = arith.subi %u, %v : index
        scf.yield %d, %v : index, index
      }
      scf.yield %w#0, %w#1 : index, index
    }
    %odd = scf.for %i = %zero to %gcd#1 step %one iter_args(%n = %zero) -> (index) {
      %rest = arith.remui %i, %two : index
      %is = arith.cmpi eq, %rest, %one : index
      %next = scf.if %is -> (index) {
        %plus = arith.addi %n, %one : index
        scf.yield %plus : index
      } else {
        scf.yield %n : index
      }
      scf.yield %next : index
    }
    %thousand = arith.constant 1000 : index
    %shifted = arith.muli %odd, %thousand : index
    %sum = arith.addi %shifted, %gcd#1 : index
    %r = arith.index_cast %sum : index to i64"""
    divisor = math.gcd(a, b)
    assert run(body, [np.int32(a), np.int32(b)], "i64") == divisor // 2 * 1000 + divisor


def test_several_results_are_a_structure() -> None:
    more = "gpu.func @k(%p: !llvm.ptr) kernel {\n%q:2 = func.call @two() : () -> (i32, i64)\n"
    more += "llvm.store %q#1, %p : i64, !llvm.ptr\ngpu.return\n}"
    two = "func.func @two() -> (i32, i64) {\n%a = arith.constant 1 : i32\n%b = arith.constant 7 : i64\n"
    two += "return %a, %b : i32, i64\n}\n"
    out = np.zeros(1, np.int64)
    cpu.run_on_cpu(function(apply(f"gpu.module @m {{ {two} {more} }}", PASS)), [out])
    assert out[0] == 7


def test_printf_passes_a_structure_of_promoted_values() -> None:
    body = 'gpu.printf "%d %u %f %%\\n", %a, %b, %c : i8, i8, f32\ngpu.printf "x" '
    check_pass(
        PASS,
        f"gpu.module @m {{ gpu.func @k(%a: i8, %b: i8, %c: f32) kernel {{\n{body}\ngpu.return\n}} }}",
        """
        // CHECK-DAG: llvm.mlir.global internal constant @printfFormat_0("%d %u %f %%\\0A\\00")
        // CHECK-DAG: llvm.mlir.global internal constant @printfFormat_1("x\\00")
        // CHECK: llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32
        // CHECK: [[A:%[0-9]+]] = llvm.sext %a : i8 to i32
        // CHECK: [[B:%[0-9]+]] = llvm.zext %b : i8 to i32
        // CHECK: [[C:%[0-9]+]] = llvm.fpext %c : f32 to f64
        // CHECK: llvm.alloca {{.*}} x !llvm.struct<(i32, i32, f64)>
        // CHECK: llvm.store [[A]]
        // CHECK: llvm.store [[B]]
        // CHECK: llvm.store [[C]]
        // CHECK: llvm.call @vprintf
        // CHECK: [[N:%[0-9]+]] = llvm.mlir.zero : !llvm.ptr
        // CHECK: llvm.call @vprintf({{%[0-9]+}}, [[N]])
        """,
    )


def test_printf_cannot_steer_the_terminal() -> None:
    body = 'gpu.printf "\\1B[31m\\07\\7F %d\\0A", %a : i32'
    text = printed(apply(f"gpu.module @m {{ gpu.func @k(%a: i32) kernel {{\n{body}\ngpu.return\n}} }}", PASS))
    (line,) = [line for line in text.splitlines() if "@printfFormat_0(" in line]
    assert r'("\\x1b[31m\\x07\\x7f %d\0A\00")' in line


def test_launches_stay_and_read_back() -> None:
    text = (
        "gpu.module @m { gpu.func @k(%n: index) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {\n"
        "gpu.barrier\ngpu.return\n} }\nfunc.func @main(%n: index) {\n"
        "gpu.launch_func @m::@k blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%n : index)\nreturn\n}"
    )
    after = printed(apply(text, PASS))
    assert "threads in (%n, %n, %n) : i64 args(%n : i64)" in after
    assert "nvvm.reqntid = array<i32: 64, 1, 1>" in after
    assert printed(apply(after, PASS)) == after


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('func.func @f(%l: !cute.layout<"?:1">) {\nreturn\n}', "no type in the 'llvm' dialect"),
        ("func.func @f(%x: f32) -> i32 {\n%r = arith.fptosi %x : f32 to i32\nreturn %r : i32\n}", "arith.fptosi"),
        ("func.func @f(%x: si32) {\nreturn\n}", "no type in the 'llvm' dialect"),
        ("func.func @f(%x: vector<2x2xf32>) {\nreturn\n}", "no type in the 'llvm' dialect"),
        ('gpu.module @m { gpu.func @k() {\ngpu.printf "%d"\ngpu.return\n} }', "1 conversions for 0 values"),
        ('func.func @f() {\ngpu.printf "x"\nreturn\n}', "only in functions of a gpu.module"),
        ('gpu.module @m { gpu.func @k() {\ngpu.printf "%q"\ngpu.return\n} }', "unknown conversion"),
        (
            "func.func @f(%i: index) -> i32 {\n%r = scf.index_switch %i -> i32\ncase 1 {\n%a = arith.constant 1 : i32\n"
            "scf.yield %a : i32\n}\ndefault {\n%b = arith.constant 2 : i32\nscf.yield %b : i32\n}\nreturn %r : i32\n}",
            "scf.index_switch",
        ),
    ],
)
def test_what_has_no_counterpart_is_refused(text: str, said: str) -> None:
    with pytest.raises(ProgramError) as caught:
        apply(text, PASS)
    assert said in str(caught.value)
