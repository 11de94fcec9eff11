# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions on the host: calls, branches, loops, recursion, and the budget that ends what does not end."""

import pytest
from tilefold.base.errors import Code, TilefoldError
from tilefold.base.limits import Limits
from tilefold.compiler.frontend.diagnostics import ProgramError

from tests.host.harness import C, main_of, refused, run

SHOW = """\
llvm.func @printf(!llvm.ptr, ...) -> i32
llvm.mlir.global internal constant @number("%d\\0A\\00") {addr_space = 0 : i32}
func.func private @show(%x: i32) {
  %f = llvm.mlir.addressof @number : !llvm.ptr
  %n = llvm.call @printf(%f, %x) vararg(!llvm.func<i32 (ptr, ...)>) : (!llvm.ptr, i32) -> i32
  return
}
"""


def factorial(n: int) -> str:
    """A program that prints a factorial, computed by recursion."""
    return (
        SHOW
        + """
func.func @factorial(%n: i64) -> i64 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %end = arith.cmpi eq, %n, %zero : i64
  %r = scf.if %end -> (i64) {
    scf.yield %one : i64
  } else {
    %m = arith.subi %n, %one : i64
    %f = func.call @factorial(%m) : (i64) -> i64
    %p = arith.muli %n, %f : i64
    scf.yield %p : i64
  }
  return %r : i64
}
"""
        + main_of(
            f"%n = arith.constant {n} : i64\n%f = func.call @factorial(%n) : (i64) -> i64\n"
            "%t = arith.trunci %f : i64 to i32\nfunc.call @show(%t) : (i32) -> ()"
        )
    )


def test_recursion_keeps_each_call_s_values_apart() -> None:
    assert run(factorial(10)) == "3628800\n"
    assert run(factorial(900)) == "0\n"  # the low 32 bits


def test_recursion_without_end_is_refused() -> None:
    text = "func.func @f() {\nfunc.call @f() : () -> ()\nreturn\n}\n" + main_of("func.call @f() : () -> ()")
    error = refused(text, "E3212")
    assert "1001 levels deep" in error.message
    assert error.place is not None
    assert error.place.line == 1


def test_deep_nesting_of_branches_in_recursion_is_refused() -> None:
    depth = 40
    body = "%t = arith.constant true\n" + "scf.if %t {\n" * depth + "func.call @f() : () -> ()\n" + "}\n" * depth
    text = f"func.func @f() {{\n{body}return\n}}\n" + main_of("func.call @f() : () -> ()")
    assert refused(text, "E3212").hint


def test_branches_between_blocks_pass_values() -> None:
    body = """
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %ten = arith.constant 10 : i32
  cf.br ^head(%zero, %zero : i32, i32)
^head(%i: i32, %sum: i32):
  %more = arith.cmpi slt, %i, %ten : i32
  cf.cond_br %more, ^body(%i, %sum : i32, i32), ^end(%sum : i32)
^body(%j: i32, %s: i32):
  %t = arith.addi %s, %j : i32
  %k = arith.addi %j, %one : i32
  cf.br ^head(%k, %t : i32, i32)
^end(%r: i32):
  func.call @show(%r) : (i32) -> ()"""
    assert run(SHOW + main_of(body)) == "45\n"


def test_swapping_block_arguments_is_simultaneous() -> None:
    body = """
  %a = arith.constant 1 : i32
  %b = arith.constant 2 : i32
  %t = arith.constant true
  %f = arith.constant false
  cf.br ^swap(%a, %b, %t : i32, i32, i1)
^swap(%x: i32, %y: i32, %again: i1):
  cf.cond_br %again, ^swap(%y, %x, %f : i32, i32, i1), ^end
^end:
  func.call @show(%x) : (i32) -> ()
  func.call @show(%y) : (i32) -> ()"""
    assert run(SHOW + main_of(body)) == "2\n1\n"


LOOP = """\
%t = arith.constant true
%r = scf.while (%x = %t) : (i1) -> (i1) {
  scf.condition(%t) %x : i1
} do {
^next(%y: i1):
  scf.yield %y : i1
}"""


@pytest.mark.parametrize("body", ["cf.br ^a\n^a:\ncf.br ^a\n^b:", LOOP])
def test_a_loop_without_end_uses_up_the_budget(body: str) -> None:
    assert "executed 10000 steps" in str(_error(main_of(body), Limits(steps=10_000)))


def test_printing_without_end_uses_up_the_budget() -> None:
    body = "%x = arith.constant 1 : i32\ncf.br ^a\n^a:\nfunc.call @show(%x) : (i32) -> ()\ncf.br ^a\n^b:"
    assert "printed 100 characters" in str(_error(SHOW + main_of(body), Limits(characters=100)))


def _error(text: str, budget: Limits) -> TilefoldError:
    with pytest.raises(TilefoldError) as caught:
        run(text, budget=budget)
    return caught.value


def test_an_assertion_that_fails_ends_the_program() -> None:
    error = refused(main_of('%f = arith.constant false\ncf.assert %f, "no room"'), "E3213")
    assert "no room" in error.message


def test_division_by_zero_names_the_line_and_no_thread() -> None:
    error = refused(main_of("%z = arith.constant 0 : i32\n%q = arith.divsi %z, %z : i32"), "E3209")
    assert error.place is not None
    assert error.place.line == 3
    assert "thread" not in error.message


def test_other_functions_can_be_the_entry() -> None:
    text = SHOW + "func.func @other() {\n%x = arith.constant 7 : i32\nfunc.call @show(%x) : (i32) -> ()\nreturn\n}\n"
    assert run(text, entry="other") == "7\n"
    for entry, words in (("main", "no func.func @main"), ("show", "takes arguments")):
        with pytest.raises(TilefoldError, match=words) as caught:
            run(text, entry=entry)
        assert caught.value.code == Code.HOST_ENTRY.id


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("func.call @f() : () -> ()", "@f"),
        ("%t = gpu.thread_id x", "no rule"),
        ("ptx.bar.sync 0", "no rule"),
    ],
)
def test_what_the_host_cannot_do_is_refused(body: str, words: str) -> None:
    declared = "func.func private @f()\n" if "@f" in body else ""
    assert words in refused(declared + main_of(body), "E3201").message


def test_c_declares_what_the_other_tests_use() -> None:
    assert run(C + main_of("%b = func.call @base() : () -> i32"), environment={"BASE": "3"}) == ""


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("%r = scf.if %t -> (i1) {\nscf.yield %t : i1\n} else {\n}", "expected operands of types (i1), got ()"),
        ("%r = scf.if %t -> (i1) {\nscf.yield %t : i1\n}", "need an else"),
        ("scf.if %t {\nscf.yield %t : i1\n}", "expected operands of types (), got (i1)"),
        (LOOP.replace("scf.yield %y : i1", ""), "expected operands of types (i1), got ()"),
        (LOOP.replace("(%t) %x : i1", "(%t)"), "expected operands of types (i1, i1), got (i1)"),
        (
            LOOP.replace("^next(%y: i1)", "^next(%y: i32)").replace("yield %y", "yield %t"),
            "the body's arguments and the results differ in type",
        ),
    ],
)
def test_ends_of_regions_hand_on_what_is_wanted(body: str, words: str) -> None:
    with pytest.raises(ProgramError) as caught:
        run(main_of("%t = arith.constant true\n" + body.removeprefix("%t = arith.constant true\n")))
    assert any(words in error.message and error.code == "E1003" for error in caught.value.diagnostics), caught.value


def test_functions_have_a_bounded_number_of_blocks() -> None:
    body = "cf.br ^b0\n" + "".join(f"^b{n}:\ncf.br ^b{n + 1}\n" for n in range(600)) + "^b600:"
    assert "at most 500" in refused(main_of(body), "E1005").message
