# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Control flow as calls, for code that is not rewritten: `for_`, `while_` and `if_` take functions.

The body of a loop takes the carried state and returns the next one: a value, a number, or a tuple, list, dictionary or
dataclass of these.
"""

from collections.abc import Callable
from typing import Any

from ...base.errors import Code, TilefoldError
from ..scalars.values import Int, Value
from .branches import branch
from .building import result_of, truth
from .loop_range import Range, make_range
from .loops import conditional_loop, counted_loop
from .variables import Temporary


def if_(condition: object, then: Callable[[], object], otherwise: Callable[[], object] = lambda: None) -> Any:
    """`then() if condition else otherwise()`: for a condition on a value of the kernel, both are built.

    Their results become one. Raises TilefoldError (E5006) where their types differ.
    """
    _check_functions(then, otherwise)
    if not isinstance(condition, Value):
        return then() if condition else otherwise()
    result = Temporary("the result of if_")
    branch(truth(condition), lambda: result.set(then()), lambda: result.set(otherwise()), [result])
    return result_of(result)


def for_(counts: "Range | Int | int", body: Callable[..., object], *carried: object) -> Any:
    """A loop of the kernel: `body(i, *carried)` for each `i` of a `cute.range`, or of the numbers below an integer.

    The body returns the values of the next iteration: None, one value, or a tuple of as many as `carried` has. Returns
    the same after the last iteration. Raises TilefoldError (E5006) where it changes its type from one iteration to the
    next.
    """
    _check_functions(body)
    range = counts if isinstance(counts, Range) else make_range(counts)
    state = Temporary("the state of for_", _as_single(carried))
    counted_loop(range, lambda i: state.set(_drop_unless_carried(body(i, *_many(state, carried)), carried)), [state])
    return result_of(state)


def while_(condition: Callable[..., Any], body: Callable[..., object], *carried: object) -> Any:
    """A loop of the kernel: `body(*carried)` as long as `condition(*carried)`; like the body of `for_`, it returns the
    values for the next iteration.
    """
    _check_functions(condition, body)
    state = Temporary("the state of while_", _as_single(carried))
    conditional_loop(
        lambda: condition(*_many(state, carried)),
        lambda: state.set(_drop_unless_carried(body(*_many(state, carried)), carried)),
        [state],
    )
    return result_of(state)


def _check_functions(*functions: object) -> None:
    """Raises TilefoldError (E5002) for an argument that cannot be called."""
    for function in functions:
        if not callable(function):
            message = f"expected a function, got {type(function).__name__}"
            raise TilefoldError(Code.BUILD_VALUE, message, "such as lambda: x + 1")


def _as_single(carried: tuple[object, ...]) -> Any:
    return carried[0] if len(carried) == 1 else carried or None


def _many(state: Temporary, carried: tuple[object, ...]) -> tuple[Any, ...]:
    value: Any = result_of(state)
    return (value,) if len(carried) == 1 else tuple(value or ())


def _drop_unless_carried(value: object, carried: tuple[object, ...]) -> Any:
    return None if not carried else value
