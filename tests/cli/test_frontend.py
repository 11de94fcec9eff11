# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading programs: the lines that operations get, and that saved programs keep them."""

import pytest
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.frontend.params import expand
from tilefold.compiler.frontend.program import MAX_NESTING, parse_program, print_program
from tilefold.compiler.frontend.source import MAX_OPERATIONS
from tilefold.compiler.pipeline import make_context
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp

KERNEL = """\
// param BYTES = 16
gpu.module @kernels {
  ptx.entry @k(%A: !ptx.ptr<global> align 16) threads(32) {
    %t = gpu.thread_id x
    %c = arith.constant ${BYTES} : i32   %p = ptx.ptr_add %A, %c : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    %v = "ptx.ld"(%p) <{align = 4 : i64}> : (!ptx.ptr<global>) -> f32
      ptx.st %v, %p align 4 : f32, !ptx.ptr<global>
    ptx.ret
  }
}
"""


def read(text: str, name: str = "k.cute") -> ModuleOp:
    """The module of a text."""
    return parse_program(expand(text, name), make_context())


def places(module: ModuleOp) -> dict[str, tuple[str, int, int]]:
    """File, line and column of each operation, by name."""
    found: dict[str, tuple[str, int, int]] = {}
    for op in module.walk():
        assert isinstance(op.location, FileLineColLoc)
        found[op.name] = (op.location.filename.data, op.location.line.data, op.location.column.data)
    return found


def test_operations_know_the_line_and_column_of_their_name() -> None:
    found = places(read(KERNEL))
    assert found == {
        "builtin.module": ("k.cute", 1, 1),
        "gpu.module": ("k.cute", 2, 1),
        "ptx.entry": ("k.cute", 3, 3),
        "gpu.thread_id": ("k.cute", 4, 10),
        "arith.constant": ("k.cute", 5, 10),
        "ptx.ptr_add": ("k.cute", 5, 47),  # after ${BYTES}, which is longer than what it stands for
        "ptx.ld": ("k.cute", 6, 10),
        "ptx.st": ("k.cute", 7, 7),
        "ptx.ret": ("k.cute", 8, 5),
    }


@pytest.mark.parametrize("generic", [False, True])
def test_a_saved_program_keeps_its_lines(generic: bool) -> None:
    module = read(KERNEL)
    again = read(print_program(module, generic=generic, locations=True), "saved.cute")
    assert again.is_structurally_equivalent(module)
    assert places(again) == places(module)


def test_without_locations_a_saved_program_has_its_own_lines() -> None:
    again = read(print_program(read(KERNEL)), "saved.cute")
    assert {file for file, _, _ in places(again).values()} == {"saved.cute"}


def test_every_broken_rule_is_reported() -> None:
    text = (
        KERNEL.replace("align 4 :", "align 2 :").replace("align = 4", "align = 3").replace("threads(32)", "threads(0)")
    )
    with pytest.raises(ProgramError) as caught:
        read(text)
    lines = [diagnostic.place.line for diagnostic in caught.value.diagnostics if diagnostic.place]
    assert lines == [3, 6, 7]


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "column", "said"),
    [
        ("ptx.ret\n", "ptx.rat\n", "E1002", 8, 5, "did you mean ptx.ret"),
        ("ptx.ret\n", "pxt.ret\n", "E1002", 8, 5, "unknown dialect 'pxt'"),
        ("%p align", "%q align", "E1004", 7, 18, "%q is used but never defined"),
        ("${BYTES} : i32", "${BYTES} : i32 i32", "E1002", 5, 40, "found the type 'i32'"),
        ("threads(32)", "threads 32", "E1001", 3, 55, "expected '(', found '32'"),
        ("<global> align 16", "<globel> align 16", "E1001", 3, 29, "global"),
        ("%v = ", "%v:2 = ", "E1001", 6, 5, "1 results"),
        ("%v = ", "%t = ", "E1001", 6, 5, "%t is defined twice"),
        ("gpu.module @kernels {", 'gpu.module @kernels { "', "E1001", 2, 23, "string literal"),
        ("  }\n}\n", "", "E1001", 8, 12, "'}'"),
    ],
)
def test_faults_of_syntax(old: str, new: str, code: str, line: int, column: int, said: str) -> None:
    assert old in KERNEL
    with pytest.raises(ProgramError) as caught:
        read(KERNEL.replace(old, new, 1))
    first = caught.value.diagnostics[0]
    assert first.place is not None
    assert (first.code, first.place.line, first.place.column) == (code, line, column)
    assert said in first.render()


def test_a_value_must_be_defined_before_its_use() -> None:
    text = KERNEL.replace("    %t = gpu.thread_id x\n", "    %s = arith.addi %c, %c : i32\n")
    with pytest.raises(ProgramError) as caught:
        read(text)
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == ["E1004"]


def test_name_with_escapes_has_a_place() -> None:
    with pytest.raises(ProgramError, match=r"k.cute:1:3: error\[E1002\]: unknown operation 'a\"b'"):
        read('  "a\\"b"() : () -> ()')


@pytest.mark.parametrize("text", ["{", "}", '"', "!x = ", "#", "%", "\x01", "gpu.module", "loc("])
def test_hopeless_texts_are_refused(text: str) -> None:
    with pytest.raises(ProgramError):
        read(text)


def test_depth_is_bounded() -> None:
    deep = "scf.if %c {\n" * (MAX_NESTING + 2) + "}\n" * (MAX_NESTING + 2)
    with pytest.raises(ProgramError) as caught:
        read("%c = arith.constant true\n" + deep)
    assert caught.value.code == "E1005"
    with pytest.raises(ProgramError) as caught:
        read(KERNEL.replace("i32", "tuple<" * 1000 + ">" * 1000, 1))
    assert caught.value.code == "E1005"


def test_the_number_of_operations_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_OPERATIONS >= 10_000
    monkeypatch.setattr("tilefold.compiler.frontend.program.MAX_OPERATIONS", 5)
    with pytest.raises(ProgramError) as caught:
        read(KERNEL)
    assert caught.value.code == "E1005"


@pytest.mark.parametrize("text", ["", "// nothing\n"])
def test_a_text_without_operations_is_an_empty_program(text: str) -> None:
    assert not list(read(text).ops)


@pytest.mark.parametrize("type", ["index", "i64", "i32"])
@pytest.mark.parametrize("form", ["{} : {}", "dense<{}> : vector<2x{}>"])
def test_a_constant_that_its_type_does_not_have_is_refused(type: str, form: str) -> None:
    """At the constant, which would wrap otherwise: an index has 64 bits."""
    bits = 32 if type == "i32" else 64
    for number in (1 << bits, (1 << bits) + 1, -(1 << bits - 1) - 1, 1 << 3 * bits):
        constant = form.format(number, type)
        with pytest.raises(ProgramError) as caught:
            read(f"gpu.module @m {{\n  %c = arith.constant {constant}\n}}")
        (said,) = caught.value.diagnostics
        assert said.code in ("E1001", "E1003")
        assert "out of range for type " + type in said.message
        assert said.place is not None
        assert (said.place.line, said.place.column) == (2, 23)
    for number in ((1 << bits - 1) - 1, -(1 << bits - 1)):
        read(f"gpu.module @m {{\n  %c = arith.constant {form.format(number, type)}\n}}")
