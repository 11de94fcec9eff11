# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No test measures time, and random numbers have seeds: a run does what the one before did, on a busy machine too."""

import ast
import re
from collections.abc import Iterator

from tests.project.tree import ROOT, parsed, walk

CLOCKS = {"perf_counter", "perf_counter_ns", "process_time", "monotonic", "thread_time", "getrusage"}
SCRIPTS = {"__main__.py", "fuzz.py", "work.py", "policies.py", "command_line.py", "conftest.py"}
"""Programs that tell their users how long they took, the module that compares times within one run, and the alarm for
tests that hang.
"""
GENERATORS = {"default_rng", "Random", "RandomState"}
WITHOUT_SEED = {"SystemRandom", "urandom", "token_bytes", "token_hex", "uuid4"}

_WORDS = re.compile("|".join((*CLOCKS, r"time\.time", "random", *GENERATORS, *WITHOUT_SEED, "torch")))
"""Only files with one of them can be wrong."""

CLOCK = """
from time import monotonic
began = time.perf_counter()
assert time.time() - began < 2
sleep(time.sleep)
"""
RANDOM = """
import random
random.choice('ab')
np.random.default_rng()
np.random.rand(3)
random.Random()
def f():
    return torch.rand(3)
np.random.default_rng(0).random(3)
random.Random(1).choice('ab')
@pytest.fixture(name="seeded")
def _torch():
    torch.manual_seed(0)
    return torch
def g(seeded):
    return torch.rand(3)
"""


def uses_of_clocks(tree: ast.AST) -> Iterator[int]:
    """The lines that name a function of a clock."""
    for node in walk(tree):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) | ast.alias(name=name):
                if name in CLOCKS or (name == "time" and ast.unparse(node) == "time.time"):
                    yield node.lineno
            case _:
                pass


def uses_without_seed(tree: ast.AST) -> Iterator[int]:
    """The lines with random numbers that have no seed: of the system, of generators that are made without arguments, of
    those that modules share; and the functions that let torch draw without giving it a seed.
    """
    imported = {name.name for node in walk(tree) if isinstance(node, ast.Import) for name in node.names}
    shared = {"np.random", "numpy.random"} | (imported & {"random"})
    has_torch = any(isinstance(node, ast.Name) and node.id == "torch" for node in walk(tree))
    seeded = set(_seeded_fixtures(tree)) if has_torch else set[str]()
    for node in walk(tree):
        if isinstance(node, ast.Call):
            module, _, name = ast.unparse(node.func).rpartition(".")
            made = name in GENERATORS
            if name in WITHOUT_SEED or (made and not node.args) or (module in shared and not made):
                yield node.lineno
        elif has_torch and isinstance(node, ast.FunctionDef):
            text = ast.unparse(node)
            arguments = {argument.arg for argument in node.args.args}
            if "torch.rand" in text and "manual_seed" not in text and not arguments & seeded:
                yield node.lineno


def _seeded_fixtures(tree: ast.AST) -> Iterator[str]:
    """The names of fixtures that give torch a seed, for the tests that take them."""
    for node in walk(tree):
        if isinstance(node, ast.FunctionDef) and "manual_seed" in ast.unparse(node):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.fixture":
                    named = (word.value for word in decorator.keywords if word.arg == "name")
                    yield next((ast.literal_eval(value) for value in named), node.name)


def test_clocks_and_random_numbers_are_found() -> None:
    assert set(uses_of_clocks(ast.parse(CLOCK))) == {2, 3, 4}
    assert set(uses_without_seed(ast.parse(RANDOM))) == {3, 4, 5, 6, 7}


def test_no_test_reads_a_clock_and_random_numbers_have_seeds() -> None:
    wrong: list[str] = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if not _WORDS.search(path.read_text()):
            continue
        tree = parsed(path)
        clocks = iter(()) if path.name in SCRIPTS else uses_of_clocks(tree)
        wrong += [f"{path.relative_to(ROOT)}:{line} reads a clock" for line in clocks]
        wrong += [f"{path.relative_to(ROOT)}:{line} has no seed" for line in uses_without_seed(tree)]
    assert not wrong
