# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every operation of the `cute` dialect parses and prints, in its own form and in the generic one."""

import pytest
from tilefold.compiler.frontend.program import parse_program, print_program
from tilefold.compiler.frontend.source import Source
from tilefold.compiler.pipeline import make_context
from tilefold.dialects.cute.op import CuteOp

from tests.dialects.cute.examples import OPERATIONS, example, infers, program


def printed(text: str, *, generic: bool = False) -> str:
    """`text` parsed, verified and printed."""
    return print_program(parse_program(Source("test", text, text), make_context()), generic=generic)


def test_the_dialect_is_whole() -> None:
    assert len(OPERATIONS) == 63


@pytest.mark.parametrize("op", OPERATIONS.values(), ids=list(OPERATIONS))
def test_example_round_trips(op: type[CuteOp]) -> None:
    once = printed(program(op))
    line = next(line.strip() for line in once.splitlines() if op.name in line)
    # what is printed is what the docstring shows, but for blanks before brackets and names of several results
    assert line.partition(op.name)[2].replace(" ", "") == example(op).partition(op.name)[2].replace(" ", "")
    assert printed(once) == once
    generic = printed(once, generic=True)
    assert f'"{op.name}"' in generic
    assert printed(generic) == once


@pytest.mark.parametrize("op", [op for op in OPERATIONS.values() if infers(op)], ids=lambda op: op.name)
def test_results_are_inferred_and_checked(op: type[CuteOp]) -> None:
    generic = printed(program(op), generic=True)
    line = next(line for line in generic.splitlines() if f'"{op.name}"' in line)
    assert " -> " in line


def test_several_results_are_one_name() -> None:
    shape = '!cute.shape<"(4,?)">'
    text = f"func.func @f(%s: {shape}) -> i32 {{ %a, %b = cute.get_scalars(%s) : {shape} return %b : i32 }}"
    assert "%a:2 = cute.get_scalars" in printed(text)
    assert "    return %a#1 : i32" in printed(text)
    assert printed(printed(text)) == printed(text)
