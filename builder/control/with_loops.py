# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of the kernel as `with` statements, whose bodies pass on values by `yield_out`."""

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import scf
from xdsl.ir import Block, Region

from ...base.errors import Code, TilefoldError
from ..scalars.dtypes import dtype_of
from ..scalars.values import as_value, convert, wrap
from ..tracing.state import current
from .building import truth


class WhileLoop:
    """A loop of the kernel: `with loop as values:` builds its body, whose last call is `yield_out(next)`. After it,
    `results` are the values for which the condition did not hold.
    """

    def __init__(self, initial: Sequence[Any], condition: Callable[..., Any]) -> None:
        self._initial = [as_value(value) for value in initial]
        self._condition = condition
        self.results: tuple[Any, ...] = ()

    def _values(self, ssa: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(wrap(value, initial.dtype) for value, initial in zip(ssa, self._initial, strict=True))

    def __enter__(self) -> tuple[Any, ...]:
        types = [value.ssa.type for value in self._initial]
        self._before, self._after = Block(arg_types=types), Block(arg_types=types)
        with current().inside(self._before):
            holds = truth(self._condition(*self._values(self._before.args)))
            current().insert(scf.ConditionOp(holds.ssa, *self._before.args))
        self._body = current().inside(self._after)
        self._body.__enter__()
        return self._values(self._after.args)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._body.__exit__(kind, error, trace)
        if error is not None:
            return
        end = self._after.last_op
        if not isinstance(end, scf.YieldOp) or len(end.operands) != len(self._initial):
            hint = f"end the body by yield_out of {len(self._initial)} values"
            raise TilefoldError(Code.BUILD_CARRIED, "the body of a loop does not yield its values", hint)
        types = [value.ssa.type for value in self._initial]
        starts = [value.ssa for value in self._initial]
        loop = scf.WhileOp(starts, types, Region(self._before), Region(self._after))
        current().insert(loop)
        self.results = self._values(loop.res)


def while_generate(inputs: Sequence[object], condition: Callable[..., object]) -> WhileLoop:
    """A loop as long as `condition(*values)` holds, which begins with the values `inputs`. A program that is written
    anew says `while`.
    """
    return WhileLoop(inputs, condition)


def yield_out(args: Sequence[Any] = ()) -> None:
    """The end of the body of `while_generate`: the values of the next iteration. Without values, that of
    `for_generate`, which passes on the variables that the body sets.
    """
    if not args:
        return
    types = current().block.arg_types
    if len(types) != len(args):
        message = f"yield_out passes on {len(args)} values, but the loop has {len(types)}"
        raise TilefoldError(Code.BUILD_CARRIED, message, "pass on as many values as the loop starts with")
    values = [convert(value, dtype_of(type)).ssa for value, type in zip(args, types, strict=True)]
    current().insert(scf.YieldOp(*values))
