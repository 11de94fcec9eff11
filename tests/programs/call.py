# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tilefold.cutlass tests/programs/call.py -- FILE FUNCTION NAME=VALUE ...`: calls a function of a library's
tests, whose own parameters are too large for the simulator. Values are expressions of Python in the names of the file.
FUNCTION may be the method of a class, `CLASS.METHOD`; those that take pytest's `monkeypatch`, `tmp_path` and `caplog`
are given them. In place of FUNCTION there may be an expression, whose value must be true or None; it may name torch.
`-m MODULE` in place of FILE names a module of a package.
"""

import inspect
import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from tilefold.cutlass.programs import ProgramFinder


def load(path: str) -> ModuleType:
    """Imports a file as its tests are, with the library's folder first on the path, and `src` in it; and as a program
    imports its modules.
    """
    file = Path(path).resolve()
    library = next((at for at in file.parents if (at / "tests").is_dir() or (at / "test").is_dir()), file.parent)
    sys.path[:0] = [str(folder) for folder in (library, library / "src", file.parent) if folder.is_dir()]
    spec = ProgramFinder().find_spec(file.stem, [str(file.parent)], None) or spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def main(module: ModuleType, function: str, arguments: Sequence[str]) -> None:
    """Calls a function of a module with values of arguments, or computes an expression in the names of the module."""
    if not function.replace(".", "").isidentifier():
        names = {"torch": import_module("torch"), **vars(module)}
        result = eval(function, names)
        if result is not None and not result:
            sys.exit(f"this is false: {function}")
        return
    split = (argument.split("=", 1) for argument in arguments)
    given = {name: eval(value, vars(module)) for name, value in split}
    name_of_class, _, name = function.rpartition(".")
    called = attrgetter(name)(getattr(module, name_of_class)() if name_of_class else module)
    with ExitStack() as stack:
        called(**given, **_fixtures(called, stack))


class _CapturedLog(logging.Handler):
    """What tests ask pytest's `caplog`: the text of all that is logged."""

    text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += f"{self.format(record)}\n"

    def set_level(self, level: int, logger: str | None = None) -> None:
        logging.getLogger(logger).setLevel(level)

    def clear(self) -> None:
        self.text = ""


def _fixtures(called: Callable[..., None], stack: ExitStack) -> dict[str, Any]:
    """What pytest gives to the parameters of a test that have these names, until `stack` is closed."""
    found: dict[str, Any] = {}
    parameters = inspect.signature(called).parameters
    if "monkeypatch" in parameters:
        found["monkeypatch"] = stack.enter_context(import_module("pytest").MonkeyPatch.context())
    if "tmp_path" in parameters:
        found["tmp_path"] = Path(stack.enter_context(TemporaryDirectory()))
    if "caplog" in parameters:
        found["caplog"] = log = _CapturedLog()
        logging.getLogger().addHandler(log)
        stack.callback(logging.getLogger().removeHandler, log)
    return found


if __name__ == "__main__":
    given = sys.argv[1:]
    if given[0] == "-m":
        main(import_module(given[1]), given[2], given[3:])
    else:
        main(load(given[0]), given[1], given[2:])
