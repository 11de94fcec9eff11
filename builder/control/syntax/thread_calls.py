# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls that decide which threads go on, as branches of the kernel: the end of a thread, and the elected lane.

primitives.exit()               if __tilefold__.ends_thread(primitives.exit): return
                                else: primitives.exit()

with cute.arch.elect_one():     if __tilefold__.elected(cute.arch.elect_one()):
    a()                             a()
"""

import ast
from collections.abc import Sequence

from .nodes import FUNCTIONS, is_call_of, place_like, visit_statements


def lower_exits(body: Sequence[ast.stmt], runtime: str) -> list[ast.stmt]:
    """The statements of a kernel, and those in them, with a `return` in place of a call that ends a thread.

    `runtime` is the name by which code reaches `dispatch`, which tells such a call from others of the same name.
    Functions within are left as they are.
    """
    return visit_statements(_Exits(runtime), body)


def lower_elected(body: Sequence[ast.stmt], runtime: str) -> list[ast.stmt]:
    """The statements, and those in them, without `with` on a call of `elect_one`.

    `runtime` is the name by which code reaches `dispatch`. Functions within are left as they are.
    """
    return visit_statements(_Elected(runtime), body)


class _Statements(ast.NodeTransformer):
    """Visits the statements of one function, and asks `dispatch` about the calls in them."""

    def __init__(self, runtime: str) -> None:
        self._runtime = runtime

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, FUNCTIONS) or not isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            return node
        return super().visit(node)

    def ask(self, function: str, argument: ast.expr) -> ast.Call:
        """A call of a function of `dispatch`."""
        return ast.Call(ast.Attribute(ast.Name(self._runtime, ast.Load()), function, ast.Load()), [argument], [])


class _Exits(_Statements):
    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        call = node.value
        if not is_call_of(call, "exit") or call.args or call.keywords:
            return node
        ends = self.ask("ends_thread", call.func)
        return place_like(ast.If(ends, [ast.Return(ast.Constant(None))], [node]), node)


class _Elected(_Statements):
    def visit_With(self, node: ast.With) -> ast.AST:
        self.generic_visit(node)
        call = node.items[0].context_expr
        if len(node.items) != 1 or node.items[0].optional_vars is not None or not is_call_of(call, "elect_one"):
            return node
        return place_like(ast.If(place_like(self.ask("elected", call), call), node.body, []), node)
