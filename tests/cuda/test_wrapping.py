# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Negatives and absolute values wrap on a GPU, whatever is done with them."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.target import Target
from tilefold.compiler.machine.assemble import assemble
from tilefold.compiler.machine.wrapping import wrap_integers

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
    with np.errstate(over="ignore"):
        for k, y in enumerate((np.negative(x), np.abs(x))):
            assert np.array_equal(out[:, 9 * k], y.astype(np.int64)), f"column {9 * k}"
            assert np.array_equal(out[:, 9 * k + 4], (y % 7).astype(np.int64)), f"column {9 * k + 4}"
    return out


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


def test_the_programs_own_text_stays() -> None:
    text = "\tabs.s32 \t%r1, %r2;\n\t// begin inline asm\n\tabs.s32 \t%r3, %r4;\n\t// end inline asm\n"
    changed = wrap_integers(text)
    assert changed.count("abs.s32") == 1
    assert "%r3, %r4" in changed
