# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a kernel asks of the assembler and of LLVM's unroller arrives in the PTX."""

import pytest
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.machine.assemble import assemble
from tilefold.passes.analysis.loop_hints import unroll_count
from xdsl.dialects import scf

from tests.emit.harness import SM80, kernel, parse, ptx_of
from tests.passes.harness import apply

BODY = """
%z = arith.constant 0 : i32
%one = arith.constant 1 : i32
%sixteen = arith.constant 16 : i32
%count = arith.constant 64 : i32
scf.for %i = %z to COUNT step %one : i32 {
  %o = arith.muli %i, %sixteen : i32
  %p = ptx.ptr_add %A, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
  %v = ptx.ld %p align 16 : !ptx.ptr<global> -> vector<4xf32>
  ptx.st %v, %p align 16 : vector<4xf32>, !ptx.ptr<global>
} HINT
"""
ARGS = "%A: !ptx.ptr<global> align 16, %n: i32"


def _loop(count: str, hint: str) -> str:
    return kernel(BODY.replace("COUNT", count).replace("HINT", hint), ARGS)


@pytest.mark.parametrize(("count", "hint", "loads", "loops", "stays"), [
    ("%count", "", 1, True, False),
    ("%n", "", 1, True, False),
    ("%n", "{unroll}", 1, True, False),  # the number of iterations is not known
    ("%count", "{unroll = 1 : i64}", 1, True, True),
    ("%n", "{unroll = 1 : i64}", 1, True, True),
    ("%count", "{unroll}", 64, False, False),
    ("%count", "{unroll = 4 : i64}", 4, True, True),
    ("%n", "{unroll = 4 : i64}", 5, True, True),  # four at a time, and the rest one by one
])  # fmt: skip
def test_a_loop_is_unrolled_as_it_says(count: str, hint: str, loads: int, loops: bool, stays: bool) -> None:
    """A loop without a hint is one in the PTX, but the assembler may unroll it; one with a number must stay."""
    ptx = ptx_of(_loop(count, hint))
    assert ptx.count("ld.global.v4") == loads
    assert ("bra" in ptx) == loops
    assert ('.pragma "nounroll"' in ptx) == stays


@pytest.mark.parametrize(("count", "hint", "said"), [
    ("%count", "{unroll = 0 : i64}", "from 1 to 1024"),
    ("%count", '{unroll = "all"}', "from 1 to 1024"),
])  # fmt: skip
def test_a_hint_that_cannot_be_followed_is_refused(count: str, hint: str, said: str) -> None:
    with pytest.raises(ProgramError, match=said) as caught:
        apply(_loop(count, hint), "check-stage{stage=instr}")
    assert caught.value.diagnostics[0].code == "E2007"
    assert caught.value.diagnostics[0].place is not None
    assert caught.value.diagnostics[0].place.line == 7


@pytest.mark.parametrize("inner", ["{unroll}", "{unroll = 1024 : i64}"])
def test_code_that_would_not_end_is_refused(inner: str) -> None:
    """Each loop alone could be unrolled; together they would be 17 * 1024 copies of the inner one's body."""
    head = "%z = arith.constant 0 : i32\n%one = arith.constant 1 : i32\n%n = arith.constant COUNT : i32"
    loops = "scf.for %i = %z to %n step %one : i32 {\nscf.for %j = %z to %m step %one : i32 {\n} INNER\n} {unroll}"
    text = kernel(f"{head}\n%m = arith.constant 1024 : i32\n{loops}".replace("INNER", inner))
    apply(text.replace("COUNT", "16"), "check-stage{stage=instr}")
    with pytest.raises(ProgramError, match="17408 copies of the loop's body; at most 16384") as caught:
        apply(text.replace("COUNT", "17"), "check-stage{stage=instr}")
    assert caught.value.diagnostics[0].code == "E2007"


def test_only_counted_loops_have_hints() -> None:
    text = kernel("scf.if %c {\n} {unroll}", "%c: i1")
    with pytest.raises(ProgramError, match="can be unrolled"):
        apply(text, "check-stage{stage=cute}")


def test_bounds_may_depend_on_loops_that_are_unrolled() -> None:
    inner = "scf.for %j = %z to %i step %one : i32 {\n} {unroll}"
    head = "%z = arith.constant 0 : i32\n%one = arith.constant 1 : i32\n%n = arith.constant 8 : i32"
    text = kernel(f"{head}\nscf.for %i = %z to %n step %one : i32 {{\n{inner}\n}} HINT")
    for hint, counts in (("{unroll}", [0, 0]), ("", [None, None])):
        loops = [op for op in parse(text.replace("HINT", hint)).walk() if isinstance(op, scf.ForOp)]
        assert [unroll_count(loop) for loop in loops] == counts


def test_launch_bounds_reach_the_assembler() -> None:
    lines: list[str] = []
    for i in range(100):
        lines.append(f"%c{i} = arith.constant {4 * i} : i32")
        lines.append(f"%p{i} = ptx.ptr_add %A, %c{i} : !ptx.ptr<global>, i32 -> !ptx.ptr<global>")
        lines.append(f"%v{i} = ptx.ld %p{i} align 4 : !ptx.ptr<global> -> f32")
    lines += [f"ptx.st %v{i}, %p{99 - i} align 4 : f32, !ptx.ptr<global>" for i in range(100)]  # all are live here
    body = "\n".join(lines)
    text = kernel(body, "%A: !ptx.ptr<global> align 16", threads="128")
    bounded = text.replace("threads(128)", "threads(128) min_blocks(2) max_registers(64)")
    ptx = ptx_of(bounded)
    assert ".reqntid 128, 1, 1\n.minnctapersm 2\n.maxnreg 64\n" in ptx
    assert assemble(ptx, SM80).kernels["k"].registers <= 64 < assemble(ptx_of(text), SM80).kernels["k"].registers
