# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The variables of a function whose control flow becomes the kernel's, and their values.

A variable holds a value of the kernel, a number, a tuple, list, dictionary, dataclass or object of these, or anything
else of Python. Control flow carries the values and numbers in it, the *leaves*; the rest must be the same on all paths.
"""

import copy
import dataclasses
import inspect
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import CellType, FunctionType
from typing import Any, Final, Protocol, cast

from xdsl.ir import Block

from ...base.errors import Code, TilefoldError
from ..scalars.values import Value
from ..tensors.tensor_base import AnyTensor
from ..tracing.state import current, is_building
from .decompose import COMPOSITES, Decomposed, Strategy
from .objects import attributes_of, is_ours, set_attributes


class _Mark:
    """A mark that a variable holds in place of a value."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


MISSING: Final = _Mark("MISSING")
"""A variable has no value."""
PENDING: Final = _Mark("PENDING")
"""A function has not returned: any value will do, since flags say that nothing reads it."""

MAX_ATTRIBUTES = 6
"""Deepest nesting of objects whose attributes are followed."""
MAX_DEPTH = 16
"""Deepest nesting of tuples, lists, dictionaries and dataclasses in a variable."""


class Variable(Protocol):
    """A place that control flow may change. `is_stable` marks one that it is not expected to change."""

    @property
    def name(self) -> str:
        """Its name in messages."""
        ...

    @property
    def is_stable(self) -> bool:
        """Whether its name is assigned nowhere in the paths: calls may change it all the same."""
        ...

    def get(self) -> object:
        """Its value; MISSING without one."""
        ...

    def set(self, value: object) -> None:
        """Sets its value; MISSING deletes it."""
        ...


@dataclass
class Cell:
    """A variable of Python's that functions share."""

    name: str
    cell: CellType
    is_stable: bool = False

    def get(self) -> object:
        """Its value; MISSING without one."""
        try:
            return self.cell.cell_contents
        except ValueError:
            return MISSING

    def set(self, value: object) -> None:
        """Sets its value; MISSING deletes it."""
        if value is not MISSING:
            self.cell.cell_contents = value
        elif self.get() is not MISSING:
            del self.cell.cell_contents


@dataclass
class Temporary:
    """A variable without a name in Python: the result of a function, or the counter of a loop."""

    name: str
    value: object = MISSING
    is_stable: bool = False

    def get(self) -> object:
        """Its value; MISSING without one."""
        return self.value

    def set(self, value: object) -> None:
        """Sets its value; MISSING deletes it."""
        self.value = value


@dataclass
class Global:
    """A container in a global variable, whose parts are set. It always has a value."""

    name: str
    names: dict[str, object]
    is_stable: bool = False

    def get(self) -> object:
        """Its value."""
        return self.names[self.name]

    def set(self, value: object) -> None:
        """Sets its value. Raises TilefoldError (E5006) for MISSING."""
        if value is MISSING:
            hint = "set only parts that it has already, to values of their type, or use a variable of the function"
            raise TilefoldError(Code.BUILD_CARRIED, f"the global '{self.name}' differs between paths", hint)
        self.names[self.name] = value


def cells_of(names: Sequence[str], *functions: Callable[..., object]) -> list[Cell]:
    """The variables of these names that functions share with the function around them."""
    cells: dict[str, CellType] = {}
    for function in functions:
        assert isinstance(function, FunctionType)
        cells |= dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    return [Cell(name, cells[name]) for name in names if name in cells]


def reachable_variables(names: Sequence[str], *functions: Callable[..., object]) -> list[Variable]:
    """The variables of these names, and those that calls in the functions may change all the same: lists, dictionaries
    and dataclasses that the functions see, and the variables of functions that they see.
    """
    cells = cells_of(names, *functions)
    variables: list[Variable] = [*cells]
    seen = {id(cell.cell) for cell in cells}
    known = {cell.name for cell in cells}
    for name in names:
        space = functions[0].__globals__
        if name not in known and name in space and _parts(space[name]) is not None:
            variables.append(Global(name, space))
    pending = [(function, False) for function in functions]
    while pending:
        function, is_helper = pending.pop()
        assert isinstance(function, FunctionType)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if id(cell) in seen:
                continue
            seen.add(id(cell))
            value = Cell(name, cell).get()
            inner: object = inspect.unwrap(value) if callable(value) else None
            if isinstance(inner, FunctionType):
                pending.append((inner, True))
            elif is_helper or (not isinstance(value, tuple) and _parts(value) is not None):
                variables.append(Cell(name, cell, is_stable=True))
    return variables


@dataclass(frozen=True)
class _Node:
    """A container with the keys and contents that it had; a leaf has no node. An object of a user's class is a leaf
    and a container: it must be the same on all paths, and its attributes are carried.
    """

    container: object
    keys: tuple[object, ...]
    parts: tuple["_Node | None", ...]

    @property
    def kind(self) -> Any:
        """The class of the container."""
        return type(self.container)

    @property
    def shape(self) -> object:
        """The structure that two paths must have in common."""
        return self.kind, self.keys, tuple(part and part.shape for part in self.parts)


@dataclass(frozen=True)
class Tree:
    """The value of a variable, decomposed into containers and leaves."""

    node: _Node | None
    leaves: tuple[object, ...]

    @property
    def shape(self) -> object:
        """The containers and their keys: None for a single leaf."""
        return self.node and self.node.shape

    @property
    def container(self) -> object:
        """The outermost container, None for a leaf."""
        return self.node and self.node.container

    def rebuilt(self, leaves: Sequence[object], fresh: bool = False) -> object:
        """The same with other leaves. Mutable containers stay the same objects, unless `fresh` is set."""
        return _rebuilt(self.node, list(reversed(leaves)), fresh)

    def named(self) -> object:
        """The leaves by their places: containers with keys or fields, and objects, are dictionaries, others lists.
        Objects themselves are left out.
        """
        return _named(self.node, list(reversed(self.leaves)))

    def decompose(self, strategy: Strategy = "coordinates") -> "Tree":
        """The same with views, layouts and parts of threads decomposed too (`Decomposed.of`)."""
        leaves: list[object] = []
        return Tree(_decompose(self.node, list(reversed(self.leaves)), leaves, strategy), tuple(leaves))

    def shared(self, other: "Tree") -> "tuple[Tree, list[str]]":
        """The same without the attributes of objects that `other` lacks, and the names of these attributes."""
        leaves, lost = list[object](), list[str]()
        return Tree(_shared(self.node, other.node, list(reversed(self.leaves)), leaves, lost), tuple(leaves)), lost


def _shared(
    node: _Node | None, other: _Node | None, given: list[object], leaves: list[object], lost: list[str]
) -> _Node | None:
    is_object = node is not None and _is_object(node.container)
    if node is None or is_object:
        leaves.append(given.pop())
    if node is None:
        return None
    theirs = dict(zip(other.keys, other.parts, strict=True)) if other and other.kind is node.kind else None
    parts: dict[object, _Node | None] = {}
    for key, part in zip(node.keys, node.parts, strict=True):
        if is_object and theirs is not None and key not in theirs:
            _shared(part, None, given, [], [])
            lost.append(str(key))
        else:
            parts[key] = _shared(part, (theirs or {}).get(key), given, leaves, lost)
    return replace(node, keys=tuple(parts), parts=tuple(parts.values()))


def _named(node: _Node | None, leaves: list[object]) -> object:
    if node is None:
        return leaves.pop()
    if _is_object(node.container):
        leaves.pop()
    parts = [_named(part, leaves) for part in node.parts]
    has_keys = isinstance(node.container, dict) or not issubclass(node.kind, _CONTAINERS)
    return dict(zip(node.keys, parts, strict=True)) if has_keys else parts


def _decompose(node: _Node | None, given: list[object], leaves: list[object], strategy: Strategy) -> _Node | None:
    if node is None or _is_object(node.container):
        leaf = given.pop()
        if node is None:
            return _split(leaf, leaves, strategy)
        leaves.append(leaf)
    return replace(node, parts=tuple([_decompose(part, given, leaves, strategy) for part in node.parts]))


def _split(value: object, leaves: list[object], strategy: Strategy) -> _Node | None:
    """A leaf decomposed, with all that it holds."""
    decomposed = Decomposed.of(value, strategy)
    if decomposed is None and not isinstance(value, tuple):
        leaves.append(value)
        return None
    parts = decomposed.parts if decomposed else cast("tuple[object, ...]", value)
    keys = (type(cast("object", value)), decomposed.key) if decomposed else ()
    return _Node(decomposed or cast("object", value), keys, tuple([_split(part, leaves, strategy) for part in parts]))


def tree_of(value: object) -> Tree:
    """Decomposes the value of a variable. Raises TilefoldError (E5006) for containers that nest too deeply."""
    leaves: list[object] = []
    return Tree(_node(value, leaves, 0, []), tuple(leaves))


def _node(value: object, leaves: list[object], depth: int, objects: list[object]) -> _Node | None:
    if depth > MAX_DEPTH:
        raise TilefoldError(
            Code.BUILD_CARRIED, f"a variable nests containers more than {MAX_DEPTH} deep", "make it flatter"
        )
    parts = _parts(value)
    is_object = parts is not None and _is_object(value)
    if is_object:
        leaves.append(value)
        if depth > MAX_ATTRIBUTES or any(outer is value for outer in objects):
            return None  # objects may refer to each other
        objects.append(value)
    elif parts is None:
        leaves.append(value)
    if parts is None:
        return None
    return _Node(value, tuple(parts), tuple(_node(part, leaves, depth + 1, objects) for part in parts.values()))


_CONTAINERS = (tuple, list, dict, set, deque)


def _is_object(value: object) -> bool:
    return not isinstance(value, _CONTAINERS) and not dataclasses.is_dataclass(value)


def _parts(value: object) -> Mapping[object, object] | None:
    """The contents of a container by their keys; None for anything else."""
    if isinstance(value, _CONTAINERS) and not isinstance(value, dict):
        return dict(enumerate(cast("Iterable[object]", value)))
    if isinstance(value, dict):
        return cast("Mapping[object, object]", value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and not is_ours(value):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: getattr(value, name) for name in names if hasattr(value, name)}
    return cast("Mapping[object, object] | None", attributes_of(value))


def _rebuilt(node: _Node | None, leaves: list[object], fresh: bool) -> object:
    if node is None:
        return leaves.pop()
    made: Any = node.container
    kind = node.kind
    if isinstance(made, Decomposed):
        return made.rebuilt([_rebuilt(part, leaves, fresh) for part in node.parts])
    if _is_object(made):
        itself = leaves.pop()
        parts = [_rebuilt(part, leaves, False) for part in node.parts]
        set_attributes(itself, dict(zip(map(str, node.keys), parts, strict=True)))
        return itself
    parts = [_rebuilt(part, leaves, fresh) for part in node.parts]
    is_dataclass = not issubclass(kind, _CONTAINERS)
    is_frozen = is_dataclass and made.__dataclass_params__.frozen
    if is_frozen or issubclass(kind, tuple | set):
        before = _parts(made) or {}
        if len(before) == len(parts) and all(a is b for a, b in zip(before.values(), parts, strict=True)):
            return made
    if issubclass(kind, tuple):
        make = getattr(made, "_make", None)  # of a named tuple
        return tuple(parts) if make is None else make(parts)
    if fresh or is_frozen:
        made = copy.copy(made)
    if is_dataclass:
        for name, part in zip(node.keys, parts, strict=True):
            object.__setattr__(made, str(name), part)
    elif issubclass(kind, list):
        made[:] = parts
    else:
        made.clear()
        add = made.extend if issubclass(kind, deque) else made.update
        add(zip(node.keys, parts, strict=True) if issubclass(kind, dict) else parts)
    return made


def is_same(a: object, b: object) -> bool:
    """Whether two leaves are the same, so that nothing need be carried."""
    if a is b:
        return True
    if isinstance(a, Value) and isinstance(b, Value):
        return a.ssa is b.ssa and a.dtype == b.dtype
    if type(a) is not type(b) or isinstance(a, Value):
        return False
    if isinstance(a, AnyTensor) and isinstance(b, AnyTensor):
        return a.ssa is b.ssa
    if isinstance(a, tuple) and isinstance(b, tuple):
        first, second = cast("tuple[object, ...]", a), cast("tuple[object, ...]", b)
        return len(first) == len(second) and all(map(is_same, first, second))
    if isinstance(a, COMPOSITES) and (left := Decomposed.of(a)) and (right := Decomposed.of(b)):
        return is_same(left.parts, right.parts)
    try:
        with _aside():
            return bool(a == b)
    except (TilefoldError, ValueError, TypeError):  # things that have no such comparison, or hold values
        return False


@contextmanager
def _aside() -> Generator[None, None, None]:
    """Within it, comparisons of objects that hold values write nothing to the kernel."""
    if not is_building():
        yield
        return
    scratch = Block()
    try:
        with current().body(scratch):
            yield
    finally:
        scratch.erase(safe_erase=False)
