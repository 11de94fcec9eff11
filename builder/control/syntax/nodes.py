# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nodes of Python's syntax trees: those of a function itself, the variables that they bind, new nodes and their
places.
"""

import ast
from collections.abc import Iterable, Sequence
from typing import TypeGuard, TypeVar, cast

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
"""Nodes with control flow of their own."""

Node = TypeVar("Node", bound=ast.AST)


def own_nodes(statement: ast.AST) -> list[ast.AST]:
    """A statement or expression and the nodes in it, without the functions in it."""
    if isinstance(statement, FUNCTIONS):
        return []
    nodes: list[ast.AST] = [statement]
    for child in ast.iter_child_nodes(statement):
        nodes += own_nodes(child)
    return nodes


def is_call_of(node: ast.expr, name: str) -> TypeGuard[ast.Call]:
    """Whether an expression calls a function of this name, also one of a module."""
    return isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == name


def place_like(node: Node, like: ast.AST) -> Node:
    """A new node with the place of another, as its parts without one."""
    ast.copy_location(node, like)
    for inner in ast.walk(node):
        if "lineno" in inner._attributes and getattr(inner, "lineno", None) is None:
            ast.copy_location(inner, like)
    return node


def parameters(*names: str) -> ast.arguments:
    """The parameters of a function that takes these."""
    given = [ast.arg(name) for name in names]
    return ast.arguments(posonlyargs=[], args=given, kwonlyargs=[], kw_defaults=[], defaults=[])


def visit_statements(transformer: ast.NodeTransformer, body: Iterable[ast.stmt]) -> list[ast.stmt]:
    """The statements that a transformer makes of each of these: none, one or several."""
    statements: list[ast.stmt] = []
    for statement in body:
        new = transformer.visit(statement)
        statements += cast("list[ast.stmt]", new) if isinstance(new, list) else [] if new is None else [new]
    return statements


def scope(kind: type[Node], *parts: object) -> Node:
    """A node for a function or a class, as Python from 3.12 on wants them too."""
    made = kind(*parts)
    setattr(made, "type_params", [])  # noqa: B010  # not a field before
    return made


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
