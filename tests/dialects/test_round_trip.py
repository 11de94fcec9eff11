# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs read what they print: every operation, type and attribute, in custom and in generic form."""

from collections.abc import Sequence

import pytest
from tilefold.compiler.context import make_context
from tilefold.compiler.frontend import parse_program, print_program
from tilefold.compiler.source import plain_source
from xdsl.dialects.builtin import ModuleOp
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
