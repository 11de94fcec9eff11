# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The expression of the user's source that Python refused, and the objects in it."""

import ast
import linecache
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import ModuleType, TracebackType
from typing import Any, Final

_PACKAGE = __name__.partition(".")[0]
_SAFE = (
    ast.Name, ast.Constant, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Call,
    ast.keyword, ast.Starred, ast.UnaryOp, ast.BinOp, ast.Compare, ast.operator, ast.unaryop, ast.cmpop,
    ast.expr_context,
)  # fmt: skip
"""Expressions that may be evaluated again: they assign no variable and run no statement."""
_ITERATING = (ast.For, ast.comprehension, ast.Starred)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

UNKNOWN: Final = object()
"""The value of an expression that cannot be evaluated a second time, such as a call of the user's function."""


def is_of_package(value: object) -> bool:
    """Whether an object is a function, a class or a module of this package, or an instance of such a class."""
    if isinstance(value, ModuleType):
        return _in_package(value.__name__)
    own = getattr(value, "__module__", None) if isinstance(value, type) or hasattr(value, "__qualname__") else None
    return _in_package(own) or _in_package(type(value).__module__)


def _in_package(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] == _PACKAGE


@dataclass(frozen=True)
class RefusedExpression:
    """An expression that Python refused, the node around it, and the variables that it was evaluated with."""

    node: ast.AST
    parent: ast.AST | None
    names: Mapping[str, object]

    def value(self, node: ast.AST) -> Any:
        """The value of an expression, `UNKNOWN` where evaluating it again could do more than building the kernel."""
        for part in ast.walk(node):
            if not isinstance(part, _SAFE):
                return UNKNOWN
            if isinstance(part, ast.Call) and not is_of_package(self.value(part.func)):
                return UNKNOWN
        try:
            return eval(compile(ast.unparse(node), "<expression>", "eval"), dict(self.names))
        except Exception:
            return UNKNOWN

    def arguments(self, call: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a call by position and by name; expressions stand for those that are not unpacked. Raises
        TypeError if an argument that is unpacked is not known.
        """
        given: list[Any] = []
        named: dict[str, Any] = {}
        for argument in call.args:
            given += self.value(argument.value) if isinstance(argument, ast.Starred) else [argument]
        for keyword in call.keywords:
            named |= self.value(keyword.value) if keyword.arg is None else {keyword.arg: keyword.value}
        return given, named

    @property
    def iterated(self) -> ast.AST | None:
        """The expression whose elements Python asked for, if that is the fault."""
        if isinstance(self.node, ast.For):
            return self.node.iter
        if isinstance(self.node, _COMPREHENSIONS):
            return self.node.generators[0].iter
        if isinstance(self.node, ast.Starred):
            return self.node.value
        if isinstance(self.parent, _ITERATING):
            return self.node
        if isinstance(self.node, ast.List | ast.Tuple | ast.Set):
            return next((element.value for element in self.node.elts if isinstance(element, ast.Starred)), None)
        return None

    def operands(self) -> Iterator[ast.AST]:
        """The expressions that the refused one combines."""
        node = self.node
        if self.iterated is not None:
            yield self.iterated
        if isinstance(node, ast.With):
            yield from (item.context_expr for item in node.items)
        elif isinstance(self.parent, ast.withitem):
            yield node
        elif isinstance(node, ast.Tuple | ast.List) and isinstance(self.parent, ast.Assign):  # unpacked
            yield self.parent.value
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            yield from node.comparators
        elif isinstance(node, ast.Call):
            yield from node.args
            yield from (keyword.value for keyword in node.keywords)
        elif isinstance(node, ast.Subscript):
            yield node.value if is_of_package(self.value(node.value)) else node.slice
        elif self.iterated is None:
            yield from ast.iter_child_nodes(node)

    def values(self) -> Iterator[Any]:
        """The values of the operands, and those in operands that are tuples, lists or slices."""
        for operand in self.operands():
            nested = operand if isinstance(operand, ast.Tuple | ast.List | ast.Slice | ast.Starred) else None
            for part in (operand,) if nested is None else ast.iter_child_nodes(nested):
                if isinstance(part, ast.expr):
                    yield self.value(part)


def fault_at(traceback: TracebackType) -> RefusedExpression | None:
    """The expression at which an error was raised; None if the source is missing, or differs from the compiled one."""
    frame = traceback.tb_frame
    line, last, start, end = next(islice(frame.f_code.co_positions(), traceback.tb_lasti // 2, None), (None,) * 4)
    try:
        tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals)))
    except (SyntaxError, ValueError):
        return None
    exact: tuple[ast.AST, ast.AST] | None = None
    called: tuple[ast.AST, ast.AST] | None = None
    for parent in ast.walk(tree):
        for node in ast.iter_child_nodes(parent):
            if not isinstance(node, ast.expr | ast.AugAssign | ast.For | ast.With):
                continue
            ending = node.iter if isinstance(node, ast.For) else node  # a loop is placed at its head
            if (ending.end_lineno, ending.end_col_offset) != (last, end):
                continue
            if (node.lineno, node.col_offset) == (line, start):
                exact = node, parent
            elif isinstance(node, ast.Call):  # Python names a method's line, not that where the expression begins
                called = node, parent
    pair = exact or called
    return None if pair is None else RefusedExpression(*pair, {**frame.f_globals, **frame.f_locals})
