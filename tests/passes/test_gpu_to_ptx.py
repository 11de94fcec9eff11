# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`gpu-to-ptx` and `inline-calls`: what they make of kernels, and what they refuse."""

import pytest
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.frontend.program import parse_program, print_program
from tilefold.compiler.frontend.source import plain_source
from tilefold.compiler.pass_runner import parse_passes, run_passes
from tilefold.compiler.pipeline import PASSES, make_context
from tilefold.dialects.ptx import EntryOp
from tilefold.passes.cute_ir import inline_calls
from xdsl.dialects.builtin import ModuleOp

LAUNCH = """
func.func @main() {
  %one = arith.constant 1 : index
  %n = arith.constant 64 : index
  gpu.launch_func @m::@k blocks in (%one, %one, %one) threads in (%n, %one, %one)
  return
}
"""


def device(body: str = "", args: str = "", more: str = "", attributes: str = "") -> str:
    return f"gpu.module @m {{\n{more}gpu.func @k({args}) kernel {attributes}{{\n{body}\ngpu.return\n}}\n}}\n"


def after(text: str, passes: str = "gpu-to-ptx") -> ModuleOp:
    source, context = plain_source(text, "t.mlir"), make_context()
    module = parse_program(source, context)
    run_passes(context, module, parse_passes(passes, PASSES), source=source)
    return module


def entry(module: ModuleOp) -> EntryOp:
    return next(op for op in module.walk() if isinstance(op, EntryOp))


def test_the_block_is_that_of_option_attribute_or_launch() -> None:
    known = "attributes {known_block_size = array<i32: 8, 4, 2>} "
    assert entry(after(device() + LAUNCH)).block == (64, 1, 1)
    assert entry(after(device(attributes=known) + LAUNCH)).block == (8, 4, 2)
    assert entry(after(device(attributes=known) + LAUNCH, "gpu-to-ptx{block=32,2}")).block == (32, 2, 1)


def test_the_host_part_is_left_out_and_the_pass_can_run_again() -> None:
    module = after(device('gpu.printf "a"\ngpu.barrier') + LAUNCH)
    text = print_program(module)
    assert "func.func" not in text
    assert 'ptx.printf "a"' in text
    assert "ptx.bar.sync 0" in text
    assert print_program(after(text)) == text


def test_arguments_become_scalars_with_names_of_their_own() -> None:
    args = '%l: !cute.layout<"(?,8):(1,?{i64})">, %a.b: i32, %a_b: index, %s: !cute.shape<"(2,3)">'
    body = 'cute.print(%l) : !cute.layout<"(?,8):(1,?{i64})">\n%j = arith.addi %a_b, %a_b : index'
    kernel = entry(after(device(body, args), "gpu-to-ptx{block=1}"))
    assert [name.data for name in kernel.arg_names] == ["l_0", "l_1", "a_b", "a_b_0"]
    assert [str(type) for type in kernel.function_type.inputs] == ["i32", "i64", "i32", "i64"]


@pytest.mark.parametrize(
    ("text", "passes", "words"),
    [
        (device(), "gpu-to-ptx", "its block size is unknown"),
        (
            device() + LAUNCH + LAUNCH.replace("64", "32").replace("@main", "@other"),
            "gpu-to-ptx",
            "its launches differ",
        ),
        (device(), "gpu-to-ptx{block=2048}", "2048"),
        (device("cf.br ^a\n^a:"), "gpu-to-ptx{block=1}", "several blocks"),
        (device('gpu.printf "%s"'), "gpu-to-ptx{block=1}", "unknown conversion '%s'"),
        (
            device('%x = arith.constant 1 : i64\ngpu.printf "%d", %x : i64'),
            "gpu-to-ptx{block=1}",
            "does not fit value 0",
        ),
    ],
)
def test_what_no_kernel_can_be_made_of_is_refused(text: str, passes: str, words: str) -> None:
    with pytest.raises(ProgramError) as caught:
        after(text, passes)
    assert words in str(caught.value)
    assert caught.value.diagnostics[0].place is not None


TWICE = "func.func @twice(%x: i32) -> i32 {\n%r = arith.addi %x, %x : i32\nreturn %r : i32\n}\n"
QUADRUPLE = (
    "func.func @quadruple(%x: i32) -> i32 {\n%a = func.call @twice(%x) : (i32) -> i32\n"
    "%b = func.call @twice(%a) : (i32) -> i32\nreturn %b : i32\n}\n"
)


def test_calls_are_inlined_through_functions() -> None:
    body = '%q = func.call @quadruple(%n) : (i32) -> i32\ngpu.printf "%d", %q : i32'
    module = after(device(body, "%n: i32", TWICE + QUADRUPLE), "gpu-to-ptx{block=1},inline-calls")
    assert [op.name for op in module.walk()] == [
        "builtin.module", "gpu.module", "ptx.entry", "arith.addi", "arith.addi", "ptx.printf", "ptx.ret",
    ]  # fmt: skip


def test_results_of_inlined_calls_keep_their_order() -> None:
    function = "func.func @two(%x: i32) -> (i32, i32) {\n%r = arith.addi %x, %x : i32\nreturn %x, %r : i32, i32\n}\n"
    body = '%a, %b = func.call @two(%n) : (i32) -> (i32, i32)\ngpu.printf "%d %d", %a, %b : i32, i32'
    text = print_program(after(device(body, "%n: i32", function), "gpu-to-ptx{block=1},inline-calls"))
    assert 'ptx.printf "%d %d"(%n, %r)' in text


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("func.func @f() {\nfunc.call @f() : () -> ()\nreturn\n}\n", "@f calls itself"),
        (
            "func.func @f() {\nfunc.call @g() : () -> ()\nreturn\n}\n"
            "func.func @g() {\nfunc.call @f() : () -> ()\nreturn\n}\n",
            "@f calls itself",
        ),
        ("func.func private @f()\n", "@f has no body"),
        ("func.func @f() {\ncf.br ^a\n^a:\nreturn\n}\n", "@f has several blocks"),
    ],
)
def test_functions_that_cannot_be_inlined_are_refused(function: str, words: str) -> None:
    with pytest.raises(ProgramError) as caught:
        after(device("func.call @f() : () -> ()", more=function), "gpu-to-ptx{block=1},inline-calls")
    error = caught.value.diagnostics[0]
    assert words in f"{error.message} {error.hint}"
    assert error.place is not None


def test_calls_that_grow_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline_calls, "MAX_INLINED", 3)
    with pytest.raises(ProgramError, match="calls make @k too large"):
        after(
            device("%q = func.call @quadruple(%n) : (i32) -> i32", "%n: i32", TWICE + QUADRUPLE),
            "gpu-to-ptx{block=1},inline-calls",
        )
