# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The variables that loops carry, found by building the body: first as if only values were carried and all
facts about integers stayed true, then again without the assumptions that failed.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, Block, SSAValue

from ..scalars.casts import weak_type
from ..scalars.values import Value, is_scalar
from ..tensors.fragments import CarriedFragment, Vec
from ..tracing.state import current
from .building import (
    CONTAINERS_DIFFER,
    SAME_LENGTH,
    CarriedType,
    common_dtype,
    current_line,
    difference,
    drop,
    fill,
    forget,
    is_pending,
    joined_dtype,
    kind_of,
    put_back,
    shared,
    shown,
    taken,
)
from .decompose import Roots, Strategy
from .objects import is_made_anew
from .variables import MISSING, Tree, Variable, is_same

_CHANGES = 5
"""How often the type of a leaf may turn out to be another."""
_ONE_TYPE = (
    "make it one type by .to(...), or assign it before it is used; a tensor may become another one of its type and its "
    "layout that is made before the loop"
)


@dataclass
class _Slot:
    """A leaf of a variable in a loop: its value before, and, if the loop carries it, its kind."""

    start: object
    kind: CarriedType | None = None
    changes: int = 0
    home: CarriedFragment | None = None  # of a fragment that the loop changes
    entered: object = None  # the fragment as the iteration found it
    anew: bool = False  # whether it is an object that the loop makes anew

    def held(self, after: bool) -> object:
        """A leaf that is not carried as a value, as it is when an iteration begins, or after the loop."""
        if self.home is None:
            return copy.copy(self.start) if self.anew else self.start
        self.entered = self.home.left() if after else self.home.entered()
        return self.entered


class _Carried:
    """A variable in a loop."""

    def __init__(self, variable: Variable, roots: Roots) -> None:
        self.variable = variable
        self.tree = taken(variable)
        self.lost: tuple[str, str] | None = None  # why it has no value when an iteration begins
        self.is_same_container = True  # the body changes the container and makes no new one
        self.before = self.tree
        self.whole: tuple[str, str] | None = None  # why views are decomposed: how they differ as a whole, and a hint
        self.strategies: list[Strategy] = [roots, "distance", "coordinates"]  # not tried yet, the last one first
        self.strategy: Strategy = "coordinates"
        self.slots = self._slots()

    def _slots(self) -> list[_Slot]:
        leaves = () if self.tree is None else self.tree.leaves
        if self.variable.is_stable or self.whole:  # few of a view's coordinates change
            return [_Slot(leaf) for leaf in leaves]
        return [_Slot(leaf, kind_of(leaf, leaf.dtype).in_loop if isinstance(leaf, Value) else None) for leaf in leaves]

    @property
    def kinds(self) -> list[CarriedType]:
        """The carried leaves, in order."""
        return [] if self.lost else [slot.kind for slot in self.slots if slot.kind is not None]

    def filled(self, values: Sequence[SSAValue], after: bool = False) -> list[object]:
        """The leaves with these for the carried ones, in an iteration or after the loop."""
        rest = iter(values)
        return [slot.held(after) if slot.kind is None else slot.kind.value(next(rest)) for slot in self.slots]

    def restore(self) -> None:
        """Restores the value from before the loop."""
        put_back(self.variable, self.tree)

    def enter(self, values: Sequence[SSAValue]) -> None:
        """Sets the value with which an iteration begins."""
        if self.tree is None or self.lost:
            self.variable.set(MISSING)
            current().unbound[self.variable.name] = self.lost or _only_in_loop(self.variable)
        else:
            self.variable.set(self.tree.rebuilt(self.filled(values)))

    def learn(self) -> bool:
        """Compares its value after an iteration with the assumptions; returns whether they held."""
        if self.tree is None or self.lost:
            return True
        with current().body(scratch := Block()):  # of the distances of views only the facts are wanted
            now = self._now()
        drop(scratch)
        if now is None:
            self.lost = current().unbound.get(self.variable.name) or _only_in_loop(self.variable)
            return False
        if is_pending(self.tree) and not is_pending(now):
            self.tree = fill(now)
            self.slots = [
                _Slot(start, kind_of(leaf, leaf.dtype).in_loop if isinstance(leaf, Value) else None)
                for start, leaf in zip(self.tree.leaves, now.leaves, strict=True)
            ]
            return False
        if now.shape != self.tree.shape:
            return self._lose(CONTAINERS_DIFFER + " after an iteration", SAME_LENGTH)
        self.is_same_container = now.container is self.tree.container
        right, slots = True, self.slots
        for slot, leaf in zip(slots, now.leaves, strict=True):
            right &= self._learn_leaf(slot, leaf)
            if self.slots is not slots:
                break  # its views are decomposed from now on
        return right

    def _learn_leaf(self, slot: _Slot, leaf: object) -> bool:
        if slot.kind is None and is_same(slot.start, leaf):
            return True
        if is_made_anew(slot.start, leaf):
            known, slot.anew = slot.anew, True
            return known
        if isinstance(slot.start, Vec) and isinstance(leaf, Vec):
            known = slot.home is not None
            if slot.home is None:
                slot.home = CarriedFragment(slot.start)
                slot.home.write(slot.start)
            if slot.home.holds(leaf):
                return known
        differs = "is {} before the loop and {} after an iteration".format(*difference(slot.start, leaf))
        if not is_scalar(leaf) or not is_scalar(slot.start):
            return self._lose(differs)
        if slot.kind is None or (not isinstance(slot.start, Value) and isinstance(leaf, Value)):
            dtype = common_dtype(slot.start, leaf)
        else:
            held = leaf.dtype if isinstance(leaf, Value) else weak_type(leaf, slot.kind.dtype)
            dtype = joined_dtype(slot.kind.dtype, held)
        if dtype is None:
            return self._lose(differs)
        joined = kind_of(slot.start, dtype).joined(kind_of(leaf, dtype).counted).in_loop
        before = slot.kind
        if before is None or before.dtype != dtype:
            slot.kind, slot.changes = joined, slot.changes + 1
            if slot.changes > _CHANGES:
                return self._lose("is of another type after each iteration")
        else:
            slot.kind = before.joined(joined).in_loop
        return before == slot.kind

    def _now(self) -> Tree | None:
        """The variable after an iteration, in parts as the tree before the loop. Attributes that only an iteration
        gives to an object end with it.
        """
        now = taken(self.variable)
        if now is None or self.before is None:
            return now
        now = shared(now, self.before, f"in an iteration of the loop at {current_line()}")
        return now.decompose(self.strategy) if self.whole else now

    def _lose(self, problem: str, hint: str = _ONE_TYPE) -> bool:
        """Leaves the variable without a value, unless its views, decomposed, have one."""
        assert self.before is not None
        problem, hint = self.whole = self.whole or (problem, hint)
        while self.strategies:
            self.strategy = self.strategies.pop()
            if (decomposed := self.before.decompose(self.strategy)).shape != self.before.shape:
                self.tree = decomposed
                self.slots = self._slots()
                return False
        self.lost = f"{shown(self.variable)} has no value here: it {problem} of the loop at {current_line()}", hint
        return False

    def ends(self) -> list[SSAValue]:
        """Its leaves as values for the next iteration, at the end of the current block."""
        if self.lost or self.tree is None:
            return []
        now = self._now()
        assert now is not None
        for slot, leaf in zip(self.slots, now.leaves, strict=True):
            if slot.home is not None and leaf is not slot.entered and isinstance(leaf, Vec):
                slot.home.write(leaf)
        pairs = zip(self.slots, now.leaves, strict=True)
        return [slot.kind.ssa(leaf) for slot, leaf in pairs if slot.kind is not None]

    def starts(self) -> list[SSAValue]:
        """Its leaves before the loop as values for the first iteration."""
        return [] if self.lost else [kind.ssa(slot.start) for slot in self.slots if (kind := slot.kind)]

    def finish(self, values: Sequence[SSAValue]) -> None:
        """Sets the value after the loop."""
        if self.tree is None:
            if self.variable.get() is not MISSING:
                forget(self.variable, *_only_in_loop(self.variable))
        elif self.lost:
            self.tree.rebuilt(self.tree.leaves)
            forget(self.variable, *self.lost)
        else:
            self.variable.set(self.tree.rebuilt(self.filled(values, after=True), fresh=not self.is_same_container))


def _only_in_loop(variable: Variable) -> tuple[str, str]:
    return (
        f"{shown(variable)} has no value here: only the loop at {current_line()} gives it one, in an iteration",
        "give it a value before the loop",
    )


class LoopVariables:
    """The variables of a loop, as its body is built, perhaps several times."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        roots = Roots(current().open_blocks)
        self._all = [_Carried(variable, roots) for variable in variables]

    @property
    def types(self) -> list[Attribute]:
        """The types of the carried values."""
        return [kind.ir for carried in self._all for kind in carried.kinds]

    @property
    def names(self) -> list[str]:
        """The variable's name for each carried value."""
        return [carried.variable.name for carried in self._all for _ in carried.kinds]

    def restore(self) -> None:
        """Restores the variables from before the loop."""
        for carried in self._all:
            carried.restore()

    def enter(self, block: Block, values: Sequence[SSAValue]) -> None:
        """Sets the variables with which an iteration begins, in its block: `values` are the carried ones."""
        with current().body(block):
            for carried, own in self._shared(values):
                carried.enter(own)

    def learn(self) -> bool:
        """After an iteration: whether the assumptions about the variables held. If not, build the body again."""
        return all([carried.learn() for carried in self._all])

    def starts(self) -> list[SSAValue]:
        """The values for the first iteration, at the end of the current block."""
        return [ssa for carried in self._all for ssa in carried.starts()]

    def ends(self) -> list[SSAValue]:
        """The values for the next iteration, at the end of the current block."""
        return [ssa for carried in self._all for ssa in carried.ends()]

    def finish(self, values: Sequence[SSAValue]) -> None:
        """Sets the variables after the loop: `values` are the carried ones."""
        for carried, own in self._shared(values):
            carried.finish(own)

    def _shared(self, values: Sequence[SSAValue]) -> list[tuple[_Carried, Sequence[SSAValue]]]:
        shares: list[tuple[_Carried, Sequence[SSAValue]]] = []
        at = 0
        for carried in self._all:
            count = len(carried.kinds)
            shares.append((carried, values[at : at + count]))
            at += count
        return shares
