# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NumPy's methods of fragments, and Python's functions on them, against NumPy."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.python.test_mistakes import build
from tilefold import cute

STAGES = ["cute", "instr"]
RNG = np.random.default_rng(0)
A = RNG.integers(-3, 4, (4, 8)).astype(np.float32)


@cute.kernel
def whole(A: cute.Tensor, out: cute.Tensor):
    x = A.load()
    out[0] = x.sum()
    out[1] = x.max()
    out[2] = x.min()
    out[3] = (x * 0.5 + 2.5).prod()
    out[4] = sum(x)
    out[5] = max(x)
    out[6] = min(x)
    out[7] = sum(x, 100.0)
    out[8] = (x > 2).sum().to(cute.Float32)
    out[9] = 1.0 if (x > 2).any() else 0.0
    out[10] = 1.0 if x.all() else 0.0
    out[11] = 1.0 if any(x > 5) else 0.0
    out[12] = 1.0 if all(x < 5) else 0.0


@pytest.mark.parametrize("stage", STAGES)
def test_all_elements(stage: str) -> None:
    out = np.full(13, -1, np.float32)
    whole(A, out).launch(1, 1, device="sim", stage=stage)
    expected = [A.sum(), A.max(), A.min(), (A * 0.5 + 2.5).prod(), A.sum(), A.max(), A.min(), A.sum() + 100]
    expected += [(A > 2).sum(), (A > 2).any(), A.all(), (A > 5).any(), (A < 5).all()]
    np.testing.assert_allclose(out, np.array(expected, np.float32), rtol=1e-5)


@cute.kernel
def along(A: cute.Tensor, rows: cute.Tensor, columns: cute.Tensor, kept: cute.Tensor, both: cute.Tensor):
    x = A.load()
    rows.store(x.sum(axis=1) + x.max(axis=-1) + x.min(1))
    columns.store(x.sum(axis=0) + x.prod(axis=-2))
    kept.store(x.sum(axis=1, keepdims=True))
    both[0] = x.max(axis=(0, 1))


@pytest.mark.parametrize("stage", STAGES)
def test_along_modes(stage: str) -> None:
    rows, columns, kept, both = (np.zeros(n, np.float32) for n in (4, 8, (4, 1), 1))
    along(A, rows, columns, kept, both).launch(1, 1, device="sim", stage=stage)
    np.testing.assert_allclose(rows, A.sum(axis=1) + A.max(axis=-1) + A.min(1))
    np.testing.assert_allclose(columns, A.sum(axis=0) + A.prod(axis=-2))
    np.testing.assert_array_equal(kept, A.sum(axis=1, keepdims=True))
    assert both[0] == A.max()


def test_types_of_results() -> None:
    """A sum has the type of `x + x`: narrow integers do not wrap, and predicates are counted."""
    for dtype, total in (("Int8", "Int32"), ("Uint8", "Int32"), ("Boolean", "Int32"), ("Float16", "Float16")):
        x = f"cute.full((4, 8), 1, cute.{dtype})"
        build(f"{{True: 1}}[{x}.sum().dtype == cute.{total}]")
        build(f"{{True: 1}}[{x}.any().dtype == {x}.all().dtype == cute.Boolean]")
    build("{True: 1}[cute.full((4, 8), 1, cute.Int8).max().dtype == cute.Int8]")
    build("{True: 1}[(round(x).dtype, round(x).shape) == (cute.Int32, (4, 8))]")


@cute.kernel
def rounded(A: cute.Tensor, out: cute.Tensor):
    x = A.load()
    out[0, None] = round(x).to(cute.Float32)
    out[1, None] = math.floor(x).to(cute.Float32)
    out[2, None] = math.ceil(x).to(cute.Float32)
    out[3, None] = math.trunc(x).to(cute.Float32)
    out[4, None] = abs(x)
    out[5, None] = max(x, 0.0)
    out[6, None] = min(x, A[0], 1.0)
    out[7, None] = round(x.to(cute.Int32)).to(cute.Float32)


@pytest.mark.parametrize("stage", STAGES)
def test_functions_of_python(stage: str) -> None:
    x: NDArray[Any] = np.array([-1.5, -0.5, 0.5, 1.5, 2.5, -2.25, 7.75, -7.0], np.float32)
    out = np.zeros((8, 8), np.float32)
    rounded(x, out).launch(1, 1, device="sim", stage=stage)
    expected = [np.round(x), np.floor(x), np.ceil(x), np.trunc(x), np.abs(x), np.maximum(x, 0)]
    expected += [np.minimum(np.minimum(x, x[0]), 1), np.trunc(x)]
    np.testing.assert_array_equal(out, np.array(expected))


def test_a_helper_that_is_not_rewritten_has_the_methods() -> None:
    def helper(x: Any) -> Any:
        return x.sum() + x.max()

    @cute.kernel
    def calls(A: cute.Tensor, out: cute.Tensor):
        out[0] = helper(A.load())

    out = np.zeros(1, np.float32)
    calls(A, out).launch(1, 1, device="sim")
    assert out[0] == A.sum() + A.max()
