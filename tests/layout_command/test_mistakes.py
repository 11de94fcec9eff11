# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes in expressions: each has a code and marks the characters at fault, and none takes long."""

from contextlib import suppress

import pytest
from tilefold.base.errors import Code, LayoutSyntaxError
from tilefold.layout.text.evaluate import Evaluator

from tests.layout_command.harness import refused
from tests.work import calls


@pytest.mark.parametrize(
    ("text", "marked", "code"),
    [
        ("(8,4):(1,x)", "x", Code.TEXT_UNKNOWN_NAME),
        ("sizze((8,4))", "sizze", Code.TEXT_UNKNOWN_NAME),
        ("size", "size", Code.TEXT_WRONG_KIND),
        ("size=3", "size", Code.TEXT_UNKNOWN_NAME),
        ("A=3; A=4", "A", Code.TEXT_UNKNOWN_NAME),
        ("o=3", "o", Code.TEXT_SYNTAX),
        ("composition((4,6):(1,8), 3:3)", "composition((4,6):(1,8), 3:3)", Code.STRIDE_DIVISIBILITY),
        ("size(composition((4,6):(1,8), 3:3))", "composition((4,6):(1,8), 3:3)", Code.STRIDE_DIVISIBILITY),
        ("(4,6):(1,8) o 3:3", "(4,6):(1,8) o 3:3", Code.STRIDE_DIVISIBILITY),
        ("(8,4):(1,8,2)", "(8,4):(1,8,2)", Code.PROFILE_MISMATCH),
        ("(8,0):(1,8)", "(8,0):(1,8)", Code.EXTENT_NOT_POSITIVE),
        ("complement(3, 8)", "3", Code.TEXT_WRONG_KIND),
        ("complement()", "complement()", Code.TEXT_ARGUMENTS),
        ("complement(4:1, 2, 3)", "complement(4:1, 2, 3)", Code.TEXT_ARGUMENTS),
        ("append(4:1, ?)", "?", Code.TEXT_WRONG_KIND),
        ("append(4:1, 100000000)", "append(4:1, 100000000)", Code.RESULT_TOO_LARGE),
        ("(8,4)(3)", "(8,4)", Code.TEXT_WRONG_KIND),
        ("4:1()", "4:1()", Code.TEXT_ARGUMENTS),
        ("S<1,0,1>(_)", "S<1,0,1>(_)", Code.TEXT_ARGUMENTS),
        ("4:1(2:1)", "2:1", Code.TEXT_WRONG_KIND),
        ("4:1[3]", "4:1[3]", Code.MODE_OUT_OF_RANGE),
        ("(3,4)[2]", "(3,4)[2]", Code.MODE_OUT_OF_RANGE),
        ("(4:1):3", "(4:1)", Code.TEXT_WRONG_KIND),
        ("3 o 4:1", "3 o 4:1", Code.TEXT_WRONG_KIND),
        ("4:1 o 'x'", "'x'", Code.TEXT_WRONG_KIND),
        ("copy_atom('nothing', 16)", "copy_atom('nothing', 16)", Code.ATOM_UNKNOWN),
        ("S<3,0,1>", "S<3,0,1>", Code.SWIZZLE_INVALID),
        ("4:99999999999999999999", "99999999999999999999", Code.TEXT_INTEGER_RANGE),
        ("downcast(4611686018427387904:1, 4)", "downcast(4611686018427387904:1, 4)", Code.TEXT_INTEGER_RANGE),
        ("4:1 4:1", "4:1", Code.TEXT_SYNTAX),
        ("composition(4:1, ", "", Code.TEXT_SYNTAX),
        ("(4,", "", Code.TEXT_SYNTAX),
        ("A=", "", Code.TEXT_SYNTAX),
        ("4:é", "é", Code.TEXT_SYNTAX),
        ("4:²", "²", Code.TEXT_SYNTAX),
        ("", "", Code.TEXT_SYNTAX),
    ],
)
def test_mistakes_are_located(text: str, marked: str, code: Code) -> None:
    with pytest.raises(LayoutSyntaxError) as caught:
        Evaluator().run(text)
    assert (text[caught.value.offset : caught.value.end], caught.value.code) == (marked, code.id)


def test_the_message_shows_the_place(capsys: pytest.CaptureFixture[str]) -> None:
    message = refused(capsys, "A=4:1", "complement(B, 8)")
    assert message[0] == "error[E0106]: expression: there is no 'B'"
    assert message[1:3] == ["  complement(B, 8)", "             ^"]


def test_near_names_are_proposed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "raked_product" in refused(capsys, "racked_product(4:1, 2:1)")[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--tile", "(4,4)", "4:1"),
        ("--tv", "4:1"),
        ("--tv", "--tile", "(2,x)", "(2,2):(1,2)"),
        ("--tv", "--tile", "(2,1)", "(2,2):(1,2)"),
        ("--table", "(8,?):(1,8)"),
        ("--table", "3"),
        ("--tv", "S<1,0,1> o 0 o (4,4):(1,4)"),
        ("--table", "(1024,1024):(1,1024)"),
        ("--explain", "4:1"),
        ("--explain", "flatten(4:1)"),
        ("--explain", "coalesce((4,?):(1,4))"),
        ("--explain", "A=4:1; A(3)"),
        ("--cxx", "cosize((2,2):(1,9223372036854775807))"),
    ],
)
def test_what_cannot_be_shown(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    assert refused(capsys, *arguments)[0].startswith("error[E")


DOUBLED = ";".join([f"A{i + 1}=make_layout(A{i},A{i})" for i in range(60)])


@pytest.mark.parametrize(
    "text",
    [
        "(" * 4000,
        "[" * 4000,
        "<" * 4000,
        "size(" * 800,
        "4:1" + "[0]" * 1300,
        "4:1" + "(0)" * 1300,
        "1:1 o " * 600 + "1:1",
        "(" + "1," * 2000 + "1)",
        "A0=(2,2):(1,2);" + DOUBLED,
        "A0=(1,1);" + ";".join([f"A{i + 1}=(A{i},A{i})" for i in range(60)]),
        "A0=4:1;" + ";".join([f"A{i + 1}=downcast(A{i},size(A{i}))" for i in range(60)]),
        "A0=4:1;" + ";".join([f"A{i + 1}=logical_product(A{i},A{i})" for i in range(60)]),
        "A=(" + "1," * 1000 + "1);" + "x;".join([f"B{i}=compatible(A,A)" for i in range(120)]),
        "4:1" * 4000,
        "'" * 4000,
        "\0" * 4000,
        "1" * 5000,
    ],
    ids=lambda text: text[:16],
)
def test_hostile_text_ends_soon(text: str) -> None:
    def run() -> None:
        with suppress(LayoutSyntaxError):
            Evaluator().run(text)

    assert calls(run) < 500_000
