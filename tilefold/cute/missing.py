# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names that programs import and the vocabulary lacks: they stand for nothing, and are errors where they are used.

A file that imports the names of another GPU beside those of its own runs as long as it does not use them. An import
whose failure the file handles, `try: ... except ImportError:`, asks whether the name exists, so it fails at once.
"""

import ast
import linecache
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType

from tilefold.base.errors import Code

from .missing_name import MissingName
from .public import is_public, unknown


class _Loader(Loader):
    """Makes the module of a name that is missing."""

    def __init__(self, name: str, problem: tuple[Code, str, str]) -> None:
        self.name, self.problem = name, problem

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The name that stands for the module."""
        return MissingName(spec.name, self.problem)

    def exec_module(self, module: ModuleType) -> None:
        """Python looks the name up by that of the module which lacks it (`import a.b as c`)."""
        sys.modules[self.name] = module


class _Lacking(ModuleType):
    """A public module that lacks an imported name: Python would put that into it, as it does modules of packages."""

    def __setattr__(self, name: str, value: object) -> None:
        if not isinstance(value, MissingName):
            super().__setattr__(name, value)


class MissingFinder(MetaPathFinder):
    """Finds modules that a program imports below public ones, which lack them."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """That of a name that stands for nothing; None for other imports."""
        module, _, last = name.rpartition(".")
        holder = sys.modules.get(module)
        if (
            holder is None
            or not (isinstance(holder, MissingName) or is_public(holder))
            or last.startswith("__")
            or not _is_deferred()
        ):
            return None
        if isinstance(holder, MissingName):
            problem = holder.problem
        else:
            problem, holder.__class__ = unknown(holder, last), _Lacking
        return ModuleSpec(name, _Loader(f"{holder.__name__}.{last}", problem), is_package=True)


def _is_deferred() -> bool:
    """Whether the statement that is importing now is one of a program, with the name `cutlass`, and in no `try` that
    handles ImportError.
    """
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and (frame.f_code.co_filename.startswith("<frozen ") or frame.f_globals is globals()):
        frame = frame.f_back
    return frame is not None and frame.f_lineno in _deferred_lines(frame.f_code.co_filename)


@lru_cache(maxsize=64)
def _deferred_lines(file: str) -> frozenset[int]:
    """The lines of a file that import `cutlass` without a `try`."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return frozenset()
    return frozenset(_lines(tree.body))


def _lines(body: Sequence[ast.AST]) -> Iterator[int]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [name.name for name in node.names]
            if any(name.partition(".")[0] == "cutlass" for name in names):
                yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
        elif isinstance(node, ast.Try) and any(handles_import_error(handler.type) for handler in node.handlers):
            yield from _lines([*node.handlers, *node.orelse, *node.finalbody])
        else:
            yield from _lines([*ast.iter_child_nodes(node)])


def handles_import_error(kind: ast.expr | None) -> bool:
    """Whether a handler of exceptions of this kind handles ImportError."""
    if isinstance(kind, ast.Tuple):
        return any(map(handles_import_error, kind.elts))
    handled = ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")
    return kind is None or (isinstance(kind, ast.Name) and kind.id in handled)
