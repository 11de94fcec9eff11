# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports run one way: base <- layout <- dialects <- passes <- compiler <- builder, and dialects <- runtime."""

import ast
import subprocess
import sys

import pytest
from tilefold.compiler.pipeline import OUR_PASSES

from tests.project.tree import PRODUCT, ROOT, imported_modules, module_name, parsed, product_files, statements

ALLOWED = {
    "base": {"base"},
    "layout": {"base", "layout"},
    "dialects": {"base", "layout", "dialects"},
    "passes": {"base", "layout", "dialects", "passes"},
    "compiler": {"base", "layout", "dialects", "passes", "compiler"},
    "builder": {"base", "layout", "dialects", "passes", "compiler", "builder"},
    "runtime": {"base", "layout", "dialects", "runtime"},
    "tilefold": set(PRODUCT),
}

# Packages outside the standard library that each folder may import.
EXTERNAL = {
    "base": set[str](),
    "layout": set[str](),
    "dialects": {"xdsl"},
    "passes": {"xdsl"},
    "compiler": {"xdsl", "llvmlite", "cuda", "rich"},
    "builder": {"xdsl"},
    "runtime": {"xdsl", "numpy", "ml_dtypes", "cuda", "filelock", "platformdirs", "typing_extensions"},
    "tilefold": {
        "xdsl",
        "numpy",
        "rich",
        "ml_dtypes",
        "typing_extensions",
        "PIL",
        "pygments",
        "pygls",
        "lsprotocol",
        "mcp",
        "jinja2",
        "markupsafe",
        "pytest",
    },
}


def test_imports_follow_the_layers() -> None:
    for path in product_files():
        folder = path.relative_to(ROOT).parts[0]
        for imported in imported_modules(path):
            top, *rest = imported.split(".")
            if top == "tilefold":
                if rest and rest[0] in PRODUCT:
                    assert rest[0] in ALLOWED[folder], f"{path}: {folder} may not import {imported}"
                else:
                    assert folder == "tilefold", f"{path}: {folder} may not import the façade ({imported})"
            elif top not in sys.stdlib_module_names:
                assert top in EXTERNAL[folder], f"{path}: {folder} may not import {imported}"


@pytest.mark.parametrize("folder", ["passes", "passes/cute_ir"])
def test_the_folders_of_passes_hold_passes_only(folder: str) -> None:
    """Each file is named as its pass; analyses and helpers have folders of their own."""
    passes = {name.replace("-", "_") for name in OUR_PASSES}
    files = {path.stem for path in (ROOT / folder).glob("*.py")} - {"__init__"}
    assert files - passes == ({"errors"} if folder == "passes" else set())


def test_operations_are_defined_by_one_decorator() -> None:
    """xDSL's own parses each assembly format when it is imported."""
    for path in (ROOT / "dialects").rglob("*.py"):
        for node in statements(parsed(path)):
            if isinstance(node, ast.ImportFrom) and any(name.name == "irdl_op_definition" for name in node.names):
                assert node.module == "definitions", path


def test_the_cuda_engine_knows_no_compiler_and_no_ir() -> None:
    for path in (ROOT / "runtime" / "cuda").rglob("*.py"):
        for imported in imported_modules(path):
            assert not imported.startswith(("xdsl", "tilefold.dialects")), f"{path.name} imports {imported}"


def test_product_folders_import_each_other_relatively() -> None:
    for path in product_files():
        if path.relative_to(ROOT).parts[0] == "tilefold":
            continue
        for node in statements(parsed(path)):
            if isinstance(node, ast.ImportFrom):
                assert node.level or not (node.module or "").startswith("tilefold"), f"{path}: {ast.unparse(node)}"


@pytest.mark.parametrize(
    ("command", "absent"),
    [
        ("import tilefold.commands.cli", {"numpy", "llvmlite", "cuda", "xdsl", "rich"}),
        ("from tilefold.commands.cli import main; main(['explain', 'E0101'])", {"numpy", "llvmlite", "cuda", "xdsl"}),
        (
            "from tilefold.commands.cli import main; main(['opt', 'tests/project/empty.cute'])",
            {"numpy", "llvmlite", "cuda"},
        ),
        (
            "from tilefold.commands.cli import main; main(['compile', 'examples/gemm.cute'])",
            {"numpy", "cuda", "xdsl.dialects.llvm"},
        ),
        ("from tilefold import cute", {"numpy", "llvmlite", "cuda", "rich", "xdsl.dialects.arith"}),
        ("import tilefold.layout.algebra.core", {"numpy", "llvmlite", "cuda", "xdsl"}),
    ],
)
def test_heavy_packages_stay_out(command: str, absent: set[str]) -> None:
    code = f"import sys; {command}; print(sorted(set(sys.modules) & {absent!r}))"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert result.stdout.splitlines()[-1] == "[]"


def test_a_simulated_launch_loads_neither_cuda_nor_the_command_line() -> None:
    launch = """
import sys
import numpy as np
sys.path.insert(0, "tests/project")
from launched import scale
scale(np.ones(128, np.float32), np.ones(128, np.float32)).launch(grid=1, block=128, device="sim")
"""
    others = ("cuda.", "tilefold.runtime.cuda.", "tilefold.commands.", "tilefold.driver.messages.")
    code = f"{launch}\nprint([name for name in sys.modules if (name + '.').startswith({others})])"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert result.stdout.splitlines()[-1] == "[]"


_PROCESS = """
import atexit, builtins, gc, locale, logging, os, signal, sys, threading, warnings
import numpy

def state():
    return {
        "finders": [each for each in sys.meta_path if not type(each).__module__.startswith("xdsl")],
        "hooks": list(sys.path_hooks), "path": list(sys.path),
        "excepthook": sys.excepthook, "displayhook": sys.displayhook, "trace": sys.gettrace(),
        "recursion": sys.getrecursionlimit(), "switch": sys.getswitchinterval(), "gc": gc.get_threshold(),
        "signals": [signal.getsignal(number) for number in signal.valid_signals()],
        "environment": dict(os.environ), "folder": os.getcwd(), "locale": locale.setlocale(locale.LC_ALL),
        "threads": threading.active_count(), "exits": atexit._ncallbacks(), "filters": list(warnings.filters),
        "handlers": list(logging.root.handlers), "level": logging.root.level, "builtins": dict(vars(builtins)),
        "errors": numpy.geterr(), "printing": numpy.get_printoptions(),
    }

before, classes = state(), {name: type(module) for name, module in sys.modules.items()}
from tilefold import cute
for name in cute.__all__:
    getattr(cute, name)
after = state()
print([name for name in before if before[name] != after[name]])
print([name for name, kind in classes.items() if type(sys.modules.get(name)) is not kind])
print([n for n, m in sys.modules.items() if n.startswith("tilefold") and type(m) is not type(sys)])
"""


def test_kernels_in_python_change_nothing_of_the_process() -> None:
    """xDSL has a finder for dialects in IRDL, which is its own."""
    result = subprocess.run([sys.executable, "-c", _PROCESS], cwd=ROOT, check=True, capture_output=True, text=True)
    assert result.stdout.splitlines() == ["[]"] * 3


_FLOORS = ("driver", "tools", "cute", "cutlass", "commands")
"""The rooms of tilefold/ from the lowest floor up. Each imports itself and those before it."""


def _room(module: str) -> str:
    """The room of tilefold/ in which a module lies, with the tool for one of the tools; "" for none."""
    parts = module.split(".")[1:]
    if not parts or parts[0] not in _FLOORS:
        return ""
    is_tool = len(parts) > 1 and (ROOT / "tilefold" / "tools" / parts[1]).is_dir()
    return f"tools.{parts[1]}" if parts[0] == "tools" and is_tool else parts[0]


def test_rooms_stand_on_one_another_and_tools_side_by_side() -> None:
    """`tools/joined.py` alone brings tools together. The command line does without the API, and the API without it."""
    for path in product_files():
        here = _room(module_name(path))
        for imported in imported_modules(path) if here else ():
            there = _room(imported)
            if not there or there == here:
                continue
            floors = [_FLOORS.index(room.partition(".")[0]) for room in (here, there)]
            allowed = floors[1] < floors[0] and (here, there) != ("commands", "cute")
            assert allowed or here == "tools", f"{path}: {here} may not import {imported}"


def test_machine_code_knows_no_lowering() -> None:
    imported = set(imported_modules(ROOT / "tilefold" / "driver" / "machine_code.py"))
    assert not any(name.startswith("tilefold.driver.lowering") for name in imported)
