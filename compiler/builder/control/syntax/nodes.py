# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nodes of Python's syntax trees: those of a function itself, new nodes and their places."""

import ast
from collections.abc import Iterable
from typing import Any, TypeVar, cast

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
        new: Any = transformer.visit(statement)
        statements += cast("list[ast.stmt]", new) if isinstance(new, list) else [] if new is None else [new]
    return statements


def scope(kind: type[Node], *parts: object) -> Node:
    """A node for a function or a class, as Python from 3.12 on wants them too."""
    made = kind(*parts)
    setattr(made, "type_params", [])  # noqa: B010  # not a field before
    return made
