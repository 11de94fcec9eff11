# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules and folders import one way, imports within functions and for type checkers counted; and imports within
functions have a reason.
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.project.tree import PRODUCT, ROOT, module_name, parsed, product_files

MODULES = {module_name(path): path for path in product_files()}

HEAVY = {"numpy", "ml_dtypes", "llvmlite", "cuda", "rich", "PIL", "filelock", "platformdirs"}
"""Packages that take longer to import than most commands take, and that many programs never need."""

LAZY: Mapping[str, str] = {
    "tilefold": "a program that uses one part of the package does not wait for the others",
    "tilefold.commands.process": "the process is ready for interrupts before anything long is imported",
    "tilefold.commands": "a command imports what its options ask for: `tilefold explain` needs no compiler",
    "tilefold.layout": "most programs never draw",
    "tilefold.cute.drawing": "most programs never draw",
    "tilefold.driver.output": "PNG needs Pillow, which need not be installed",
    "tilefold.compiler.cute_ir.emit_gpu_binary": "needs llvmlite and nvJitLink",
    "tilefold.driver.lowering": "a program that stays IR needs neither LLVM nor the assembler nor reports",
    "tilefold.driver.machine_code": "machine code that is in the cache needs no assembler",
    "tilefold.cute.inspection": "a program on a GPU is not printed",
    "tilefold.driver.devices": "an engine is imported when it runs: CUDA needs cuda-python, the simulator NumPy",
    "tilefold.cute": "decorators need no compiler, and kernels are built without NumPy and cuda-python",
    "tilefold.kernels": "a function imports the kernels of the target at hand, and NumPy for its arrays alone",
    "tilefold.builder": "a program that defines kernels waits for xDSL's dialects when it builds one",
    "tilefold.compiler.emit": "few kernels have functions that `expand-math` replaces, or structures of LLVM",
    "tilefold.passes.expand_atoms": "few kernels have tensor memory",
    "tilefold.passes.lower_tensors": "few kernels print, multiply matrices or copy by tensor maps",
    "tilefold.runtime.sim.rules.scf": "few kernels have a loop without a bound",
    "tilefold.runtime.sim.sim_engine": "few launches fail, take long, or overlap another",
    "tilefold.runtime.sim.ordering.schedule": "few kernels copy in bulk, wait forever, or run on several processes",
    "tilefold.runtime.sim.ordering.races": "few kernels have atomic accesses, or copy by tensor maps in memory",
    **dict.fromkeys(
        ("tilefold.runtime.sim.memory.refusals", "tilefold.runtime.sim.memory.spaces"),
        "few launches fail, or reach into the shared memory of other blocks",
    ),
    **dict.fromkeys(
        ("tilefold.runtime.sim.memory.space_state", "tilefold.runtime.sim.ordering.cluster"),
        "few kernels have fences or atomic accesses",
    ),
    "tilefold.runtime.sim.memory.memories": "few launches let loads find outdated values",
    "tilefold.runtime.sim.preparation": "few launches fail, or have tensor maps, layouts with `?` or exact numbers",
    **dict.fromkeys(
        ("tilefold.passes.expand_conversions", "tilefold.passes.merge_accesses"),
        "programs without vectors do not wait for xDSL's dialect of them",
    ),
    "tilefold.passes.writing.addresses": "few tensors are swizzled",
    "tilefold.passes.strength_reduce": "few programs still compute with constants alone",
    "tilefold.layout.tma.tma_copy": "fractions bring decimal numbers, which few programs need",
    "tilefold.pytest_plugin": "few tests have the mark",
    "tilefold.cutlass.__main__": "the program's modules are there before anything else of it is imported",
    **dict.fromkeys(
        (
            "tilefold.compiler.frontend.program",
            "tilefold.compiler.emit.arith",
            "tilefold.compiler.emit.types",
            "tilefold.passes.writing.constant_folding",
        ),
        "most programs have nothing of the dialect llvm",
    ),
}
"""The modules and packages that import modules within functions, each with the reason."""


def _graph(path: Path, types: bool = False) -> Iterator[tuple[str, bool]]:
    """The modules that a module imports, and whether it does so within a function; with `types` also for type checkers
    alone.
    """
    package = module_name(path) if path.name == "__init__.py" else module_name(path).rpartition(".")[0]

    def visit(node: ast.AST, within: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            if not types and isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                yield from (found for part in child.orelse for found in visit(part, within))
            elif isinstance(child, ast.Import):
                yield from ((alias.name, within) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                above = package.split(".")[: len(package.split(".")) - child.level + 1] if child.level else []
                base = ".".join([*above, *([child.module] if child.module else [])])
                for alias in child.names:
                    yield (f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base), within
            elif not isinstance(child, ast.expr):
                yield from visit(child, within or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef))

    return visit(parsed(path), False)


@cache
def imports() -> dict[str, list[tuple[str, bool]]]:
    """The modules that each module imports, and whether it does so within a function."""
    return {name: list(_graph(path)) for name, path in MODULES.items()}


def _cycle(graph: Mapping[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def _circles(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """The largest sets of modules each of which leads to all others of its set."""
    rest = {name: set(found) for name, found in graph.items()}
    while ends := {name for name, found in rest.items() if not found & rest.keys()}:
        rest = {name: found - ends for name, found in rest.items() if name not in ends}
    reached: dict[str, set[str]] = {}
    for name in rest:
        pending = [name]
        reached[name] = set()
        while pending:
            new = rest[pending.pop()] & rest.keys() - reached[name]
            reached[name] |= new
            pending += new
    circles = {frozenset(each for each in found if name in reached[each]) for name, found in reached.items()}
    return sorted((set(circle) for circle in circles if len(circle) > 1), key=len)


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert not _cycle(
        {name: {each for each, _ in found if each in MODULES} - {name} for name, found in imports().items()}
    )


def test_imports_for_type_checkers_close_no_circle() -> None:
    graph = {name: {each for each, _ in _graph(path, types=True)} - {name} for name, path in MODULES.items()}
    assert not _circles(graph)


@pytest.mark.parametrize("parent", ["layout", "passes", "compiler", "builder", "tilefold"])
def test_no_folder_imports_itself_by_way_of_others(parent: str) -> None:
    """Of the folders and the modules in a folder, each imports others one way."""
    top = ROOT / parent

    def member(name: str) -> str | None:
        path = MODULES.get(name)
        if path is None or not path.is_relative_to(top) or path == top / "__init__.py":
            return None
        return path.relative_to(top).parts[0]

    graph: dict[str, set[str]] = {}
    for name, found in imports().items():
        if (own := member(name)) is not None:
            others = {other for each, _ in found if (other := member(each)) is not None}
            graph.setdefault(own, set()).update(others - {own})
    assert len(graph) > 3
    assert not _cycle(graph)


def test_a_cycle_is_found() -> None:
    assert _cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}})


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c", "x"}, "c": {"b"}, "d": {"e"}, "e": {"f", "b"}, "f": {"d"}, "x": set[str]()}
    assert _circles(graph) == [{"b", "c"}, {"d", "e", "f"}]


def test_imports_within_functions_have_a_reason() -> None:
    for name, found in imports().items():
        packages = [name.rsplit(".", levels)[0] for levels in range(name.count("."))]
        reasons = [LAZY[each] for each in packages if each in LAZY and each != "tilefold"]
        late = [each.partition(".")[0] for each, within in found if within]
        ours = [top for top in late if top not in sys.stdlib_module_names and top not in HEAVY]
        assert not ours or reasons or name == "tilefold", f"{name}: {ours}"


def test_no_reason_is_left_over() -> None:
    late = [name for name, found in imports().items() if any(within for _, within in found)]
    for name in LAZY:
        assert any(each == name or each.startswith(f"{name}.") for each in late), name


def test_the_tree_is_read() -> None:
    assert {name.split(".")[1] for name in MODULES if "." in name} >= set(PRODUCT) - {"tilefold"}
    assert ("tilefold.layout.drawing.pictures", True) in imports()["tilefold.layout"]
