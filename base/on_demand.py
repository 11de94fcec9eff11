# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packages whose names are imported when a program first uses them."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pkgutil import get_data
from typing import Any


def imports_for_type_checkers(package: str) -> dict[str, str]:
    """The homes of the names that a package imports for type checkers, as `on_demand` takes them. Its file, maybe in an
    archive, has one block `if TYPE_CHECKING:` with nothing but imports of names, and then `else:`.
    """
    text = (get_data(package, "__init__.py") or b"").decode()
    text = text.partition("if TYPE_CHECKING:\n")[2].partition("\nelse:")[0]
    statements = [statement.partition(" import ") for statement in text.split("    from ")[1:]]
    return {home: " ".join(names.strip("()\n ").replace(",", " ").split()) for home, _, names in statements}


def on_demand(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package, which imports a name from its home and keeps it in the package.

    `homes` maps modules, relative to the package where they begin with a dot, to the names that they define, separated
    by spaces; `name=other` imports the name `other` of the module as `name`. Names of "." are modules of the package
    itself. The function raises AttributeError for other names.
    """
    places: dict[str, tuple[str, str]] = {}
    for home, names in homes.items():
        for entry in names.split():
            name, _, there = entry.partition("=")
            places[name] = (f".{name}", "") if home == "." else (home, there or name)

    def load(name: str) -> Any:
        holder = sys.modules[package]
        if name not in places:
            message = f"module '{package}' has no attribute '{name}'"
            raise AttributeError(message, name=name, obj=holder)
        home, there = places[name]
        module = import_module(home, package)
        value = getattr(module, there) if there else module
        vars(holder)[name] = value
        return value

    return load
