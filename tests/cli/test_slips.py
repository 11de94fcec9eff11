# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slips of people are told in words of tilefold's own, at the line where they are, with the place marked."""

import re
from pathlib import Path
from random import Random

import pytest
from tilefold.base.errors import TilefoldError
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.frontend.params import expand
from tilefold.compiler.frontend.source import plain_source
from tilefold.compiler.frontend.syntax_errors import explain, is_known

from tests.cli.slips import KINDS, PROGRAMS, Slip, program, slips
from tests.words import foreign, parser_messages
from tilefold.driver.lowering import load

SMALL = [path for path in PROGRAMS if path.stat().st_size < 9000]

# Where the text is right up to a later line, or wrong from an earlier one on.
ELSEWHERE = {
    "closing brace missing": "the '{' of line",
    "text ends": "the '{' of line",
    "type wrong": "",
    "return missing": "end it with",
    "value defined twice": "give one of the two another name",
    "letter lost": "",
    "operand missing": "",
}


def told(slip: Slip) -> ProgramError | TilefoldError | None:
    """The error that a slip is; None for a text that is right as it is."""
    try:
        load(expand(slip.text, "x.cute"))
    except TilefoldError as error:
        return error
    return None


def check(slip: Slip) -> None:
    """AssertionError unless a slip is told as it should be."""
    error = told(slip)
    if error is None:
        return
    rendered = str(error)
    assert isinstance(error, ProgramError), rendered
    first = error.diagnostics[0]
    assert first.place is not None, rendered
    assert first.place.text, rendered
    assert re.search(r"^\s*\^+$", rendered, re.MULTILINE), rendered
    for each in error.diagnostics:
        assert not foreign(each.message), f"{slip.name}: {each.render()}"
        assert not foreign(each.hint), f"{slip.name}: {each.render()}"
    if slip.name in ELSEWHERE:
        assert ELSEWHERE[slip.name] in first.hint or first.place.line == slip.line, f"{slip.name}:\n{rendered}"
    else:
        assert first.place.line == slip.line, f"{slip.name}, line {slip.line}:\n{rendered}"


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
@pytest.mark.sampled(4)
def test_slips_are_told_where_they_are(path: Path) -> None:
    kinds: dict[str, int] = {}
    for slip in slips(Random(path.stem), program(path)):
        check(slip)
        kinds[slip.name] = slip.line
    assert len(kinds) > 15


def test_every_kind_of_slip_is_made() -> None:
    made = {slip.name for path in SMALL for slip in slips(Random(0), program(path))}
    assert made == set(KINDS)


@pytest.mark.parametrize("message", parser_messages())
def test_every_message_of_the_parser_has_words_of_our_own(message: str) -> None:
    assert is_known(message)
    text = "gpu.module @m {\n  tile.kernel @k() threads(32) {\n"
    said = explain(message, 4, 5, plain_source(text, "x.cute"))
    assert said.message != message
    assert not foreign(said.message)


@pytest.mark.parametrize(
    ("line", "column", "said", "hint"),
    [
        ("# a comment", 5, "unexpected '#'", "a comment begins with //"),
        ("/* a comment */", 5, "expected an operation or '}', found '/'", "a comment begins with //"),
        ("%x = arith.addf %f, %f : f33", 30, "expected a type, found 'f33'", ""),
        ("%x = arith.addf %f, %f : !frog", 30, "unknown alias !frog", "did you mean !frag?"),
        ("%x = arith.addf %f, %f : frag", 30, "expected a type, found 'frag'", "did you mean !frag?"),
        ("%x = arith.addf %f, %f", 27, "expected ':', found the end of the line", ""),
        ("%x = arith.addf %f, f : f32", 25, "expected a value such as %a, found 'f'", "did you mean %f?"),
        ("%x = arith.addf %f, %ff : f32", 25, "%ff is used but never defined", "did you mean %f?"),
        ("%x = arith.addf %f, 1.0 : f32", 25, "expected a value such as %a, found '1.0'", ""),
        ("%x = arith.addf %f, 1 : f32", 25, "expected a value such as %a, found '1'", "arith.constant 1"),
        ("%x = arith.addi %f, %f : f32", 10, "the operation takes no f32", ""),
        ("%x = arith.addf %f, %f : f64", 21, "the value is of type f32 elsewhere, not f64", "convert the value"),
        ("%x = arith.addf %f, %f : f32;", 33, "unexpected character ';'", "operations do not end in ';'"),
        ("%x arith.addf %f, %f : f32", 8, "expected '=' after the names of the results, found 'arith.addf'", ""),
        ("%f = arith.addf %f, %f : f32", 5, "%f is defined twice", "give one of the two another name"),
        ("%x = arith.constant 1.5 : i32", 31, "a number with a point is not an integer", "write 1, not 1.0"),
        ("tile.copy", 14, "expected a value such as %a, found the end of the line", ""),
        ('%x = tile.local_tile %A, "(4,8), (0, 0)', 30, "the string literal does not end on its line", ""),
    ],
)
def test_slip(line: str, column: int, said: str, hint: str) -> None:
    text = f"""\
!frag = !tile.tensor<f32, rmem, align<16>, "4:1">
gpu.module @kernels {{
  tile.kernel @k(%A: !tile.tensor<f32, gmem, align<16>, "(32,8):(1,32)">) threads(32) {{
    %f = arith.constant 1.0 : f32
    {line}
    return
  }}
}}
"""
    error = told(Slip("", text, 5))
    assert isinstance(error, ProgramError)
    first = error.diagnostics[0]
    assert (first.message, first.place and (first.place.line, first.place.column)) == (said, (5, column))
    assert hint in first.hint
    assert bool(hint) == bool(first.hint)


@pytest.mark.parametrize(("lost", "hint"), [
    (6, "the '{' of line 4 seems not to be closed"), (7, "the '{' of line 2 seems not to be closed"),
    (8, "the '{' of line 1 is not closed"), (2, "the '}' of line 9 closes nothing"),
])  # fmt: skip
def test_braces_that_do_not_pair(lost: int, hint: str) -> None:
    lines = [
        "gpu.module @kernels {", "  tile.kernel @k() threads(32) {", "    %c = arith.constant true", "    scf.if %c {",
        "      ptx.bar.sync 0", "    }", "    return\n  }", "}",
    ]  # fmt: skip
    lines[lost - 1] = re.sub(r"[{}]", "", lines[lost - 1])
    error = told(Slip("", "\n".join(lines), lost))
    assert isinstance(error, ProgramError)
    assert error.diagnostics[0].hint == hint
