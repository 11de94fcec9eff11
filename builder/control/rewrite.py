# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of Python with the control flow of a kernel: reads a function's source and compiles it again.

The new function has the lines, globals, defaults and closure of the old one, and calls `dispatch` where the old one
branches or loops.
"""

import ast
import inspect
import linecache
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import CellType, CodeType, FunctionType

from ...base.errors import Code
from ...compiler.frontend.diagnostics import Diagnostic, Place, ProgramError, Severity
from ..tracing.source import column_of, lines_of, place_of_line
from . import dispatch
from .syntax.nodes import parameters, scope
from .syntax.transform import RUNTIME, transform_function


def rewritten(function: Callable[..., object], read: Sequence[str], is_kernel: bool = False) -> FunctionType:
    """The function with control flow that can become the kernel's. `read` are the lines of its file as they were when
    the function was defined (`lines_of`); a kernel itself may end its threads early.

    Raises ProgramError: E5004 where Python keeps no source of the function, or it is not a function, or its lines have
    changed; E5005 for a form of Python that a kernel cannot have.
    """
    if not isinstance(function, FunctionType):
        kind = type(function).__name__
        raise _no_source(
            function, f"this is a {kind}, not a function", "decorate a function or a method where it is defined"
        )
    if function.__code__.co_name == "<lambda>":
        raise _no_source(function, "a lambda cannot be a kernel or a helper function", "write def")
    if RUNTIME in function.__code__.co_freevars:
        return function  # a function within one that was rewritten
    file = function.__code__.co_filename
    try:
        lines, start = _source_lines(function, lines_of(function))
        has_changed = bool(read) and _source_lines(function, read)[0] != lines
        node, parents = _parse(function, "".join(lines), start)
    except (OSError, SyntaxError, LookupError) as error:
        raise _no_source(function, f"the source of '{function.__name__}' is not available", _WITHOUT_SOURCE) from error

    def refuse(at: ast.AST, form: str, hint: str) -> ProgramError:
        return _refusal(file, at, form, hint)

    if isinstance(node, ast.AsyncFunctionDef):
        raise refuse(node, "'async def'", "write def")
    node.decorator_list = []
    if has_changed:
        problem = f"the file of '{function.__name__}' has changed since Python read it"
        raise _no_source(function, problem, "import it again, or restart Python")
    transform_function(node, refuse, parents[-1] if parents else "", is_kernel)
    code = _compile(function, node, parents, file)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[RUNTIME] = CellType(dispatch)
    closure = tuple(cells[name] for name in code.co_freevars)
    new = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    new.__kwdefaults__ = function.__kwdefaults__
    new.__dict__.update(function.__dict__)  # with the function that it wraps, whose parameters it has
    new.__qualname__, new.__module__, new.__doc__ = function.__qualname__, function.__module__, function.__doc__
    return new


def _source_lines(function: FunctionType, lines: Sequence[str]) -> tuple[Sequence[str], int]:
    """The lines of a function itself, not of the one it wraps, among those of its file, and the number of the first.
    OSError without source.

    `inspect.getsourcelines` looks for the function's module first, in the files of all that are loaded, which takes
    longer than building a small kernel; the function's globals tell as much. It knows more of code without a file.
    """
    code = function.__code__
    if len(lines) < code.co_firstlineno:
        return inspect.getsourcelines(code)
    return inspect.getblock(lines[code.co_firstlineno - 1 :]), code.co_firstlineno


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _parse(function: FunctionType, text: str, start: int) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, list[str]]:
    """The function's tree with the positions of its file, and the classes around it."""
    if text[:1].isspace():  # a block keeps the columns, as cutting off the indentation would not
        tree = ast.parse("if True:\n" + text)
        ast.increment_lineno(tree, start - 2)
    else:
        tree = ast.parse(text)
        ast.increment_lineno(tree, start - 1)
    name = function.__code__.co_name
    node = next((node for node in ast.walk(tree) if isinstance(node, _DEFINITIONS) and node.name == name), None)
    if node is None:
        raise LookupError(name)
    names = function.__code__.co_qualname.split(".")
    classes = [outer for outer, inner in pairwise(names) if "<locals>" not in (outer, inner)]
    return node, classes


def _compile(function: FunctionType, node: ast.FunctionDef, parents: list[str], file: str) -> CodeType:
    """The code of the rewritten function, in the scopes that it had: its closure and, for private names, its class."""
    body: ast.stmt = node
    for name in reversed(parents):
        body = scope(ast.ClassDef, name, [], [], [body], [])
    free = [name for name in (*function.__code__.co_freevars, RUNTIME) if name != "__class__"]
    outer = [*parents, node.name][0]  # a function may name itself, a method its class
    known = [ast.Global(names=[outer])] if outer not in free else []
    module = ast.Module([scope(ast.FunctionDef, "__scope__", parameters(*free), [*known, body], [])], [])
    ast.fix_missing_locations(module)
    flags = function.__code__.co_flags & _FUTURE
    code = compile(module, file, "exec", flags=flags, dont_inherit=True)
    for name in ("__scope__", *parents, node.name):
        code = next(
            constant for constant in code.co_consts if isinstance(constant, CodeType) and constant.co_name == name
        )
    return code


_FUTURE = 0x1FF0000
"""The flags of code that was compiled under `from __future__ import ...`."""


_WITHOUT_SOURCE = (
    "define it in a file or a notebook's cell; without source, as in exec and python -c, decorate it with "
    "preprocessor=False and write cute.for_, cute.if_ and cute.while_"
)


def _no_source(function: object, problem: str, hint: str) -> ProgramError:
    code = getattr(function, "__code__", None)
    place = None if code is None else place_of_line(code.co_filename, code.co_firstlineno)
    return ProgramError([Diagnostic(Severity.ERROR, problem, place, Code.BUILD_SOURCE, hint)])


def _refusal(file: str, at: ast.AST, form: str, hint: str) -> ProgramError:
    line, start = getattr(at, "lineno", 1), getattr(at, "col_offset", 0)
    same_line = getattr(at, "end_lineno", None) == line
    end = getattr(at, "end_col_offset", None)
    text = linecache.getline(file, line).rstrip("\r\n")
    place = Place(file, line, column_of(text, start), column_of(text, end) if same_line and end else 0, text)
    return ProgramError(
        [Diagnostic(Severity.ERROR, f"{form} is not supported in a kernel", place, Code.BUILD_FORM, hint)]
    )
