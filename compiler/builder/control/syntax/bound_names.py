# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which variables statements of Python bind or change."""

import ast
from collections.abc import Sequence


class Names(ast.NodeVisitor):
    """The variables that statements bind, and those whose elements or attributes they set."""

    def __init__(self) -> None:
        self.bound: set[str] = set()
        self.changed: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.bound.add(node.id)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._part(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._part(node)

    def _part(self, node: ast.Subscript | ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load):
            root: ast.expr = node
            while isinstance(root, ast.Subscript | ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name):
                self.changed.add(root.id)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.bound.add(node.name)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.bound.add(node.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        pass

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.visit(node.iter)  # its target is a variable of the comprehension
        for test in node.ifs:
            self.visit(test)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.bound.add(node.name)
        self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> None:
        self.bound.add((node.asname or node.name).partition(".")[0])

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self.bound.add(node.name)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self.bound.add(node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.bound.add(node.rest)
        self.generic_visit(node)


def names_in(body: Sequence[ast.AST]) -> Names:
    names = Names()
    for node in body:
        names.visit(node)
    return names


def assigned_names(body: Sequence[ast.AST]) -> set[str]:
    return names_in(body).bound
