# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The class to which programs add steps on syntax trees (`cutlass.base_dsl.ast_preprocessor`).

Such steps take conditions of Python and of the kernel apart. Here each condition decides for itself while the kernel is
built, so that no step is needed and none is called.
"""

import ast

__all__ = ["DSLPreprocessor"]


class DSLPreprocessor(ast.NodeTransformer):
    """Leaves trees as they are."""

    def visit_If(self, node: ast.If) -> ast.AST:
        """The same branch."""
        return self.generic_visit(node)
