# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The end of a thread as the `return` of the kernel's own function, so that the rest becomes a branch.

primitives.exit()               if __tilefold__.ends_thread(primitives.exit): return
                                else: primitives.exit()
"""

import ast
from collections.abc import Sequence

from .nodes import FUNCTIONS, is_call_of, place_like, visit_statements


def lower_exits(body: Sequence[ast.stmt], runtime: str) -> list[ast.stmt]:
    """The statements of a kernel, and those in them, with a `return` in place of a call that ends a thread.

    `runtime` is the name by which code reaches `dispatch`, which tells such a call from others of the same name.
    Functions within are left as they are.
    """
    return visit_statements(_Lowering(runtime), body)


class _Lowering(ast.NodeTransformer):
    def __init__(self, runtime: str) -> None:
        self.runtime = runtime

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, FUNCTIONS) or not isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            return node
        if not isinstance(node, ast.Expr):
            return self.generic_visit(node)
        call = node.value
        if not is_call_of(call, "exit") or call.args or call.keywords:
            return node
        chosen = ast.Attribute(ast.Name(self.runtime, ast.Load()), "ends_thread", ast.Load())
        return place_like(ast.If(ast.Call(chosen, [call.func], []), [ast.Return(ast.Constant(None))], [node]), node)
