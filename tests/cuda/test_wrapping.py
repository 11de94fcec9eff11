# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Negatives and absolute values of integers on a GPU, whatever is done with them."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.target import Target
from tilefold.compiler.machine.assemble import assemble
from tilefold.compiler.machine.nvptx import wrap_integers

from tilefold import cute

TYPES = {"Int8": np.int8, "Int16": np.int16, "Int32": np.int32, "Int64": np.int64}
RESULTS = 18


@cute.kernel
def results(X: cute.Tensor, out: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    x = X[t]
    for k, y in enumerate((-x, abs(x))):
        values = (
            cute.Int64(y), cute.Int64(y < 0), cute.Int64(y >= -7), cute.Int64(y > 5), cute.Int64(y % 7),
            cute.Int64(y // 7), cute.Int64(y >> 3), cute.Int64(max(y, -9)), cute.Int64(cute.Int32(y) * 3),
        )  # fmt: skip
        for i, value in enumerate(values):
            out[t, k * 9 + i] = value


def _launched(dtype: Any, device: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    least, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([least, least + 1, -5, -1, 0, 1, 7, greatest], dtype)
    out = np.zeros((x.size, RESULTS), np.int64)
    results(x, out).launch(1, x.size, device=device)
    wide = x.astype(np.promote_types(dtype, np.int32))  # as C++ promotes integers
    with np.errstate(over="ignore"):
        for k, y in enumerate((np.negative(wide), np.abs(wide))):
            assert np.array_equal(out[:, 9 * k], y.astype(np.int64)), f"column {9 * k}"
            assert np.array_equal(out[:, 9 * k + 4], (y % 7).astype(np.int64)), f"column {9 * k + 4}"
    return out


@cute.kernel
def extremes(X: cute.Tensor, Y: cute.Tensor, Z: cute.Tensor, out: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    x, y, z = X[t], -Y[t], Z[t]
    size = abs(Y[t])
    for i, f in enumerate((cute.math.max, cute.math.min)):
        for k, value in enumerate((f(f(x, y), z), f(f(y, x), z), f(z, f(x, y)), f(f(x, size), z), f(f(size, y), z))):
            out[t, 5 * i + k] = value


def _extremes(dtype: Any, device: str) -> None:
    edges = np.array([np.iinfo(dtype).min, -9, 0, 9, np.iinfo(dtype).max], dtype)
    x, y, z = (np.ascontiguousarray(each.reshape(-1)) for each in np.meshgrid(edges, edges, edges))
    wide = np.promote_types(dtype, np.int32)
    out = np.zeros((x.size, 10), wide)
    extremes(x, y, z, out).launch(1, x.size, device=device)
    x, y, z = (each.astype(wide) for each in (x, y, z))
    for i, f in enumerate((np.maximum, np.minimum)):
        for k, second in enumerate((-y, -y, -y, np.abs(y), f(-y, np.abs(y)))):
            wanted = f(f(x, second), z) if k < 4 else f(second, z)
            assert np.array_equal(out[:, 5 * i + k], wanted), f"column {5 * i + k}"


@pytest.mark.parametrize("name", TYPES)
def test_extremes_in_the_simulator(name: str) -> None:
    _extremes(TYPES[name], "sim")


@pytest.mark.gpu
@pytest.mark.parametrize("name", TYPES)
def test_extremes_on_a_gpu(name: str) -> None:
    _extremes(TYPES[name], "cuda")


@pytest.mark.parametrize("name", TYPES)
def test_in_the_simulator(name: str) -> None:
    _launched(TYPES[name], "sim")


@pytest.mark.gpu
@pytest.mark.parametrize("name", TYPES)
def test_on_a_gpu(name: str) -> None:
    assert np.array_equal(_launched(TYPES[name], "cuda"), _launched(TYPES[name], "sim"))


def test_no_instruction_is_left_that_the_assembler_takes_not_to_wrap() -> None:
    for dtype in TYPES.values():
        _launched(dtype, "sim")
        ptx = results.ptx("sm_90a")
        assert "max.s" in ptx
        assert "abs.s" not in ptx
        assert "neg.s16" not in ptx
        assert assemble(ptx, Target("sm_90a")).kernels


@pytest.mark.parametrize("op", ["max", "min"])
def test_a_negative_that_extremes_take_has_a_form_of_its_own(op: str) -> None:
    """ptxas 13.0 drops it where another such instruction takes the result."""
    text = f"\tneg.s32 \t%r1, %r2;\n\t{op}.s32 \t%r3, %r2, %r1;\n\t{op}.s32 \t%r5, %r3, %r4;\n"
    negated = f"\tnot.b32 \t%r1, %r2;\n\tadd.s32 \t%r1, %r1, 1;\n\t{op}.s32"
    assert wrap_integers(text).startswith(negated)
    assert wrap_integers("\tabs.s32 \t%r1, %r2;\n").count("not.b32") == 1


def test_other_negatives_stay() -> None:
    text = "\tneg.s32 \t%r1, %r2;\n\tmax.s32 \t%r3, %r2, 7;\n"
    assert wrap_integers(text) == text


def test_the_programs_own_text_stays() -> None:
    text = "\tabs.s32 \t%r1, %r2;\n\t// begin inline asm\n\tabs.s32 \t%r3, %r4;\n\t// end inline asm\n"
    changed = wrap_integers(text)
    assert changed.count("abs.s32") == 1
    assert "%r3, %r4" in changed
