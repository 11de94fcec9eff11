# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The grammar of expressions: what it reads, and where it says that it cannot."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefold.dialects.run.grammar import (
    MAX_DEPTH,
    MAX_LENGTH,
    OPERATORS,
    Expression,
    ExpressionError,
    Near,
    parse_expression,
)


def written(node: Expression) -> str:
    """The expression with every operation in parentheses."""
    match node:
        case ast.Constant(value=str(text)):
            return f"'{text}'"
        case ast.Constant():
            return str(node.value)
        case ast.Name():
            return node.id
        case ast.UnaryOp():
            return f"({'-' if isinstance(node.op, ast.USub) else 'not '}{written(node.operand)})"
        case ast.BinOp():
            return f"({written(node.left)} {OPERATORS[type(node.op)][0]} {written(node.right)})"
        case ast.Compare(ops=[op], comparators=[right]):
            return f"({written(node.left)} {'~=' if isinstance(op, Near) else OPERATORS[type(op)][0]} {written(right)})"
        case ast.BoolOp():
            return "(" + f" {'and' if isinstance(node.op, ast.And) else 'or'} ".join(map(written, node.values)) + ")"
        case ast.IfExp():
            return f"({written(node.body)} if {written(node.test)} else {written(node.orelse)})"
        case ast.Tuple():
            return "(" + "".join(written(item) + "," for item in node.elts) + ")"
        case ast.Attribute():
            return f"transpose({written(node.value)})"
        case ast.Call():
            keywords = [f"{each.arg}={written(each.value)}" for each in node.keywords]
            return f"{written(node.func)}({', '.join([*map(written, node.args), *keywords])})"
        case ast.Subscript(slice=ast.Tuple(elts=indices)):
            return f"{written(node.value)}[{', '.join(map(written, indices))}]"
        case ast.Slice():
            return ":".join("" if part is None else written(part) for part in (node.lower, node.upper, node.step))
        case _:
            raise AssertionError(f"{node} is not in the grammar")


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
    assert written(parse_expression("lambda(None, in=is) + await")) == "(lambda(None, in=is) + await)"


@pytest.mark.parametrize(("text", "start"), [("a if b", 6), ("(a if b)", 7), ("a if (b else c)", 8)])
def test_a_choice_has_another_branch(text: str, start: int) -> None:
    with pytest.raises(ExpressionError, match=r"expected '(else|\))'") as caught:
        parse_expression(text, choices=True)
    assert caught.value.start == start


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
        ("+a", 0, "expected a number, a name"),
        ("a * ()", 5, "expected a number, a name"),
        ("a[b == c]", 4, "expected ']', found '=='"),
        ("a[1,]", 4, "expected a number, a name"),
        ("a[b, c=1]", 6, "expected ']', found '='"),
        ("f(1=2)", 3, "expected ')', found '='"),
        ("f(*a)", 2, "expected a number, a name"),
        ("f(1)(2)", 4, "expected an operator"),
        ("(a, b) + [c]", 9, "expected a number, a name"),
        ("a, b", 1, "expected an operator"),
        ("a[1 2 3]", 4, "expected ']', found '2'"),
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
        "-" * 250 + "1",
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
    assert isinstance(node, ast.BinOp)
    assert text[node.right.col_offset : node.right.end_col_offset] == "(b + 1)"
    assert node.end_col_offset == len(text)
