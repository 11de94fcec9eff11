# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a run must have produced: exact and tolerant comparisons, and what a failure says."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tilefold.dialects.run.grammar import ExpressionError
from tilefold.runtime.check import CheckResult, check_results


def check(text: str, rtol: float | None = None, atol: float | None = None, **values: Any) -> CheckResult:
    """The result of a check with one comparison."""
    (result,) = check_results(text, values, rtol=rtol, atol=atol)
    return result


@given(hnp.arrays(np.float16, hnp.array_shapes(max_dims=3, max_side=4), elements=st.floats(width=16)))
def test_an_array_equals_itself_whatever_it_holds(a: npt.NDArray[np.float16]) -> None:
    assert check("B == A", A=a, B=a.copy()).passed
    assert check("B ~= A", A=a, B=a.copy()).passed
    assert check("B.T == transpose(A)", A=a, B=a.copy()).passed


@given(
    hnp.arrays(np.float32, (3, 4), elements=st.floats(-8, 8, width=32)),
    st.tuples(st.integers(0, 2), st.integers(0, 3)),
)
def test_one_changed_element_is_found(a: npt.NDArray[np.float32], where: tuple[int, int]) -> None:
    b = a.copy()
    b[where] += 1
    result = check("B == A", A=a, B=b)
    assert result.mismatch is not None
    assert result.mismatch.index == where
    assert result.mismatch.wrong == 1
    assert result.mismatch.max_abs_error == pytest.approx(1)
    assert f"B[{where[0]}, {where[1]}]" in str(result)


@pytest.mark.parametrize("op", ["==", "~=", ">"])
def test_a_comparison_of_two_elements_fails_without_an_index(op: str) -> None:
    a = np.arange(3, dtype=np.float32)
    assert f"A[0] {op} A[1]: 1 element" in str(check(f"A[0] {op} A[1]", A=a))
    assert "first A[0] is 0.0, expected 1.0" in str(check(f"A[0] {op} A[1]", A=a))
    assert check(f"A[0] {op} A[1]", A=a[::-1].copy() if op == ">" else np.zeros(2, np.float32)).passed


def test_equality_is_bit_for_bit_within_a_type() -> None:
    zero = np.array([0.0, -0.0], np.float32)
    assert not check("B == A", A=zero, B=zero[::-1].copy()).passed
    assert check("B == A", A=zero.astype(np.float64), B=zero[::-1].copy()).passed
    assert check("B == 0", B=zero).passed


def test_equality_of_different_types_is_of_values() -> None:
    assert check("B == A", A=np.arange(4, dtype=np.int32), B=np.arange(4, dtype=np.float16)).passed


@pytest.mark.parametrize(("dtype", "near", "far"), [
    (np.float16, 1e-4, 3e-3), (ml_dtypes.bfloat16, 8e-3, 5e-2), (np.float32, 1e-6, 1e-4), (np.float64, 1e-9, 1e-6),
])  # fmt: skip
def test_tolerance_goes_by_type(dtype: Any, near: float, far: float) -> None:
    a = np.ones(3)
    assert check("B ~= A", A=a, B=(a + near).astype(dtype)).passed
    assert not check("B ~= A", A=a, B=(a + far).astype(dtype)).passed


def test_given_tolerances_replace_those_of_the_type() -> None:
    a, b = np.ones(3), np.ones(3) * 1.05
    assert not check("B ~= A", A=a, B=b).passed
    assert check("B ~= A", rtol=0.1, A=a, B=b).passed
    assert check("B ~= A", atol=0.1, A=a, B=b).passed


def test_integers_have_no_tolerance() -> None:
    assert not check("B ~= A", A=np.array([1000000]), B=np.array([1000001])).passed


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_no_tolerance_covers_infinities_and_nan(wrong: float) -> None:
    assert not check("B ~= A", rtol=1e9, atol=1e9, A=np.array([1.0]), B=np.array([wrong])).passed
    assert not check("B ~= A", rtol=1e9, atol=1e9, A=np.array([wrong]), B=np.array([1.0])).passed
    assert check("B ~= A", A=np.array([wrong]), B=np.array([wrong])).passed


def test_products_accumulate_in_float64() -> None:
    a = np.full((2, 4096), 1, np.float16)
    (result,) = check_results("C == A @ A.T", {"A": a, "C": np.full((2, 2), 4096, np.float32)})
    assert result.passed


def test_numbers_take_the_type_of_the_array() -> None:
    a = np.array([1.1, 2.3], ml_dtypes.bfloat16)
    assert check("B == A * 1.5", A=a, B=np.multiply(a, np.array(1.5, a.dtype))).passed


def test_conditions_joined_by_and_are_judged_one_by_one() -> None:
    a = np.arange(12).reshape(3, 4)
    good, bad = check_results("B[0:2, 1:] == A[:2, 1:4] and B[2] == A[2]", {"A": a, "B": np.where(a < 8, a, -1)})
    assert good.passed
    assert good.text == "B[0:2, 1:] == A[:2, 1:4]"
    assert good.elements == 6
    assert bad.mismatch is not None
    assert (bad.mismatch.index, bad.mismatch.got, bad.mismatch.expected, bad.mismatch.wrong) == ((0,), "-1", "8", 4)


def test_order_comparisons() -> None:
    a = np.array([1.0, 2.0])
    assert check("max(abs(A)) <= 2", A=a).passed
    assert not check("A < 2", A=a).passed
    assert check("A != 3", A=a).passed


def test_large_arrays_are_compared_by_slabs() -> None:
    a = np.zeros((3000, 2000), np.float32)
    b = a.copy()
    b[2999, 1999] = 1
    result = check("B ~= A", A=a, B=b)
    assert result.mismatch is not None
    assert result.mismatch.index == (2999, 1999)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A + 1", "a check states comparisons"),
        ("A == B", "no argument 'B'"),
        ("A == A.T", "shapes (2, 3) and (3, 2) differ"),
        ("A == A[0]", "shapes (2, 3) and (3,) differ"),
        ("A == normal(seed=0)", "no function 'normal'"),
        ("A == open(1)", "no function 'open'"),
        ("A == exp(A, A)", "the arguments do not fit exp(a)"),
    ],
)
def test_refusals(text: str, said: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        check_results(text, {"A": np.zeros((2, 3))})
    assert said in caught.value.message
