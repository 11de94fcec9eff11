# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No decision rests on the words of an exception: they change with the version of Python and NumPy."""

import ast
from collections.abc import Iterator
from types import MappingProxyType

import pytest

from tests.project.tree import ROOT, parsed, product_files, walk

READS = MappingProxyType({
    "compiler/frontend/program.py": "xDSL's parser raises one type of error, told apart by its message alone",
    "compiler/frontend/verify.py": "xDSL's verifiers raise one type of error; rule_errors words their messages anew",
})  # fmt: skip
"""The files that read the words of an exception, and why they must."""

_TESTS = {
    "startswith", "endswith", "find", "index", "count", "match", "fullmatch", "search", "findall", "finditer",
    "removeprefix", "partition", "rpartition",
}  # fmt: skip
"""Methods whose result depends on words. Those that only shorten what is shown, such as `split`, are not among them."""
_SHOWS = {"print", "str", "repr", "len", "next", "super", "getattr", "spell_in_python", "message_text"}
"""Functions that may be given words. Other functions may that make an error, by their names."""


def decisions(tree: ast.AST) -> Iterator[int]:
    """The lines on which code compares the words of an exception, or looks for something in them."""
    for function in walk(tree):
        if isinstance(function, ast.FunctionDef | ast.Lambda | ast.Module):
            yield from _decisions(function)


def _decisions(function: ast.AST) -> Iterator[int]:
    errors = set(_exceptions(function))
    if not errors:
        return
    texts = {
        target.id
        for node in walk(function)
        if isinstance(node, ast.Assign) and _is_text(node.value, errors, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in walk(function):
        if isinstance(node, ast.Call):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            match node.func:
                case ast.Attribute(value=value, attr=name):
                    decides = name in _TESTS
                    given.append(value)
                case ast.Name(id=name):
                    decides = name.lstrip("_")[:1].islower() and not (name in _SHOWS or name.endswith("error"))
                case _:
                    decides = True
            if decides and any(_is_text(part, errors, texts) for part in given):
                yield node.lineno
        elif isinstance(node, ast.Compare) and any(
            _is_text(part, errors, texts) for part in [node.left, *node.comparators]
        ):
            yield node.lineno


def _exceptions(function: ast.AST) -> Iterator[str]:
    """The names of a function that stand for exceptions."""
    for node in walk(function):
        if isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name
        elif isinstance(node, ast.arg) and node.annotation and any(map(_names_an_error, walk(node.annotation))):
            yield node.arg


def _names_an_error(part: ast.AST) -> bool:
    match part:
        case ast.Name(id=word) | ast.Attribute(attr=word) | ast.Constant(value=str(word)):
            return "Error" in word or "Exception" in word
        case _:
            return False


def _is_text(node: ast.AST, errors: set[str], texts: set[str]) -> bool:
    """Whether an expression is the words of an exception: `str(error)`, `error.args[0]`, `error.message`, `error.msg`,
    what a method of a string makes of them, or a variable that holds them.
    """
    match node:
        case ast.Name(id=name):
            return name in texts
        case ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Name(id=name)]):
            return name in errors
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="args")):
            return name in errors
        case ast.Attribute(value=ast.Name(id=name), attr="message" | "msg"):
            return name in errors
        case ast.Subscript(value=value) | ast.Call(func=ast.Attribute(value=value)):
            return _is_text(value, errors, texts)
        case ast.JoinedStr(values=values):
            return any(isinstance(part, ast.FormattedValue) and _is_text(part.value, errors, texts) for part in values)
        case _:
            return False


def test_no_decision_rests_on_the_words_of_an_exception() -> None:
    for path in product_files():
        name, lines = str(path.relative_to(ROOT)), sorted(set(decisions(parsed(path))))
        if name in READS:
            assert lines, f"{name} need not be listed"
        else:
            assert not lines, name


@pytest.mark.parametrize(
    "code",
    [
        "if 'operand' in str(error): pass",
        "re.match('unsupported', str(error))",
        "str(error).startswith('a')",
        "error.args[0] == 'b'",
        "message = str(error)\n    if message.split()[0] == 'c': pass",
        "explain(str(error))",
        "error.message.startswith('the value layout')",
    ],
)
def test_a_decision_by_words_is_seen(code: str) -> None:
    caught = f"try:\n    f()\nexcept TypeError as error:\n    {code}\n"
    assert list(decisions(ast.parse(caught)))
    given = f"def g(error: Exception):\n    {code}\n"
    assert list(decisions(ast.parse(given)))
    assert not list(decisions(ast.parse("try:\n    f()\nexcept TypeError as error:\n    print(str(error))\n")))
