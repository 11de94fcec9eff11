# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packages whose names are imported when a program first uses them: `tilefold.cute`, and the large dialects."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tilefold.base.on_demand import imports_for_type_checkers, on_demand

from tests.project.tree import ROOT
from tilefold.cute.names import HOMES

PACKAGES: Mapping[str, Path] = {
    "tilefold.cute": ROOT / "tilefold" / "cute",
    "tilefold.dialects.ptx": ROOT / "dialects" / "ptx",
    "tilefold.dialects.tile": ROOT / "dialects" / "tile",
}
MOST_OF_XDSL = 0.5
"""The calls of functions that `import tilefold.cute` may make, by those that importing the types of xDSL makes before.
Both counts come from one process, so that neither the machine nor the version of Python decides.
"""
_COUNT = """
import sys
calls = 0

def count(frame, event, argument):
    global calls
    calls += event in ("call", "c_call")

counts = []
for text in ("import xdsl.dialects.builtin", "import tilefold.cute"):
    calls = 0
    sys.setprofile(count)
    exec(text)
    sys.setprofile(None)
    counts.append(calls)
print(*counts)
"""
_EACH = """
import os, sys
from importlib import import_module
import xdsl.dialects.builtin

failed = []
for module in sys.argv[1:]:
    child = os.fork()
    if not child:
        import_module(module)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        failed.append(module)
print(failed)
"""
_BUILD = """
import sys
from tilefold import cute

@cute.kernel(preprocessor=False)
def double(A: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    A[t] = A[t] * 2

double(cute.TensorSpec(32, cute.Float32)).build(block=32)
print("tilefold.dialects.ptx.address" in sys.modules, "tilefold.dialects.ptx.mbarrier" in sys.modules)
"""


def _run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _homes(package: str) -> Mapping[str, str]:
    """The table of a package."""
    if package == "tilefold.cute":
        return HOMES
    return imports_for_type_checkers(package)


def _at_run_time(package: str) -> Iterator[tuple[str, str, str]]:
    """The module, the name there, and the name here, of each name of the table."""
    for home, names in _homes(package).items():
        for entry in names.split():
            name, _, there = entry.partition("=")
            yield home, there or name, name


def _for_type_checkers(package: str) -> Iterator[tuple[str, str, str]]:
    """The same of what type checkers import."""
    tree = ast.parse((PACKAGES[package] / "__init__.py").read_text())
    (choice,) = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    for node in choice.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            yield "." * node.level + (node.module or ""), alias.name, alias.asname or alias.name


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_find_the_names_where_python_does(package: str) -> None:
    found = sorted(_at_run_time(package))
    assert len(found) > 60
    assert [each for each in found if not each[2].startswith("_")] == sorted(_for_type_checkers(package))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_there(package: str) -> None:
    names = _run(f"import {package} as p; print(*(name for name in p.__all__ if getattr(p, name) is not p))").split()
    assert len(names) == len(set(names)) > 60


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process of its own for each module takes too long")
@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_can_be_the_first(package: str, request: pytest.FixtureRequest) -> None:
    """Which module a program imports first depends on the names that it uses. That no imports go round in a circle,
    test_imports.py says of all of them; here each tenth is tried, and by night each.
    """
    homes = {home if home.strip(".") else name for home, _, name in _at_run_time(package)}
    names = [f"{package}.{home.lstrip('.')}" if not home.startswith(("tilefold", "...")) else home for home in homes]
    chosen = sorted(name for name in names if not name.startswith("..."))
    assert _run(_EACH, *chosen[:: 1 if request.config.getoption("nightly") else 10]) == "[]"


def test_importing_cute_takes_less_than_xdsl() -> None:
    of_xdsl, ours = map(int, _run(_COUNT).split())
    assert of_xdsl > 10_000
    assert ours <= MOST_OF_XDSL * of_xdsl


def test_a_kernel_imports_the_operations_that_it_may_need() -> None:
    assert _run(_BUILD) == "True False"


def test_a_missing_name_is_looked_for_in_modules_that_are_not_imported_yet() -> None:
    code = (
        "from tilefold import cute\ntry:\n    cute.thread_idx\nexcept AttributeError as error:\n    print(error.hint)"
    )
    assert "cute.arch.thread_idx" in _run(code)


def test_names_come_from_their_homes(monkeypatch: pytest.MonkeyPatch) -> None:
    holder = type(sys)("tests.project.holder")
    monkeypatch.setitem(sys.modules, holder.__name__, holder)
    load = on_demand(holder.__name__, {"math": "pi tau=e", "tests.project.tree": "ROOT"})
    assert (load("ROOT"), load("tau")) == (ROOT, vars(holder)["tau"])
    assert 2.7 < load("tau") < 2.8
    with pytest.raises(AttributeError, match=r"module 'tests\.project\.holder' has no attribute 'phi'"):
        load("phi")
