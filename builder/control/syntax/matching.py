# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`match` on literals as `if` and `elif`, so that it can be on a value of the kernel.

match n:                        __subject_1__ = n
    case 0 | 1:                 if __subject_1__ == 0 or __subject_1__ == 1:
        a()                         a()
    case x if x > 5:            else:
        b()                         x = __subject_1__
                                    if x > 5:
                                        b()
"""

import ast
from collections.abc import Sequence

from .nodes import FUNCTIONS, place_like, visit_statements


def lower_match(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements, and those in them, without `match` that compares with literals and binds names only.

    Other patterns take objects apart, which Python does. Functions within are left as they are.
    """
    return visit_statements(_Lowering(), body)


class _Lowering(ast.NodeTransformer):
    count = 0

    def visit(self, node: ast.AST) -> "ast.AST | list[ast.stmt]":
        if isinstance(node, FUNCTIONS) or not isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            return node
        self.generic_visit(node)
        if not isinstance(node, ast.Match) or not all(_is_simple(case.pattern) for case in node.cases):
            return node
        self.count += 1
        name = f"__subject_{self.count}__"
        start = ast.Assign([ast.Name(name, ast.Store())], node.subject)
        return [place_like(start, node.subject), *_chain(node.cases, name)]


def _is_simple(pattern: ast.pattern) -> bool:
    """Whether a pattern compares with literals, or takes everything."""
    match pattern:
        case ast.MatchValue() | ast.MatchSingleton() | ast.MatchAs(pattern=None):
            return True
        case ast.MatchOr():
            return all(isinstance(alternative, ast.MatchValue | ast.MatchSingleton) for alternative in pattern.patterns)
        case _:
            return False


def _chain(cases: Sequence[ast.match_case], name: str) -> list[ast.stmt]:
    if not cases:
        return []
    case, rest = cases[0], _chain(cases[1:], name)
    test, bound = _test(case.pattern, name), getattr(case.pattern, "name", None)
    body = case.body
    if bound is not None:
        binding = ast.Assign([ast.Name(bound, ast.Store())], ast.Name(name, ast.Load()))
        guarded = body if case.guard is None else [place_like(ast.If(case.guard, body, rest), case.guard)]
        return [place_like(binding, case.pattern), *guarded]
    if test is None:
        return body if case.guard is None else [place_like(ast.If(case.guard, body, rest), case.guard)]
    if case.guard is not None:
        test = place_like(ast.BoolOp(ast.And(), [test, case.guard]), case.pattern)
    return [place_like(ast.If(test, body, rest), case.pattern)]


def _test(pattern: ast.pattern, name: str) -> ast.expr | None:
    """The condition on the subject; None for a pattern that takes everything."""
    subject = ast.Name(name, ast.Load())
    match pattern:
        case ast.MatchValue():
            return place_like(ast.Compare(subject, [ast.Eq()], [pattern.value]), pattern)
        case ast.MatchSingleton():
            return place_like(ast.Compare(subject, [ast.Is()], [ast.Constant(pattern.value)]), pattern)
        case ast.MatchOr():
            tests = [test for alternative in pattern.patterns if (test := _test(alternative, name)) is not None]
            return place_like(ast.BoolOp(ast.Or(), tests), pattern)
        case _:
            return None
