# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute-to-base`: the structures that values become, and what prints them."""

import pytest
from tilefold.compiler.frontend.program import print_program
from tilefold.dialects.cute.op import CuteOp
from xdsl.dialects import llvm
from xdsl.dialects.builtin import StringAttr

from tests.dialects.cute.examples import OPERATIONS
from tests.passes.test_cute_expand import after, names, returning

ALL = "cute-fold-static,cute-expand-ops,cute-to-base"


@pytest.mark.parametrize("op", OPERATIONS.values(), ids=list(OPERATIONS))
def test_nothing_of_the_dialect_is_left(op: type[CuteOp]) -> None:
    module = after(returning(op), ALL)
    assert not any(name.startswith("cute.") for name in names(module))
    text = print_program(module)
    assert "!cute." not in text
    assert print_program(after(text, "")) == text


@pytest.mark.parametrize(
    ("kind", "structure"),
    [
        ('!cute.int_tuple<"(2,3)">', "!llvm.struct<()>"),
        ('!cute.shape<"(?,4)">', "i32"),
        ('!cute.coord<"(?{i64},_,?)">', "!llvm.struct<(i64, i32)>"),
        ('!cute.layout<"(?,4):(1,8)">', "!llvm.struct<(i32, struct<()>)>"),
        ('!cute.tile<"[?:1;_]">', "!llvm.struct<(i32, struct<()>)>"),
        ('!cute.tile<"[?:1;4:?]">', "!llvm.struct<(struct<(i32, struct<()>)>, struct<(struct<()>, i32)>)>"),
        ('!cute.composed_layout<"S<3,4,3> o ? o ?:?">', "!llvm.struct<(struct<(i32, i32)>, i32, struct<()>)>"),
        ('!cute.swizzle<"S<3,4,3>">', "!llvm.struct<()>"),
    ],
)  # fmt: skip
def test_the_structure_of_a_type(kind: str, structure: str) -> None:
    module = after(f"func.func @f(%a: {kind}) -> {kind} {{ return %a : {kind} }}", "cute-to-base")
    assert f"func.func @f(%a: {structure}) -> {structure}" in print_program(module)


def formats(text: str) -> list[str]:
    """The printf formats that a program holds, without their last character, which is 0."""
    found = [op.properties["value"] for op in after(text, ALL).walk() if isinstance(op, llvm.GlobalOp)]
    return [value.data[:-1] for value in found if isinstance(value, StringAttr)]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ('!cute.layout<"(?,4):(?@0,1@1)">', "(%d,4):(%d@0,1@1)\n"),
        ('!cute.shape<"(?{i64},?)">', "(%lld,%d)\n"),
        ('!cute.composed_layout<"?:2 o ? o 6:?">', "%d:2 o %d o 6:%d\n"),
        ('!cute.swizzle<"S<3,4,3>">', "S<3,4,3>\n"),
    ],
)
def test_printing(kind: str, text: str) -> None:
    assert formats(f"func.func @f(%a: {kind}) {{ cute.print(%a) : {kind} return }}") == [text]


def test_a_composed_layout_prints_its_outer_function_first() -> None:
    kind = '!cute.composed_layout<"?:2 o ? o 6:?">'
    module = after(f"func.func @f(%a: {kind}) {{ cute.print(%a) : {kind} return }}", ALL)
    call = next(op for op in module.walk() if isinstance(op, llvm.CallOp))
    sources = [value.owner for value in call.operands[1:]]
    outer, offset, inner = (op for op in sources if isinstance(op, llvm.ExtractValueOp))
    assert [op.position.get_values() for op in (outer, offset, inner)] == [(0,), (1,), (1,)]


def test_in_a_kernel_the_device_prints() -> None:
    text = """gpu.module @m { gpu.func @k(%n: i32) kernel {
      %s = cute.make_shape(%n) : (i32) -> !cute.shape<"?">
      cute.print(%s) : !cute.shape<"?">
      gpu.return
    } }"""
    left = names(after(text, ALL))
    assert "gpu.printf" in left
    assert "llvm.call" not in left
