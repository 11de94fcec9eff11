# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conditions and their operators in rewritten code: `and`, `or`, `not`, `in`, chains, `A if C else B`.

Operands that Python may leave out are given as functions.
"""

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

from ...base.errors import Code, TilefoldError
from ..scalars.values import Bool, Value
from ..tracing.state import host_number
from .branches import branch
from .building import result_of, truth
from .loop_range import Range, make_range
from .variables import Temporary, Variable, reachable_variables

STANDS_FOR_PYTHON = True
"""Functions of this module stand for Python's own: errors in them count as Python's."""

Thunk = Callable[[], Any]
"""An operand or a statement that is executed on demand."""


def and_(first: object, *rest: Thunk) -> Any:
    """`first and ...` where only its truth matters: operands after a false one are not evaluated."""
    return _join(first, rest, False, _true)


def or_(first: object, *rest: Thunk) -> Any:
    """`first or ...` where only its truth matters: operands after a true one are not evaluated."""
    return _join(first, rest, True, _true)


def and_value(first: object, *rest: Thunk) -> Any:
    """`first and ...`: the first operand that is false, or the last one."""
    return _join(first, rest, False, _itself)


def or_value(first: object, *rest: Thunk) -> Any:
    """`first or ...`: the first operand that is true, or the last one."""
    return _join(first, rest, True, _itself)


def _true(value: object) -> Bool | bool:
    return truth(value) if isinstance(value, Value) else bool(value)


def _itself(value: object) -> object:
    return value


def _join(value: object, rest: Sequence[Thunk], stop_at: bool, result_from: Callable[[object], object]) -> Any:
    if not rest:
        return value
    if not isinstance(value, Value):
        return value if bool(value) == stop_at else _join(rest[0](), rest[1:], stop_at, result_from)
    result = Temporary("the value of 'or'" if stop_at else "the value of 'and'")
    is_known = isinstance(value, Bool) or result_from is _true  # a predicate decides by itself

    def stay() -> None:
        result.set(stop_at if is_known else value)

    def proceed() -> None:
        result.set(result_from(_join(rest[0](), rest[1:], stop_at, result_from)))

    paths = (stay, proceed) if stop_at else (proceed, stay)
    branch(truth(value), *paths, [result, *reachable_variables((), *rest)])
    return result_of(result)


def not_(operand: object) -> Any:
    """`not a`."""
    return truth(operand) ^ True if isinstance(operand, Value) else not operand


_UNDECIDED: Mapping[str, tuple[str, str]] = MappingProxyType({
    "assert": (
        "an assertion is checked while the kernel is built, but this {} is known only when the kernel runs",
        "assert static facts, such as shapes; for others call cute.testing.assert_",
    ),
    "comprehension": (
        "Python evaluates a comprehension while the kernel is built, but this {} is known only when the kernel runs",
        "write `for` and `if` as statements, or `A if C else B` as the element",
    ),
    "const_expr": (
        "const_expr takes a condition that is known while the kernel is built, but this {} is known only when it runs",
        "remove const_expr to let the kernel decide, or pass the number as a cute.Constexpr",
    ),
    "guard": (
        "Python evaluates match while the kernel is built, but this {} is known only when the kernel runs",
        "write `if` in the case",
    ),
})  # fmt: skip


def decide(test: object, kind: str) -> Any:
    """A condition of an `assert`, a comprehension or a guard of `match`, which Python decides. Raises TilefoldError
    (E5003) for a value of the kernel.
    """
    if isinstance(test, Value):
        message, hint = _UNDECIDED[kind]
        raise TilefoldError(Code.BUILD_RUN_TIME, message.format(test.dtype), hint)
    return test


def const_expr(x: object) -> Any:
    """A condition that Python decides while the kernel is built: `if const_expr(x):`. TilefoldError (E5003) for a value
    of the kernel.
    """
    if isinstance(x, Value) and host_number(x.ssa) is not None:
        return bool(x)
    return decide(x, "const_expr")


def choose(test: object, then: Thunk, otherwise: Thunk) -> Any:
    """`then if test else otherwise`."""
    if not isinstance(test, Value):
        return then() if test else otherwise()
    result = Temporary("the value of 'A if C else B'")
    variables: list[Variable] = [result, *reachable_variables((), then, otherwise)]
    branch(truth(test), lambda: result.set(then()), lambda: result.set(otherwise()), variables)
    return result_of(result)


def contains(item: Any, items: Any) -> Any:
    """`item in items`: for values of the kernel, whether `item` equals one of `items`."""
    if isinstance(items, range) and isinstance(item, Value):
        items = make_range(items.start, items.stop, items.step)
    if isinstance(items, Range):
        return items.holds(item)
    if isinstance(items, str | bytes) and isinstance(item, Value):
        hint = "compare it with numbers, such as x in (1, 2)"
        raise TilefoldError(Code.BUILD_VALUE, f"{item!r} is never in a {type(items).__name__}", hint)
    if isinstance(items, str | bytes) or not isinstance(items, Collection):
        return operator.contains(items, item)
    result: Any = False
    given = list(cast("Collection[object]", items))
    if not (isinstance(item, Value) or any(isinstance(element, Value) for element in given)):
        return operator.contains(cast("Collection[object]", items), item)
    for element in given:
        equal: Any = element is item or element == item
        if not isinstance(equal, Value):
            if equal:
                return True
        else:
            result = equal if result is False else result | equal
    return result


_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType({
    "Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt,
    "GtE": operator.ge, "Is": operator.is_, "IsNot": operator.is_not, "In": contains,
    "NotIn": lambda a, b: not_(contains(a, b)),
})  # fmt: skip


def chain(left: object, names: Sequence[str], right: object, *rest: Thunk) -> Any:
    """`a < b < c`: each operand is evaluated once, and not after a comparison that fails."""
    result = _COMPARISONS[names[0]](left, right)
    if len(names) == 1:
        return result
    return and_(result, lambda: chain(right, names[1:], rest[0](), *rest[1:]))
