# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the functions of checks compute, against NumPy, Python's math and loops."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilefold.dialects.run.grammar import ExpressionError, parse_expression
from tilefold.runtime.check import check_results
from tilefold.runtime.check.evaluate import Evaluator
from tilefold.runtime.check.functions import FUNCTIONS
from tilefold.runtime.special_functions import erf

RANDOM = np.random.default_rng(0)


def value(text: str, **names: Any) -> Any:
    return Evaluator(names, FUNCTIONS).array(parse_expression(text))


def refusal(text: str, **names: Any) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        value(text, **names)
    return caught.value


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.int32])
@pytest.mark.parametrize(("a", "b"), [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (6, 4, 5))])
def test_products(dtype: Any, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    left, right = (RANDOM.integers(-9, 9, shape).astype(dtype) for shape in (a, b))
    got = value("matmul(A, B)", A=left, B=right)
    assert got.dtype == (np.int64 if np.issubdtype(dtype, np.integer) else np.float64)
    np.testing.assert_array_equal(got, np.einsum("...ik,...kj->...ij", left.astype(np.int64), right.astype(np.int64)))
    np.testing.assert_array_equal(value("A @ B", A=left, B=right), got)


def test_products_of_large_integers_are_exact() -> None:
    a = np.array([[2**31 - 1, 1]], np.int64)
    assert value("A @ A.T", A=a)[0, 0] == (2**31 - 1) ** 2 + 1


@pytest.mark.parametrize("text", ["A @ B", "matmul(A, B)", "A[0] @ B"])
def test_products_that_do_not_fit(text: str) -> None:
    assert refusal(text, A=np.zeros((2, 3)), B=np.zeros((2, 3))).code == "E3102"


def test_a_product_that_costs_too_much() -> None:
    wide = np.broadcast_to(np.float32(1), (2**14, 2**14))
    assert refusal("matmul(A, A)", A=wide).code == "E3103"
    batch = np.broadcast_to(np.float32(1), (2**20, 2, 2))
    assert refusal("matmul(reshape(A, (1048576, 1, 2, 2)), A)", A=batch).code == "E3103"


def test_erf_is_pythons() -> None:
    x = np.linspace(-7, 7, 10001)
    np.testing.assert_allclose(erf(x), [math.erf(each) for each in x.tolist()], rtol=1e-12)
    assert np.array_equal(erf([np.inf, -np.inf, -0.0]), [1, -1, -0.0])
    assert np.isnan(erf(np.nan))


def test_softmax_and_attention() -> None:
    q, k, v = (RANDOM.standard_normal((2, 5, 4)).astype(np.float16) for _ in range(3))
    scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) / 2
    for batch in range(2):
        for row in range(5):
            powers = [math.exp(scores[batch, row, column]) for column in range(row + 1)]
            expected = sum(p * v[batch, i].astype(np.float64) for i, p in enumerate(powers)) / sum(powers)
            got = value("matmul(softmax(causal(matmul(Q, transpose(K, (0, 2, 1))) / 2)), V)", Q=q, K=k, V=v)
            np.testing.assert_allclose(got[batch, row], expected, rtol=1e-12)
    np.testing.assert_allclose(value("softmax(Q, 0)", Q=q).sum(axis=0), 1)


def test_causal_masks() -> None:
    ones = np.ones((3, 4))
    np.testing.assert_array_equal(value("causal(A)", A=ones) == 1, np.tri(3, 4))
    np.testing.assert_array_equal(value("causal(A, 1)", A=ones) == 1, np.tri(3, 4, 1))
    np.testing.assert_array_equal(value("where(iota(A, 1) <= iota(A, 0), A, -inf)", A=ones), value("causal(A)", A=ones))
    assert refusal("causal(A[0])", A=ones).code == "E3102"
    assert refusal("iota(A, 2)", A=ones).code == "E3102"


def test_norms_and_activations() -> None:
    x = RANDOM.standard_normal((4, 64)).astype(np.float16)
    wide = x.astype(np.float64)
    root = np.sqrt((wide * wide).mean(axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(value("rms_norm(X, 1e-5)", X=x), wide / root)
    np.testing.assert_allclose(value("X / sqrt(mean(square(f64(X)), axis=1, keepdims=1) + 1e-5)", X=x), wide / root)
    np.testing.assert_allclose(value("f64(X) * rsqrt(mean(f64(X)**2, 1, 1) + 1e-5)", X=x), wide / root)
    gelu = [0.5 * each * (1 + math.erf(each / math.sqrt(2))) for each in wide.ravel().tolist()]
    np.testing.assert_allclose(value("gelu(X)", X=x).ravel(), gelu, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(value("gelu_tanh(X)", X=x), value("gelu(X)", X=x), atol=1e-3)
    np.testing.assert_allclose(value("silu(X)", X=x), wide / (1 + np.exp(-wide)))
    relu = value("relu(X)", X=x)
    assert relu.dtype == np.float16
    np.testing.assert_array_equal(relu, np.maximum(x, 0))


@pytest.mark.parametrize(("cast", "given", "expected"), [
    ("bf16", 1 + 2**-8, 1.0), ("bf16", 1 + 2**-8 + 2**-20, 1 + 2**-7), ("f8E4M3FN", 1e6, 448.0),
    ("f8E4M3FN", -np.inf, -448.0), ("f8E4M3FN", 1.0625, 1.0), ("f8E5M2", 1e9, 57344.0), ("f16", 1e6, np.inf),
    ("i8", -3.7, -3), ("i32", 2.9, 2), ("tf32", 1 + 2**-11, 1 + 2**-10), ("tf32", 1 + 2**-12, 1.0),
    ("tf32", np.inf, np.inf),
])  # fmt: skip
def test_casts(cast: str, given: float, expected: float) -> None:
    assert value(f"{cast}(A)", A=np.array([given])).astype(np.float64)[0] == expected


def test_casts_keep_nan() -> None:
    for cast in ("f16", "bf16", "tf32", "f8E4M3FN", "f8E5M2"):
        assert np.isnan(value(f"{cast}(A)", A=np.array([np.nan])).astype(np.float64)[0]), cast


def test_one_line_says_what_a_fused_gemm_does() -> None:
    a, b = (RANDOM.standard_normal((8, 16)).astype(ml_dtypes.bfloat16) for _ in range(2))
    bias = RANDOM.standard_normal(8).astype(np.float32)
    product = 0.5 * (a.astype(np.float64) @ b.astype(np.float64).T) + bias
    out = np.maximum(product, 0).astype(ml_dtypes.bfloat16)
    (result,) = check_results(
        "C ~= relu(alpha * matmul(A, B.T) + bias)", {"A": a, "B": b, "bias": bias, "C": out, "alpha": 0.5}
    )
    assert result.passed, str(result)
