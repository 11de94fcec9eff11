# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`break`, `continue` and `return` as flags: after this step, a function leaves loops and itself only at its end.

The statements after one that may leave move to a place that is reached only if nothing has left: the other branch of an
`if` with a branch that always leaves, or a test of the flags. A flag is an ordinary variable: it stays a Python `bool`
where Python decides, and becomes a predicate where the kernel decides.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...tracing.source import RESULT
from .leaving import always_leaves, leaves, may_leave
from .nodes import FUNCTIONS, own_nodes, place_like, visit_statements

JUMPS = frozenset((ast.Return, ast.Raise, ast.For, ast.While))
"""The statements that this looks for: those that leave, and loops, which may have an `else`."""

RETURNED = "__returned__"
PENDING = "PENDING"
"""The name, in `dispatch`, of the result of a function that has not returned yet."""


@dataclass(frozen=True)
class _Lowered:
    """Statements, the flags that they may set, and whether they always leave."""

    body: list[ast.stmt]
    flags: frozenset[str] = frozenset()
    leaves: bool = False


@dataclass
class _Names:
    """Numbers for the flags of a function's loops, and the loops around a statement."""

    count: int = 0
    loops: list[tuple[str, str]] = field(default_factory=lambda: [])


def lower_flow(function: ast.FunctionDef, runtime: str) -> dict[ast.stmt, str]:
    """Replaces the `break`, `continue` and `return` of a function, not those of functions within it.

    Returns, for each loop that can be left early, the name of the flag that says so. `runtime` is the name by which
    the code reaches the functions that it calls.
    """
    flags: dict[ast.stmt, str] = {}
    body = function.body
    returns = [node for statement in body for node in own_nodes(statement) if isinstance(node, ast.Return)]
    only_last = len(returns) == 1 and returns[0] is body[-1]
    if returns and not only_last and any(node.value is not None for node in returns):
        body = [*body, place_like(ast.Return(None), body[-1])]  # Python's own: None at the end
    lowered = (
        _block(body, _Names(), flags)
        if not only_last
        else _Lowered([*_block(body[:-1], _Names(), flags).body, body[-1]])
    )
    new = lowered.body
    if returns and not only_last:
        pending = ast.Attribute(ast.Name(runtime, ast.Load()), PENDING, ast.Load())
        start = [_assign(RETURNED, ast.Constant(False), body[0]), _assign(RESULT, pending, body[0])]
        new = [*start, *new, place_like(ast.Return(ast.Name(RESULT, ast.Load())), body[-1])]
    function.body = _without_unread(new, set(flags.values()))
    return flags


def _block(body: Sequence[ast.stmt], names: _Names, flags: dict[ast.stmt, str]) -> _Lowered:
    done: list[ast.stmt] = []
    leaving: frozenset[str] = frozenset()
    for index, statement in enumerate(body):
        rest = body[index + 1 :]
        match statement:
            case ast.Break() | ast.Continue() | ast.Return():
                set_flags = _leave(statement, names)
                return _Lowered([*done, *set_flags[0]], leaving | set_flags[1], True)
            case ast.If():
                branch = _branch(statement, rest, names, flags)
                if branch is not None:
                    return _Lowered([*done, *branch.body], leaving | branch.flags, branch.leaves)
                then, other = _block(statement.body, names, flags), _block(statement.orelse, names, flags)
                statement.body, statement.orelse = then.body, other.body
                inner = _Lowered([statement], then.flags | other.flags, then.leaves and other.leaves)
            case ast.For() | ast.While():
                inner = _loop(statement, names, flags)
            case ast.With() | ast.Try() | ast.TryStar() | ast.Match():
                inner = _compound(statement, names, flags)
            case ast.Raise():
                return _Lowered([*done, statement], leaving, True)
            case _:
                done.append(statement)
                continue
        done += inner.body
        leaving |= inner.flags
        if inner.leaves:
            return _Lowered(done, leaving, True)
        if inner.flags and rest:
            after = _block(rest, names, flags)
            guard = place_like(ast.If(_stays(inner.flags, names, statement), after.body, []), rest[0])
            return _Lowered([*done, guard], leaving | after.flags, False)
    return _Lowered(done, leaving)


def _branch(statement: ast.If, rest: Sequence[ast.stmt], names: _Names, flags: dict[ast.stmt, str]) -> _Lowered | None:
    """An `if` with a branch that always leaves, with the rest in the other branch; None for any other `if`."""
    if always_leaves(statement.body) and may_leave(statement.body):
        then = _block(statement.body, names, flags)
        other = _block([*statement.orelse, *rest], names, flags)
    elif always_leaves(statement.orelse) and may_leave(statement.orelse):
        then = _block([*statement.body, *rest], names, flags)
        other = _block(statement.orelse, names, flags)
    else:
        return None
    statement.body, statement.orelse = then.body, other.body
    return _Lowered([statement], then.flags | other.flags, then.leaves and other.leaves)


def _loop(statement: ast.For | ast.While, names: _Names, flags: dict[ast.stmt, str]) -> _Lowered:
    is_last = leaves(statement)
    names.count += 1
    stop, skip = f"__break_{names.count}__", f"__continue_{names.count}__"
    names.loops.append((stop, skip))
    body = _block(statement.body, names, flags)
    names.loops.pop()
    before: list[ast.stmt] = []
    after: list[ast.stmt] = []
    statement.body = body.body
    if skip in body.flags:
        statement.body = [_assign(skip, ast.Constant(False), statement), *statement.body]
    orelse = _block(statement.orelse, names, flags)
    if stop in body.flags:
        flags[statement] = stop
        before = [_assign(stop, ast.Constant(False), statement)]
        if orelse.body:
            after = [place_like(ast.If(_none_of([stop], statement), orelse.body, []), statement)]
    else:
        after = orelse.body
    statement.orelse = []
    return _Lowered([*before, statement, *after], (body.flags - {stop, skip}) | orelse.flags, is_last)


def _compound(statement: ast.stmt, names: _Names, flags: dict[ast.stmt, str]) -> _Lowered:
    """`with`, `try` and `match`: each of their lists of statements by itself."""
    leaving: frozenset[str] = frozenset()
    is_last = leaves(statement)
    parts: list[ast.AST] = [statement, *getattr(statement, "handlers", []), *getattr(statement, "cases", [])]
    for part in parts:
        for name in ("body", "orelse", "finalbody"):
            inner: list[ast.stmt] = getattr(part, name, [])
            if inner:
                lowered = _block(inner, names, flags)
                body = lowered.body
                if name == "orelse" and leaving:  # of a `try`, whose body may have left
                    body = [place_like(ast.If(_stays(leaving, names, inner[0]), body, []), inner[0])]
                setattr(part, name, body)
                leaving |= lowered.flags
    return _Lowered([statement], leaving, is_last)


def _leave(statement: ast.Break | ast.Continue | ast.Return, names: _Names) -> tuple[list[ast.stmt], frozenset[str]]:
    """The statements that replace one that leaves, and the flags that they set."""
    if isinstance(statement, ast.Return):
        stops = [stop for stop, _ in names.loops]
        value = statement.value or place_like(ast.Constant(None), statement)
        result = [_assign(RESULT, value, statement)]
        set_flags = [RETURNED, *stops]
    else:
        stop, skip = names.loops[-1]
        result, set_flags = [], [stop if isinstance(statement, ast.Break) else skip]
    return [*result, *(_assign(flag, ast.Constant(True), statement) for flag in set_flags)], frozenset(set_flags)


def _stays(flags: frozenset[str], names: _Names, like: ast.AST) -> ast.expr:
    """Whether the statements that may set these flags have not left."""
    # a return leaves all loops, so that within one its own flags say everything
    return _none_of(sorted(flags & set(names.loops[-1])) if names.loops else [RETURNED], like)


def _none_of(flags: Sequence[str], like: ast.AST) -> ast.expr:
    """`not (a or b)` of the flags."""
    names: list[ast.expr] = [ast.Name(flag, ast.Load()) for flag in flags]
    return place_like(ast.UnaryOp(ast.Not(), names[0] if len(names) == 1 else ast.BoolOp(ast.Or(), names)), like)


def _assign(name: str, value: ast.expr, like: ast.AST) -> ast.stmt:
    return place_like(ast.Assign([ast.Name(name, ast.Store())], value), like)


def _without_unread(body: list[ast.stmt], kept: set[str]) -> list[ast.stmt]:
    """Leaves out the flags that nothing reads, other than those in `kept`, so that the kernel does not carry them."""
    read = {
        node.id for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name) and _loads(node)
    }
    return _Unread(read | kept).lists(body)


def _loads(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


class _Unread(ast.NodeTransformer):
    def __init__(self, read: set[str]) -> None:
        self.read = read

    def lists(self, body: list[ast.stmt]) -> list[ast.stmt]:
        statements = visit_statements(self, body)
        return statements or [place_like(ast.Pass(), body[0])] if body else []

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | None:
        target = node.targets[0]
        if isinstance(target, ast.Name) and _is_flag(target.id) and target.id not in self.read:
            return None
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, FUNCTIONS):
            return node
        for name in ("body", "orelse", "finalbody"):
            inner: list[ast.stmt] = getattr(node, name, [])
            if inner:
                setattr(node, name, self.lists(inner))
        for name in ("handlers", "cases"):
            for part in getattr(node, name, []):
                self.generic_visit(part)
        return node


def _is_flag(name: str) -> bool:
    return name == RETURNED or name.startswith(("__break_", "__continue_"))
