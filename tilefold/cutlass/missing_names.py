# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The names that a code base uses and tilefold lacks, and the calls whose arguments it does not take.

`python -m tilefold.cutlass --missing DIR` lists them with the number of files that each stops, the most first.
Programs are read, not run, so a name that is reached through a variable is not found. Folders in which a code base
keeps other projects, and a copy of the package itself, are left out. Files that cannot be read are listed, too.
"""

import ast
import inspect
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import tilefold.cutlass as cutlass
from tilefold.cute.missing import handles_import_error
from tilefold.driver.source_files import source_files

_PLACES = {"loc", "ip"}
"""Arguments that are left out of calls."""


@dataclass
class _Uses(ast.NodeVisitor):
    """The dotted names below `cutlass` in a program, with the lines of their first use, and the calls of each: how
    many arguments, and the names of the others; -1 for a number that is not known.
    """

    aliases: dict[str, str] = field(default_factory=lambda: {})
    names: dict[str, int] = field(default_factory=lambda: {})
    calls: list[tuple[str, int, tuple[str, ...]]] = field(default_factory=lambda: [])

    def visit_Try(self, node: ast.Try) -> None:
        """A program that handles an import's failure runs without it."""
        if not any(handles_import_error(handler.type) for handler in node.handlers):
            self.generic_visit(node)
            return
        for part in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(part)

    def visit_Import(self, node: ast.Import) -> None:
        for name in node.names:
            if name.name.partition(".")[0] == "cutlass":
                self.aliases[name.asname or "cutlass"] = name.name if name.asname else "cutlass"

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module and node.module.partition(".")[0] == "cutlass":
            for name in node.names:
                if name.name != "*":
                    self.aliases[name.asname or name.name] = f"{node.module}.{name.name}"

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """A parameter or a variable of a function hides the import of its name."""
        whole = self.aliases
        given = {arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
        given |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        for part in (*node.decorator_list, node.args, *([node.returns] if node.returns else [])):
            self.visit(part)
        self.aliases = {alias: name for alias, name in whole.items() if alias not in given}
        for statement in node.body:
            self.visit(statement)
        self.aliases = whole | self.aliases

    def visit_Name(self, node: ast.Name) -> None:
        self._use(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not self._use(node):
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if name := self._dotted(node.func):
            given = tuple(keyword.arg or "" for keyword in node.keywords)
            is_open = "" in given or any(isinstance(arg, ast.Starred) for arg in node.args)
            keywords = tuple(word for word in given if word and word not in _PLACES)
            self.calls.append((name, -1 if is_open else len(node.args), keywords))
        self.generic_visit(node)

    def _use(self, node: ast.expr) -> bool:
        if name := self._dotted(node):
            self.names.setdefault(name, node.lineno)
        return name is not None

    def _dotted(self, node: ast.expr) -> str | None:
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name) and node.id in self.aliases:
            return ".".join([self.aliases[node.id], *reversed(parts)])
        return None


@dataclass(frozen=True, slots=True)
class Missing:
    """A name, or a call with the reason why it does not fit, and the files that use it, each with the line of the first
    use.
    """

    name: str
    files: tuple[str, ...]

    def __str__(self) -> str:
        return f"{len(self.files):6}  {self.name}  ({self.files[0]})"


@dataclass(frozen=True, slots=True)
class Survey:
    """What programs and notebooks below a folder use and tilefold lacks, that first which most files use; the number of
    programs that have been read; and those that are not text of Python, or no notebook, each with the reason.
    """

    missing: tuple[Missing, ...]
    programs: int
    unread: tuple[str, ...]


def missing_names(folder: Path) -> Survey:
    """Reads the programs and notebooks below a folder that name `cutlass`."""
    found: dict[str, dict[str, None]] = {}
    unread, programs = list[str](), 0
    for file, path in _programs(folder):
        try:
            text = _text(path)
            if text is None:
                continue
            uses = _uses(text)
        except (SyntaxError, ValueError, RecursionError) as error:
            line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
            unread.append(f"{file}{line}: {error.msg if isinstance(error, SyntaxError) else error}")
            continue
        programs += 1
        for name, line in uses.names.items():
            if lacking := _first_missing(name):
                found.setdefault(lacking, {})[f"{file}:{line}"] = None
        for name, places, keywords in uses.calls:
            if _first_missing(name) is None and (reason := _refusal(name, places, keywords)):
                found.setdefault(f"{name}: {reason}", {})[f"{file}:{uses.names[name]}"] = None
    every = [Missing(name, tuple(_one_a_file(places))) for name, places in found.items()]
    every.sort(key=lambda missing: (-len(missing.files), missing.name))
    return Survey(tuple(every), programs, tuple(unread))


def _one_a_file(places: Sequence[str] | dict[str, None]) -> Iterator[str]:
    seen = set[str]()
    for place in places:
        file = place.rpartition(":")[0]
        if file not in seen:
            seen.add(file)
            yield place


def _programs(folder: Path) -> Iterator[tuple[str, Path]]:
    """The programs and notebooks below a folder, or one file, each after its path there, in the order of these."""
    if not folder.is_dir():
        yield folder.name, folder
        return
    yield from ((file.relative_to(folder).as_posix(), file) for file in source_files(folder, ".py", ".ipynb"))


def _text(file: Path) -> str | None:
    """The text of a program, or the code of a notebook; None if it does not name `cutlass`. ValueError if it is no
    notebook.
    """
    text = file.read_text(encoding="utf-8", errors="replace")
    if "cutlass" not in text:
        return None
    if file.suffix == ".py":
        return text
    try:
        cells = json.loads(text)["cells"]
        lines = [line for cell in cells if cell["cell_type"] == "code" for line in [*cell["source"], "\n"]]
    except (ValueError, KeyError, TypeError):
        raise ValueError("it is not a notebook") from None
    return "".join(line for line in lines if not line.lstrip().startswith(("%", "!")))


def _uses(text: str) -> _Uses:
    """The names that a program uses. Its imports count wherever they are."""
    tree = ast.parse(text)
    found = _Uses()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.visit(node)
    tried = _Uses()
    tried.visit(tree)  # only the imports that no handler waits for
    found.aliases = {alias: name for alias, name in found.aliases.items() if alias in tried.aliases}
    found.visit(tree)
    return found


@lru_cache(maxsize=4096)
def _first_missing(name: str) -> str | None:
    """The first part of a dotted name that tilefold lacks, with those before it; None if there is all of it."""
    holder = cutlass
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


def _refusal(name: str, places: int, keywords: tuple[str, ...]) -> str | None:
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
