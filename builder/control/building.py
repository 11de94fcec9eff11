# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The common parts of branches and loops of the kernel: the leaves of variables that they pass on, conditions, and
building their blocks.

A leaf has a common type on all paths, or a message where the types differ. Numbers of Python take the type of the
values that they meet, and stay numbers where nothing changes them.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from xdsl.ir import Attribute, Block, SSAValue

from ...base.errors import Code, TilefoldError
from ...dialects.arith.integer_range import Range, contains, either
from ...layout.algebra.integers import Unknown
from ..scalars.dtypes import Boolean, DType, promote
from ..scalars.values import Bool, Int, Scalar, Value, check_numbers, common_type, compare, convert, weak_type, wrap
from ..tensors.fragments import Vec, full
from ..tracing.source import RESULT, user_place
from ..tracing.state import current
from .variables import MISSING, PENDING, Temporary, Tree, Variable, tree_of

_COUNTED = 5 << 59
"""The limit of loop counters, far above the numbers that programs write down."""


@dataclass(frozen=True)
class CarriedType:
    """The type of a carried leaf, and of an integer its divisor (0 for 0 alone) and its range."""

    dtype: DType
    div: int = 1
    range: Range | None = None

    def value(self, ssa: SSAValue) -> Value:
        """The SSA value as a leaf."""
        if self.dtype.kind == "int":
            return Int(ssa, self.dtype, Unknown(self.dtype.bits, max(self.div, 1)), self.range)
        return wrap(ssa, self.dtype)

    def ssa(self, leaf: Any) -> SSAValue:
        """A leaf as an SSA value, at the end of the current block. Raises TilefoldError (E5002) for a number that its
        type does not have.
        """
        check_numbers(self.dtype, leaf)
        return convert(leaf, self.dtype).ssa

    @property
    def ir(self) -> Attribute:
        """The type in the IR."""
        return self.dtype.ir

    def joined(self, other: "CarriedType") -> "CarriedType":
        """The facts that hold for two values of one type."""
        if self.range is None or other.range is None:
            return self
        return CarriedType(self.dtype, gcd(self.div, other.div), either(self.range, other.range))

    @property
    def in_loop(self) -> "CarriedType":
        """A loop's assumptions about a leaf that it changes: a nonnegative integer stays so, below a limit."""
        if self.range is None:
            return self
        spans = [(0, end) for end in (_COUNTED, (1 << (self.dtype.bits - 2)) - 1) if end < self.dtype.greatest]
        fitting = next((span for span in spans if contains(span, self.range)), self.dtype.limits)
        return CarriedType(self.dtype, self.div, fitting)

    @property
    def counted(self) -> "CarriedType":
        """The same for a leaf after an iteration, but not beyond _COUNTED: in steps up to 2**32, a loop needs years
        to get there.
        """
        if self.range is None or not _COUNTED < self.range[1] <= _COUNTED + (1 << 32) or self.range[0] > _COUNTED:
            return self
        return CarriedType(self.dtype, self.div, (self.range[0], _COUNTED))


def kind_of(leaf: Scalar, dtype: DType) -> CarriedType:
    """The facts about a leaf that is carried as `dtype`."""
    if isinstance(leaf, Int):
        return CarriedType(dtype, leaf.known.div, leaf.range)
    if isinstance(leaf, int) and dtype.kind == "int":
        return CarriedType(dtype, abs(leaf), (leaf, leaf))
    return CarriedType(dtype)


def common_dtype(a: Scalar, b: Scalar) -> DType | None:
    """The common type of two leaves; None without one. A number takes the type of a value that can
    hold it, and an integer that of a wider one.
    """
    if isinstance(a, Value):
        return joined_dtype(a.dtype, b.dtype if isinstance(b, Value) else weak_type(b, a.dtype))
    if isinstance(b, Value):
        return joined_dtype(weak_type(a, b.dtype), b.dtype)
    return common_type(a, b)


def joined_dtype(a: DType, b: DType) -> DType | None:
    """The common type of two types on two paths; None without one."""
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


def shared(tree: Tree, other: Tree, where: str) -> Tree:
    """A tree without the attributes of objects that the other one lacks; their use is an error with this reason."""
    same, lost = tree.shared(other)
    for name in lost:
        reason = f"'{name}' has no value here: the object has this attribute {where} only"
        current().unbound[f".{name}"] = reason, "give it a value before"
    return same


def shown(variable: Variable) -> str:
    """A variable in messages."""
    if variable.name == RESULT:
        return "the function's result"
    return f"'{variable.name}'" if variable.name.isidentifier() else variable.name


def current_line() -> str:
    """The line of the user's code that is being executed, in messages."""
    place = user_place()
    return f"line {place.line}" if place is not None else "an unknown line"


def fill(tree: Tree) -> Tree:
    """A tree for a path on which nothing reads it: zeros for values and fragments, which would be those of another
    path.
    """
    return replace(tree, leaves=tuple(map(_zero, tree.leaves)))


def _zero(leaf: object) -> object:
    if not isinstance(leaf, Value | Vec):
        return leaf
    zero = False if leaf.dtype.kind == "bool" else 0
    return full(leaf.shape, zero, leaf.dtype) if isinstance(leaf, Vec) else zero


def result_of(box: Temporary) -> object:
    """The value that paths leave in a variable. Raises TilefoldError (E5006) where their values cannot become one."""
    if box.value is MISSING:
        reason, hint = current().unbound.get(box.name, (f"{box.name} has no value", ""))
        raise TilefoldError(Code.BUILD_CARRIED, reason, hint)
    return box.value


def is_pending(tree: Tree | None) -> bool:
    """Whether it is the result of a function that has not returned yet."""
    return tree is not None and tree.node is None and tree.leaves[0] is PENDING


def taken(variable: Variable) -> Tree | None:
    """The value of a variable, taken apart; None without a value."""
    value = variable.get()
    return None if value is MISSING else tree_of(value)


def put_back(variable: Variable, tree: Tree | None) -> None:
    """Sets a variable to a tree taken from it, also in the containers that have changed since."""
    variable.set(MISSING if tree is None else tree.rebuilt(tree.leaves))


CONTAINERS_DIFFER = "holds containers with different lengths or keys"
SAME_LENGTH = "give it that length before, and set elements instead of adding them"


def truth(x: Scalar) -> Bool:
    """Whether a value is true, as a predicate: a number where it is not 0."""
    if isinstance(x, Value) and x.dtype != Boolean:
        return compare("ne", x, 0)
    return convert(x, Boolean)


@contextmanager
def annotate_errors(part: str) -> Generator[None, None, None]:
    """An exception of the user's code says that it was raised while a path was built, not while it ran."""
    try:
        yield
    except (TilefoldError, NameError):
        raise
    except Exception as error:
        note = f"while the kernel was built; {part} is built whether or not it will be executed"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        raise


def built(function: Callable[[], object], block: Block) -> None:
    """Builds a function's operations in a block."""
    with current().inside(block):
        function()


class _Attempt:
    """The operations built within `discarded`; `keep` keeps them."""

    def __init__(self) -> None:
        self.committed = False

    def keep(self) -> None:
        """Keeps the operations."""
        self.committed = True


@contextmanager
def discarded(variables: Sequence[Variable]) -> Generator[_Attempt, None, None]:
    """Within it, operations are built that are forgotten at the end, like the variables, unless they are committed."""
    trees = [taken(variable) for variable in variables]
    block, attempt = Block(), _Attempt()
    with current().inside(block):
        yield attempt
    if attempt.committed:
        for op in list(block.ops):
            block.detach_op(op)
            current().block.add_op(op)
        return
    drop(block)
    for variable, tree in zip(variables, trees, strict=True):
        put_back(variable, tree)


def drop(block: Block) -> None:
    """Erases a block that was built."""
    block.erase(safe_erase=False)


class Nameable:
    """An object whose parts in the IR have names after it.

    It is not derived from ABC, whose slots would give its classes another layout in memory than those that libraries
    derive from them and from a class of their own: they assign one to the `__class__` of an object of the other.
    """

    def take_name(self, name: str) -> None:
        """Takes the name of a variable that it is assigned to; only the first one counts."""
        raise NotImplementedError


def name_value(value: SSAValue, name: str) -> None:
    """Names a value as a variable is, if the IR can have the name."""
    if name.isidentifier() and name.isascii() and not name.startswith("_"):
        value.name_hint = name
