# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`with elect_one():` as `if`, so that the body for the elected lane is a branch of the kernel.

with cute.arch.elect_one():     if __tilefold__.elected(cute.arch.elect_one()):
    a()                             a()
"""

import ast
from collections.abc import Sequence

from .nodes import FUNCTIONS, is_call_of, place_like, visit_statements


def lower_elected(body: Sequence[ast.stmt], runtime: str) -> list[ast.stmt]:
    """The statements, and those in them, without `with` on a call of `elect_one`.

    `runtime` is the name by which code reaches `dispatch`. Functions within are left as they are.
    """
    return visit_statements(_Lowering(runtime), body)


class _Lowering(ast.NodeTransformer):
    def __init__(self, runtime: str) -> None:
        self.runtime = runtime

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, FUNCTIONS) or not isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            return node
        self.generic_visit(node)
        if not isinstance(node, ast.With) or len(node.items) != 1:
            return node
        (item,) = node.items
        if item.optional_vars is not None or not is_call_of(item.context_expr, "elect_one"):
            return node
        chosen = ast.Attribute(ast.Name(self.runtime, ast.Load()), "elected", ast.Load())
        test = place_like(ast.Call(chosen, [item.context_expr], []), item.context_expr)
        return place_like(ast.If(test, node.body, []), node)
