# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters of a file: what `${...}` becomes, and that places in the expanded text are those of the original."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefold.base.errors import TilefoldError
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.frontend.params import expand

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
        ("${M == 128} ${M != 128} ${M < 129} ${M <= 127} ${M > N} ${M >= N}", "1 0 1 0 0 0"),
        ("${T == f16} ${bf16 == T} ${T != f16} ${THR == '(8,4):(1,8)'} ${THR != 'x'}", "1 0 0 1 1"),
        ("${M == 1 and N / 0 or not M == 1 and 2}", "1"),
        ("${not M} ${not not M} ${1 or N / 0} ${0 and N / 0}", "0 1 1 0"),
        ("${M if M > 1 else N / 0} ${(N / 0 if T == f32 else 7) + 1}", "128 8"),
        ("${f16 if M == 1 else bf16 if M == 128 else T}", "bf16"),
        ("${'a{}' if M == 1 else '(${M},4):(4,${2 if T == f16 else 1})'}", '"(128,4):(4,2)"'),
        ("\"x ${'}' if M else ''} y\"", '"x } y"'),
        ("${'$${M}'}", '"${M}"'),
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
        ("${X}", 1, 3, "E1102", "unknown parameter 'X'"),
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
        ("${__import__}", 1, 3, "E1102", "unknown parameter"),
        ("x ${M}\n// param M = 1", 1, 5, "E1102", "declared so far: none"),
        ("${A == B}", 1, 3, "E1102", "unknown parameter 'A'"),
        ("// param A = 1\n${A == B}", 2, 8, "E1102", "unknown parameter 'B'"),
        ("// param A = f16\n${A == 1}", 2, 3, "E1103", "a name cannot be compared with an integer"),
        ("// param A = f16\n${A < A}", 2, 3, "E1103", "not defined for a name"),
        ("${'a' and 1}", 1, 3, "E1103", "the condition is a text"),
        ("${1 if 1}", 1, 9, "E1201", "expected 'else'"),
        ("${'a}", 1, 1, "E1101", "without a '}'"),
        ("${'a' + 1}", 1, 3, "E1103", "not an integer"),
        ("${1 ~= 1}", 1, 3, "E1103", "not an expression of integers"),
        ("${'${A}'}", 1, 6, "E1102", "unknown parameter 'A'"),
        ('// param A = "x${B}"', 1, 18, "E1102", "unknown parameter 'B'"),
        ('// param A = "x${B"', 1, 16, "E1101", "without a '}' in its text"),
        ('// param A = "x" if 1 else "y"', 1, 14, "E1101", "has single quotes"),
        ("// param or = 1", 1, 10, "E1101", "name of an operator"),
        ("a\n// if X\n// end", 2, 7, "E1102", "unknown parameter 'X'"),
        ("// if the tile is ragged", 1, 11, "E1201", "begin prose with another word"),
        ("a\n  // if 1\nb", 2, 6, "E1105", "without an '// end'"),
        ("a\n// if 0\nb", 2, 4, "E1105", "without an '// end'"),
        ("a\n// end", 2, 4, "E1105", "without an '// if'"),
        ("// if 0\n// else\n// elif 1\n// end", 3, 4, "E1105", "after the '// else'"),
        ("// if 1\n// else\n// else\n// end", 3, 4, "E1105", "after the '// else'"),
        ("// if 0\n// else if 1\n// end", 2, 4, "E1105", "'// elif' has a condition"),
        ("// if 1\n" * 33, 33, 4, "E1104", "more than 32"),
        ("// if 0\n${X}\n// end\n  ${Y}", 4, 5, "E1102", "unknown parameter 'Y'"),
        ("// if 0\n// param A = 1\n// end\n${A}", 4, 3, "E1102", "unknown parameter 'A'"),
        ('// param A = 3\n// assert A % 2 == 0, "A = ${A} is odd"', 2, 11, "E1106", "A = 3 is odd"),
        ('// assert B, "x"', 1, 11, "E1102", "unknown parameter 'B'"),
        ('// assert 0, "${B}"', 1, 17, "E1102", "unknown parameter 'B'"),
        ('// assert 0 "x"', 1, 10, "E1101", "malformed assertion"),
        ("// assert 0", 1, 10, "E1101", "malformed assertion"),
        ('// assert 0, "x', 1, 10, "E1101", "malformed assertion"),
    ],
)
def test_faults_have_a_place(text: str, line: int, column: int, code: str, said: str) -> None:
    with pytest.raises(ProgramError) as caught:
        expand(text, "x.cute")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.place is not None
    assert (diagnostic.place.line, diagnostic.place.column, diagnostic.code) == (line, column, code)
    assert said in diagnostic.render()


def test_a_default_may_be_chosen_and_hold_parameters() -> None:
    text = (
        "// param SWZ = 'S<3,3,3>' if M == 64 else 'S<2,3,${N}>'\n// param L = \"(${M},${SWZ})\"\n"
        "// param U = bf16 if T == f16 else T\n"
    )
    assert body(text + "${SWZ} ${L} ${U}").splitlines()[3] == '"S<2,3,255>" "(128,S<2,3,255>)" bf16'
    assert body(text + "${L} ${U}", M="64", T="f32").splitlines()[3] == '"(64,S<3,3,3>)" f32'
    assert body(text + "${SWZ}", SWZ="${M}").splitlines()[3] == '"${M}"'  # as it is given


CHOICES = """\
// if T == f16
half
  // if M == 64
  half 64
  // end
// elif M == 64 // 1
other 64
// elif M / 3 == 1
never
// else
other
  // if 1
  // else
  never ${X}
  // end
  more
// end
last"""


@pytest.mark.parametrize(
    ("m", "t", "lines"),
    [
        ("64", "f16", ["half", "half 64", "last"]),
        ("128", "f16", ["half", "last"]),
        ("64", "f32", ["other 64", "last"]),
        ("126", "f32", ["other", "more", "last"]),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_lines_are_chosen(m: str, t: str, lines: list[str], newline: str) -> None:
    expanded = body(CHOICES.replace("\n", newline), M=m, T=t)
    assert [line.strip() for line in expanded.splitlines() if not line.strip().startswith("//")] == lines


def test_the_last_line_may_end_a_branch() -> None:
    assert body("// if 0\nx\n// end") == "// if 0\n// end"
    assert body('a // if 0\n"// if 0"') == 'a // if 0\n"// if 0"'  # not lines of their own
    assert body("// if-less\n//ifs\n// endless") == "// if-less\n//ifs\n// endless"


def test_what_is_left_out_is_neither_declared_nor_checked() -> None:
    text = '// if M == 64\n// param K = 1\n// assert 0, "no"\n// else\n// param K = 2\n// assert K, "no"\n// end\n${K}'
    assert body(text).endswith("\n2")
    with pytest.raises(ProgramError) as caught:
        body(text, M="64")
    assert caught.value.code == "E1106"


@pytest.mark.parametrize(
    ("given_values", "said"),
    [
        ({"M": "'x'"}, "not an integer"),
        ({"Q": "1"}, "does not declare it"),
        ({"M": "x"}, "unknown parameter 'x'"),
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
    doubled = "".join(f'// param A{i + 1} = "${{A{i}}}${{A{i}}}"\n' for i in range(100))
    with pytest.raises(ProgramError) as caught:
        expand('// param A0 = "xy"\n' + doubled, "x.cute")
    assert caught.value.code == "E1104"


PARTS = ["${M}", "${THR}", "$${", "ab ", "\n", '"', "λ", "// c\n", "${N - 1}", "${'a}' if M else T}"]
LINES = ["\n// if M\n", "\n// if 0\n", "\n // elif 1\n", "\n// else\n", "\n// end\n", "${1 / 0}", "${'", "${", "// if"]


def chosen(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Texts of the parts, and of branches around them that are closed."""
    texts = st.lists(parts, max_size=4).map("".join)
    words = st.sampled_from(["\n// else\n", "\n// elif M == 128\n", "\n// elif 0\n"])
    return st.builds("\n// if {}\n{}{}{}\n // end\n".format, st.sampled_from(["0", "M"]), texts, words, texts) | texts


@given(st.recursive(st.sampled_from(PARTS), chosen, max_leaves=30))
def test_places_point_into_the_original(written: str) -> None:
    text = HEAD + written
    source = expand(text, "x.cute")
    for at, character in enumerate(source.expanded):
        line, column = source.locate(at)
        original = text.split("\n")[line - 1] + "\n"
        if original[column - 1] != "$":  # a copied character: the same in both texts
            assert original[column - 1] == character


@given(st.lists(st.sampled_from(PARTS + LINES), max_size=20))
def test_any_text_is_expanded_or_refused_at_a_place(parts: list[str]) -> None:
    text = HEAD + "".join(parts)
    fault: ProgramError | None = None
    try:
        expand(text, "x.cute")
    except ProgramError as error:
        fault = error
    if fault is not None:
        place = fault.diagnostics[0].place
        assert place is not None
        assert place.text == text.split("\n")[place.line - 1]
        assert 1 <= place.column <= len(place.text) + 1  # one past the end where something is missing
