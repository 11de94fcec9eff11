# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Evaluates expressions of the layout algebra, which may come from anybody.

Names are those of operations and of the values defined before. Every value is checked as it arises: at most
`MAX_LEAVES` integers, nested no deeper than `MAX_DEPTH`, each of at most 64 bits; and the work of one evaluator
is bounded.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from typing import Any, cast

from ...base.errors import Code, LayoutError, LayoutSyntaxError, TilefoldError
from ..algebra.compose import composition
from ..algebra.core import ComposedLayout, Layout, make_layout
from ..algebra.inttuple import MAX_LEAVES
from ..algebra.swizzle import Swizzle
from .expression import Call, Chain, Expression, Item, Literal, Name, Node, Pair, Statement, Tuple, parse_statements
from .operations import LAYOUT, OPERATIONS, RIGHT, SHAPE, STRIDE, OperandKind, Operation, mode_of
from .parser import MAX_DEPTH, size_fits
from .printing import lines, plain_style

_MAX_WORK = 1 << 24
"""The bound of the squared numbers of leaves that one evaluator works on: an operation's time is at most quadratic."""
_LIMIT = 1 << 63


@dataclass(frozen=True, slots=True)
class Result:
    """The value of a statement's expression; `name` is empty if the statement gives none."""

    name: str
    expression: Expression
    value: Any


@dataclass(frozen=True, slots=True)
class Prepared:
    """An operation with its arguments evaluated, for `explain`."""

    operation: Operation
    arguments: tuple[object, ...]


class Evaluator:
    """Evaluates statements one after another; `names` holds the values that they have defined."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self._work = 0

    def run(self, text: str) -> list[Result]:
        """The results of the statements in `text`.

        Raises `LayoutSyntaxError`, with the characters at fault, for text that cannot be read (E01xx) and for
        whatever an operation refuses, under the code of its error.
        """
        return [self._execute(statement) for statement in parse_statements(text)]

    def prepare(self, node: Expression) -> Prepared:
        """The operation and the arguments of a call; `A o B` is a call of composition.

        Raises as `run` does, and (E0105) if `node` does not call an operation.
        """
        match node:
            case Chain(parts=(a, b)):
                return Prepared(OPERATIONS["composition"], (self._value(a), self._value(b)))
            case Call() if (operation := self._operation(node)) is not None:
                return Prepared(operation, self._arguments(node, operation))
            case _:
                raise _error(node, Code.TEXT_WRONG_KIND, "expected an operation and its arguments")

    def _execute(self, statement: Statement) -> Result:
        name = statement.name
        if name is not None and name.name in OPERATIONS:
            raise _error(name, Code.TEXT_UNKNOWN_NAME, f"{name.name} is an operation and cannot be redefined")
        if name is not None and name.name in self.names:
            raise _error(name, Code.TEXT_UNKNOWN_NAME, f"{name.name} is defined already", "a name has one value")
        value = self._value(statement.expression)
        if name is not None:
            self.names[name.name] = value
        return Result("" if name is None else name.name, statement.expression, value)

    def _value(self, node: Expression) -> Any:
        """The value of `node`, checked."""
        value = self._evaluate(node)
        try:
            self._work += _checked(value) ** 2
        except LayoutError as error:
            raise _located(error, node) from None
        if self._work > _MAX_WORK:
            raise _error(node, Code.TEXT_TOO_LARGE, "the expressions need too much work")
        return value

    def _evaluate(self, node: Expression) -> Any:
        match node:
            case Literal(value=value):
                return value
            case Name():
                return self._named(node)
            case Tuple(items=items):
                values = tuple([self._value(item) for item in items])
                return values[0] if node.groups and not STRIDE.accepts(values[0]) else values
            case Pair():
                shape, stride = self._value(node.shape), self._value(node.stride)
                _check_kind(shape, SHAPE, node.shape)
                _check_kind(stride, STRIDE, node.stride)
                return _call(node, make_layout, (shape, stride))
            case Item(mode=mode):
                return _call(node, mode_of, (self._value(node.value), mode.value))
            case Chain():
                return self._compose(node)
            case Call():
                return self._call(node)

    def _named(self, node: Name) -> Any:
        if node.name in self.names:
            return self.names[node.name]
        if node.name in OPERATIONS:
            raise _error(node, Code.TEXT_WRONG_KIND, f"{node.name} is an operation and needs arguments")
        near = get_close_matches(node.name[:80], [*self.names, *OPERATIONS], n=3)
        hint = f"similar names: {', '.join(near)}" if near else "write NAME=VALUE before its use"
        raise _error(node, Code.TEXT_UNKNOWN_NAME, f"there is no {node.name[:80]!r}", hint)

    def _compose(self, node: Chain) -> Any:
        values = [self._value(part) for part in node.parts]
        for value, part in zip(values, node.parts, strict=True):
            _check_kind(value, RIGHT, part)
        result = values.pop()
        while values:
            a = values.pop()
            if values and STRIDE.accepts(a) and type(result) is Layout and type(values[-1]) in (Layout, Swizzle):
                result = ComposedLayout(values.pop(), a, result)
            elif LAYOUT.accepts(a) or type(a) is Swizzle:
                result = _call(node, composition, (a, result))
            else:
                raise _error(
                    node, Code.TEXT_WRONG_KIND, "expected a layout or a swizzle on the left of 'o'",
                    "write A o B for a composition, OUTER o OFFSET o INNER for a layout with an offset",
                )  # fmt: skip
        return result

    def _call(self, node: Call) -> Any:
        operation = self._operation(node)
        if operation is not None:
            return _call(node, operation.function, self._arguments(node, operation))
        function = self._value(node.function)
        if not (LAYOUT.accepts(function) or type(function) is Swizzle) or node.modes:
            shown = "; ".join(lines(function, plain_style))[:80]
            raise _error(node.function, Code.TEXT_WRONG_KIND, f"{shown} is not a function", "layouts and swizzles are")
        arguments = tuple([self._value(argument) for argument in node.arguments])
        for value, argument in zip(arguments, node.arguments, strict=True):
            _check_kind(value, _COORDINATE, argument)
        if not arguments or (type(function) is Swizzle and [type(x) for x in arguments] != [int]):
            raise _error(node, Code.TEXT_ARGUMENTS, "expected a coordinate, or an index of a swizzle")
        return _call(node, function, arguments)

    def _operation(self, node: Call) -> Operation | None:
        """The operation that a call names; None if it names, or computes, a value."""
        if not isinstance(node.function, Name) or node.function.name in self.names:
            return None
        if node.function.name not in OPERATIONS:
            self._named(node.function)
        return OPERATIONS[node.function.name]

    def _arguments(self, node: Call, operation: Operation) -> tuple[object, ...]:
        """The arguments of a call, checked for the right kinds; template arguments come after the first."""
        given: Sequence[Expression] = (*node.arguments[:1], *node.modes, *node.arguments[1:])
        least, most = operation.arity()
        if len(given) < least or (most is not None and len(given) > most):
            names = ", ".join([kind.name for kind in operation.kinds])
            wanted = f"{least}" if most == least else f"at least {least}" if most is None else f"{least} to {most}"
            message = f"{wanted} argument{'' if wanted == '1' else 's'} expected, {len(given)} given"
            raise _error(node, Code.TEXT_ARGUMENTS, message, f"it takes {names}")
        values = tuple([self._value(argument) for argument in given])
        for index, (value, argument) in enumerate(zip(values, given, strict=True)):
            _check_kind(value, operation.kind(index), argument)
        return values


_COORDINATE = OperandKind("a coordinate", lambda x: x is None or STRIDE.accepts(x) or isinstance(x, tuple))


def _call(node: Node, function: Any, arguments: tuple[object, ...]) -> Any:
    try:
        return function(*arguments)
    except LayoutError as error:
        raise _located(error, node) from None


def _checked(value: object) -> int:
    """The number of leaves of a value. Raises `LayoutError` (E0209, E0103) for a value beyond the limits."""
    count = 0
    pending = [(value, 0)]
    while pending:
        x, depth = pending.pop()
        count += 1
        if depth > MAX_DEPTH or count > 2 * MAX_LEAVES:
            limits = f"{MAX_LEAVES} integers, nested at most {MAX_DEPTH} deep"
            raise LayoutError(Code.RESULT_TOO_LARGE, f"the result is too large: a value holds at most {limits}")
        if isinstance(x, Layout) and not size_fits(x.shape):
            raise LayoutError(Code.TEXT_INTEGER_RANGE, "the size of the layout does not fit in 64 bits")
        if type(x) is int and not -_LIMIT <= x < _LIMIT:
            raise LayoutError(Code.TEXT_INTEGER_RANGE, f"an integer of {x.bit_length()} bits does not fit in 64")
        if is_dataclass(x) and not isinstance(x, type):
            pending += [(getattr(x, field.name), depth) for field in fields(x)]
        elif isinstance(x, tuple):
            parts = cast(tuple[Any, ...], x)
            pending += [(part, depth + 1) for part in parts]
    return count


def _check_kind(value: object, kind: OperandKind, node: Node) -> None:
    if not kind.accepts(value):
        shown = lines(value, plain_style)[0] if not isinstance(value, str) else repr(value)
        raise _error(node, Code.TEXT_WRONG_KIND, f"{kind.name} is expected here, not {shown[:80]}")


def _error(node: Node, code: Code, message: str, hint: str = "") -> LayoutSyntaxError:
    return LayoutSyntaxError(code, message, node.start, node.end, hint)


def _located(error: TilefoldError, node: Node) -> LayoutSyntaxError:
    if isinstance(error, LayoutSyntaxError):
        return error
    return _error(node, error.code, error.message, error.hint)
