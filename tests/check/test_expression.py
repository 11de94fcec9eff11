# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The grammar of expressions: what it reads, and where it says that it cannot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefold.dialects.run.expression import MAX_DEPTH, MAX_LENGTH, ExpressionError, parse_expression
from tilefold.dialects.run.expression_tree import (
    And,
    Binary,
    Call,
    Compare,
    Conditional,
    Expression,
    Name,
    Negate,
    Not,
    Number,
    Or,
    Quoted,
    Slice,
    Subscript,
    Tuple,
)


def written(node: Expression | Slice) -> str:
    """The expression with every operation in parentheses."""
    match node:
        case Number():
            return str(node.value)
        case Name():
            return node.name
        case Negate():
            return f"(-{written(node.operand)})"
        case Binary() | Compare():
            return f"({written(node.left)} {node.op} {written(node.right)})"
        case And():
            return "(" + " and ".join(map(written, node.parts)) + ")"
        case Or():
            return "(" + " or ".join(map(written, node.parts)) + ")"
        case Not():
            return f"(not {written(node.operand)})"
        case Conditional():
            return f"({written(node.value)} if {written(node.condition)} else {written(node.otherwise)})"
        case Quoted():
            return f"'{node.text}'"
        case Tuple():
            return "(" + "".join(written(item) + "," for item in node.items) + ")"
        case Call():
            keywords = [f"{name}={written(value)}" for name, value in node.keywords]
            return f"{node.name}({', '.join([*map(written, node.arguments), *keywords])})"
        case Subscript():
            return f"{written(node.value)}[{', '.join(map(written, node.indices))}]"
        case Slice():
            parts = [node.lower, node.upper, node.step]
            return ":".join("" if part is None else written(part) for part in parts)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a + b * c - d", "((a + (b * c)) - d)"),
        ("-a ** 2", "(-(a ** 2))"),
        ("a ** -b ** c", "(a ** (-(b ** c)))"),
        ("a @ b.T", "(a @ transpose(b))"),
        ("a // 2 % 3", "((a // 2) % 3)"),
        ("B == A and C ~= A", "((B == A) and (C ~= A))"),
        ("A[0:2, ::3, -1]", "A[0:2:, ::3, (-1)]"),
        ("f(1, (2, 3), seed=0x10)", "f(1, (2,3,), seed=16)"),
        ("(1,)", "(1,)"),
        ("1.5e3 + .5", "(1500.0 + 0.5)"),
        ("(a <= b) * 2", "((a <= b) * 2)"),
    ],
)
def test_reads(text: str, meaning: str) -> None:
    assert written(parse_expression(text)) == meaning


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a or b and not c == d", "(a or (b and (not (c == d))))"),
        ("a if b or c else d if not e else 'f g'", "(a if (b or c) else (d if (not e) else 'f g'))"),
        ("(a if b else c) + min(1, 2 if d else 3)", "((a if b else c) + min(1, (2 if d else 3)))"),
    ],
)
def test_reads_the_choices_of_parameters(text: str, meaning: str) -> None:
    assert written(parse_expression(text, choices=True)) == meaning
    assert written(parse_expression(meaning, choices=True)) == meaning
    with pytest.raises(ExpressionError):
        parse_expression(text)


def test_words_of_choices_are_names_elsewhere() -> None:
    assert written(parse_expression("not == or + if")) == "(not == (or + if))"


@pytest.mark.parametrize("text", ["not " * 40 + "a", "a if b else " * 40 + "c", "(" * 40 + "1" + ")" * 40])
def test_the_depth_of_choices_is_bounded(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text, choices=True)
    assert caught.value.code == "E1202"


@pytest.mark.parametrize(
    ("text", "start", "said"),
    [
        ("", 0, "expected a number, a name"),
        ("B ==", 4, "found the end"),
        ("a == b == c", 7, "'and' between two comparisons"),
        ("A[1", 3, "expected ']'"),
        ("f(a=1, 2)", 7, "positional arguments come first"),
        ("f(a=1, a=2)", 7, "expected 'a' once"),
        ("1 2", 2, "expected an operator"),
        ("A.shape", 2, "expected 'T'"),
        ("__import__('os')", 11, "no meaning"),
        ("a; b", 1, "no meaning"),
        ("λ", 0, "no meaning"),
        ("a\nb", 1, "no meaning"),
        ("1" * 50, 0, "a number of 50 characters"),
        ("lambda x: x", 7, "expected an operator"),
        ("a if b else c", 2, "expected an operator"),
    ],
)
def test_points_at_the_fault(text: str, start: int, said: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)
    assert said in caught.value.message
    assert caught.value.start == start
    assert caught.value.end > start


@pytest.mark.parametrize(
    "text",
    [
        "a" * (MAX_LENGTH + 1),
        "(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1),
        "-" * 300 + "1",
        "f(" * 100,
        "a[" * 100,
        "1" + "**1" * 200,
        "1" + "+1" * 500,
        "a" + ".T" * 500,
    ],
)
def test_size_is_bounded(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)
    assert caught.value.code == "E1202"


@given(st.text(alphabet="abT01.+-*/%@()[],:=~!<> and", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    node: Expression | None = None
    fault: ExpressionError | None = None
    try:
        node = parse_expression(text)
    except ExpressionError as error:
        fault = error
    if node is not None:
        assert written(parse_expression(written(node))) == written(node)
    else:
        assert fault is not None
        assert 0 <= fault.start <= len(text)
        assert fault.start < fault.end


def test_parentheses_belong_to_what_they_enclose() -> None:
    text = "a * (b + 1)"
    node = parse_expression(text)
    assert isinstance(node, Binary)
    assert text[node.right.start : node.right.end] == "(b + 1)"
    assert node.end == len(text)
