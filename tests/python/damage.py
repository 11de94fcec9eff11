# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Damages functions of Python in their syntax trees, so that the result is still Python."""

import ast
import warnings
from contextlib import suppress
from copy import deepcopy
from random import Random
from typing import Any, cast

_CONSTANTS: tuple[Any, ...] = (
    0, 1, -1, 2, 3, 5, 7, 31, 32, 1000, 2**31, 2**63, 2**70, 0.5, 1e300, True, None, "x", "", b"x", ...,
)  # fmt: skip
_EXPRESSIONS = (
    "t", "n", "out", "-t", "cute", "cute.arch", "cute.Float16", "cute.Float32", "cute.Int32(3)", "cute.Uint8(7)",
    "cute.Boolean(True)", "cute.ReductionOp.ADD", "cute.range(4)", "range(3)", "[1, 2]", "(2, 3)", "()", "{'a': 1}",
    "lambda x: x",
    "object()", "slice(0, 2)", "float('inf')", "cute.make_layout((4, 8))", "cute.make_swizzle(2, 3, 3)",
    "cute.full((4,), 1, cute.Float32)", "cute.make_rmem_tensor((4,), cute.Float32)", "cute.arch.thread_idx()",
    "cute.make_smem_tensor((8,), cute.Int8)", "cute.make_identity_tensor((4, 8))",
    "cute.make_tiled_mma('UniversalFMA<float>')",
)  # fmt: skip
_OPERATORS = (
    ast.Add(), ast.Sub(), ast.Mult(), ast.Div(), ast.FloorDiv(), ast.Mod(), ast.Pow(), ast.LShift(), ast.RShift(),
    ast.BitAnd(), ast.BitOr(), ast.BitXor(), ast.MatMult(),
)  # fmt: skip
_COMPARISONS = (ast.Lt(), ast.LtE(), ast.Eq(), ast.NotEq(), ast.Is(), ast.IsNot(), ast.In(), ast.NotIn())


def damaged(random: Random, text: str, functions: frozenset[str]) -> str:
    """The text with one to three changes in the functions of these names."""
    while True:
        tree = ast.parse(text)
        parts = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name in functions]
        for _ in range(random.randrange(1, 4)):
            _change(random, [node for part in parts for each in part.body for node in ast.walk(each)])
        with warnings.catch_warnings(), suppress(SyntaxError, ValueError):  # of a 'break' outside its loop, say
            warnings.simplefilter("ignore")
            result = ast.unparse(ast.fix_missing_locations(tree))
            compile(result, "<damaged>", "exec")
            return result


def _change(random: Random, nodes: list[ast.AST]) -> None:
    """Changes one of the nodes: a statement or an expression in it is lost, doubled, exchanged or replaced."""
    fields: list[Any] = [getattr(node, name, None) for node in nodes for name in ("body", "orelse")]
    bodies: list[list[Any]] = [body for body in fields if isinstance(body, list)]
    match random.randrange(4):
        case 0 if bodies:
            _change_body(random, random.choice(bodies))
        case 1:
            _change_word(random, random.choice(nodes), nodes)
        case _:
            _change_expression(random, nodes)


def _change_body(random: Random, body: list[Any]) -> None:
    if not body:
        return
    at, other = random.randrange(len(body)), random.randrange(len(body))
    match random.randrange(3):
        case 0:
            body[at] = ast.Pass()
        case 1:
            body.insert(other, deepcopy(body[at]))
        case _:
            body[at], body[other] = body[other], body[at]


def _change_word(random: Random, node: Any, nodes: list[ast.AST]) -> None:
    """Changes a name, an attribute's name, a constant or an operator, or the number of arguments."""
    match node:
        case ast.Name():
            node.id = random.choice([each.id for each in nodes if isinstance(each, ast.Name)])
        case ast.Attribute():
            node.attr = random.choice([each.attr for each in nodes if isinstance(each, ast.Attribute)])
        case ast.Constant():
            node.value = random.choice(_CONSTANTS)
        case ast.BinOp() | ast.AugAssign():
            node.op = random.choice(_OPERATORS)
        case ast.Compare():
            node.ops[0] = random.choice(_COMPARISONS)
        case ast.Call(args=[_, *_]):
            if random.random() < 0.5:
                del node.args[random.randrange(len(node.args))]
            else:
                random.shuffle(node.args)
        case ast.keyword():
            node.arg = random.choice([each.arg for each in nodes if isinstance(each, ast.keyword)])
        case _:
            pass


def _change_expression(random: Random, nodes: list[ast.AST]) -> None:
    """Puts another expression of the functions, or a strange one, in the place of one."""
    places: list[tuple[Any, str, int | None]] = []
    for node in nodes:
        for name, value in ast.iter_fields(node):
            several: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
            for at, each in enumerate(several):
                if isinstance(each, ast.expr) and isinstance(getattr(each, "ctx", ast.Load()), ast.Load):
                    places.append((node, name, at if isinstance(value, list) else None))
    if not places:
        return
    node, name, at = random.choice(places)
    if random.random() < 0.4:
        new: Any = ast.parse(random.choice(_EXPRESSIONS), mode="eval").body
    else:
        other, field, index = random.choice(places)
        new = deepcopy(getattr(other, field) if index is None else getattr(other, field)[index])
    if at is None:
        setattr(node, name, new)
    else:
        getattr(node, name)[at] = new
