# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters of a file: what `${...}` becomes, and that places in the expanded text are those of the original."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefold.compiler.diagnostics import ProgramError
from tilefold.compiler.params import expand
from tilefold.layout.errors import TilefoldError

HEAD = '// param M = 128\n// param T = f16\n  // param THR = "(8,4):(1,8)"\n//param N = M * 2 - 1\n'


def body(text: str, **given: str) -> str:
    """The expansion of a line after the declarations of HEAD."""
    return expand(HEAD + text, "x.cute", given).expanded.removeprefix(HEAD)


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("${M}", "128"),
        ("<${M / 4}x${T}>", "<32xf16>"),
        ('"(${M},${N}):(1,${M})"', '"(128,255):(1,128)"'),
        ("thr ${THR}", 'thr "(8,4):(1,8)"'),
        ('"x ${THR} y"', '"x (8,4):(1,8) y"'),
        ("${min(M, 3) ** 2 % 5 // 1 - -1}", "5"),
        ("$${M} $$ $ { }", "${M} $$ $ { }"),
        ("a // ${undefined}", "a // ${undefined}"),
        ('"a // ${M}"', '"a // 128"'),
        (r'"\"// ${M}"', r'"\"// 128"'),
        ("${M}${M}", "128128"),
    ],
)
def test_expansion(text: str, expanded: str) -> None:
    assert body(text) == expanded


def test_definitions_replace_defaults_and_what_depends_on_them() -> None:
    assert body("${M} ${N}", M="64") == "64 127"
    assert body("${N}", N="M + 1") == "129"
    assert body("${T}", T="bf16") == "bf16"
    assert body("${THR}", THR="(4,8):(8,1)") == '"(4,8):(8,1)"'
    assert body("${THR}", THR='"(4,8):(8,1)"') == '"(4,8):(8,1)"'


@pytest.mark.parametrize(
    ("text", "line", "column", "code", "said"),
    [
        ("${X}", 1, 3, "E1102", "no parameter 'X'"),
        ("a\n  ${ 1 / 0 }", 2, 6, "E1103", "not defined"),
        ("// param A = 3\n${A / 2}", 2, 3, "E1103", "remainder"),
        ("// param A = f16\n${A + 1}", 2, 3, "E1103", "not an integer"),
        ("// param A = 1\n// param A = 2", 2, 10, "E1101", "twice"),
        ("// param A =", 1, 9, "E1101", "malformed"),
        ("// param 3A = 1", 1, 9, "E1101", "malformed"),
        ('// param A = "x', 1, 14, "E1101", "quoted"),
        ("// param A = 1 +", 1, 17, "E1201", "expected a number"),
        ("// param A = 2 ** 70", 1, 14, "E1103", "not defined"),
        ("// param A = 2 ** 63", 1, 14, "E1103", "64 bits"),
        ("// param A = zeros(3)", 1, 14, "E1103", "not an expression of integers"),
        ("// param A = 1.5", 1, 14, "E1103", "not an expression of integers"),
        ("${M", 1, 1, "E1101", "without a '}'"),
        ("${", 1, 1, "E1101", "without a '}'"),
        ("${}", 1, 3, "E1201", "expected a number"),
        ("${__import__}", 1, 3, "E1102", "no parameter"),
        ("x ${M}\n// param M = 1", 1, 5, "E1102", "declared so far: none"),
    ],
)
def test_faults_have_a_place(text: str, line: int, column: int, code: str, said: str) -> None:
    with pytest.raises(ProgramError) as caught:
        expand(text, "x.cute")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.place is not None
    assert (diagnostic.place.line, diagnostic.place.column, diagnostic.code) == (line, column, code)
    assert said in diagnostic.render()


@pytest.mark.parametrize(
    ("given_values", "said"),
    [
        ({"Q": "1"}, "has no such parameter"),
        ({"M": "x"}, "no parameter 'x'"),
        ({"M": "1; 2"}, "no meaning"),
        ({"T": "f16>"}, "not a name"),
        ({"T": "12"}, "not a name"),
        ({"THR": 'a"b'}, "quote"),
        ({"THR": "a\nb"}, "control character"),
        ({"THR": "x" * 5000}, "too long"),
    ],
)
def test_bad_definitions(given_values: dict[str, str], said: str) -> None:
    with pytest.raises(TilefoldError) as caught:
        body("", **given_values)
    assert said in str(caught.value)


def test_expansion_is_bounded() -> None:
    with pytest.raises(ProgramError) as caught:
        expand('// param A = "' + "x" * 4000 + '"\n' + "${A}" * 5000, "x.cute")
    assert caught.value.code == "E1104"
    with pytest.raises(ProgramError):
        expand("\n".join(f"// param A{i} = 1" for i in range(300)), "x.cute")


@given(st.lists(st.sampled_from(["${M}", "${THR}", "$${", "ab ", "\n", '"', "λ", "// c\n", "${N - 1}"]), max_size=30))
def test_places_point_into_the_original(parts: list[str]) -> None:
    text = HEAD + "".join(parts)
    source = expand(text, "x.cute")
    for at, character in enumerate(source.expanded):
        line, column = source.locate(at)
        original = text.split("\n")[line - 1] + "\n"
        if original[column - 1] != "$":  # a copied character: the same in both texts
            assert original[column - 1] == character
