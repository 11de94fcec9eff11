# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs read what they print: every operation, type and attribute, in custom and in generic form."""

import re
from collections.abc import Sequence

import pytest
from tilefold.compiler.frontend.program import parse_program, print_program
from tilefold.compiler.frontend.source import plain_source
from tilefold.compiler.pipeline import DIALECTS, make_context
from xdsl.dialects.builtin import ModuleOp
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser
from xdsl.printer import Printer

from tests.dialects.samples import ATTRIBUTE_SAMPLES, programs

SAMPLES = programs()


def read(text: str) -> ModuleOp:
    """The verified module of a text."""
    return parse_program(plain_source(text, "sample.cute"), make_context())


def stripped(text: str) -> list[str]:
    """The lines without their indentation."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def contains(lines: Sequence[str], part: Sequence[str]) -> bool:
    """Whether `part` stands in `lines`, its lines one after the other."""
    return any(list(lines[i : i + len(part)]) == list(part) for i in range(len(lines) - len(part) + 1))


@pytest.mark.parametrize(("name", "text", "lines"), SAMPLES, ids=[name for name, _, _ in SAMPLES])
def test_operation(name: str, text: str, lines: str) -> None:
    module = read(text)
    assert any(op.name == name for op in module.walk())
    custom = print_program(module)
    assert contains(stripped(custom), stripped(lines)), f"not printed as written:\n{lines}\n---\n{custom}"
    generic = print_program(module, generic=True)
    assert f'"{name}"' in generic
    for form in (custom, generic, print_program(module, locations=True)):
        again = read(form)
        assert again.is_structurally_equivalent(module)
        assert print_program(again) == custom


@pytest.mark.parametrize(("name", "texts"), ATTRIBUTE_SAMPLES.items(), ids=list(ATTRIBUTE_SAMPLES))
def test_type_or_attribute(name: str, texts: tuple[str, ...]) -> None:
    for text in texts:
        parsed = Parser(make_context(), text).parse_attribute()
        assert parsed.name == name
        assert Printer().print_attribute(parsed) is None
        assert str(parsed) == text
        assert Parser(make_context(), str(parsed)).parse_attribute() == parsed


REGIONS: dict[str, tuple[str, ...]] = {
    "scf.if": (
        "%r:2 = scf.if %c -> (i32, f32) {\nscf.yield %i, %x : i32, f32\n} else {\nscf.yield %j, %x : i32, f32\n}"
        " {a = 1 : i32}",
        'scf.if %c {\n} else {\n} {a, b = "x"}',
    ),
    "scf.for": (
        "%r:2 = scf.for %k = %i to %j step %i iter_args(%p = %i, %q = %x) -> (i32, f32) : i32 {\n"
        "scf.yield %p, %q : i32, f32\n} {unroll, a = 3 : i32}",
        "scf.for %k = %i to %j step %i : i32 {\n}",
    ),
    "scf.while": (
        "%r:2 = scf.while (%p = %i, %q = %x) : (i32, f32) -> (f32, i32) {\nscf.condition(%c) %q, %p : f32, i32\n}"
        " do {\n^bb0(%s: f32, %t: i32):\nscf.yield %t, %s : i32, f32\n} attributes {a = 1 : i32}",
        "scf.while () : () -> () {\nscf.condition(%c)\n} do {\nscf.yield\n}",
    ),
    "scf.execute_region": (
        "%r = scf.execute_region -> (i32) {\nscf.yield %i : i32\n}",
        '"scf.execute_region"() ({\n"scf.yield"() : () -> ()\n}) {a} : () -> ()',
    ),
    "scf.index_switch": (
        "%r = scf.index_switch %n {a} -> i32\ncase 1 {\nscf.yield %i : i32\n}\ndefault {\nscf.yield %j : i32\n}",
        "scf.index_switch %n\ncase -2 {\nscf.yield\n}\ndefault {\nscf.yield\n}",
    ),
    "scf.parallel": (
        '"scf.parallel"(%n, %n, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({\n^bb0(%k: index):\n'
        "scf.reduce\n}) {a} : (index, index, index) -> ()",
    ),
    "scf.reduce": (
        '%r = "scf.parallel"(%n, %n, %n, %i) <{operandSegmentSizes = array<i32: 1, 1, 1, 1>}> ({\n^bb0(%k: index):\n'
        "scf.reduce(%i : i32) {\n^bb1(%s: i32, %t: i32):\nscf.reduce.return %s : i32\n}\n"
        "}) : (index, index, index, i32) -> i32",
    ),
}
"""Operations of xDSL with regions, with and without what their syntax may leave out."""


FUNCTIONS: dict[str, str] = {
    "func.func": "func.func @f(%a: i32 {x = 1 : i32}) -> (i32 {y}) attributes {z} {\nreturn %a : i32\n}",
    "gpu.func": "gpu.module @m {\ngpu.func @k(%a: i32) kernel {\ngpu.return\n}\n}",
    "gpu.launch": '"gpu.launch"(%n, %n, %n, %n, %n, %n) '
    "<{operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0>}> ({\n"
    "^bb0(%0: index, %1: index, %2: index, %3: index, %4: index, %5: index, %6: index, %7: index, %8: index, %9: index,"
    ' %10: index, %11: index):\n"gpu.terminator"() : () -> ()\n'
    "}) : (index, index, index, index, index, index) -> ()",
    "gpu.all_reduce": '%r = "gpu.all_reduce"(%i) <{uniform}> ({\n^bb0(%s: i32, %t: i32):\n'
    '"gpu.yield"(%s) : (i32) -> ()\n}) : (i32) -> i32',
    "llvm.func": "llvm.func @f(%a: i32) -> i32 {\nllvm.return %a : i32\n}",
    "llvm.mlir.global": 'llvm.mlir.global internal constant @text("a")',
}
"""The other operations with regions that are not ours."""


ARGUMENTS = "%c: i1, %i: i32, %j: i32, %x: f32, %n: index"
ALL_REGIONS = [(name, text) for name, texts in REGIONS.items() for text in texts] + list(FUNCTIONS.items())


@pytest.mark.parametrize(("name", "text"), ALL_REGIONS)
def test_operation_with_regions_keeps_attributes_and_lines(name: str, text: str) -> None:
    if not re.match("(func|gpu|llvm).*@", text):
        text = f"func.func @f({ARGUMENTS}) attributes {{z = 1 : i32}} {{\n{text}\nreturn\n}}"
    module = read(text)
    assert any(op.name == name for op in module.walk())
    custom, places = print_program(module), [op.location for op in module.walk() if op.parent is not None]
    for generic in (False, True):
        saved = print_program(module, generic=generic, locations=True)
        for form in (print_program(module, generic=generic), saved):
            again = read(form)
            assert again.is_structurally_equivalent(module), form
            assert print_program(again) == custom
        assert [op.location for op in read(saved).walk() if op.parent is not None] == places, saved


def test_every_operation_with_regions_has_a_sample() -> None:
    samples = {*REGIONS, *FUNCTIONS, *(name for name, _, _ in SAMPLES)}
    operations = [op for make in DIALECTS.values() for op in make().operations if issubclass(op, IRDLOperation)]
    assert {op.name for op in operations if op.get_irdl_definition().regions} <= samples
