# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of the kernel: `scf.for` and `scf.while` on variables.

Programs may write them as `with` statements, whose bodies pass on values by `yield_out`.
"""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, UnitAttr, i64
from xdsl.ir import Block, Region, SSAValue

from ...base.errors import Code, TilefoldError
from ...base.spaces import RMEM
from ...dialects.tile import CoordTensorType, LoadOp, SliceOp, StoreOp, TensorType
from ...passes.analysis.loop_hints import UNROLL
from ..scalars.dtypes import Index, dtype_of
from ..scalars.values import MOST, Bool, Int, Scalar, as_value, compare, convert, is_scalar, wrap
from ..tracing.state import current
from .building import annotate_errors, built, drop, name_value, truth
from .loop_range import Range
from .loop_variables import LoopVariables
from .variables import Temporary, Variable

Watcher = Callable[[str, Sequence[Variable]], object]
"""Observes each loop after it is built: `for` or `while`, and the variables that it may change."""

WATCHER: ContextVar[Watcher | None] = ContextVar("tilefold_loops", default=None)


def _tell(kind: str, variables: Sequence[Variable]) -> None:
    if (watcher := WATCHER.get()) is not None:
        watcher(kind, variables)


def counted_loop(range: Range, body: Callable[[object], object], variables: Sequence[Variable]) -> None:
    """An `scf.for` whose body is given the counter, of type `index`."""
    builder = current()
    carried = LoopVariables(variables)
    while True:
        carried.restore()
        block = Block(arg_types=[IndexType(), *carried.types])
        counter, *values = block.args
        carried.enter(block, values)

        def iteration(counter: SSAValue = counter) -> None:
            body(range.value_of(counter))

        with annotate_errors("the body of a loop"):
            built(iteration, block)
        if carried.learn():
            break
        drop(block)
    with builder.inside(block):
        builder.insert(scf.YieldOp(*carried.ends()))
    carried.restore()
    lower, upper, step = range.bounds()
    op = scf.ForOp(lower, upper, step, carried.starts(), Region(block))
    if range.unroll == 0 or (range.unroll is None and range.is_static and _indexes_fragments(block)):
        op.attributes[UNROLL] = UnitAttr()
    elif range.unroll is not None:
        op.attributes[UNROLL] = IntegerAttr(range.unroll, i64)
    builder.insert(op)
    for argument, result, name in zip(block.args[1:], op.res, carried.names, strict=True):
        name_value(argument, name)
        name_value(result, name)
    carried.finish(op.res)
    _tell("for", variables)


def _indexes_fragments(block: Block) -> bool:
    """Whether a loop's body accesses elements of fragments, or views of them, at coordinates that differ by iteration:
    those that depend on the counter or on carried values, not those of a loop within.
    """
    varying: set[SSAValue] = set(block.args)
    for op in block.walk():
        if isinstance(op, LoadOp | StoreOp | SliceOp):
            place = next(i for i, x in enumerate(op.operands) if isinstance(x.type, TensorType | CoordTensorType))
            type = op.operands[place].type
            is_fragment = isinstance(type, TensorType) and type.space.data is RMEM
            if is_fragment and not varying.isdisjoint(op.operands[place + 1 :]):
                return True
        if isinstance(op, scf.ForOp):
            starts = zip(op.body.block.args[1:], op.iter_args, strict=True)
            varying.update(argument for argument, start in starts if start in varying)
            if not varying.isdisjoint((op.lb, op.ub, op.step)):
                varying.add(op.body.block.args[0])
        elif isinstance(op, scf.YieldOp) and (around := op.parent_op()) is not None:
            varying.update(result for result, x in zip(around.results, op.operands, strict=False) if x in varying)
        elif not varying.isdisjoint(op.operands):
            varying.update(op.results)
    return False


def conditional_loop(test: Callable[[], Scalar], body: Callable[[], object], variables: Sequence[Variable]) -> None:
    """An `scf.while`: `test` is built before each iteration."""
    builder = current()
    carried = LoopVariables(variables)
    while True:
        carried.restore()
        types = carried.types
        before, after = Block(arg_types=types), Block(arg_types=types)
        carried.enter(before, before.args)
        box = Temporary("the condition")
        with annotate_errors("the condition of a loop"):
            built(lambda box=box: box.set(truth(test())), before)
        right = carried.learn()
        if right:
            passed: list[SSAValue] = []
            built(lambda passed=passed: passed.extend(carried.ends()), before)
            condition = box.value
            assert isinstance(condition, Bool)
            with builder.inside(before):
                builder.insert(scf.ConditionOp(condition.ssa, *passed))
            carried.enter(after, after.args)
            with annotate_errors("the body of a loop"):
                built(body, after)
            right = carried.learn()
        if right:
            break
        drop(after)
        drop(before)
    with builder.inside(after):
        builder.insert(scf.YieldOp(*carried.ends()))
    carried.restore()
    op = scf.WhileOp(carried.starts(), types, Region(before), Region(after))
    builder.insert(op)
    for values in (before.args, after.args, op.res):
        for value, name in zip(values, carried.names, strict=True):
            name_value(value, name)
    carried.finish(op.res)
    _tell("while", variables)


def write_bounded_loop(
    range: Range, stopped: Variable, body: Callable[[object], object], variables: Sequence[Variable]
) -> None:
    """A counted loop that `stopped` ends early, as an `scf.while`. Raises TilefoldError (E2007) for a loop that is to
    be unrolled.
    """
    if range.unroll is not None:
        raise TilefoldError(
            Code.LOOP_HINT,
            "a loop with 'break' or 'return' cannot be unrolled",
            "leave out unroll, or write the rest of the body under an 'if'",
        )
    count = Temporary("the counter of the loop", convert(0, Index))

    def more() -> Scalar:
        flag = stopped.get()
        assert is_scalar(flag)
        left = compare("lt", _counter(count), range.count())
        return left if flag is False else left & (truth(flag) ^ True)

    def iteration() -> None:
        now = _counter(count)
        body(range.nth(now))
        count.set(now + 1)

    conditional_loop(more, iteration, [*variables, count])


def _counter(count: Temporary) -> Int:
    value = count.get()
    assert isinstance(value, Int)
    return Int(value.ssa, Index, value.known, (0, MOST))


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
