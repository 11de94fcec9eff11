# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The control flow of a function as calls of `dispatch`, which decide while the kernel is built who executes it.

The body of a statement becomes a function within the function, whose variables are the same (`nonlocal`); an operand
that may not be evaluated becomes a lambda:

    if n > 0:                       def __then_1__():
        x = 1                           nonlocal x
                                        x = 1
                                    def __else_1__(): pass
                                    __tilefold__.if_statement(n > 0, __then_1__, __else_1__, ("x",))
    y = a if c else b               y = __tilefold__.choose(c, lambda: a, lambda: b)
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from .flow import JUMPS, lower_flow
from .leaving import is_endless, leaves_around
from .matching import lower_match
from .nodes import (
    FUNCTIONS,
    Names,
    assigned_names,
    names_in,
    own_nodes,
    parameters,
    place_like,
    scope,
    visit_statements,
)
from .thread_calls import lower_elected

RUNTIME = "__tilefold__"
"""The name by which rewritten code reaches `dispatch`."""

BUILTINS = ("range", "min", "max", "sum", "any", "all", "bool", "int", "float", "isclass", "isinstance", "type")
"""The Python functions that decide by their arguments, for which rewritten code takes its own."""

Refuse = Callable[[ast.AST, str, str], Exception]
"""Makes the error for a node that cannot be rewritten, from the form and a hint."""


def transform_function(function: ast.FunctionDef, refuse: Refuse, owner: str = "", is_kernel: bool = False) -> None:
    """Rewrites a function, and those within it, in place; `owner` is the class around it. That of a kernel may end a
    thread. Raises `refuse`'s error for a form that cannot be rewritten.
    """
    _check(function, refuse)
    _without_places(function)
    names = [_name(node) for node in ast.walk(function) if isinstance(node, ast.Attribute | ast.Name)]
    if is_kernel and "exit" in names:
        from .thread_calls import lower_exits

        function.body = lower_exits(function.body, RUNTIME)
    kinds = {type(node) for statement in function.body for node in own_nodes(statement)}
    if ast.With in kinds:
        function.body = lower_elected(function.body, RUNTIME)
    if ast.Match in kinds:
        function.body = lower_match(function.body)
    early = lower_flow(function, RUNTIME) if kinds & JUMPS else {}
    own = _declared_nonlocal(function)
    rewriter = _Rewriter(refuse, early, _parameters(function) | assigned_names(function.body), owner, _first(function))
    body = visit_statements(rewriter, function.body)
    names = sorted(rewriter.shared - own - _parameters(function))
    if names:
        # an assignment that is never executed makes them variables of this function
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
        start = 1 if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else 0
        while start < len(body) and isinstance(body[start], ast.Nonlocal):
            start += 1
        dead = ast.If(ast.Constant(False), [ast.Assign(targets, ast.Constant(None))], [])
        body.insert(start, place_like(dead, function))
    function.body = body


def _name(node: ast.Attribute | ast.Name) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id


def _without_places(function: ast.FunctionDef) -> None:
    """Drops the arguments `loc=loc` and `ip=ip` of calls, by which programs pass a place in an IR: it is known."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            node.keywords = [given for given in node.keywords if not _is_place(given)]


def _is_place(given: ast.keyword) -> bool:
    return given.arg in ("loc", "ip") and isinstance(given.value, ast.Name) and given.value.id == given.arg


def _parameters(function: ast.FunctionDef) -> set[str]:
    a = function.args
    return {parameter.arg for parameter in (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg)))}


def _first(function: ast.FunctionDef) -> str:
    """The first parameter that is given by its position, which `super()` takes; empty without any."""
    given = [*function.args.posonlyargs, *function.args.args]
    return given[0].arg if given else ""


def _declared_nonlocal(function: ast.FunctionDef) -> set[str]:
    """The names that a function takes from the functions around it by `nonlocal`."""
    nodes = [node for statement in function.body for node in own_nodes(statement)]
    return {name for node in nodes if isinstance(node, ast.Nonlocal) for name in node.names}


@dataclass
class _Rewriter(ast.NodeTransformer):
    """Rewrites the statements of one function. `shared` are the variables that the functions made of bodies assign,
    `tested` the expressions of which only the truth matters.
    """

    refuse: Refuse
    early: Mapping[ast.stmt, str]
    local: set[str]
    owner: str
    first: str
    count: int = 0
    shared: set[str] = field(default_factory=lambda: set())
    tested: set[ast.expr] = field(default_factory=lambda: set())

    # statements

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        arguments = node.args
        node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        arguments.defaults = [self.visit(default) for default in arguments.defaults]
        arguments.kw_defaults = [default and self.visit(default) for default in arguments.kw_defaults]
        if not any(isinstance(inner, ast.Yield | ast.YieldFrom) for line in node.body for inner in own_nodes(line)):
            transform_function(node, self.refuse, self.owner)  # a generator is Python's
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outer, self.owner = self.owner, node.name
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef):
                self.visit_FunctionDef(statement)
        self.owner = outer
        return node

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        number = self._number()
        names = names_in([*node.body, *node.orelse])
        test = self._condition(node.test)
        arms: list[ast.stmt] = []
        refs: list[ast.expr] = [test]
        for word, body in (("then", node.body), ("else", node.orelse)):
            name = f"__{word}_{number}__"
            arms.append(self._function(name, body or [place_like(ast.Pass(), node)], node))
            refs.append(ast.Name(name, ast.Load()))
        return [*arms, self._call("if_statement", [*refs, self._strings(names)], node, node.test)]

    def visit_While(self, node: ast.While) -> list[ast.stmt]:
        number = self._number()
        names = names_in([node.test, *node.body])
        test: ast.expr = node.test
        if node in self.early:
            stopped = ast.UnaryOp(ast.Not(), ast.Name(self.early[node], ast.Load()))
            test = place_like(ast.BoolOp(ast.And(), [stopped, test]), node.test)
        self._test(test)
        condition = self._function(f"__test_{number}__", [place_like(ast.Return(test), node.test)], node, [node.test])
        never_ends = node not in self.early and is_endless(node)
        body = self._function(f"__while_{number}__", node.body, node)
        refs: list[ast.expr] = [ast.Name(part.name, ast.Load()) for part in (condition, body)]
        arguments = [*refs, self._strings(names), place_like(ast.Constant(never_ends), node)]
        return [condition, body, self._call("while_statement", arguments, node, node.test)]

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        number = self._number()
        names = names_in(node.body)
        targets = names_in([node.target])
        item = f"__item_{number}__"
        start = place_like(ast.Assign([node.target], ast.Name(item, ast.Load())), node.target)
        body = self._function(f"__for_{number}__", [start, *node.body], node)
        body.args.args = [ast.arg(item)]
        stop: ast.expr = ast.Constant(self.early.get(node))
        iterable = self.visit(node.iter)
        arguments: list[ast.expr] = [
            iterable, ast.Name(body.name, ast.Load()), self._strings(names), self._mangled(targets.bound), stop,
        ]  # fmt: skip
        return [body, self._call("for_statement", arguments, node, node.iter)]

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self._test(node.test)
        self.generic_visit(node)
        node.test = self._expression("decide", [node.test, ast.Constant("assert")], node.test)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        target = node.targets[0]
        names: object = None
        if isinstance(target, ast.Name):
            names = target.id
        elif isinstance(target, ast.Tuple):
            names = tuple(element.id if isinstance(element, ast.Name) else "" for element in target.elts)
        if names and not _is_hidden(names) and not isinstance(node.value, ast.Constant):
            literal = ast.parse(repr(names), mode="eval").body
            node.value = self._expression("named", [node.value, literal], node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if not isinstance(node.target, ast.Name):
            return self.generic_visit(node)
        # a variable that functions share has no annotation
        plain = ast.Assign([node.target], node.value) if node.value is not None else ast.Pass()
        return self.visit(place_like(plain, node))

    # expressions

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        name += "" if node in self.tested else "value"
        first, *rest = node.values
        return self._expression(name, [self.visit(first), *map(self._later, rest)], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if not isinstance(node.op, ast.Not):
            return self.generic_visit(node)
        return self._expression("not_", [self._condition(node.operand)], node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        arms = [self._later(arm) for arm in (node.body, node.orelse)]
        return self._expression("choose", [self._condition(node.test), *arms], node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if len(node.ops) == 1:
            self.generic_visit(node)
            if not isinstance(node.ops[0], ast.In | ast.NotIn):
                return node
            test = self._expression("contains", [node.left, node.comparators[0]], node)
            return test if isinstance(node.ops[0], ast.In) else self._expression("not_", [test], node)
        names = _strings([type(op).__name__ for op in node.ops], keep_order=True)
        left, first, *rest = (node.left, *node.comparators)
        return self._expression("chain", [self.visit(left), names, self.visit(first), *map(self._later, rest)], node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        for test in node.ifs:
            self._test(test)
        self.generic_visit(node)
        node.ifs = [self._expression("decide", [test, ast.Constant("comprehension")], test) for test in node.ifs]
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        if node.guard is not None:
            self._test(node.guard)
        self.generic_visit(node)
        if node.guard is not None:
            node.guard = self._expression("decide", [node.guard, ast.Constant("guard")], node.guard)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id in self.local:
            return node
        if node.func.id == "super" and self.first and not node.args and not node.keywords:
            # which Python completes in methods only, not in the functions that are made of their parts
            node.args = [place_like(ast.Name(name, ast.Load()), node) for name in ("__class__", self.first)]
        elif node.func.id in BUILTINS:
            node.func = self._expression("builtin", [node.func], node.func)
        return node

    # parts

    def _number(self) -> int:
        self.count += 1
        return self.count

    def _function(
        self, name: str, body: Sequence[ast.stmt], like: ast.stmt, binders: Sequence[ast.AST] | None = None
    ) -> ast.FunctionDef:
        """A function made of a body; it has the variables of the function around it."""
        bound = sorted(assigned_names(binders if binders is not None else body))
        self.shared.update(bound)
        new = visit_statements(self, body)
        if bound:
            new.insert(0, ast.Nonlocal(bound))
        return place_like(scope(ast.FunctionDef, name, parameters(), new, []), like)

    def _test(self, node: ast.expr) -> None:
        """Notes that only the truth of an expression matters."""
        if isinstance(node, ast.BoolOp):
            self.tested.add(node)
            for operand in node.values:
                self._test(operand)

    def _condition(self, node: ast.expr) -> ast.expr:
        """An expression of which only the truth matters."""
        self._test(node)
        return self.visit(node)

    def _later(self, node: ast.expr) -> ast.expr:
        """An operand that is evaluated only where it is wanted."""
        for part in own_nodes(node):
            if isinstance(part, ast.NamedExpr):
                form = (
                    "':=' in an operand of 'and', 'or', a chain of comparisons or 'A if C else B' that Python may skip"
                )
                raise self.refuse(part, form, "assign on a line before")
        return place_like(ast.Lambda(parameters(), self.visit(node)), node)

    def _strings(self, names: Names) -> ast.expr:
        return self._mangled(names.bound | names.changed)

    def _mangled(self, names: set[str]) -> ast.expr:
        """Names of variables, as Python calls private ones within a class."""
        prefix = "_" + self.owner.lstrip("_")
        private = {name for name in names if name.startswith("__") and not name.endswith("__")}
        return _strings(names if prefix == "_" else names - private | {prefix + name for name in private})

    def _call(self, name: str, arguments: Sequence[ast.expr], node: ast.stmt, end: ast.expr) -> ast.stmt:
        call = self._expression(name, arguments, node)
        if (end.lineno, end.col_offset) >= (node.lineno, node.col_offset):  # not so of a flag's test
            call.end_lineno, call.end_col_offset = end.end_lineno, end.end_col_offset
        else:
            call.end_lineno, call.end_col_offset = node.lineno, node.col_offset
        return place_like(ast.Expr(call), node)

    def _expression(self, name: str, arguments: Sequence[ast.expr], node: ast.AST) -> ast.Call:
        runtime = ast.Attribute(ast.Name(RUNTIME, ast.Load()), name, ast.Load())
        call = place_like(ast.Call(runtime, list(arguments), []), node)
        for part in (runtime, runtime.value):  # a call begins, for Python, where the name of a method ends
            part.end_lineno, part.end_col_offset = part.lineno, part.col_offset
        return call


def _is_hidden(names: object) -> bool:
    """Whether a variable is one of the rewriting's own."""
    return isinstance(names, str) and names.startswith("__")


def _strings(names: Sequence[str] | set[str], keep_order: bool = False) -> ast.expr:
    ordered = names if keep_order else sorted(names)
    return ast.Tuple([ast.Constant(name) for name in ordered], ast.Load())


_REFUSED: Mapping[type[ast.AST], tuple[str, str]] = {
    ast.Global: ("'global'", "pass values as arguments, and return them"),
    ast.Yield: ("'yield'", "return a list or a tuple"),
    ast.YieldFrom: ("'yield'", "return a list or a tuple"),
    ast.Await: ("'await'", "a kernel is an ordinary function"),
    ast.AsyncFor: ("'async for'", "write for"),
    ast.AsyncWith: ("'async with'", "write with"),
    ast.AsyncFunctionDef: ("'async def'", "write def"),
}


def _check(function: ast.FunctionDef, refuse: Refuse) -> None:
    """Refuses the forms in a function that cannot be rewritten."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        refused = _REFUSED.get(type(node))
        if refused is not None:
            raise refuse(node, refused[0], refused[1])
        for last in getattr(node, "finalbody", ()):  # it would cancel the statement that left the body
            for statement in leaves_around(last):
                raise refuse(statement, f"'{type(statement).__name__.lower()}' in 'finally'", "leave after the 'try'")
        if not isinstance(node, FUNCTIONS):
            pending += ast.iter_child_nodes(node)
