# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What arguments are filled with."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from tilefold.base.errors import Code
from tilefold.dialects.run.grammar import ExpressionError
from tilefold.runtime.check import fill_argument

F16, F32, F64, I32 = (np.dtype(name) for name in ("float16", "float32", "float64", "int32"))
BF16 = np.dtype(ml_dtypes.bfloat16)


def fill(text: str, dtype: np.dtype[Any] = F32, shape: tuple[int, ...] = (4, 3), **earlier: Any) -> npt.NDArray[Any]:
    """The values of a fill for an argument 'X'."""
    filled = fill_argument(text, "X", shape, dtype, earlier)
    assert filled.initialised
    assert filled.values.dtype == dtype
    assert filled.values.shape == shape
    return filled.values


def test_constants() -> None:
    assert not fill("zeros").any()
    assert (fill("ones()") == 1).all()
    assert (fill("full(2.5)") == 2.5).all()
    assert (fill("7", I32) == 7).all()


def test_arange_counts_as_cute_does_with_the_first_mode_fastest() -> None:
    assert fill("arange", I32).tolist() == [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]
    assert fill("arange(1) / 10", F64)[1, 0] == 0.2
    assert fill("arange(10, -2)", I32)[1, 1] == 0


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64])
def test_poison_is_a_nan_of_all_ones_and_not_initialised(dtype: np.dtype[Any]) -> None:
    filled = fill_argument("poison", "B", (2, 2), dtype, {})
    assert not filled.initialised
    assert filled.values.tobytes() == b"\xff" * (4 * dtype.itemsize)
    assert np.isnan(filled.values.astype(np.float64)).all()


def test_poisoned_integers_are_minus_one() -> None:
    assert (fill_argument("poison", "B", (2,), I32, {}).values == -1).all()


@pytest.mark.parametrize("text", ["normal(seed=3)", "uniform(-1, 1, seed=3)", "integers(0, 1000000, seed=3)"])
def test_a_seed_repeats_the_values(text: str) -> None:
    assert (fill(text) == fill(text)).all()
    assert (fill(text) != fill(text.replace("3", "4"))).any()


def test_without_a_seed_the_name_and_the_run_decide() -> None:
    def values(name: str, seed: int) -> list[float]:
        return fill_argument("normal", name, (8,), F32, {}, seed=seed).values.tolist()

    assert values("A", 0) == values("A", 0)
    assert values("A", 0) != values("B", 0)
    assert values("A", 0) != values("A", 1)


def test_ranges() -> None:
    drawn = fill("uniform(2, 3, seed=0)", F64, (1000,))
    assert 2 <= drawn.min() < 2.1 < 2.9 < drawn.max() < 3
    whole = fill("integers(-2, 3, seed=0)", I32, (1000,))
    assert set(whole.tolist()) == {-2, -1, 0, 1, 2}


def test_arithmetic_over_earlier_arguments() -> None:
    a = np.arange(12, dtype=np.float32).reshape(4, 3)
    assert (fill("A * 2 + 1", A=a) == a * 2 + 1).all()
    assert (fill("A.T", shape=(3, 4), A=a) == a.T).all()
    assert (fill("where(A < 5, A, 0)", A=a) == np.where(a < 5, a, 0)).all()


def test_a_scalar_argument_has_rank_0() -> None:
    filled = fill_argument("n * 2", "m", (), I32, {"n": 21})
    assert filled.values.shape == ()
    assert filled.values == 42


@pytest.mark.parametrize(
    ("text", "dtype", "said"),
    [
        ("gauss()", F32, "no function 'gauss'"),
        ("B", F32, "no argument 'B'"),
        ("normal(sigma=2)", F32, "the arguments do not fit normal(mean=0, std=1, seed=None)"),
        ("integers(3)", F32, "the arguments do not fit integers(lo, hi, seed=None)"),
        ("integers(3, 3)", F32, "the range 3 to below 3 contains no integer"),
        ("normal(seed=-1)", F32, "a seed is an integer, zero or more"),
        ("poison + 1", F32, "'poison' stands alone"),
        ("A", F32, "shape (2, 2)"),
        ("0.5", I32, "has fractions"),
        ("1 / 0", F32, "division by zero"),
        ("9 ** 9 ** 9", F32, "exponent"),
        ("9 ** 40", F32, "beyond 64 bits"),
        ("broadcast_to(A, (65536, 65536, 2, 2))", F32, "elements; at most"),
        ("(A, 1)", F32, "expected an integer"),
        ("(1, 2)", F32, "a tuple"),
        ("A ~= A", F32, "condition of its own"),
        ("reshape(A, (3, 3))", F32, "4 elements do not have the shape (3, 3)"),
        ("A[5]", F32, "mode 0 has 2 elements, and no element 5"),
        ("A @ 2", F32, "two matrices"),
    ],
)
def test_refusals(text: str, dtype: np.dtype[Any], said: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        fill(text, dtype, A=np.zeros((2, 2), np.float32))
    assert said in caught.value.message
    assert 0 <= caught.value.start < caught.value.end <= len(text)
    assert (caught.value.code == Code.CHECK_NAME.id) == said.startswith("no ")
