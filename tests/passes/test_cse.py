# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cse` merges what is equal and nothing else; xDSL's pass, which has the same rules, leaves the same programs."""

import pytest
from tilefold.compiler.frontend.program import parse_program, print_program
from tilefold.compiler.pass_runner import parse_passes
from tilefold.compiler.pipeline import PASSES, make_context, pipeline_to
from xdsl.dialects import arith
from xdsl.irdl import traits_def
from xdsl.traits import Pure
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

from benchmarks.workloads import Workload
from tests.passes.harness import apply, entry

ARGS = "%a: i32, %b: i32, %c: i1, %p: !ptx.ptr<global> align 16"
PRINT = 'ptx.printf "%{1} %{1}"(%x, %y) : {0}, {0}'
LOADS = "%{0} = ptx.ld %p align 4 : !ptx.ptr<global> -> i32\n"
STORE = "ptx.st %a, %p align 4 : i32, !ptx.ptr<global>\n"
BRANCH = "%{0} = scf.if %c -> (i32) {{\n%{0}1 = arith.{1} %a, %b : i32\nscf.yield %{0}1 : i32\n}} else {{\n\
scf.yield %a : i32\n}}\n"
CASES = {
    "equal": ("%x = arith.addi %a, %b : i32\n%y = arith.addi %a, %b : i32\n", "i32", "arith.addi", 1),
    "remainders": ("%x = arith.remui %a, %b : i32\n%y = arith.remui %a, %b : i32\n", "i32", "arith.remui", 1),
    "operands": ("%x = arith.subi %a, %b : i32\n%y = arith.subi %b, %a : i32\n", "i32", "arith.subi", 2),
    "properties": ("%x = arith.cmpi slt, %a, %b : i32\n%y = arith.cmpi sle, %a, %b : i32\n", "i1", "arith.cmpi", 2),
    "attributes": ("%x = arith.addi %a, %b {k} : i32\n%y = arith.addi %a, %b : i32\n", "i32", "arith.addi", 2),
    "zeros": ("%x = arith.constant 0.0 : f32\n%y = arith.constant -0.0 : f32\n", "f32", "arith.constant", 2),
    "loads": (LOADS.format("x") + LOADS.format("y"), "i32", "ptx.ld", 1),
    "written between": (LOADS.format("x") + STORE + LOADS.format("y"), "i32", "ptx.ld", 2),
    "written before": (STORE + LOADS.format("x") + LOADS.format("y"), "i32", "ptx.ld", 1),
    "regions": (BRANCH.format("x", "addi") + BRANCH.format("y", "addi"), "i32", "scf.if", 1),
    "other regions": (BRANCH.format("x", "addi") + BRANCH.format("y", "subi"), "i32", "scf.if", 2),
    "in a region": (BRANCH.format("x", "addi") + "%y = arith.addi %a, %b : i32\n", "i32", "arith.addi", 2),
    "around a region": ("%y = arith.addi %a, %b : i32\n" + BRANCH.format("x", "addi"), "i32", "arith.addi", 1),
    "read in a region": (
        "%x = scf.if %c -> (i32) {\n" + LOADS.format("u") + "scf.yield %u : i32\n} else {\nscf.yield %a : i32\n}\n"
        + LOADS.format("y"), "i32", "ptx.ld", 2,
    ),
    "unused": ("%u = arith.addi %a, %b : i32\n" + LOADS.format("v") + STORE + BRANCH.format("w", "addi")
               + "%x = arith.subi %a, %b : i32\n%y = arith.subi %a, %b : i32\n", "i32", " = ", 1),
    "used by what is unused": (
        "%u = arith.muli %a, %b : i32\n%v = arith.muli %u, %a : i32\n%w = arith.muli %v, %u : i32\n"
        "%x = arith.addi %a, %b : i32\n%y = arith.subi %a, %b : i32\n", "i32", "arith.muli", 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_equal_is_computed_once(case: str) -> None:
    lines, type, name, left = CASES[case]
    module = apply(entry(lines + PRINT.format(type, "f" if type == "f32" else "d"), ARGS), "cse")
    assert print_program(module).count(name) == left


@pytest.mark.parametrize("file", ["gemm", "softmax", "copy_atoms", "reduce"])
def test_against_xdsl(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for op in (arith.RemUIOp, arith.ExtSIOp):  # xDSL does not say that these have no effects
        monkeypatch.setattr(op, "traits", traits_def(Pure()))
    context = make_context()
    module = parse_program(Workload(file, f"examples/{file}.cute").source(), context)
    compared = 0
    for applied in parse_passes(",".join(pipeline_to("instr", "sm_90a")), PASSES):
        other = module.clone()
        applied.apply(context, module)
        if applied.name == "cse":
            CommonSubexpressionElimination().apply(context, other)
            assert print_program(module, locations=True) == print_program(other, locations=True)
            compared += 1
    assert compared == 4
