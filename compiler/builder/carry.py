# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What control flow hands on: of which type a leaf is on all paths, and what loops carry.

Numbers of Python take the type of the values that they meet, and stay numbers where nothing changes them. What a loop
carries is found by building its body: first as if only values were carried and everything known of an integer stayed
true, then again with what turned out otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from xdsl.ir import Attribute, SSAValue

from ...layout.errors import Code, TilefoldError
from ...layout.unknown import Unknown
from .dtypes import DType, promote
from .flow import RESULT
from .fragments import Home, Vec
from .places import user_place
from .state import current
from .values import Int, Scalar, Value, common_type, convert, is_scalar, weak_type, wrap
from .variables import MISSING, PENDING, Box, Tree, Variable, same, tree_of

_CHANGES = 5
"""How often the type of a leaf may turn out to be another."""


@dataclass(frozen=True)
class Kind:
    """The type of a carried leaf, and of an integer what divides it (0 divides nothing but 0) and whether it is known
    not to be negative.
    """

    dtype: DType
    div: int = 1
    nonnegative: bool = False

    def value(self, ssa: SSAValue) -> Value:
        """The SSA value as a leaf."""
        if self.dtype.kind == "int":
            return Int(ssa, self.dtype, Unknown(self.dtype.bits, max(self.div, 1)), self.nonnegative)
        return wrap(ssa, self.dtype)

    def ssa(self, leaf: Any) -> SSAValue:
        """A leaf as an SSA value, at the end of the current block."""
        return convert(leaf, self.dtype).ssa

    @property
    def ir(self) -> Attribute:
        """The type in the IR."""
        return self.dtype.ir

    def joined(self, other: "Kind") -> "Kind":
        """What is true of both, which are of one type."""
        return Kind(self.dtype, gcd(self.div, other.div), self.nonnegative and other.nonnegative)


def kind_of(leaf: Scalar, dtype: DType) -> Kind:
    """What is known of a leaf that is carried as `dtype`."""
    if isinstance(leaf, Int):
        return Kind(dtype, leaf.known.div, leaf.nonnegative)
    if isinstance(leaf, int) and dtype.kind == "int":
        return Kind(dtype, abs(leaf), leaf >= 0)
    return Kind(dtype)


def common_dtype(a: Scalar, b: Scalar) -> DType | None:
    """The type that two leaves have on all paths; None where there is none. A number takes the type of a value that can
    hold it, and an integer that of a wider one.
    """
    if isinstance(a, Value):
        return _joined(a.dtype, b.dtype if isinstance(b, Value) else weak_type(b, a.dtype))
    if isinstance(b, Value):
        return _joined(weak_type(a, b.dtype), b.dtype)
    return common_type(a, b)


def _joined(a: DType, b: DType) -> DType | None:
    if a == b:
        return a
    return promote(a, b) if a.kind == b.kind == "int" and a.unsigned == b.unsigned else None


def describe(leaf: object) -> str:
    """A leaf in messages."""
    if isinstance(leaf, Value):
        return f"of type {leaf.dtype}"
    if leaf is None or isinstance(leaf, bool | int | float | str):
        return repr(leaf)
    return f"a {type(leaf).__name__}"


def difference(a: object, b: object) -> tuple[str, str]:
    """Two leaves that differ, in messages."""
    first, second = describe(a), describe(b)
    return first, second.replace("a ", "another ", 1) if first == second else second


def forget(variable: Variable, reason: str, hint: str = "") -> None:
    """Leaves a variable without a value; its use is an error with this reason."""
    current().unbound[variable.name] = reason, hint
    variable.set(MISSING)


def shown(variable: Variable) -> str:
    """A variable in messages."""
    if variable.name == RESULT:
        return "what the function returns"
    return f"'{variable.name}'" if variable.name.isidentifier() else variable.name


def here() -> str:
    """The line of the user's code that is being executed, in messages."""
    place = user_place()
    return f"line {place.line}" if place is not None else "an unknown line"


def filled(tree: Tree) -> Tree:
    """A tree for a path on which nothing reads it: zeros for values, which would be those of another path."""
    return replace(tree, leaves=tuple(_zero(leaf) if isinstance(leaf, Value) else leaf for leaf in tree.leaves))


def _zero(value: Value) -> int | bool:
    return False if value.dtype.kind == "bool" else 0


def result_of(box: Box) -> object:
    """What paths leave in a variable. Raises TilefoldError (E5006) where that cannot become one."""
    if box.value is MISSING:
        reason, hint = current().unbound.get(box.name, (f"{box.name} has no value", ""))
        raise TilefoldError(Code.BUILD_CARRIED, reason, hint)
    return box.value


def is_pending(tree: Tree | None) -> bool:
    """Whether it is the result of a function that has not returned."""
    return tree is not None and tree.node is None and tree.leaves[0] is PENDING


def taken(variable: Variable) -> Tree | None:
    """What a variable holds; None for nothing."""
    value = variable.get()
    return None if value is MISSING else tree_of(value)


def put_back(variable: Variable, tree: Tree | None) -> None:
    """Makes a variable hold what was taken, also in the containers that have changed since."""
    variable.set(MISSING if tree is None else tree.rebuilt(tree.leaves))


CONTAINERS_DIFFER = "holds containers of other lengths or keys"
SAME_LENGTH = "give it that length before, and set elements instead of adding them"
ONE_TYPE = (
    "make it one type by .to(...), or assign it before it is used; of a tensor carry the coordinate, and take the view "
    "in the loop"
)


@dataclass
class _Slot:
    """A leaf of a variable in a loop: what it is before, and, if the loop carries it, as what."""

    start: object
    kind: Kind | None = None
    changes: int = 0
    home: Home | None = None  # of a fragment that the loop changes
    entered: object = None  # the fragment as the iteration found it

    def found(self, after: bool) -> object:
        """What an iteration finds, or what is found after the loop, of a leaf that is no value."""
        if self.home is None:
            return self.start
        self.entered = self.home.left() if after else self.home.entered()
        return self.entered


class _Carried:
    """A variable in a loop."""

    def __init__(self, variable: Variable) -> None:
        self.variable = variable
        self.tree = taken(variable)
        self.lost: tuple[str, str] | None = None  # why it has no value when an iteration begins
        self.kept = True  # the body changes the container and makes no new one
        self.slots = self._slots()

    def _slots(self) -> list[_Slot]:
        leaves = () if self.tree is None else self.tree.leaves
        if self.variable.watched:
            return [_Slot(leaf) for leaf in leaves]
        return [_Slot(leaf, kind_of(leaf, leaf.dtype) if isinstance(leaf, Value) else None) for leaf in leaves]

    @property
    def kinds(self) -> list[Kind]:
        """What is carried, in its order."""
        return [] if self.lost else [slot.kind for slot in self.slots if slot.kind is not None]

    def filled(self, values: Sequence[SSAValue], after: bool = False) -> list[object]:
        """The leaves with these for the carried ones, in an iteration or after the loop."""
        rest = iter(values)
        return [slot.found(after) if slot.kind is None else slot.kind.value(next(rest)) for slot in self.slots]

    def restore(self) -> None:
        """What it held before the loop."""
        put_back(self.variable, self.tree)

    def enter(self, values: Sequence[SSAValue]) -> None:
        """What it holds when an iteration begins."""
        if self.tree is None or self.lost:
            self.variable.set(MISSING)
            current().unbound[self.variable.name] = self.lost or _only_in_loop(self.variable)
        else:
            self.variable.set(self.tree.rebuilt(self.filled(values)))

    def learn(self) -> bool:
        """Compares what it holds after an iteration with what was thought; whether that was right."""
        if self.tree is None or self.lost:
            return True
        now = taken(self.variable)
        if now is None:
            self.lost = current().unbound.get(self.variable.name) or _only_in_loop(self.variable)
            return False
        if is_pending(self.tree) and not is_pending(now):
            self.tree = filled(now)
            self.slots = [
                _Slot(start, kind_of(leaf, leaf.dtype) if isinstance(leaf, Value) else None)
                for start, leaf in zip(self.tree.leaves, now.leaves, strict=True)
            ]
            return False
        if now.shape != self.tree.shape:
            return self._lose(CONTAINERS_DIFFER + " after an iteration", SAME_LENGTH)
        self.kept = now.container is self.tree.container
        right = True
        for slot, leaf in zip(self.slots, now.leaves, strict=True):
            right &= self._learn_leaf(slot, leaf)
        return right

    def _learn_leaf(self, slot: _Slot, leaf: object) -> bool:
        if slot.kind is None and same(slot.start, leaf):
            return True
        if isinstance(slot.start, Vec) and isinstance(leaf, Vec):
            known = slot.home is not None
            if slot.home is None:
                slot.home = Home(slot.start)
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
            dtype = _joined(slot.kind.dtype, held)
        if dtype is None:
            return self._lose(differs)
        joined = kind_of(slot.start, dtype).joined(kind_of(leaf, dtype))
        before = slot.kind
        if before is None or before.dtype != dtype:
            slot.kind, slot.changes = joined, slot.changes + 1
            if slot.changes > _CHANGES:
                return self._lose("is of another type after each iteration")
        else:
            slot.kind = before.joined(joined)
        return before == slot.kind

    def _lose(self, problem: str, hint: str = ONE_TYPE) -> bool:
        self.lost = f"{shown(self.variable)} has no value here: it {problem} of the loop at {here()}", hint
        return False

    def ends(self) -> list[SSAValue]:
        """What it holds, as the values that the next iteration gets, at the end of the current block."""
        if self.lost or self.tree is None:
            return []
        now = taken(self.variable)
        assert now is not None
        for slot, leaf in zip(self.slots, now.leaves, strict=True):
            if slot.home is not None and leaf is not slot.entered and isinstance(leaf, Vec):
                slot.home.write(leaf)
        pairs = zip(self.slots, now.leaves, strict=True)
        return [slot.kind.ssa(leaf) for slot, leaf in pairs if slot.kind is not None]

    def starts(self) -> list[SSAValue]:
        """What it held before the loop, as the values that the first iteration gets."""
        return [] if self.lost else [kind.ssa(slot.start) for slot in self.slots if (kind := slot.kind)]

    def finish(self, values: Sequence[SSAValue]) -> None:
        """What it holds after the loop."""
        if self.tree is None:
            if self.variable.get() is not MISSING:
                forget(self.variable, *_only_in_loop(self.variable))
        elif self.lost:
            self.tree.rebuilt(self.tree.leaves)
            forget(self.variable, *self.lost)
        else:
            self.variable.set(self.tree.rebuilt(self.filled(values, after=True), fresh=not self.kept))


def _only_in_loop(variable: Variable) -> tuple[str, str]:
    return (
        f"{shown(variable)} has no value here: only the loop at {here()} gives it one, in an iteration",
        "give it a value before the loop",
    )


class LoopVariables:
    """The variables of a loop, as its body is built, perhaps several times."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self._all = [_Carried(variable) for variable in variables]

    @property
    def types(self) -> list[Attribute]:
        """The types of what is carried."""
        return [kind.ir for each in self._all for kind in each.kinds]

    @property
    def names(self) -> list[str]:
        """The variable's name for each carried value."""
        return [each.variable.name for each in self._all for _ in each.kinds]

    def restore(self) -> None:
        """The variables as they were before the loop."""
        for each in self._all:
            each.restore()

    def enter(self, values: Sequence[SSAValue]) -> None:
        """The variables as an iteration finds them: `values` for what is carried."""
        for each, own in self._shared(values):
            each.enter(own)

    def learn(self) -> bool:
        """After an iteration: whether what was thought of the variables is right. If not, build the body again."""
        return all([each.learn() for each in self._all])

    def starts(self) -> list[SSAValue]:
        """What the first iteration gets, at the end of the current block."""
        return [ssa for each in self._all for ssa in each.starts()]

    def ends(self) -> list[SSAValue]:
        """What the next iteration gets, at the end of the current block."""
        return [ssa for each in self._all for ssa in each.ends()]

    def finish(self, values: Sequence[SSAValue]) -> None:
        """After the loop: `values` for what was carried."""
        for each, own in self._shared(values):
            each.finish(own)

    def _shared(self, values: Sequence[SSAValue]) -> list[tuple[_Carried, Sequence[SSAValue]]]:
        found: list[tuple[_Carried, Sequence[SSAValue]]] = []
        at = 0
        for each in self._all:
            count = len(each.kinds)
            found.append((each, values[at : at + count]))
            at += count
        return found
