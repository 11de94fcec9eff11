# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The source tree, as the tests of this folder see it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUBPACKAGES = ("base", "layout", "dialects", "passes", "compiler", "runtime")
PRODUCT = (*SUBPACKAGES, "tilefold")


def product_files() -> list[Path]:
    """Every Python file of the product."""
    return sorted(path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py"))


def source_files() -> list[Path]:
    """Every Python file of the project."""
    folders = (*PRODUCT, "tests", "examples", "benchmarks")
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def module_name(path: Path) -> str:
    """The name under which a product file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[0] != "tilefold":
        parts = ("tilefold", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
