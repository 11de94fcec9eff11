# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python API as Markdown: the names of each module, their signatures, and their docstrings.

A signature has no annotations; docs/python.md says which types arguments have.
"""

import re
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from inspect import Parameter, getattr_static, isclass, isroutine, signature
from textwrap import dedent
from types import ModuleType
from typing import Any

from tilefold.builder.scalars.dtypes import DType

from docs.describe import docstring
from tilefold import cute
from tilefold.cutlass.modules import MODULES

_KINDS = {"int": "integers", "float": "floats", "bool": "predicates", "packed": "elements without arithmetic"}
_PACKAGE = cute.__name__.partition(".")[0]
_EXAMPLE = re.compile(r"\n((?:\n+ {4,}[^\n]*(?:\n {4,}[^\n]*)*)+)")
"""The indented paragraphs of a docstring, with the empty lines before them."""
_STARS = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}


def python_pages() -> dict[str, str]:
    """The text of a page for each module of the API, by file name."""
    made: dict[str, str] = {}
    seen: set[str] = set()
    known = {*dir(cute), *vars(cute)}  # another name is an error with a hint, which takes time
    for name, target in MODULES.items():
        module = import_module(target)
        values = {own: getattr(module, own) for own in _public(module)}
        names = {own: value for own, value in values.items() if not isinstance(value, ModuleType)}
        same = [own for own in names if module is not cute and own in known and getattr(cute, own) is names[own]]
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
        if not _is_ours(value):
            yield f"`{value.__module__}.{value.__qualname__}`."
            return
        yield _whole(value)
        if issubclass(value, Enum):
            yield f"Members: {', '.join(f'`{member}`' for member in value.__members__)}."
        members = {called: "" if of is None else _whole(of) for called, of in _members(value)}
        rows = [
            f"| `{called}` | {in_a_row(text)} |" if text else f"| `{called}` | |"
            for called, text in members.items()
            if _fits_a_row(text)
        ]
        if rows:
            yield "\n".join(["| member | |", "|---|---|", *rows])
        for called, text in members.items():
            if not _fits_a_row(text):
                yield f"### `{name}{called}`"
                yield text
    elif isroutine(value) or (callable(value) and hasattr(value, "__wrapped__")):
        yield f"## `{name}{_arguments(value)}`"
        yield _whole(value)
    else:
        yield f"## `{name}`"
        yield f"`{value!r}` of type `{type(value).__name__}`." if " at 0x" not in repr(value) else _whole(value)


def _members(kind: Any) -> Iterator[tuple[str, Any]]:
    """The constructor, without a text, and each public method and property of a class, as it is called."""
    constructor = _arguments(kind)
    if constructor and not issubclass(kind, Enum | BaseException):
        yield f"{kind.__name__}{constructor}".replace("\n", " "), None
    ours = [base for base in kind.__mro__ if _is_ours(base)]
    for name in sorted({name for base in ours for name in vars(base)}):
        member: Any = getattr_static(kind, name)
        function: Any = getattr(member, "__func__", member)  # of a class method or a static one
        if name.startswith("_") or not getattr(function, "__doc__", None) or isclass(function):
            continue
        if isinstance(function, property):
            yield f".{name}", function
        elif isroutine(function):
            yield f".{name}{_arguments(function)}", function


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


def _whole(value: Any) -> str:
    """The docstring, its indented examples as blocks of Python."""
    return _EXAMPLE.sub(lambda example: f"\n\n```python\n{dedent(example[1]).strip()}\n```", docstring(value))


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == _PACKAGE


def _fits_a_row(text: str) -> bool:
    """Whether a text is one paragraph."""
    return "\n\n" not in text and not re.search(r"^(?:[-*]|\d+\.) ", text, re.MULTILINE)


def in_a_row(text: str) -> str:
    """A paragraph as the cell of a table."""
    return text.replace("\n", " ").replace("|", "\\|")
