# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of a kernel that Python tests for truth: the error, with a cure in the words of the line.

Python asks so for `if`, `and`, `or`, `not` and comparisons in a chain, and no class can define these otherwise.
"""

import ast
from sys import _getframe  # pyright: ignore[reportPrivateUsage]
from types import FrameType
from typing import NoReturn

from ...base.errors import Code, TilefoldError
from .source import is_users, user_place


def refuse_truth(message: str, hint: str) -> NoReturn:
    """Raises TilefoldError (E5003). The hint is `hint`, unless the line combines conditions: then it is the expression
    by `&`, `|` and `~`, which combine predicates of every kind.
    """
    raise TilefoldError(Code.BUILD_RUN_TIME, message, _combined() or hint)


def refuse_presence(message: str, hint: str) -> NoReturn:
    """Raises TilefoldError (E5003) about an object that is neither true nor false."""
    raise TilefoldError(Code.BUILD_RUN_TIME, message, f"write `x is not None` to ask whether there is one; {hint}")


def is_compared_by_user() -> bool:
    """Whether the user's code has made the comparison that calls this, directly or by one that stands for Python's: not
    a function of ours, which looks at an argument of any kind.
    """
    frame: FrameType | None = _getframe(2)
    while frame is not None and frame.f_globals.get("STANDS_FOR_PYTHON"):
        frame = frame.f_back
    return frame is not None and is_users(frame)


def _combined() -> str:
    """A hint with the user's expression by operators that combine predicates; empty for another one."""
    place = user_place()
    if place is None or not place.end:
        return ""
    try:
        written = ast.parse(place.text[place.column - 1 : place.end - 1], mode="eval").body
    except SyntaxError:
        return ""
    keyword = _keyword(written)
    return f"write {ast.unparse(_predicate(written))}: {keyword} asks for one truth" if keyword else ""


def _keyword(node: ast.expr) -> str:
    if isinstance(node, ast.BoolOp):
        return f"Python's '{'and' if isinstance(node.op, ast.And) else 'or'}'"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return "Python's 'not'"
    return "a comparison in a chain" if isinstance(node, ast.Compare) and len(node.ops) > 1 else ""


def _predicate(node: ast.expr) -> ast.expr:
    """An expression as a predicate, whose parts are combined element by element."""
    if isinstance(node, ast.BoolOp):
        return _joined(ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr(), [*map(_predicate, node.values)])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ast.UnaryOp(ast.Invert(), _predicate(node.operand))
    if isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
        pairs = [
            ast.Compare(left, [sign], [right])
            for left, sign, right in zip(operands[:-1], node.ops, operands[1:], strict=True)
        ]
        return _joined(ast.BitAnd(), pairs)
    is_combined = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor)
    is_inverted = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert)
    return node if is_combined or is_inverted else ast.Compare(node, [ast.NotEq()], [ast.Constant(0)])


def _joined(sign: ast.operator, parts: "list[ast.expr] | list[ast.Compare]") -> ast.expr:
    result, *rest = parts
    for part in rest:
        result = ast.BinOp(result, sign, part)
    return result
