# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The globals and the variables of enclosing functions that a kernel reads while it is built, its helpers' too.

A kernel is built anew where one of them has changed: a constant, a helper that a notebook's cell defines again, an
element of a list. A launch compares them by one comparison of tuples for each module, which takes a fraction of a
microsecond.
"""

import copy
import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

MAX_BYTES = 1 << 16
"""The largest array whose contents are compared, and not only which array it is."""

_LIBRARIES = {"tilefold", "xdsl", "numpy", "torch", "jax", "cupy", *sys.stdlib_module_names} - {"__main__"}
"""The packages whose modules, functions and classes stay as they are."""


class OuterNames:
    """The names that functions read, with the values that they have now; `in_place` values are compared that change
    in place, too, such as lists.
    """

    def __init__(self, *functions: FunctionType, in_place: bool = True) -> None:
        self._spaces: dict[int, tuple[Mapping[str, Any], set[str]]] = {}
        self._cells: list[CellType] = []
        self._seen: set[int] = set()
        for function in functions:
            self._collect(function)
        # each name twice, since the getter of one name alone gives no tuple, whose comparison begins with identity
        self._getters = [(itemgetter(*names, *names), space) for space, names in self._spaces.values() if names]
        keep: Callable[[Any], Any] = _snapshot if in_place else lambda value: value
        self._kept = [keep(get(space)) for get, space in self._getters]
        self._contents = tuple(keep(_cell_contents(cell)) for cell in self._cells)

    @property
    def have_changed(self) -> bool:
        """Whether one of the names has another value now, or none."""
        try:
            for (get, space), kept in zip(self._getters, self._kept, strict=True):
                if get(space) != kept:
                    return True
            return tuple(map(_cell_contents, self._cells)) != self._contents
        except Exception:  # a name that is gone, or values that do not compare any more
            return True

    def _collect(self, function: FunctionType) -> None:
        if id(function.__code__) in self._seen or _is_library(function):
            return
        self._seen.add(id(function.__code__))
        used = set(_names(function.__code__))
        self._read(function.__globals__, used)
        for cell in function.__closure__ or ():
            if cell not in self._cells:
                self._cells.append(cell)
                self._follow(_cell_contents(cell), used)

    def _read(self, space: Mapping[str, Any], used: set[str]) -> None:
        """Notes those of the names that a module or a class has."""
        _, names = self._spaces.setdefault(id(space), (space, set()))
        for name in sorted(used & space.keys() - names):
            names.add(name)
            self._follow(space[name], used)

    def _follow(self, value: Any, used: set[str]) -> None:
        if not isinstance(value, ModuleType):
            value = getattr(value, "function", value)  # of a kernel, and of a helper
        if isinstance(value, FunctionType):
            self._collect(value)
        elif isinstance(value, ModuleType | type) and not _is_library(value):
            self._read(vars(value), used)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_library(value: Any) -> bool:
    name = value.__name__ if isinstance(value, ModuleType) else value.__module__
    return (name or "").partition(".")[0] in _LIBRARIES


def _cell_contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it has no value yet
        return None


class _Contents:
    """The contents of an array, which are compared element by element."""

    __array_ufunc__ = None
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, array: Any) -> None:
        self.type, self.shape, self.bytes = array.dtype, array.shape, array.tobytes()

    def __eq__(self, other: object) -> bool:
        given: Any = other
        return (given.dtype, given.shape, given.tobytes()) == (self.type, self.shape, self.bytes)


def _snapshot(value: Any) -> Any:
    """A value such that a later comparison tells whether it has changed, in place too."""
    kind = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is tuple:
        return tuple([_snapshot(part) for part in value])
    if kind is list:
        return [_snapshot(part) for part in value]
    if kind is dict:
        return {key: _snapshot(part) for key, part in value.items()}
    if kind.__module__ == "numpy" and hasattr(value, "tobytes") and value.nbytes <= MAX_BYTES:
        return _Contents(value)
    if kind is set or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        try:
            kept = copy.copy(value)
            return kept if kept == value else value
        except Exception:  # one that has no copies, or no comparison
            return value
    return value
