# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel is built anew where a global, a helper or a variable around it has changed, also in place."""

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tilefold import cute

TEXT = """
import math
import numpy as np
from tilefold import cute
import settings

FACTOR = 2.0
TABLE = [1.0, [2.0]]
ARRAY = np.array([3.0, 4.0])

class Sizes:
    offset = 1.0

def helper(x):
    return x * FACTOR

@cute.jit
def second(x):
    if x > 100.0:
        x = x - TABLE[0]
    return helper(x) + TABLE[1][0] + ARRAY[0] + settings.shift + Sizes.offset

@cute.kernel
def kernel(out):
    t, _, _ = cute.arch.thread_idx()
    out[t] = second(cute.Float32(1)) + math.pi * 0
"""


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs text as a notebook runs a cell, in the same names each time."""
    settings = ModuleType("settings")
    settings.__dict__.update(shift=0.0, function=abs)  # kernels have an attribute of this name, too
    monkeypatch.setitem(__import__("sys").modules, "settings", settings)
    names: dict[str, Any] = {"__name__": "__main__"}
    count = iter(range(100))

    def run(text: str) -> Any:
        file = f"<cell {next(count)} of {id(names)}>"
        linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
        exec(compile(text, file, "exec"), names)
        return SimpleNamespace(**names)

    return run


def launched(kernel: Any, count: int = 1) -> float:
    out = np.zeros(1, np.float32)
    kernel(out).launch(grid=1, block=1, device="sim")
    return float(out[0])


CHANGES = {
    "FACTOR = 5.0": 11.0,
    "TABLE[1][0] = 7.0": 13.0,
    "ARRAY[0] = 13.0": 18.0,
    "settings.shift = 100.0": 108.0,
    "Sizes.offset = 21.0": 28.0,
    "def helper(x):\n    return x * 11.0": 17.0,
    "@cute.jit\ndef second(x):\n    return x + 50.0": 51.0,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_cell_that_changes_a_name(change: str, cells: Callable[..., Any]) -> None:
    kernel = cells(TEXT).kernel
    assert launched(kernel) == 8.0
    built = kernel.last
    assert launched(kernel) == 8.0
    assert kernel.last is built
    cells(change)
    assert launched(kernel) == CHANGES[change]


HOST = """
@cute.jit
def host(out: cute.Tensor):
    kernel(out).launch(grid=1, block=1, device="sim")

class Operation:
    @cute.kernel
    def kernel(self, out: cute.Tensor):
        out[0] = helper(cute.Float32(2))

    @cute.jit
    def __call__(self, out: cute.Tensor):
        self.kernel(out).launch(grid=1, block=1, device="sim")
"""


def test_host_functions_and_compiled_ones_launch_what_the_cells_say(cells: Callable[..., Any]) -> None:
    cells(TEXT)
    made, out = cells(HOST), np.zeros(1, np.float32)
    operation = made.Operation()
    compiled = [cute.compile(function, out) for function in (made.host, operation)]

    def results() -> list[float]:
        found: list[float] = []
        for call in (made.host, operation, *compiled):
            call(out)
            found.append(float(out[0]))
        return found

    before = results()
    assert before[:2] == before[2:]
    kept = [function.kernels[0] for function in compiled]
    assert results() == before
    assert [function.kernels[0] for function in compiled] == kept
    for change in ("FACTOR = 5.0", "def helper(x):\n    return x * 11.0"):
        cells(change)
        after = results()
        assert after[:2] == after[2:]
        assert all(now != earlier for now, earlier in zip(after, before, strict=True))
        before = after
    cells("@cute.kernel\ndef kernel(out):\n    out[0] = 77.0")
    assert results() == [77.0, before[1], 77.0, before[1]]


def test_a_variable_of_the_function_around() -> None:
    factor, held = 2.0, SimpleNamespace(n=1)

    @cute.kernel
    def kernel(out: cute.Tensor):
        out[0] = factor * held.n

    assert launched(kernel) == 2.0
    factor = 3.0
    assert launched(kernel) == 3.0


@dataclass
class Shape:
    n: int


SHAPE = Shape(3)


def test_a_dataclass_that_changes_in_place() -> None:
    @cute.kernel
    def kernel(out: cute.Tensor):
        out[0] = cute.Float32(SHAPE.n)

    assert launched(kernel) == 3.0
    SHAPE.n = 4
    assert launched(kernel) == 4.0


def test_what_a_kernel_notes_while_it_is_built_builds_it_once() -> None:
    seen: list[str] = []

    @cute.kernel
    def kernel(out: cute.Tensor):
        seen.append("built")
        out[0] = 1.0

    assert [launched(kernel) for _ in range(3)] == [1.0] * 3
    assert seen == ["built"]


def test_a_tuned_kernel() -> None:
    factor = 2.0

    @cute.autotune(configs=[{"n": 1}], grid=1, block=1)
    @cute.kernel
    def kernel(out: cute.Tensor, n: cute.Constexpr):
        out[0] = factor * n

    out = np.zeros(1, np.float32)
    kernel(out).launch(device="sim")
    assert out[0] == 2.0
    factor = 5.0
    kernel(out).launch(device="sim")
    assert out[0] == 5.0
