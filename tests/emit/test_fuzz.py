# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs: whatever emission accepts, LLVM and the assembler accept too.

LLVM runs in a process of its own, since a program that it cannot select would end this one.
"""

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tilefold.base.target import Target
from tilefold.compiler.emit import emit_llvm
from tilefold.compiler.machine.assemble import assemble
from tilefold.compiler.machine.nvptx import compile_isolated

from tests.emit.examples import ARGS, SHARED, all_examples
from tests.emit.harness import ASSEMBLED, parse
from tests.examples import examples

BODIES = [body for _, body in all_examples()]
TYPES = ("i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")


def _expression(draw: st.DrawFn) -> str:
    """Arithmetic on values of all types, each result an operand of what follows."""
    values = {type: [f"%{type}"] for type in TYPES}
    lines: list[str] = []
    for index in range(draw(st.integers(1, 25))):
        type = draw(st.sampled_from(TYPES))
        integer = type.startswith("i")
        names = (
            ("addi", "subi", "muli", "andi", "shli", "divsi", "minui")
            if integer
            else ("addf", "mulf", "divf", "maxnumf")
        )
        left, right = (draw(st.sampled_from(values[type])) for _ in range(2))
        kind = draw(st.sampled_from(("binary", "select", "round trip", "fma")))
        name = f"%e{index}"
        if kind == "select":
            compare = "cmpi slt" if integer else "cmpf olt"
            lines.append(f"{name}c = arith.{compare}, {left}, {right} : {type}")
            lines.append(f"{name} = arith.select {name}c, {left}, {right} : {type}")
        elif kind == "round trip":
            other = draw(st.sampled_from([t for t in TYPES if t.startswith("i") != integer]))
            there, back = ("sitofp", "fptosi") if integer else ("fptosi", "sitofp")
            lines.append(f"{name}t = arith.{there} {left} : {type} to {other}")
            lines.append(f"{name} = arith.{back} {name}t : {other} to {type}")
        elif kind == "fma" and not integer:
            lines.append(f"{name} = math.fma {left}, {right}, {left} : {type}")
        else:
            lines.append(f"{name} = arith.{draw(st.sampled_from(names))} {left}, {right} : {type}")
        values[type].append(name)
    lines += [f"ptx.st {values[type][-1]}, %B align 8 : {type}, !ptx.ptr<global>" for type in TYPES]
    return "\n".join(lines)


@st.composite
def bodies(draw: st.DrawFn, depth: int = 3) -> str:
    """A body: examples, random arithmetic, and control flow around bodies."""
    parts: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(("example", "expression", "if", "for")) if depth else st.just("example"))
        if kind == "expression":
            parts.append(f"scf.if %i1 {{\n{_expression(draw)}\n}}")
        elif kind == "example":
            parts.append(f"scf.if %i1 {{\n{draw(st.sampled_from(BODIES))}\n}}")
        elif kind == "if":
            parts.append(f"scf.if %i1 {{\n{draw(bodies(depth - 1))}\n}} else {{\n{draw(bodies(depth - 1))}\n}}")
        else:
            bound = draw(st.sampled_from(("%i32", "%four")))
            unroll = draw(st.sampled_from(("", " {unroll}")))
            inner = draw(bodies(depth - 1))
            loop = f"scf.for %k{depth} = %zero to {bound} step %one : i32"
            parts.append(f"{loop} {{\n{inner}\n}}{unroll}")
    return "\n".join(parts)


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]  # programs are large data
CONSTANTS = "\n".join(
    f"%{name} = arith.constant {value} : i32" for name, value in (("zero", 0), ("one", 1), ("four", 4))
)


@settings(max_examples=examples(3), deadline=None, phases=(Phase.explicit, Phase.generate), suppress_health_check=SLOW)
@given(st.lists(bodies(), min_size=2, max_size=6), st.sampled_from(ASSEMBLED))
def test_random_program_becomes_machine_code(kernels: list[str], target: Target) -> None:
    text = "".join(
        f"ptx.entry @k{index}({ARGS}) threads(32) shared({SHARED}) {{\n{CONSTANTS}\n{body}\nptx.ret\n}}\n"
        for index, body in enumerate(kernels)
    )
    ptx = compile_isolated(emit_llvm(parse(f"gpu.module @kernels {{\n{text}}}\n"), target), target)
    assert len(assemble(ptx, target).kernels) == len(kernels)
