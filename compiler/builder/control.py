# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Branches and loops of the kernel: `scf.if`, `scf.for` and `scf.while` on variables.

The functions of this file decide nothing in Python: a condition is a predicate of the kernel, and a loop becomes a
loop. `dispatch` is what decides.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, UnitAttr, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import Pure

from ...dialects.tile import CoordTensorType, LoadOp, SliceOp, Space, StoreOp, TensorType
from ...layout.errors import Code, TilefoldError
from ...passes.emitter import UNROLL
from .carry import (
    CONTAINERS_DIFFER,
    SAME_LENGTH,
    Kind,
    LoopVariables,
    as_ssa,
    common_dtype,
    difference,
    filled,
    forget,
    here,
    is_pending,
    kind_of,
    shown,
    taken,
)
from .dtypes import Boolean, Index
from .fragments import Home, Vec
from .ranges import Range
from .state import current
from .values import Bool, Int, Scalar, Value, compare, convert
from .variables import MISSING, Box, Tree, Variable, is_carried, same


def truth(x: Scalar) -> Bool:
    """Whether a value is true, as a predicate: a number where it is not 0."""
    if isinstance(x, Value) and x.dtype != Boolean:
        return compare("ne", x, 0)
    return convert(x, Boolean)


@contextmanager
def _noted(what: str) -> Generator[None, None, None]:
    """An exception of the user's code says that it was raised while a path was built, not while it ran."""
    try:
        yield
    except TilefoldError:
        raise
    except Exception as error:
        if not isinstance(error, NameError):
            error.add_note(f"while the kernel was built; {what} is built whether or not it will be executed")
        raise


def _built(function: Callable[[], object], block: Block) -> None:
    with current().inside(block):
        function()


def branch(
    condition: Bool, then: Callable[[], object], otherwise: Callable[[], object], variables: Sequence[Variable]
) -> None:
    """Both paths of an `scf.if`, and after it in each variable what the path that is taken leaves in it.

    A variable that the paths leave with things that cannot become one has no value afterwards.
    """
    before = [taken(variable) for variable in variables]
    blocks = Block(), Block()
    ends: list[list[Tree | None]] = []
    for block, function in zip(blocks, (then, otherwise), strict=True):
        with _noted("each branch of an 'if' on a value of the kernel"):
            _built(function, block)
        ends.append([taken(variable) for variable in variables])
        for variable, tree in zip(variables, before, strict=True):
            variable.set(MISSING if tree is None else tree.rebuilt(tree.leaves))
    merges = [
        _Merge(variable, tree, *pair) for variable, tree, *pair in zip(variables, before, ends[0], ends[1], strict=True)
    ]
    results = [kind for merge in merges for kind in merge.kinds]
    names = [merge.variable.name for merge in merges for _ in merge.kinds]
    for side, block in enumerate(blocks):
        with current().inside(block):
            current().insert(scf.YieldOp(*(ssa for merge in merges for ssa in merge.yielded(side))))
    costs = [op for block in blocks for op in _body(block)]
    if results and len(costs) <= _MOST_CHEAP and all(map(_is_speculatable, costs)):
        values = _selected(condition, blocks)
    elif results or any(map(_body, blocks)):
        values = _if(condition, results, blocks)
    else:
        values = []
    for ssa, name in zip(values, names, strict=True):
        name_value(ssa, name)
    for merge in merges:
        count = len(merge.kinds)
        merge.finish(values[:count])
        values = values[count:]


def _body(block: Block) -> list[Operation]:
    """The operations of a block but its terminator."""
    return list(block.ops)[:-1]


def _if(condition: Bool, results: Sequence[Kind], blocks: tuple[Block, Block]) -> list[SSAValue]:
    then, otherwise = (Region(block) for block in blocks)
    if not results and not _body(blocks[1]):
        otherwise = Region()
    op = scf.IfOp(condition.ssa, [kind.ir for kind in results], then, otherwise)
    current().insert(op)
    return list(op.results)


_CHEAP = (
    arith.ConstantOp, arith.CmpiOp, arith.CmpfOp, arith.AddiOp, arith.SubiOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp,
    arith.IndexCastOp, arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp, arith.SelectOp, arith.MinSIOp, arith.MaxSIOp,
)  # fmt: skip
"""What costs less than a branch, and is defined for all operands."""

_MOST_CHEAP = 8


def _is_speculatable(op: Operation) -> bool:
    return isinstance(op, _CHEAP) and op.has_trait(Pure)


def _selected(condition: Bool, blocks: tuple[Block, Block]) -> list[SSAValue]:
    """The operations of both paths, and a selection of the results."""
    pairs: list[list[SSAValue]] = []
    for block in blocks:
        *body, end = block.ops
        pairs.append(list(end.operands))
        for op in body:
            block.detach_op(op)
            current().block.add_op(op)
        end.detach()
        end.erase()
    found: list[SSAValue] = []
    for a, b in zip(*pairs, strict=True):
        op = arith.SelectOp(condition.ssa, a, b)
        current().insert(op)
        found.append(op.result)
    return found


class _Merge:
    """What two paths leave in a variable, as one."""

    def __init__(self, variable: Variable, before: Tree | None, then: Tree | None, other: Tree | None) -> None:
        self.variable = variable
        self.before = before
        self.problem = ""
        if is_pending(then) and other is not None and not is_pending(other):
            then = filled(other)
        elif is_pending(other) and then is not None and not is_pending(then):
            other = filled(then)
        self.paths = then, other
        self.merged: list[Kind | Home | None] = []
        if then is None or other is None:
            if then is not other:
                self.problem = "has a value on one path only"
        elif then.shape != other.shape:
            self.problem = f"{CONTAINERS_DIFFER} on one path"
        else:
            for a, b in zip(then.leaves, other.leaves, strict=True):
                self.merged.append(self._leaf(a, b))
        if self.problem:
            self.merged = []

    def _leaf(self, a: object, b: object) -> Kind | Home | None:
        """As what a leaf is carried; None if it is the same on both paths."""
        if same(a, b):
            return None
        if isinstance(a, Vec) and isinstance(b, Vec) and (home := Home(a)).holds(b):
            return home
        if is_carried(a) and is_carried(b):
            dtype = common_dtype(a, b)
            if dtype is not None:
                return kind_of(a, dtype).joined(kind_of(b, dtype))
        self.problem = "is {} on one path and {} on the other".format(*difference(a, b))
        return None

    @property
    def kinds(self) -> list[Kind]:
        return [kind for kind in self.merged if isinstance(kind, Kind)]

    def yielded(self, side: int) -> list[SSAValue]:
        """The values of one path, at the end of the current block."""
        tree = self.paths[side]
        if tree is None:
            return []
        pairs: list[tuple[Any, Kind | Home | None]] = list(zip(tree.leaves, self.merged, strict=bool(self.merged)))
        for leaf, home in pairs:
            if isinstance(home, Home):
                home.write(leaf)
        return [as_ssa(leaf, kind.dtype) for leaf, kind in pairs if isinstance(kind, Kind)]

    def finish(self, values: Sequence[SSAValue]) -> None:
        """Sets the variable, `values` for what is carried."""
        then, other = self.paths
        if self.problem:
            forget(
                self.variable,
                f"{shown(self.variable)} has no value here: it {self.problem} of the 'if' at {here()}",
                SAME_LENGTH
                if CONTAINERS_DIFFER in self.problem
                else "give it a value of one type before the 'if' or on both paths; .to(...) converts",
            )
        elif then is None or other is None:
            self.variable.set(MISSING)
        else:
            rest = iter(values)
            pairs = zip(then.leaves, self.merged, strict=True)
            leaves = [_merged(leaf, kind, rest) for leaf, kind in pairs]
            mine = self.before is not None and then.container is other.container is self.before.container
            self.variable.set(then.rebuilt(leaves, fresh=not mine))


def _merged(leaf: object, kind: Kind | Home | None, values: Iterator[SSAValue]) -> object:
    if kind is None:
        return leaf
    return kind.left() if isinstance(kind, Home) else kind.value(next(values))


def counted_loop(range: Range, body: Callable[[Any], object], variables: Sequence[Variable]) -> None:
    """An `scf.for` whose body is given the counter, of type `index`."""
    builder = current()
    carried = LoopVariables(variables)
    while True:
        carried.restore()
        block = Block(arg_types=[IndexType(), *carried.types])
        counter, *values = block.args
        carried.enter(values)

        def iteration(counter: SSAValue = counter) -> None:
            body(range.value_of(counter))

        with _noted("the body of a loop"):
            _built(iteration, block)
        if carried.learn():
            break
        _drop(block)
    with builder.inside(block):
        builder.insert(scf.YieldOp(*carried.ends()))
    carried.restore()
    lower, upper, step = range.bounds()
    op = scf.ForOp(lower, upper, step, carried.starts(), Region(block))
    if range.unroll == 0 or (range.unroll is None and range.is_static and _indexes_fragments(block)):
        op.attributes[UNROLL] = UnitAttr()
    elif range.unroll is not None and range.unroll > 1:
        op.attributes[UNROLL] = IntegerAttr(range.unroll, i64)
    builder.insert(op)
    for argument, result, name in zip(block.args[1:], op.res, carried.names, strict=True):
        name_value(argument, name)
        name_value(result, name)
    carried.finish(op.res)


def _indexes_fragments(block: Block) -> bool:
    """Whether a loop's body accesses elements of fragments, or views of them, at coordinates that differ by iteration:
    those that depend on the counter or on what is carried, not those of a loop within.
    """
    varying: set[SSAValue] = set(block.args)
    for op in block.walk():
        if isinstance(op, LoadOp | StoreOp | SliceOp):
            place = next(i for i, x in enumerate(op.operands) if isinstance(x.type, TensorType | CoordTensorType))
            type = op.operands[place].type
            is_fragment = isinstance(type, TensorType) and type.space.data is Space.Rmem
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
        carried.enter(before.args)
        box = Box("the condition")
        with _noted("the condition of a loop"):
            _built(lambda box=box: box.set(truth(test())), before)
        right = carried.learn()
        if right:
            passed: list[SSAValue] = []
            _built(lambda passed=passed: passed.extend(carried.ends()), before)
            condition = box.value
            assert isinstance(condition, Bool)
            with builder.inside(before):
                builder.insert(scf.ConditionOp(condition.ssa, *passed))
            carried.enter(after.args)
            with _noted("the body of a loop"):
                _built(body, after)
            right = carried.learn()
        if right:
            break
        _drop(after)
        _drop(before)
    with builder.inside(after):
        builder.insert(scf.YieldOp(*carried.ends()))
    carried.restore()
    op = scf.WhileOp(carried.starts(), types, Region(before), Region(after))
    builder.insert(op)
    for values in (before.args, after.args, op.res):
        for value, name in zip(values, carried.names, strict=True):
            name_value(value, name)
    carried.finish(op.res)


class _Attempt:
    """What is built within `discarded`; `keep` says that it stays."""

    def __init__(self) -> None:
        self.kept = False

    def keep(self) -> None:
        """Keeps what was built."""
        self.kept = True


@contextmanager
def discarded(variables: Sequence[Variable]) -> Generator[_Attempt, None, None]:
    """Within it, operations are built that are forgotten at the end unless they are kept, as are the variables."""
    trees = [taken(variable) for variable in variables]
    block, attempt = Block(), _Attempt()
    with current().inside(block):
        yield attempt
    if attempt.kept:
        for op in list(block.ops):
            block.detach_op(op)
            current().block.add_op(op)
        return
    _drop(block)
    for variable, tree in zip(variables, trees, strict=True):
        variable.set(MISSING if tree is None else tree.rebuilt(tree.leaves))


def _drop(block: Block) -> None:
    """Forgets what was built in a block."""
    block.erase(safe_erase=False)


def name_value(value: SSAValue, name: str) -> None:
    """Names a value as a variable is, if the IR can have the name."""
    if name.isidentifier() and name.isascii() and not name.startswith("_"):
        value.name_hint = name


def bounded(range: Range, stopped: Variable, body: Callable[[Any], object], variables: Sequence[Variable]) -> None:
    """A counted loop that `stopped` ends early, as an `scf.while`. Raises TilefoldError (E2007) for a loop that is to
    be unrolled.
    """
    if range.unroll is not None:
        raise TilefoldError(
            Code.LOOP_HINT,
            "a loop with 'break' or 'return' cannot be unrolled",
            "leave out unroll, or test in the body",
        )
    count = Box("the counter of the loop", convert(0, Index))

    def more() -> Scalar:
        flag = stopped.get()
        assert is_carried(flag)
        left = compare("lt", _counter(count), range.count())
        return left if flag is False else left & (truth(flag) ^ True)

    def iteration() -> None:
        now = _counter(count)
        body(range.nth(now))
        count.set(now + 1)

    conditional_loop(more, iteration, [*variables, count])


def _counter(count: Box) -> Int:
    value = count.get()
    assert isinstance(value, Int)
    return Int(value.ssa, Index, value.known, nonnegative=True)
