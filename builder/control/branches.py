# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Branches of the kernel: `scf.if`, or `arith.select`, on variables."""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import Pure

from ...dialects.ptx.warp import ElectSyncOp
from ..scalars.values import Bool, is_scalar
from ..tensors.fragments import CarriedFragment, Vec
from ..tracing.state import current
from .building import (
    CONTAINERS_DIFFER,
    SAME_LENGTH,
    CarriedType,
    annotate_errors,
    built,
    common_dtype,
    current_line,
    difference,
    fill,
    forget,
    is_pending,
    kind_of,
    name_value,
    put_back,
    shared,
    shown,
    taken,
)
from .decompose import Roots, Strategy
from .objects import is_made_anew
from .variables import MISSING, Tree, Variable, is_same


def branch(
    condition: Bool, then: Callable[[], object], otherwise: Callable[[], object], variables: Sequence[Variable]
) -> None:
    """Both paths of an `scf.if`; after it each variable has the value from the path that is taken.

    A variable whose values on the two paths cannot become one has no value afterwards.
    """
    before = [taken(variable) for variable in variables]
    blocks = Block(), Block()
    if isinstance(condition.ssa.owner, ElectSyncOp):
        current().elected.append(blocks[0])
    ends: list[list[Tree | None]] = []
    for block, function in zip(blocks, (then, otherwise), strict=True):
        with annotate_errors("each branch of an 'if' on a value of the kernel"):
            built(function, block)
        ends.append([taken(variable) for variable in variables])
        for variable, tree in zip(variables, before, strict=True):
            put_back(variable, tree)
    roots = Roots(current().open_blocks)
    merges = [
        _Merge(variable, tree, paths, blocks, roots)
        for variable, tree, *paths in zip(variables, before, *ends, strict=True)
    ]
    results = [kind for merge in merges for kind in merge.kinds]
    names = [merge.variable.name for merge in merges for _ in merge.kinds]
    for side, block in enumerate(blocks):
        with current().inside(block):
            current().insert(scf.YieldOp(*(ssa for merge in merges for ssa in merge.yielded(side))))
    costs = [op for block in blocks for op in _body(block)]
    if results and len(costs) <= _MOST_CHEAP and all(map(_is_speculatable, costs)):
        values = _select(condition, blocks)
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


def _if(condition: Bool, results: Sequence[CarriedType], blocks: tuple[Block, Block]) -> list[SSAValue]:
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
"""Operations that cost less than a branch and are defined for all operands."""

_MOST_CHEAP = 8


def _is_speculatable(op: Operation) -> bool:
    return isinstance(op, _CHEAP) and op.has_trait(Pure)


def _select(condition: Bool, blocks: tuple[Block, Block]) -> list[SSAValue]:
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
    selected: list[SSAValue] = []
    for a, b in zip(*pairs, strict=True):
        op = arith.SelectOp(condition.ssa, a, b)
        current().insert(op)
        selected.append(op.result)
    return selected


_Merged: TypeAlias = CarriedType | CarriedFragment | Literal[True] | None
"""How a leaf of two paths becomes one: see `_Merge`."""


class _Merge:
    """The values that two paths leave in a variable, as one."""

    def __init__(
        self,
        variable: Variable,
        before: Tree | None,
        paths: Sequence[Tree | None],
        blocks: tuple[Block, Block],
        roots: Roots,
    ) -> None:
        then, other = paths
        self.variable = variable
        self.before = before
        self.problem = ""
        if is_pending(then) and other is not None and not is_pending(other):
            then = fill(other)
        elif is_pending(other) and then is not None and not is_pending(then):
            other = fill(then)
        if then is not None and other is not None and then.shape != other.shape:
            where = f"on one path of the 'if' at {current_line()}"
            then, other = shared(then, other, where), shared(other, then, where)
        self.paths: tuple[Tree | None, Tree | None] = then, other
        self.whole = self.paths
        self.merged: list[_Merged] = []
        if then is None or other is None:
            if then is not other:
                self.problem = "has a value on one path only"
            return
        self._join(then, other)
        strategies: list[Strategy] = [roots, "distance", "coordinates"]
        while self.problem and strategies:
            self._merge_decomposed(strategies.pop(), blocks)

    def _join(self, then: Tree, other: Tree) -> None:
        if then.shape != other.shape:
            self.problem = f"{CONTAINERS_DIFFER} on one path"
            return
        self.merged = [self._leaf(a, b) for a, b in zip(then.leaves, other.leaves, strict=True)]
        if self.problem:
            self.merged = []

    def _merge_decomposed(self, strategy: Strategy, blocks: tuple[Block, Block]) -> None:
        """Joins the paths' values by the parts of their views, where these have the same ones."""
        problem, whole, parts = self.problem, self.whole, list[Tree]()
        for tree, block in zip(whole, blocks, strict=True):
            assert tree is not None
            with current().body(block):  # which computes the distances of its views
                parts.append(tree.decompose(strategy))
        then, other = parts
        if then.shape == other.shape and whole[0] is not None and then.shape != whole[0].shape:
            self.paths, self.problem = (then, other), ""
            self._join(then, other)
            self.problem = self.problem and problem

    def _leaf(self, a: object, b: object) -> _Merged:
        """The kind as which a leaf is carried; None if it is the same on both paths, True if it is made anew."""
        if is_same(a, b):
            return None
        if is_made_anew(a, b):
            return True
        if isinstance(a, Vec) and isinstance(b, Vec) and (home := CarriedFragment(a)).holds(b):
            return home
        if is_scalar(a) and is_scalar(b):
            dtype = common_dtype(a, b)
            if dtype is not None:
                return kind_of(a, dtype).joined(kind_of(b, dtype))
        self.problem = "is {} on one path and {} on the other".format(*difference(a, b))
        return None

    @property
    def kinds(self) -> list[CarriedType]:
        return [kind for kind in self.merged if isinstance(kind, CarriedType)]

    def yielded(self, side: int) -> list[SSAValue]:
        """The values of one path, at the end of the current block."""
        tree = self.paths[side]
        if tree is None:
            return []
        pairs: list[tuple[Any, _Merged]] = list(zip(tree.leaves, self.merged, strict=bool(self.merged)))
        for leaf, home in pairs:
            if isinstance(home, CarriedFragment):
                home.write(leaf)
        return [kind.ssa(leaf) for leaf, kind in pairs if isinstance(kind, CarriedType)]

    def finish(self, values: Sequence[SSAValue]) -> None:
        """Sets the variable; `values` are the carried leaves."""
        then, other = self.paths
        if self.problem:
            forget(
                self.variable,
                f"{shown(self.variable)} has no value here: it {self.problem} of the 'if' at {current_line()}",
                SAME_LENGTH
                if CONTAINERS_DIFFER in self.problem
                else "give it a value of one type before the 'if' or on both paths; .to(...) converts",
            )
        elif then is None or other is None:
            self.variable.set(MISSING)
        else:
            rest = iter(values)
            pairs = zip(then.leaves, self.merged, strict=True)
            leaves = [_merge(leaf, kind, rest) for leaf, kind in pairs]
            mine = self.before is not None and then.container is other.container is self.before.container
            self.variable.set(then.rebuilt(leaves, fresh=not mine))


def _merge(leaf: object, kind: _Merged, values: Iterator[SSAValue]) -> object:
    if kind is None or isinstance(kind, bool):
        return copy.copy(leaf) if kind else leaf
    return kind.left() if isinstance(kind, CarriedFragment) else kind.value(next(values))
