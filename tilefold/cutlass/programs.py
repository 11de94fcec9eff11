# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code of programs, which are files of Python, or the code cells of notebooks in their order (JSON, nbformat 4).

`loc=loc, ip=ip` are left out of calls in functions that are not rewritten, too: they tell another compiler where in its
IR it is. `isinstance` takes a tensor of coordinates for a tensor, and `type(x)` of a value of the kernel is the type of
elements that it has there. A name that is missing and stands only in an annotation or as a default is an error where it
is used.
"""

import ast
import json
import linecache
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from tilefold.builder.control.builtin import BUILTINS
from tilefold.cute.host.streams import torch_module
from tilefold.cute.missing_name import MissingName, UnknownNameError
from tilefold.cute.torch_compile import skip_frames, untraced
from tilefold.runtime.arrays.reachable import reachable
from tilefold.runtime.cuda import is_available

from .replacements import Replacements
from .without_gpu import stay_on_host, wait_for_gpu

_PLACE = {"loc", "ip"}
_NAMED, _BUILTIN = "__tilefold_named__", "__tilefold_builtin__"
_CHANGED: dict[Any, Callable[..., Any]] = {python: BUILTINS[python] for python in (isinstance, type)}
"""Ours by those of Python's functions that the code of programs finds by `get`, a function of Python's own, which
libraries take that follow the globals of functions to make keys of them. It is that of a `dict` because torch's
compiler reads no other mapping whose keys are functions.
"""


def named(name: str, find: Callable[[], object]) -> Any:
    """The result of a function; where it meets a missing name, one that stands for it."""
    try:
        return find()
    except UnknownNameError as error:
        return MissingName(name, (error.code, error.message, error.hint))


class _Changes(ast.NodeTransformer):
    """Calls without `loc=loc, ip=ip`, and annotations, defaults and base classes whose names may be missing."""

    def __init__(self) -> None:
        self.imported = set[str]()
        self.of_class = set[str]()
        """The names that the body of the class assigns, which a function there does not see."""

    def visit_Import(self, node: ast.Import) -> ast.AST:
        for name in node.names:
            if name.name.partition(".")[0] == "cutlass":
                self.imported.add(name.asname or "cutlass")
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if (node.module or "").partition(".")[0] == "cutlass":
            self.imported |= {name.asname or name.name for name in node.names}
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.returns = self._named(node.returns)
        node.args.defaults = [self._named(default) or default for default in node.args.defaults]
        node.args.kw_defaults = [self._named(default) for default in node.args.kw_defaults]
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outer, assigned = self.of_class, [line for line in node.body if isinstance(line, ast.Assign)]
        self.of_class = {name.id for line in assigned for name in line.targets if isinstance(name, ast.Name)}
        self.generic_visit(node)
        self.of_class = outer
        node.bases = [self._named(base) or base for base in node.bases]
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = self._named(node.annotation)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        node.annotation = self._named(node.annotation) or node.annotation
        return node

    def _named(self, node: ast.expr | None) -> ast.expr | None:
        """An expression that is found by a function, if it has attributes of imported names."""
        parts = [] if node is None else [part for part in ast.walk(node) if isinstance(part, ast.Attribute)]
        if node is None or not any(isinstance(p.value, ast.Name) and p.value.id in self.imported for p in parts):
            return node
        used = sorted({part.id for part in ast.walk(node) if isinstance(part, ast.Name)} & self.of_class)
        args, values = [ast.arg(name) for name in used], [ast.Name(name, ast.Load()) for name in used]
        taken = ast.arguments(posonlyargs=[], args=args, kwonlyargs=[], kw_defaults=[], defaults=[*values])
        given: list[ast.expr] = [ast.Constant(ast.unparse(node)), ast.Lambda(taken, node)]
        return ast.copy_location(ast.Call(ast.Name(_NAMED, ast.Load()), given, []), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        places = [given for given in node.keywords if isinstance(given.value, ast.Name) and given.value.id == given.arg]
        if {given.arg for given in places} >= _PLACE:
            node.keywords = [given for given in node.keywords if given not in places or given.arg not in _PLACE]
        if isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "type"):
            found = ast.Call(ast.Name(_BUILTIN, ast.Load()), [node.func, node.func], [])
            node.func = ast.copy_location(found, node.func)
        return node


def compile_file(source: bytes, file: str) -> CodeType:
    """The code of a program's file. Raises SyntaxError."""
    tree = source
    if b"cutlass" in source:
        tree = _parse(source, file)
    return compile(tree, file, "exec", dont_inherit=True)


def _parse(source: bytes | str, file: str) -> ast.Module:
    return ast.fix_missing_locations(_Changes().visit(ast.parse(source, file)))


class _Loader(SourceFileLoader):
    """Reads modules of programs, which Python does not keep compiled."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return compile_file(self.get_data(path), path)

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update({_BUILTIN: _CHANGED.get, _NAMED: named})
        super().exec_module(module)


class ProgramFinder(MetaPathFinder):
    """Finds the modules that programs import from their own folders, which name `cutlass`."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The result of `PathFinder` for a module whose file has calls to change; None for all others."""
        if name.partition(".")[0] in sys.stdlib_module_names | {"tilefold", "cutlass"}:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader or spec.origin is None:
            return None
        source = spec.loader.get_data(spec.origin)
        if b"cutlass" not in source:
            return None
        spec.loader = _Loader(name, spec.origin)
        return spec


def register_addresses(torch: ModuleType, replaced: Replacements) -> None:
    """Lets simulated kernels reach the tensors in the host's memory whose `data_ptr()` the program asks for, until
    `replaced` is closed.
    """
    data_ptr = torch.Tensor.data_ptr

    @untraced
    @wraps(data_ptr)
    def call(tensor: Any) -> Any:
        if tensor.get_device() < 0:
            reachable().add(tensor)
        return data_ptr(tensor)

    skip_frames(call)
    replaced.set(torch.Tensor, data_ptr=call)


def take_over(replaced: Replacements) -> Callable[[], None]:
    """Makes the process ready for a CuTe program, until `replaced` is closed: kernels reach torch's tensors by their
    addresses, and where there is no GPU the host takes its place. The result waits for what streams have left.
    """
    if find_spec("torch") is not None:
        register_addresses(torch_module(), replaced)
    if is_available():
        return lambda: None
    replaced.enter_context(stay_on_host())
    return wait_for_gpu


def run_as_main(file: str, package: str | None = None) -> None:
    """Runs a file, or the code cells of a notebook (`.ipynb`), as `__main__`, a module of a package if it is one."""
    module = ModuleType("__main__")
    module.__file__ = file
    module.__package__ = package
    vars(module).update({_BUILTIN: _CHANGED.get, _NAMED: named})
    sys.modules["__main__"] = module
    if file.endswith(".ipynb"):
        for name, text in cells_of(file):
            _run_cell(name, python_of(text, name), vars(module))
        return
    with open(file, "rb") as stream:
        exec(compile_file(stream.read(), file), vars(module))


def _run_cell(name: str, text: str, names: dict[str, object]) -> None:
    """Runs a cell. It prints the value of an expression at its end, as a notebook shows it, unless `;` follows."""
    tree = _parse(text, name)
    is_shown = tree.body and isinstance(tree.body[-1], ast.Expr) and not text.rstrip().endswith(";")
    last = [tree.body.pop()] if is_shown else []
    exec(compile(tree, name, "exec", dont_inherit=True), names)
    exec(compile(ast.Interactive(last), name, "single", dont_inherit=True), names)


_NOT_PYTHON = re.compile(r"^(?P<indent>[ \t]*)(?P<command>[%!].*)$", re.MULTILINE)


def cells_of(file: str) -> Iterator[tuple[str, str]]:
    """The name and the text of each code cell of a notebook.

    The name tells the file and the cell, counted from 1 among all cells. Python can show lines of a cell by its name,
    as tracebacks and messages do. Raises SystemExit, with a message, for a file that is not a notebook.
    """
    try:
        cells = json.loads(Path(file).read_bytes())["cells"]
        code = [
            (f"{file}[{number}]", "".join(cell["source"]))
            for number, cell in enumerate(cells, 1)
            if cell["cell_type"] == "code"
        ]
    except (ValueError, LookupError, TypeError) as error:
        raise SystemExit(f"{file} is not a notebook (nbformat 4)") from error
    for name, text in code:
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        yield name, text


def python_of(text: str, name: str) -> str:
    """The text of a cell without lines that are commands of IPython (`%magic`, `!shell`), for which `pass` stands.

    Says on stderr which it leaves out. `%%` at the beginning of a cell takes the whole cell. A cell that Python
    accepts has no such line: there `%` at the beginning of a line is an operator.
    """
    try:
        ast.parse(text)
    except SyntaxError:
        lines = text.lstrip()
        if lines.startswith("%%"):
            _say_left_out(lines.splitlines()[0], name)
            return ""
        for command in _NOT_PYTHON.finditer(text):
            _say_left_out(command["command"], f"{name}:{text.count(chr(10), 0, command.start('command')) + 1}")
        return _NOT_PYTHON.sub(r"\g<indent>pass", text)
    return text


def _say_left_out(command: str, place: str) -> None:
    print(f"{place}: '{command}' is left out: it is a command of IPython", file=sys.stderr)
