# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names that programs take from the parts of another compiler: control flow and types of its IR, instructions."""

from inspect import isclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

import tilefold.cutlass as cutlass
from tests.cutlass.test_modules import ran
from tilefold import cute
from tilefold.cutlass.cutlass_dsl import (
    T,
    extract_mlir_values,
    if_generate,
    new_from_mlir_values,
    not_,
    while_generate,
    yield_out,
)
from tilefold.cutlass.mlir.dialects import llvm, nvvm, vector
from tilefold.cutlass.mlir.dialects import math as floats
from tilefold.cutlass.mlir.ir import IntegerType


def goes_on(n: Any, *_: Any) -> Any:
    return n > 1


@cute.kernel
def collatz(A: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    loop = while_generate([A[t], cutlass.Int32(0)], goes_on)
    with loop as (n, steps):
        half = n // 2
        yield_out([if_generate(n % 2 == 0, lambda: half, lambda: 3 * n + 1), steps + 1])
    A[t] = loop.results[1]


def steps_of(n: int) -> int:
    return 0 if n <= 1 else 1 + steps_of(n // 2 if n % 2 == 0 else 3 * n + 1)


def test_loops_and_branches_that_are_generated() -> None:
    A = np.arange(32, dtype=np.int32)
    collatz(A).launch(grid=1, block=32, device="sim")
    assert A.tolist() == [steps_of(n) for n in range(32)]


@cute.kernel
def badly_generated(A: cute.Tensor, given: cute.Constexpr):
    loop = while_generate([A[0]], goes_on)
    with loop as (n,):
        if given:
            yield_out([n] * given)
    A[0] = loop.results[0]


@pytest.mark.parametrize(("given", "text"), [(0, "hands on other values"), (2, "hands on 2 values, the loop has 1")])
def test_a_loop_whose_body_hands_on_other_values(given: int, text: str) -> None:
    with pytest.raises(TilefoldError) as caught:
        badly_generated(np.zeros(4, np.int32), given).launch(grid=1, block=32, device="sim")
    assert "E5006" in str(caught.value)
    assert text in str(caught.value)


class Walk:
    """Values that a program names, and such as it does not."""

    def __init__(self, at: Any, steps: Any, limit: int) -> None:
        self.at, self.steps, self.limit = at, steps, limit

    def __extract_mlir_values__(self) -> list[Any]:
        return [*extract_mlir_values(self.at), *extract_mlir_values(self.steps)]

    def __new_from_mlir_values__(self, values: list[Any]) -> "Walk":
        (y, x), steps = new_from_mlir_values(self.at, values[:2]), new_from_mlir_values(self.steps, values[2:])
        return Walk((y, x), steps, self.limit)


@cute.kernel
def rebuilt(A: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    walk = Walk((t, t + 1), t * 2, 7)
    values = extract_mlir_values(walk)
    assert len(values) == 3
    other = new_from_mlir_values(walk, values[::-1])
    A[t] = other.at[0] * 10000 + other.at[1] * 100 + other.steps + other.limit - 7


def test_values_of_objects() -> None:
    A = np.zeros(32, np.int32)
    rebuilt(A).launch(grid=1, block=32, device="sim")
    assert A.tolist() == [2 * t * 10000 + (t + 1) * 100 + t for t in range(32)]


@cute.kernel
def dialects(A: cute.Tensor, B: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    row = A[t, None].load()
    B[t] = floats.log(vector.extract(row, [], [2])) + floats.exp2(vector.extract(row, [], [1]))
    if nvvm.elect_sync():
        B[t] = -1.0


def test_functions_of_dialects() -> None:
    A = np.random.default_rng(0).random((32, 4)).astype(np.float32) + 1
    B = np.zeros(32, np.float32)
    dialects(A, B).launch(grid=1, block=32, device="sim")
    np.testing.assert_allclose(B[1:], (np.log(A[:, 2]) + np.exp2(A[:, 1]))[1:], rtol=1e-5)
    assert B[0] == -1


def test_types_and_conditions() -> None:
    types = [T.bool(), T.i32(), T.i64(), T.f16(), T.bf16(), T.f32(), IntegerType.get_signless(1)]
    assert [str(type) for type in types] == ["i1", "i32", "i64", "f16", "bf16", "f32", "i1"]
    assert not not_(True)
    with pytest.raises(TilefoldError):
        llvm.PointerType.get(99)
    mode = nvvm.CpAsyncBulkTensorLoadMode.IM2COL
    with pytest.raises(TilefoldError, match="im2col"):
        nvvm.CpAsyncBulkTensorGlobalToSharedClusterOp(None, None, [], None, loadMode=mode)


HELPERS = """
import cutlass.cute as cute


class Tiles:
    def __init__(self, shape, *, loc=None, ip=None):
        self.layout = cute.make_layout(shape, loc=loc, ip=ip)
        self.count = cute.size(self.layout, loc=loc, ip=ip)

    def coordinate(self, i, *, loc=None, ip=None):
        return self.layout.get_hier_coord(i, loc=loc, ip=ip)

    @cute.jit
    def last(layout: cute.Layout, i):
        return Tiles.first(layout, cute.size(layout) - 1 - i)

    @cute.jit
    def first(layout: cute.Layout, i):
        return layout(i)
"""
PROGRAM = """
import numpy as np
import cutlass.cute as cute
from helpers.tiles import Tiles


@cute.kernel
def kernel(A: cute.Tensor):
    tiles = Tiles((4, 8))
    t, _, _ = cute.arch.thread_idx()
    y, x = tiles.coordinate(t)
    A[t] = y * 100 + x + Tiles.last(tiles.layout, t) * 1000


A = np.zeros(32, np.int32)
kernel(A).launch(grid=1, block=32, device="sim")
print(A.tolist() == [t % 4 * 100 + t // 4 + (31 - t) * 1000 for t in range(32)])
"""


def test_places_of_an_ir_are_left_out_of_calls_in_all_files_of_a_program(tmp_path: Path) -> None:
    """Also methods without a decorator have them; and a method may name its class."""
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "tiles.py").write_text(HELPERS)
    (tmp_path / "program.py").write_text(PROGRAM)
    assert ran("-m", "tilefold.cutlass", str(tmp_path / "program.py")) == "True\n"
    assert not list(tmp_path.rglob("*.pyc"))


@cute.kernel
def approximated(A: cute.Tensor, B: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    B[t] = llvm.inline_asm(T.f32(), [A[t].ir_value()], " tanh.approx.f32  $0, $1; ", "=f,f", has_side_effects=False)
    B[t + 32] = cute.arch.inline_ptx("ex2.approx.ftz.f32 $0, $1;", "=f, f", A[t], results=cute.Float32)


def test_an_approximation_as_text_is_simulated() -> None:
    A, B = np.linspace(-2, 2, 32, dtype=np.float32), np.zeros(64, np.float32)
    call = approximated(A, B)
    call.launch(grid=1, block=32, device="sim")
    np.testing.assert_allclose(B, np.concatenate([np.tanh(A), np.exp2(A)]), rtol=1e-3)
    ptx = call.build(32).ptx("sm_80")
    assert ptx.count("tanh.approx.f32") == ptx.count("ex2.approx.ftz.f32") == 1


def of_floats(dtype: Any) -> str:
    return "float" if issubclass(dtype, cutlass.Float) else "none"


@cute.kernel
def families(A: cute.Tensor, dtype: cutlass.Constexpr[Any]):
    x = A[0]
    if not isclass(dtype) or not issubclass(dtype, cutlass.Numeric):
        A[0] = -1
    elif isinstance(x, cutlass.Int32) and isinstance(x, cutlass.Integer) and not isinstance(x, cutlass.Int64):
        A[0] = cutlass.Float16.width


def test_types_are_classes_to_programs() -> None:
    A = np.zeros(1, np.int32)
    families(A, cutlass.Float16).launch(grid=1, block=1, device="sim")
    assert A[0] == 16
    assert [of_floats(dtype) for dtype in (cutlass.Float16, cutlass.Int8)] == ["float", "none"]
    assert issubclass(cutlass.Int8, cutlass.Integer)
    assert issubclass(cutlass.Int8, cutlass.Int8)
    assert not issubclass(cutlass.Int8, cutlass.Int16)
    assert not isinstance(3, cutlass.Numeric)


@cute.kernel
def other_text(A: cute.Tensor):
    A[0] = cute.arch.inline_ptx("tanh.approx.f32 $0, $1; // twice", "=f,f", A[0], results=cute.Float32)


def test_any_other_text_is_not() -> None:
    with pytest.raises(TilefoldError) as caught:
        other_text(np.zeros(4, np.float32)).launch(grid=1, block=32, device="sim")
    assert "sim=" in str(caught.value)
