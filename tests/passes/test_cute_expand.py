# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute-fold-static` and `cute-expand-ops`: what they leave, and that the arithmetic computes what the algebra does."""

import pytest
from tilefold.compiler.frontend.program import parse_program, print_program
from tilefold.compiler.frontend.source import Source
from tilefold.compiler.pass_runner import parse_passes, run_passes
from tilefold.compiler.pipeline import PASSES, make_context
from tilefold.dialects.cute.arithmetic import CompareOp
from tilefold.dialects.cute.constructors import GatherOp
from tilefold.dialects.cute.op import AlgebraOp, CuteOp
from xdsl.dialects.builtin import ModuleOp

from tests.dialects.cute.examples import OPERATIONS, program

KEPT = {
    "cute.static", "cute.print", "cute.get_scalars", "cute.make_int_tuple", "cute.make_shape", "cute.make_stride",
    "cute.make_coord", "cute.make_tile", "cute.make_layout", "cute.make_composed_layout",
}  # fmt: skip
"""What expansion leaves of the dialect."""


def after(text: str, passes: str) -> ModuleOp:
    """A program after passes."""
    source, context = Source("test", text, text), make_context()
    module = parse_program(source, context)
    run_passes(context, module, parse_passes(passes, PASSES), source=source)
    return module


def names(module: ModuleOp) -> list[str]:
    """The operations of a module."""
    return [op.name for op in module.walk()]


def returning(op: type[CuteOp]) -> str:
    """The example of an operation, in a function that prints or returns its results, so that they are used."""
    lines = program(op).splitlines()
    module = parse_program(Source("test", "\n".join(lines), "\n".join(lines)), make_context())
    results = next(inner for inner in module.walk() if inner.name == op.name).results
    if not results:
        return "\n".join(lines)
    head, line = lines[0], lines[1]
    left = line.partition(" = ")[0].split(", ")
    kinds = ", ".join(str(result.type) for result in results)
    end = f"  func.return {', '.join(name.strip() for name in left)} : {kinds}"
    return "\n".join([head.replace(") {", f") -> ({kinds}) {{"), line, end, "}"])


@pytest.mark.parametrize("op", OPERATIONS.values(), ids=list(OPERATIONS))
def test_every_operation_expands(op: type[CuteOp]) -> None:
    module = after(returning(op), "cute-expand-ops")
    left = {name for name in names(module) if name.startswith("cute.")}
    assert left <= KEPT
    assert after(print_program(module), "cute-expand-ops").is_structurally_equivalent(module)


@pytest.mark.parametrize("op", OPERATIONS.values(), ids=list(OPERATIONS))
def test_static_results_fold(op: type[CuteOp]) -> None:
    text = returning(op)
    module = after(text, "cute-fold-static")
    used = next(inner for inner in module.walk() if inner.name == "func.return").operands
    made = {getattr(value.owner, "name", "argument") for value in used}
    if issubclass(op, AlgebraOp | GatherOp) and all(getattr(value.type, "is_static", False) for value in used):
        assert made == {"cute.static"}
    if issubclass(op, CompareOp) and "?" not in text:
        assert made == {"arith.constant"}


def test_a_comparison_is_one_of_integers() -> None:
    """The comparisons of equal integers tell `less` from `less or equal`."""
    text = """func.func @f(%n: i32, %m: i32) -> (i1, i1, i1) {
      %a = cute.make_int_tuple(%n) : (i32) -> !cute.int_tuple<"?">
      %b = cute.make_int_tuple(%m) : (i32) -> !cute.int_tuple<"?">
      %c = cute.elem_less(%a, %b) : (!cute.int_tuple<"?">, !cute.int_tuple<"?">) -> i1
      %three = cute.static : !cute.int_tuple<"3">
      %four = cute.static : !cute.int_tuple<"4">
      %d = cute.elem_less(%three, %four) : (!cute.int_tuple<"3">, !cute.int_tuple<"4">) -> i1
      %e = cute.elem_less(%three, %three) : (!cute.int_tuple<"3">, !cute.int_tuple<"3">) -> i1
      return %c, %d, %e : i1, i1, i1
    }"""
    expanded, folded = (print_program(after(text, name)) for name in ("cute-expand-ops", "cute-fold-static"))
    assert "arith.cmpi slt" in expanded
    assert [line.split()[-1] for line in folded.splitlines() if "arith.constant" in line] == ["true", "false"]


def test_unused_pure_operations_are_erased() -> None:
    text = """func.func @f(%n: i32, %s: !cute.shape<"?">) {
      %a = cute.make_shape(%n) : (i32) -> !cute.shape<"?">
      %b = cute.size(%a) : (!cute.shape<"?">) -> !cute.int_tuple<"?">
      %c = cute.shape_div(%a, %s) : (!cute.shape<"?">, !cute.shape<"?">) -> !cute.shape<"?">
      return
    }"""
    # a division by what may be 0 stays, with what it needs
    assert names(after(text, "cute-fold-static"))[2:] == ["cute.make_shape", "cute.shape_div", "func.return"]


def test_a_slice_of_a_swizzled_layout_at_a_run_time_coordinate() -> None:
    swizzled = '!cute.composed_layout<"S<1,0,1> o 0 o (2,2):(2,1)">'
    text = f"""func.func @f(%l: {swizzled}, %c: !cute.coord<"(?,_)">) -> !cute.layout<"(2):(?)"> {{
      %r = cute.slice(%l, %c) : {swizzled}, !cute.coord<"(?,_)">
      return %r : !cute.layout<"(2):(?)">
    }}"""
    left = names(after(text, "cute-expand-ops"))
    assert "arith.shrui" in left
    assert left[-2:] == ["cute.make_layout", "func.return"]
