# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What rewritten code calls: decides, while the kernel is built, whether Python or the kernel decides.

A condition that Python knows is Python's: only the branch that is taken is built, and a loop over a sequence or over a
static `range` is unrolled. A condition that is a value of the kernel becomes an operation of `scf`. These functions are
called by code that `transform` has written, so that their arguments are right.
"""

import builtins
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

from xdsl.dialects import arith

from ...layout.errors import Code, TilefoldError
from .arithmetic import binary
from .branches import branch
from .carry import result_of
from .control import discarded, name_value, truth
from .dtypes import Float32, Int32
from .fragments import Vec
from .loops import bounded, conditional_loop, counted_loop
from .ranges import Range, make_range
from .state import current
from .tensors import AnyTensor
from .values import Bool, Value, convert
from .variables import MISSING, PENDING, Box, Cell, Variable, cells_of, reached

__all__ = [
    "PENDING", "and_", "and_value", "builtin", "chain", "choose", "contains", "decided", "for_statement",
    "if_statement", "named", "not_", "or_", "or_value", "while_statement",
]  # fmt: skip

_Thunk = Callable[[], Any]


def _nothing() -> None:
    pass


def named(value: Any, names: str | tuple[str, ...]) -> Any:
    """`names = value`: in the IR the value has the name of the first variable that it is assigned to."""
    given: object = value
    if isinstance(names, str):
        _name(given, names)
    elif isinstance(given, tuple):
        for each, name in zip(cast("tuple[object, ...]", given), names, strict=False):
            _name(each, name)
    return value


def _name(value: object, name: str) -> None:
    if isinstance(value, Value | AnyTensor):
        ssa = value.ssa
        if ssa.name_hint is None and not isinstance(ssa.owner, arith.ConstantOp):  # which others may share
            name_value(ssa, name)


def if_statement(test: Any, then: _Thunk, otherwise: _Thunk, names: Sequence[str]) -> None:
    """`if test: then else: otherwise`, which assign the variables `names`."""
    if isinstance(test, Value):
        branch(truth(test), then, otherwise, reached(names, then, otherwise))
    elif test:
        then()
    else:
        otherwise()


def while_statement(test: _Thunk, body: _Thunk, names: Sequence[str]) -> None:
    """`while test: body`. A loop that Python begins and the kernel decides about later is one of the kernel."""
    variables = reached(names, test, body)
    with discarded(variables) as attempt:
        found = test()
        while not isinstance(found, Value) and found:
            current().step()
            body()
            found = test()
        if not isinstance(found, Value):
            attempt.keep()
            return
    conditional_loop(test, body, variables)


def for_statement(
    iterable: Any, body: Callable[[Any], object], names: Sequence[str], targets: Sequence[str], stop: str | None
) -> None:
    """`for targets in iterable: body`, which assigns the variables `names` and sets the flag `stop` to end early."""
    own = cells_of(targets, body)
    cells = {id(each.cell) for each in own}
    changed = [each for each in reached(names, body) if not (isinstance(each, Cell) and id(each.cell) in cells)]
    flag = next((variable for variable in changed if variable.name == stop), None)
    if isinstance(iterable, Range):
        _kernel_loop(iterable, body, [*changed, *own], len(changed), flag)
        return
    for item in iterable:
        current().step()
        stopped = False if flag is None else flag.get()
        if isinstance(stopped, Value):
            branch(truth(stopped), _nothing, lambda item=item: body(item), [*changed, *own])
        elif stopped:
            break
        else:
            body(item)


def _kernel_loop(
    range: Range, body: Callable[[Any], object], variables: list[Variable], carried: int, flag: Variable | None
) -> None:
    for target in variables[carried:]:
        target.set(MISSING)  # what Python would leave in it is not known where the loop may not be executed
    if flag is None:
        counted_loop(range, body, variables)
    else:
        bounded(range, flag, body, variables)


def and_(first: Any, *rest: _Thunk) -> Any:
    """`first and ...` where only its truth matters: operands after a false one are not evaluated."""
    return _joined(first, rest, False, _true)


def or_(first: Any, *rest: _Thunk) -> Any:
    """`first or ...` where only its truth matters: operands after a true one are not evaluated."""
    return _joined(first, rest, True, _true)


def and_value(first: Any, *rest: _Thunk) -> Any:
    """`first and ...`: the first operand that is false, or the last one."""
    return _joined(first, rest, False, _itself)


def or_value(first: Any, *rest: _Thunk) -> Any:
    """`first or ...`: the first operand that is true, or the last one."""
    return _joined(first, rest, True, _itself)


def _true(value: Any) -> Any:
    return truth(value) if isinstance(value, Value) else bool(value)


def _itself(value: Any) -> Any:
    return value


def _joined(value: Any, rest: Sequence[_Thunk], stop_at: bool, result_from: Callable[[Any], Any]) -> Any:
    if not rest:
        return value
    if not isinstance(value, Value):
        return value if bool(value) == stop_at else _joined(rest[0](), rest[1:], stop_at, result_from)
    result = Box("the value of 'or'" if stop_at else "the value of 'and'")
    is_known = isinstance(value, Bool) or result_from is _true  # a predicate is what decides

    def stay() -> None:
        result.set(stop_at if is_known else value)

    def proceed() -> None:
        result.set(result_from(_joined(rest[0](), rest[1:], stop_at, result_from)))

    paths = (stay, proceed) if stop_at else (proceed, stay)
    branch(truth(value), *paths, [result, *reached((), *rest)])
    return result_of(result)


def not_(operand: Any) -> Any:
    """`not a`."""
    return truth(operand) ^ True if isinstance(operand, Value) else not operand


_UNDECIDED: Mapping[str, tuple[str, str]] = MappingProxyType({
    "assert": (
        "an assertion is checked while the kernel is built, but this {} is known only when the kernel runs",
        "assert what is known, such as shapes; print in an `if` by cute.printf what is not",
    ),
    "comprehension": (
        "Python decides which elements a comprehension has, but this {} is known only when the kernel runs",
        "write `for` and `if` as statements, or `A if C else B` as the element",
    ),
    "guard": (
        "Python decides which pattern matches, but this {} is known only when the kernel runs",
        "write `if` in the case",
    ),
})  # fmt: skip


def decided(test: Any, what: str) -> Any:
    """A condition that Python decides: of an `assert`, a comprehension, a guard of `match`. Raises TilefoldError
    (E5003) for a value of the kernel.
    """
    if isinstance(test, Value):
        message, hint = _UNDECIDED[what]
        raise TilefoldError(Code.BUILD_RUN_TIME, message.format(test.dtype), hint)
    return test


def choose(test: Any, then: _Thunk, otherwise: _Thunk) -> Any:
    """`then if test else otherwise`."""
    if not isinstance(test, Value):
        return then() if test else otherwise()
    result = Box("the value of 'A if C else B'")
    variables: list[Variable] = [result, *reached((), then, otherwise)]
    branch(truth(test), lambda: result.set(then()), lambda: result.set(otherwise()), variables)
    return result_of(result)


def contains(item: Any, items: Any) -> Any:
    """`item in items`: of a value of the kernel, or among such, whether it equals one of them."""
    if isinstance(items, range) and isinstance(item, Value):
        items = make_range(items.start, items.stop, items.step)
    if isinstance(items, Range):
        return items.holds(item)
    if isinstance(items, str | bytes) or not isinstance(items, Collection):
        return operator.contains(items, item)
    found: Any = False
    given = list(cast("Collection[object]", items))
    if not (isinstance(item, Value) or builtins.any(isinstance(each, Value) for each in given)):
        return operator.contains(cast("Collection[object]", items), item)
    for each in given:
        equal: Any = each is item or each == item
        if not isinstance(equal, Value):
            if equal:
                return True
        else:
            found = equal if found is False else found | equal
    return found


_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType({
    "Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt,
    "GtE": operator.ge, "Is": operator.is_, "IsNot": operator.is_not, "In": contains,
    "NotIn": lambda a, b: not_(contains(a, b)),
})  # fmt: skip


def chain(left: Any, names: Sequence[str], right: Any, *rest: _Thunk) -> Any:
    """`a < b < c`: each operand is evaluated once, and not after a comparison that fails."""
    result = _COMPARISONS[names[0]](left, right)
    if len(names) == 1:
        return result
    return and_(result, lambda: chain(right, names[1:], rest[0](), *rest[1:]))


def builtin(function: Any) -> Any:
    """What a call of one of Python's functions calls: itself, unless it is given values of the kernel."""
    ours = _BUILTINS.get(function) if isinstance(function, type | type(len)) else None
    return function if ours is None else ours


def _range(*arguments: Any) -> Any:
    dynamic = any(isinstance(x, Value) for x in arguments)
    return make_range(*arguments) if dynamic else range(*arguments)


def _extreme(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def extreme(*arguments: Any, **options: Any) -> Any:
        given: list[Any] = list(arguments)
        if len(given) == 1:
            given = list(given[0])
        if options or not builtins.any(isinstance(x, Value) for x in given):
            return function(given, **options)
        result, *rest = given
        for each in rest:
            result = binary(name, result, each)
        return result

    return extreme


def _quantifier(join: Callable[..., Any], empty: bool) -> Callable[[Iterable[Any]], Any]:
    def quantifier(items: Iterable[Any]) -> Any:
        given = list(items)
        if not builtins.any(isinstance(x, Value) for x in given):
            return builtins.any(given) if empty is False else builtins.all(given)
        return join(given[0], *(lambda x=x: x for x in given[1:]))

    return quantifier


def _converted(function: Callable[..., Any], kind: str) -> Callable[..., Any]:
    def converted(*arguments: Any, **options: Any) -> Any:
        given: list[Any] = list(arguments)
        if len(given) == 1 and isinstance(given[0], Vec) and kind != "bool":
            hint = f"write x.to(cute.{'Int32' if kind == 'int' else 'Float32'})"
            raise TilefoldError(Code.BUILD_VALUE, f"a fragment is not one {kind}", hint)
        if len(given) != 1 or not isinstance(given[0], Value):
            return function(*given, **options)
        value = given[0]
        if kind == "bool":
            return truth(value)
        return value if value.dtype.kind == kind else convert(value, Int32 if kind == "int" else Float32)

    return converted


_BUILTINS: Mapping[Any, Callable[..., Any]] = MappingProxyType({
    builtins.range: _range,
    builtins.min: _extreme("min", builtins.min),
    builtins.max: _extreme("max", builtins.max),
    builtins.any: _quantifier(or_, False),
    builtins.all: _quantifier(and_, True),
    builtins.bool: _converted(builtins.bool, "bool"),
    builtins.int: _converted(builtins.int, "int"),
    builtins.float: _converted(builtins.float, "float"),
})  # fmt: skip
