# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The public names that programs use and tilefold lacks, and the calls whose arguments it does not take.

`python -m tests.programs DIR --names` lists them with how often they are used, for all programs below DIR, also those
that the table leaves out. Programs are read, not run.
"""

import ast
import inspect
import json
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import tilefold.cutlass as cutlass

PLACES = {"loc", "ip"}
"""Arguments that are left out of calls."""


class Uses(ast.NodeVisitor):
    """The dotted names behind `cutlass` in a program, with the calls of each: how many arguments, and the names of the
    others; -1 for a number that is not known.
    """

    def __init__(self) -> None:
        self.aliases: dict[str, str] = {}
        self.names = Counter[str]()
        self.calls: list[tuple[str, int, tuple[str, ...]]] = []

    def visit_Import(self, node: ast.Import) -> None:
        for name in node.names:
            if name.name.partition(".")[0] == "cutlass":
                self.aliases[name.asname or "cutlass"] = name.name if name.asname else "cutlass"
                self.names[name.name] += 1

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module and node.module.partition(".")[0] == "cutlass":
            for name in node.names:
                if name.name != "*":
                    self.aliases[name.asname or name.name] = f"{node.module}.{name.name}"
                    self.names[f"{node.module}.{name.name}"] += 1

    def visit_Name(self, node: ast.Name) -> None:
        self._use(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not self._use(node):
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if name := self._dotted(node.func):
            given = tuple(keyword.arg or "" for keyword in node.keywords)
            is_open = "" in given or any(isinstance(arg, ast.Starred) for arg in node.args)
            keywords = tuple(word for word in given if word and word not in PLACES)
            self.calls.append((name, -1 if is_open else len(node.args), keywords))
        self.generic_visit(node)

    def _use(self, node: ast.expr) -> bool:
        if name := self._dotted(node):
            self.names[name] += 1
        return name is not None

    def _dotted(self, node: ast.expr) -> str | None:
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name) and node.id in self.aliases:
            return ".".join([self.aliases[node.id], *reversed(parts)])
        return None


def sources(folder: Path, licence: str) -> Iterator[str]:
    """The text of the programs and of the code of notebooks below a folder whose header has a licence."""
    for file in sorted(folder.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if licence in text[:2000]:
            yield text
    for file in sorted(folder.rglob("*.ipynb")):
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        lines = [line for cell in cells if cell["cell_type"] == "code" for line in [*cell["source"], "\n"]]
        yield "".join(line for line in lines if not line.lstrip().startswith(("%", "!")))


def uses(text: str) -> Uses:
    """What a program uses. Its imports count wherever they are."""
    tree = ast.parse(text)
    found = Uses()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.visit(node)
    found.names.clear()
    found.visit(tree)
    return found


def missing(name: str) -> str | None:
    """The first part of a dotted name that tilefold lacks, with those before it; None if there is all of it."""
    holder: Any = cutlass
    known = "cutlass"
    for part in name.split(".")[1:]:
        known = f"{known}.{part}"
        try:
            holder = getattr(holder, part)
        except AttributeError:
            try:
                holder = import_module(f"{holder.__name__}.{part}") if inspect.ismodule(holder) else None
            except ImportError:
                holder = None
        if holder is None:
            return known
    return None


def refusal(name: str, places: int, keywords: tuple[str, ...]) -> str | None:
    """Why a call does not fit the parameters of a function; None if it does, or if they are not known."""
    function: Any = cutlass
    for part in name.split(".")[1:]:
        function = getattr(function, part)
    try:
        signature = inspect.signature(function)
        given = dict.fromkeys(keywords)
        signature.bind_partial(**given) if places < 0 else signature.bind(*[None] * places, **given)
    except TypeError as error:
        return str(error)
    except ValueError:
        return None
    return None


def report(folder: Path, licence: str) -> list[str]:
    """The lines of the report, names that are used most first."""
    lacking, refused = Counter[str](), Counter[str]()
    for text in sources(folder, licence):
        found = uses(text)
        for name, count in found.names.items():
            lacking[missing(name) or ""] += count
        for name, places, keywords in found.calls:
            if missing(name) is None and (reason := refusal(name, places, keywords)):
                refused[f"{name}: {reason}"] += 1
    del lacking[""]
    return [f"{count:6}  {text}" for counts in (lacking, refused) for text, count in counts.most_common()]
