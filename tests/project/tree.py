# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The source tree, as the tests of this folder see it."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

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
    """The syntax tree of a file."""
    return ast.parse(path.read_text())


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
    for node in ast.walk(parsed(path)):
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
