# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python API as Markdown: the names of each module, their signatures, and the first paragraph of their docstrings.

A signature has no annotations; docs/python.md says which types arguments have.
"""

from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from inspect import Parameter, getattr_static, isclass, isroutine, signature
from types import ModuleType
from typing import Any

from tilefold.compiler.builder.scalars.dtypes import DType

from docs.describe import docstring
from tilefold import cute
from tilefold.cutlass.modules import MODULES

_KINDS = {"int": "integers", "float": "floats", "bool": "predicates", "packed": "elements without arithmetic"}
_STARS = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}


def python_pages() -> dict[str, str]:
    """The text of a page for each module of the API, by file name."""
    made: dict[str, str] = {}
    seen: set[str] = set()
    for name, target in MODULES.items():
        module = import_module(target)
        values = {own: getattr(module, own) for own in _public(module)}
        names = {own: value for own, value in values.items() if not isinstance(value, ModuleType)}
        same = [own for own in names if module is not cute and getattr(cute, own, None) is names[own]]
        if target in seen or len(same) == len(names):
            continue
        seen.add(target)
        title = target.removeprefix("tilefold.")
        parts = [f"# Python: `{title}`", docstring(module)]
        if name:
            parts.append(f"CuTe programs import it as `cutlass.{name}`.")
        if same:
            parts.append(f"Names of [cute](python-cute.md): {', '.join(f'`{own}`' for own in sorted(same))}.")
        for own in sorted(names.keys() - same, key=lambda own: (own.lower(), own)):
            parts += _described(own, names[own])
        made[f"python-{title.replace('.', '-').replace('_', '-')}.md"] = "\n\n".join(parts) + "\n"
    return made


def _public(module: ModuleType) -> list[str]:
    """The names that a module offers; without a list of them, those that it defines."""
    listed: list[str] | None = getattr(module, "__all__", None)
    if listed is not None:
        return listed
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__ and callable(value)
    ]


def _described(name: str, value: Any) -> Iterator[str]:
    """The paragraphs on one name."""
    if isinstance(value, DType):
        yield f"## `{name}`"
        yield f"A type of {value.bits}-bit {_KINDS[value.kind]}; its attributes are those of `DType`."
    elif isclass(value):
        yield f"## `{name}`"
        yield _first_paragraph(value)
        if issubclass(value, Enum):
            yield f"Members: {', '.join(f'`{member}`' for member in value.__members__)}."
        members = list(_members(value))
        if members:
            yield "\n".join(["| member | |", "|---|---|", *members])
    elif isroutine(value) or (callable(value) and hasattr(value, "__wrapped__")):
        yield f"## `{name}{_arguments(value)}`"
        yield _first_paragraph(value)
    else:
        yield f"## `{name}`"
        yield (
            f"`{value!r}` of type `{type(value).__name__}`." if " at 0x" not in repr(value) else _first_paragraph(value)
        )


def _members(kind: Any) -> Iterator[str]:
    """A row of a table for each public method, property and constant of a class."""
    constructor = _arguments(kind)
    if constructor and not issubclass(kind, Enum | BaseException):
        yield f"| `{kind.__name__}{constructor}` | |".replace("\n", " ")
    for name in dir(kind):
        member: Any = getattr_static(kind, name)
        function: Any = getattr(member, "__func__", member)  # of a class method or a static one
        if name.startswith("_") or not getattr(function, "__doc__", None) or isclass(function):
            continue
        if isinstance(function, property):
            yield f"| `.{name}` | {_in_a_row(function)} |"
        elif isroutine(function):
            yield f"| `.{name}{_arguments(function)}` | {_in_a_row(function)} |"


def _arguments(value: Any) -> str:
    """The parameters of a function in parentheses, with their defaults; nothing where Python does not know them."""
    try:
        parameters = signature(value).parameters.values()
    except (TypeError, ValueError):
        return ""
    parts: list[str] = []
    by_name = False
    for parameter in parameters:
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is Parameter.VAR_POSITIONAL:
            by_name = True
        elif parameter.kind is Parameter.KEYWORD_ONLY and not by_name:
            parts.append("*")
            by_name = True
        default = "" if parameter.default is Parameter.empty else f"={_default(parameter.default)}"
        parts.append(_STARS.get(parameter.kind, "") + parameter.name + default)
    return f"({', '.join(parts)})"


def _default(value: Any) -> str:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    return "..." if " at 0x" in repr(value) or len(repr(value)) > 40 else repr(value)


def _first_paragraph(value: Any) -> str:
    return docstring(value).split("\n\n")[0]


def _in_a_row(value: Any) -> str:
    return _first_paragraph(value).replace("\n", " ").replace("|", "\\|")
