# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which statements of Python are never followed by the next one, as their text says."""

import ast
from collections.abc import Iterator, Sequence

from .nodes import FUNCTIONS, own_nodes

LEAVING = (ast.Break, ast.Continue, ast.Return)
"""Statements that leave a loop, an iteration or a function."""


def may_leave(body: Sequence[ast.stmt]) -> bool:
    """Whether there is a `break`, `continue` or `return` in statements."""
    return any(isinstance(node, LEAVING) for statement in body for node in own_nodes(statement))


def always_leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether nothing that follows these statements is executed after them."""
    return any(leaves(statement) for statement in body)


def leaves(statement: ast.stmt) -> bool:
    """Whether the next statement is never executed after this one. Not so of `with`, which may suppress exceptions."""
    match statement:
        case ast.Break() | ast.Continue() | ast.Return() | ast.Raise():
            return True
        case ast.If():
            return always_leaves(statement.body) and always_leaves(statement.orelse)
        case ast.For() | ast.While():
            endless = isinstance(statement, ast.While) and _is_true(statement.test)
            return (endless or always_leaves(statement.orelse)) and not any(map(_breaks, statement.body))
        case ast.Match():
            patterns = statement.cases[-1]
            is_complete = patterns.guard is None and _matches_all(patterns.pattern)
            return is_complete and all(always_leaves(case.body) for case in statement.cases)
        case ast.Try() | ast.TryStar():
            ends = always_leaves(statement.body) or always_leaves(statement.orelse)
            caught = all(always_leaves(handler.body) for handler in statement.handlers)
            return always_leaves(statement.finalbody) or (ends and caught)
        case _:
            return False


def is_endless(loop: ast.While) -> bool:
    """Whether a loop without `break` and `return` never ends, as its text says: no exception ends it either, if no
    function that it calls raises one.
    """
    raising = (ast.Raise, ast.Try, ast.TryStar, ast.Yield, ast.YieldFrom, ast.Await)
    return _is_true(loop.test) and not any(isinstance(node, raising) for part in loop.body for node in own_nodes(part))


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


def _breaks(node: ast.stmt) -> bool:
    """Whether there is a `break` of the loop around a statement."""
    return any(isinstance(statement, ast.Break) for statement in leaves_around(node))


def leaves_around(node: ast.AST) -> Iterator[ast.Break | ast.Continue | ast.Return]:
    """The statements that leave a statement: `return` in it, and the `break` and `continue` of the loop around it."""
    if isinstance(node, ast.Break | ast.Continue | ast.Return):
        yield node
    elif not isinstance(node, FUNCTIONS):
        body: Sequence[ast.AST] = node.body if isinstance(node, ast.For | ast.While) else ()
        for child in ast.iter_child_nodes(node):
            within = leaves_around(child)
            yield from (statement for statement in within if child not in body or isinstance(statement, ast.Return))


def _matches_all(pattern: ast.pattern) -> bool:
    if isinstance(pattern, ast.MatchOr):
        return any(map(_matches_all, pattern.patterns))
    return isinstance(pattern, ast.MatchAs) and (pattern.pattern is None or _matches_all(pattern.pattern))
