# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The functions that rewritten code calls: while the kernel is built, they choose who decides, Python or the kernel.

A condition that Python knows is Python's: only the branch that is taken is built, and a loop over a sequence, such as
that of `range_constexpr`, is unrolled. A condition that is a value of the kernel becomes an operation of `scf`. These
functions are called by code that `transform` has written, so that their arguments are right.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects import arith

from ...base.errors import Code, TilefoldError
from ..scalars.casts import register_of
from ..scalars.values import Bool, Value, is_scalar
from ..tensors.tensor_base import AnyTensor
from ..tracing.state import current, host
from .branches import branch
from .building import Nameable, discarded, name_value, truth
from .builtin import builtin
from .conditions import Thunk, and_, and_value, chain, choose, contains, decide, not_, or_, or_value
from .loop_range import Range, make_range
from .loops import conditional_loop, counted_loop, write_bounded_loop
from .variables import MISSING, PENDING, Cell, Variable, cells_of, reachable_variables

STANDS_FOR_PYTHON = True
"""Functions of this module stand for Python's own: errors in them count as Python's."""

__all__ = [
    "PENDING", "and_", "and_value", "builtin", "chain", "choose", "contains", "decide", "elected", "ends_thread",
    "for_statement",
    "if_statement", "named", "not_", "or_", "or_value", "while_statement",
]  # fmt: skip


def _nothing() -> None:
    pass


def named(value: object, names: str | tuple[str, ...]) -> Any:
    """`names = value`: in the IR the value has the name of the first variable that it is assigned to."""
    given: object = value
    if isinstance(names, str):
        _name(given, names)
    elif isinstance(given, tuple):
        for element, name in zip(cast("tuple[object, ...]", given), names, strict=False):
            _name(element, name)
    return value


def _name(value: object, name: str) -> None:
    if isinstance(value, Value | AnyTensor):
        ssa = register_of(value.ssa) or value.ssa
        if ssa.name_hint is None and not isinstance(ssa.owner, arith.ConstantOp):  # which others may share
            name_value(ssa, name)
    elif isinstance(value, Nameable):
        value.take_name(name)


def if_statement(test: object, then: Thunk, otherwise: Thunk, names: Sequence[str]) -> None:
    """`if test: then else: otherwise`, which assign the variables `names`."""
    if isinstance(test, Value):
        branch(truth(test), then, otherwise, reachable_variables(names, then, otherwise))
    elif test:
        then()
    else:
        otherwise()


def ends_thread(function: object) -> bool:
    """Whether a function that a kernel calls is `primitives.exit`."""

    return function is exit


def elected(test: object) -> Bool:
    """The condition of `with elect_one():`. Raises TilefoldError (E5005) where it is a context manager of Python."""
    if not isinstance(test, Bool):
        hint = "rename your function; cute.arch.elect_one tells whether a thread is the elected one"
        raise TilefoldError(Code.BUILD_FORM, f"'with elect_one()' is on a {type(test).__name__}", hint)
    return test


def while_statement(test: Thunk, body: Thunk, names: Sequence[str], never_ends: bool) -> None:
    """`while test: body`. A loop that Python begins and the kernel decides about later is one of the kernel.

    TilefoldError (E5010) for one that never ends, as its text says, or takes too many steps.
    """
    if never_ends:
        current().refuse_endless("has a loop that does not end")
    variables = reachable_variables(names, test, body)
    with discarded(variables) as attempt:
        condition = test()
        before = current().count
        while not isinstance(condition, Value) and condition:
            current().step(before)
            body()
            condition = test()
        if not isinstance(condition, Value):
            attempt.keep()
            return
    conditional_loop(test, body, variables)


def for_statement(
    iterable: Any, body: Callable[[Any], object], names: Sequence[str], targets: Sequence[str], stop: str | None
) -> None:
    """`for targets in iterable: body`, which assigns the variables `names` and sets the flag `stop` to end early."""
    own = cells_of(targets, body)
    cells = {id(cell.cell) for cell in own}
    changed = [
        variable
        for variable in reachable_variables(names, body)
        if not (isinstance(variable, Cell) and id(variable.cell) in cells)
    ]
    flag = next((variable for variable in changed if variable.name == stop), None)
    if type(iterable) is range and host() is None:
        iterable = make_range(iterable.start, iterable.stop, iterable.step) if iterable else ()
    if isinstance(iterable, Range):
        _kernel_loop(iterable, body, [*changed, *own], len(changed), flag)
        return
    before = None if hasattr(iterable, "__len__") else current().count
    for item in iterable:
        current().step(before)
        stopped = False if flag is None else flag.get()
        if isinstance(stopped, Value):
            branch(truth(stopped), _nothing, lambda item=item: body(item), [*changed, *own])
        elif stopped:
            break
        else:
            body(item)


def _kernel_loop(
    range: Range, body: Callable[[object], object], variables: list[Variable], carried: int, flag: Variable | None
) -> None:
    for target in variables[carried:]:
        if not is_scalar(target.get()):  # its value where the loop is not executed
            target.set(MISSING)
    if flag is None:
        counted_loop(range, body, variables)
    else:
        write_bounded_loop(range, flag, body, variables)


def exit() -> None:
    """Ends the thread (PTX ISA, exit): a barrier of the block counts it as having arrived from then on.

    It is a statement of the kernel's own function. Raises TilefoldError (E5005) anywhere else.
    """
    raise TilefoldError(
        Code.BUILD_FORM,
        "'exit' is supported only in the kernel's own function",
        "return whether to end, and exit there",
    )
