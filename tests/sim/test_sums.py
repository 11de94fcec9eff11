# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of tensor cores: against results of an H200, and against the rule in integers of Python."""

from fractions import Fraction
from math import inf, isnan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tilefold.base.element_types import BY_PTX
from tilefold.base.spaces import SMEM
from tilefold.base.target import Target, targets
from tilefold.layout.atoms.contract import Major
from tilefold.layout.atoms.mma_sync import mma_sync
from tilefold.layout.atoms.mma_table import MMA_ATOMS, mma_atom
from tilefold.layout.atoms.numbers import MmaOperation, Types
from tilefold.layout.atoms.summation import AlignedSum, FusedChain, SplitChain, summation
from tilefold.layout.atoms.wgmma import wgmma
from tilefold.runtime.sim.atoms.mma_arithmetic import DTYPES, executor, widen
from tilefold.runtime.sim.atoms.sums import multiply_add
from tilefold.runtime.sim.atoms.wgmma import WgmmaArithmetic
from tilefold.runtime.sim.values import fused_multiply_add

from .test_mma import fragments, lanes_of

H200 = np.load(Path(__file__).parent / "h200_sums.npz")
"""Operands and results of single instructions on an H200, as bits, by form: A (count, M, K), B (count, N, K), C and D
(count, M, N). Narrow, wide and subnormal numbers, sums that cancel or overflow, zeros, infinities and NaN.
"""
FORMS = sorted({name.rpartition(".")[0] for name in H200.files})
SM90A = Target("sm_90a")
ACCUMULATORS = {"f32": np.dtype(np.float32), "f16": np.dtype(np.float16)}


def places(rows: int, columns: int) -> NDArray[np.int64]:
    return np.arange(rows * columns).reshape(rows, columns)


def types_of(form: str) -> Types:
    """Of D, A, B and C."""
    *_, operands, d = form.split(".")
    a, b = ("e4m3", "e5m2") if operands == "e4m3e5m2" else (operands, operands)
    return d, a, b, d


@pytest.mark.parametrize("form", FORMS)
def test_results_are_those_of_an_h200(form: str) -> None:
    types = types_of(form)
    a, b, c, d = [H200[f"{form}.{name}"] for name in "abcd"]
    (count, m, k), n = a.shape, b.shape[1]
    is_wgmma = form.startswith("wgmma")
    plain = MmaOperation.MULTIPLY_ADD
    atom = (
        wgmma(8, types[:3], SMEM, (Major.K, Major.K), plain)
        if is_wgmma
        else mma_sync(80, (16, 8, k), types, targets(80, 70), plain)
    )
    assert atom.shape[2] == k
    how = summation(atom, SM90A)
    assert how is not None
    before = np.zeros_like(c) if "scale0" in form else c
    run = multiply_add(how, types, places(m, k), places(n, k).T, places(m, n))
    with np.errstate(all="ignore"):
        left, right = [widen(name)(x.view(DTYPES[name])) for name, x in ((types[1], a), (types[2], b))]
        left = -left if "negA" in form else left
        result = run(*[x.reshape(count, -1) for x in (left, right, before.view(ACCUMULATORS[types[0]]))])
    assert np.array_equal(result.view(d.dtype).reshape(d.shape), d)


def raw_exponent(value: float, name: str) -> int:
    element = BY_PTX[name]
    least = 2 - (1 << element.exponent - 1)
    return max(int(np.frexp(value)[1]) - 1, least)


def step_by_the_rule(how: AlignedSum, types: Types, a: list[float], b: list[float], c: float) -> float:
    """One step in exact arithmetic, before the result is rounded; infinities and NaN as IEEE 754 has them."""
    if not all(map(np.isfinite, (*a, *b, c))):
        return float(sum([x * y for x, y in zip(a, b, strict=True)], c))
    of_a, of_b = ("f16", "f16") if how.as_f16 else types[1:3]
    addends = [
        (Fraction(x) * Fraction(y), raw_exponent(x, of_a) + raw_exponent(y, of_b)) for x, y in zip(a, b, strict=True)
    ]
    addends.append((Fraction(c), raw_exponent(c, types[3])))
    top = max([exponent for value, exponent in addends if value], default=-133)
    grid = Fraction(2) ** (max(top, -133) - how.fraction)
    total = sum(int(value / grid) for value, _ in addends) * grid  # int() truncates toward zero
    return rounded(how, types[0], total)


def rounded(how: AlignedSum, name: str, total: Fraction) -> float:
    if not total:
        return 0.0
    if name == "f16":
        return float(np.float16(float(total))) + 0.0  # exact in f64
    exponent = -126
    while Fraction(2) ** (exponent + 1) <= abs(total):
        exponent += 1
    grid = Fraction(2) ** (exponent - how.significand + 1)
    value = int(total / grid) * grid
    return float(value) if abs(value) < 2**128 else inf if value > 0 else -inf


def by_the_rule(how: AlignedSum, types: Types, a: list[float], b: list[float], c: float) -> float:
    total = 0.0 if how.accumulates_last else c
    for ks in how.steps:
        total = step_by_the_rule(how, types, [a[k] for k in ks], [b[k] for k in ks], total)
    dtype = ACCUMULATORS[types[0]]
    return float(dtype.type(total) + dtype.type(c)) if how.accumulates_last else total


TARGETS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")
CASES = [
    (name, target)
    for name in [
        *MMA_ATOMS,
        *(f"SM90_64x8x{k}_{types}_SS_TN" for k, types in ((8, "F32TF32TF32"), (32, "F32E4M3E5M2"))),
    ]
    for target in TARGETS
    if mma_atom(name).targets.includes(Target(target))
    and isinstance(summation(mma_atom(name), Target(target)), AlignedSum)
]


def bit_patterns(name: str) -> st.SearchStrategy[int]:
    """Of any number of a type, and of some that are near each other."""
    bits = BY_PTX[name].bits
    middle, far = 1 << bits - 2, 4 << BY_PTX[name].fraction
    near = max(0, middle - far), min((1 << bits) - 1, middle + far)
    return st.one_of(st.integers(0, (1 << bits) - 1), st.integers(*near))


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("name", "target"), CASES)
@given(data=st.data())
def test_results_follow_the_rule(name: str, target: str, data: st.DataObject) -> None:
    atom = mma_atom(name)
    how = summation(atom, Target(target))
    assert isinstance(how, AlignedSum)
    k = atom.shape[2]
    drawn = [
        np.array(data.draw(st.lists(bit_patterns(kind), min_size=size, max_size=size)), np.uint32)
        .astype(f"u{DTYPES[kind].itemsize}")
        .view(DTYPES[kind])
        for kind, size in zip(atom.types[1:], (k, k, 1), strict=True)
    ]
    run = multiply_add(how, atom.types, places(1, k), places(1, k).T, places(1, 1))
    with np.errstate(all="ignore"):
        a, b = [widen(kind)(x)[None] for kind, x in zip(atom.types[1:3], drawn[:2], strict=True)]
        result = float(run(a, b, drawn[2][None])[0, 0])
        expected = by_the_rule(how, atom.types, a[0].tolist(), b[0].tolist(), float(drawn[2][0]))
    assert (isnan(result) and isnan(expected)) or result == expected
    assert result != 0 or not np.signbit(result) or how.accumulates_last


@pytest.mark.parametrize("name", ["SM80_16x8x16_F32F16F16F32_TN", "SM80_16x8x8_F32TF32TF32F32_TN"])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_elements_are_where_the_atom_has_them(name: str, target: str) -> None:
    """Whole matrices of whole numbers, whose sums are exact whatever the order, in two executions of two warps."""
    atom, rng = mma_atom(name), np.random.default_rng(0)
    m, n, k = atom.shape
    a, b, c = [
        rng.integers(-8, 8, (4, len(lanes_of(atom)), *shape)).astype(DTYPES[kind])
        for kind, shape in zip(atom.types[1:], ((m, k), (n, k), (m, n)), strict=True)
    ]
    expected = (np.matmul(a.astype(float), b.astype(float).swapaxes(-1, -2)) + c).astype(np.float32)

    def warps(layout: Any, matrices: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([fragments(atom, layout, x) for x in matrices]).reshape(2, 64, -1)

    run = executor(atom, how=summation(atom, Target(target)))
    result = run(warps(atom.layout_a, a), warps(atom.layout_b, b), warps(atom.layout_c, c))
    assert np.array_equal(result, warps(atom.layout_c, expected))


@pytest.mark.parametrize("signs", [(1, 1), (-1, 1), (1, -1), (-1, -1)])
def test_warpgroups_sum_alike(signs: tuple[int, int]) -> None:
    atom = mma_atom("SM90_64x16x16_F32F16F16_SS<Major::K,Major::K>")
    how, rng = summation(atom, SM90A), np.random.default_rng(0)
    a, b, d = [rng.standard_normal(shape).astype(kind) for shape, kind in (
        ((64, 16), np.float16), ((16, 16), np.float16), ((64, 16), np.float32)
    )]  # fmt: skip
    product = WgmmaArithmetic(atom, signs, how=how)
    result = product.result(a.astype(np.float64), b.astype(np.float64), d.astype(np.float64))
    assert how is not None
    run = multiply_add(how, atom.types, places(64, 16), places(16, 16).T, places(64, 16))
    expected = run((signs[0] * signs[1] * a).reshape(1, -1), b.reshape(1, -1), d.reshape(1, -1))
    assert np.array_equal(result.astype(np.float32).ravel(), expected[0])
    assert np.array_equal(
        product.result(a.astype(float), b.astype(float), None),
        product.result(a.astype(float), b.astype(float), np.zeros((64, 16))),
    )


def test_doubles_are_fused_one_by_one() -> None:
    """k rises from the accumulator on: the first product is lost beside it, the last one is not."""
    atom = mma_atom("SM80_8x8x4_F64F64F64F64_TN")
    how = summation(atom, SM90A)
    assert isinstance(how, FusedChain)
    run = multiply_add(how, atom.types, places(1, 4), places(1, 4).T, places(1, 1))
    big = 2.0**60
    result = run(np.array([[1.0, -big, 1.0, 1.0]]), np.array([[1.0, 1.0, 1.0, 1.0]]), np.array([[big]]))
    assert result.tolist() == [[2.0]]
    error = 2.0**-30
    fused = run(np.array([[1 + error, 0, 0, 0]]), np.array([[1 + error, 0, 0, 0]]), np.array([[-1 - 2 * error]]))
    assert fused.tolist() == [[error * error]]


@pytest.mark.parametrize(("d", "terms"), [("F32", 4), ("F16", 2)])
def test_quad_pairs_sum_in_chains(d: str, terms: int) -> None:
    """f32: the chain of all products rounds before it meets C; f16: C meets two chains."""
    atom = mma_atom(f"SM70_8x8x4_{d}F16F16{d}_TN")
    how = summation(atom, SM90A)
    assert isinstance(how, SplitChain)
    assert how == SplitChain(terms, d == "F16")
    assert summation(atom, Target("sm_75")) is None
    run = multiply_add(how, atom.types, places(1, 4), places(1, 4).T, places(1, 1))
    dtype = ACCUMULATORS[d.lower()]
    ones, small = np.ones((1, 4), np.float32), 2.0**-12
    products = np.array([[4096.0, small, -4096.0, small]], np.float32)  # 4096 + 2**-12 is a tie, and rounds to even
    assert run(products, ones, np.array([[0.0]], dtype)).tolist() == [[small]]
    zeros = np.full((1, 4), -0.0, np.float32)
    assert np.signbit(run(zeros, ones, np.array([[-0.0]], dtype))).item() == (d == "F16")
    signs = np.array([[1, -1, 1, 1]], np.float32)
    with np.errstate(invalid="ignore"):
        nan = run(np.full((1, 4), np.inf, np.float32), signs, np.array([[1.0]], dtype))
    assert nan.view(f"u{dtype.itemsize}").tolist() == [[0x7FFFFFFF if d == "F32" else 0x7FFF]]


def test_numbers_that_ptx_defines_need_no_rule() -> None:
    for name in ("SM80_16x8x32_S32S8S8S32_TN", "UniversalFMA<float>", "SM61_DP4A"):
        assert summation(mma_atom(name), SM90A) is None


@pytest.mark.parametrize("product", [1e200, -1e200])
def test_a_product_beyond_f64_is_finite_beside_an_infinity(product: float) -> None:
    a, b, c = (np.array([x]) for x in (product, 1e200, -np.inf))
    assert fused_multiply_add(a, b, c, np.dtype(np.float64)).tolist() == [-np.inf]


@given(st.lists(st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 3), min_size=1), st.data())
def test_fused_doubles_round_once(numbers: list[tuple[float, float, float]], data: st.DataObject) -> None:
    """Against exact arithmetic; some sums nearly cancel."""
    a, b, c = [np.array(column) for column in zip(*numbers, strict=True)]
    with np.errstate(all="ignore"):
        near = np.nextafter(-(a * b), data.draw(st.sampled_from([0.0, inf])))
        c = np.where(np.isfinite(near) & (np.arange(len(c)) % 2 == 0), near, c)
        result = fused_multiply_add(a, b, c, np.dtype(np.float64))
    for x, y, z, found in zip(*[v.tolist() for v in (a, b, c, result)], strict=True):
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        try:
            assert found == float(exact)
        except OverflowError:
            assert found == (inf if exact > 0 else -inf)
