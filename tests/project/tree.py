# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The source tree, as the tests of this folder see it."""

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import cast

ROOT = Path(__file__).resolve().parents[2]
SUBPACKAGES = ("base", "layout", "dialects", "passes", "compiler", "builder", "runtime")
PRODUCT = (*SUBPACKAGES, "tilefold")


def product_files() -> list[Path]:
    """Every Python file of the product."""
    return sorted(path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py"))


def source_files() -> list[Path]:
    """Every Python file of the project."""
    folders = (*PRODUCT, "tests", "examples", "benchmarks")
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file. The garbage collector rests: all of its nodes stay."""
    gc.disable()
    try:
        return ast.parse(path.read_text())
    finally:
        gc.enable()


def walk(tree: ast.AST) -> list[ast.AST]:
    """The nodes of a tree in the order of `ast.walk`, which takes twice as long; without loads and stores of names."""
    found = [tree]
    for node in found:
        for field in node._fields:
            value = None if field == "ctx" else getattr(node, field, None)
            if isinstance(value, ast.AST):
                found.append(value)
            elif isinstance(value, list):
                found += [each for each in cast("list[object]", value) if isinstance(each, ast.AST)]
    return found


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements within a module or a statement at any depth, with the handlers and cases that hold some."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, field, ()):
            yield child
            yield from statements(child)


def module_name(path: Path) -> str:
    """The name under which a product file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[0] != "tilefold":
        parts = ("tilefold", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imported_modules(path: Path) -> tuple[str, ...]:
    """The absolute names of the modules that a file imports, anywhere in it."""
    return tuple(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    name = module_name(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in statements(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            if node.level and node.module is None:  # names of what is imported: `from .... import layout`
                yield from (".".join([*base, alias.name]) for alias in node.names)
            else:
                yield ".".join([*base, *([node.module] if node.module else [])])


def docstring_of(path: Path) -> str:
    """The docstring of a file. AssertionError where there is none."""
    text = ast.get_docstring(parsed(path))
    assert text, f"{path} has no docstring"
    return text
