# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values of the kernel in objects of the user's classes, by their places in them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from weakref import ref

from xdsl.dialects.builtin import DictionaryAttr, FileLineColLoc
from xdsl.ir import Attribute

from tilefold.builder.control.loops import WATCHER
from tilefold.builder.control.variables import Variable, tree_of
from tilefold.builder.scalars.values import Value
from tilefold.builder.tracing.state import Builder, current


def extract_mlir_values(obj: object, structured: bool = False) -> Any:
    """The values of the kernel in an object: those that its `__extract_mlir_values__` names, or all of a value, of a
    container, or of the attributes of an object. They are a list, or with `structured` dictionaries by attributes and
    keys and lists.
    """
    given = _structure(obj)
    return given if structured else list(_leaves(given))


def new_from_mlir_values(obj: Any, values: Any, structured: bool = False) -> Any:
    """An object as another one, with other values in the order of `extract_mlir_values`, or in its structure."""
    if hasattr(obj, "__new_from_mlir_values__"):
        return obj.__new_from_mlir_values__(values)
    tree, rest = tree_of(obj), _leaves(values)
    return tree.rebuilt([next(rest) if isinstance(leaf, Value) else leaf for leaf in tree.leaves], fresh=True)


def get_mlir_types(obj: Any) -> list[Attribute]:
    """The types of the values in an object: those that its `__get_mlir_types__` names, or of `extract_mlir_values`."""
    if hasattr(obj, "__get_mlir_types__"):
        return list(obj.__get_mlir_types__())
    return [value.dtype.mlir_type for value in extract_mlir_values(obj)]


def get_c_pointers(obj: Any) -> list[Any]:
    """The pointers to the values in an object: those that its `__c_pointers__` names, of a container those of its
    parts. Other objects have none.
    """
    if hasattr(obj, "__c_pointers__"):
        return list(obj.__c_pointers__())
    if isinstance(obj, tuple | list):
        return [pointer for part in obj for pointer in get_c_pointers(part)]  # pyright: ignore[reportUnknownVariableType]
    return []


def extract_mlir_attributes(obj: Any) -> list[Any]:
    """The attributes of the parameters that an object becomes, one for each of its values: those that its
    `__extract_mlir_attributes__` names, of other objects empty ones.
    """
    if hasattr(obj, "__extract_mlir_attributes__"):
        return list(obj.__extract_mlir_attributes__())
    return [DictionaryAttr({}) for _ in get_mlir_types(obj)]


def debug_print_mlir_values(obj: object) -> str:
    """The values in an object, a line each, below the names of the attributes that lead to them."""
    return "\n".join([f"{type(obj).__name__}:", *_lines(_structure(obj), 1)])


def set_dynamic_debug(enabled: bool = True, max_depth: int | None = None) -> None:
    """Whether each loop of a kernel that is built prints the variables that it carries, with the values in them: loops
    within no more than `max_depth` other loops and branches, or all of them. It holds for the current context
    (`contextvars`).
    """
    WATCHER.set(_Printer(max_depth) if enabled else None)


def _structure(obj: Any) -> Any:
    if hasattr(obj, "__extract_mlir_values__"):
        return obj.__extract_mlir_values__()
    return _of_values(tree_of(obj).named())


def _of_values(named: object) -> Any:
    """The places of values alone."""
    if isinstance(named, Mapping):
        parts = cast("Mapping[object, object]", named)
        return {key: made for key, part in parts.items() if (made := _of_values(part)) is not None}
    if isinstance(named, list):
        return [made for part in cast("list[object]", named) if (made := _of_values(part)) is not None]
    return named if isinstance(named, Value) else None


def _leaves(structure: object) -> Iterator[object]:
    if isinstance(structure, Mapping):
        structure = [*cast("Mapping[object, object]", structure).values()]
    if isinstance(structure, list | tuple):
        for part in cast("Sequence[object]", structure):
            yield from _leaves(part)
    elif structure is not None:
        yield structure


def _lines(structure: Any, depth: int) -> Iterator[str]:
    indent = "  " * depth
    if isinstance(structure, Mapping):
        parts = [(str(key), part) for key, part in cast("Mapping[object, object]", structure).items()]
    elif isinstance(structure, list | tuple):
        parts = [(f"[{number}]", part) for number, part in enumerate(cast("Sequence[object]", structure))]
    else:
        yield f"{indent}{getattr(structure, 'dtype', structure)}"
        return
    for name, part in parts:
        if isinstance(part, Mapping | list | tuple):
            yield f"{indent}{name}:"
            yield from _lines(part, depth + 1)
        else:
            yield f"{indent}{name}: {getattr(part, 'dtype', part)}"


@dataclass
class _Printer:
    """Prints each loop of a kernel once: a loop within another is built again where the outer one carries more than
    expected.
    """

    max_depth: int | None
    kernel: Callable[[], Builder | None] = lambda: None
    printed: set[FileLineColLoc | None] = field(default_factory=set[FileLineColLoc | None])

    def __call__(self, kind: str, variables: Sequence[Variable]) -> None:
        builder = current()
        if self.kernel() is not builder:
            self.kernel, self.printed = ref(builder), set()
        place, depth = builder.location(), len(builder.open_blocks) - 1
        if place in self.printed or (self.max_depth is not None and depth > self.max_depth):
            return
        self.printed.add(place)
        where = "" if place is None else f" at {place.filename.data}:{place.line.data}"
        print(f"{kind}{where}, within {depth} loops and branches")
        for variable in variables:
            structure = _structure(variable.get())
            if next(_leaves(structure), None) is not None:
                print("\n".join([f"  {variable.name}: {type(variable.get()).__name__}", *_lines(structure, 2)]))
