# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floating-point arithmetic against exact rational arithmetic, NumPy and Python."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.accuracy import REFERENCES, check_function
from tests.sim.harness import compute, rounded

DTYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


def numbers(type: str) -> st.SearchStrategy[float]:
    """Finite numbers of the type of moderate size, and some small ones."""
    limit = {"f16": 200.0, "bf16": 2.0**40, "f32": 2.0**40, "f64": 2.0**300}[type]
    floats = st.one_of(st.floats(-limit, limit), st.floats(-1.0, 1.0), st.integers(-100, 100).map(float))
    return floats.map(lambda x: float(np.array(x).astype(DTYPES[type])))


EXACT: dict[str, Callable[[Fraction, Fraction, Fraction], Fraction]] = {
    "arith.addf": lambda a, b, _: a + b,
    "arith.subf": lambda a, b, _: a - b,
    "arith.mulf": lambda a, b, _: a * b,
    "math.fma": lambda a, b, c: a * b + c,
}


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("type", sorted(DTYPES))
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_rounded_once(type: str, uniform: bool, data: st.DataObject) -> None:
    op = data.draw(st.sampled_from(sorted(EXACT)))
    names = "abc"[: 3 if op == "math.fma" else 2]
    rows = data.draw(st.lists(st.tuples(*[numbers(type)] * 3), min_size=1, max_size=4))
    inputs = {
        name: (type, np.array(column).astype(DTYPES[type]))
        for name, column in zip(names, zip(*rows, strict=True), strict=False)
    }
    operands = ", ".join(f"%{name}" for name in names)
    got = compute(f"%r = {op} {operands} : {type}", type, DTYPES[type], inputs, uniform)
    want = [rounded(EXACT[op](Fraction(row[0]), Fraction(row[1]), Fraction(row[2])), type) for row in rows]
    assert got.astype(np.float64).tolist() == want


def test_fma_is_not_a_product_and_a_sum() -> None:
    """Rounding to f64 first and then to f32 would give 1 here."""
    a = np.array([1 + 2**-23], np.float32)
    c = np.array([-(1 + 2**-22)], np.float32)
    got = compute("%r = math.fma %a, %a, %c : f32", "f32", np.float32, {"a": ("f32", a), "c": ("f32", c)})
    assert got.tolist() == [2**-46]
    tie = {"a": np.float32(1 + 2**-12), "c": np.float32(2**-60)}
    exact = Fraction(float(tie["a"])) ** 2 + Fraction(float(tie["c"]))
    inputs = {name: ("f32", np.array([value])) for name, value in tie.items()}
    got = compute("%r = math.fma %a, %a, %c : f32", "f32", np.float32, inputs)
    assert got.tolist() == [rounded(exact, "f32")]


SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 2.5, -2.5]
PAIRS = [(a, b) for a in SPECIAL for b in SPECIAL]


def same(x: float, y: float) -> bool:
    return (math.isnan(x) and math.isnan(y)) or (x == y and math.copysign(1, x) == math.copysign(1, y))


def apply(op: str, type: str = "f32", uniform: bool = False) -> list[float]:
    """The operation on all pairs of special values, in launches of 27."""
    out: list[float] = []
    for start in range(0, len(PAIRS), 27):
        a, b = (np.array(column).astype(DTYPES[type]) for column in zip(*PAIRS[start : start + 27], strict=True))
        out += compute(
            f"%r = {op} %a, %b : {type}", type, DTYPES[type], {"a": (type, a), "b": (type, b)}, uniform
        ).tolist()
    return out


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("type", sorted(DTYPES))
@pytest.mark.sampled(3)
def test_maximum_and_minimum_of_special_values(type: str, uniform: bool) -> None:
    def order(x: float) -> tuple[float, float]:
        return x, math.copysign(1, x)

    for name, pick in (("maximum", max), ("minimum", min)):
        got = apply(f"arith.{name}f", type, uniform)
        for (a, b), value in zip(PAIRS, got, strict=True):
            want = math.nan if math.isnan(a) or math.isnan(b) else pick(a, b, key=order)
            assert same(float(value), want), (name, a, b, value)
    for name, pick in (("maxnum", max), ("minnum", min)):
        got = apply(f"arith.{name}f", type, uniform)
        for (a, b), value in zip(PAIRS, got, strict=True):
            want = pick([x for x in (a, b) if not math.isnan(x)] or [math.nan], key=order)
            assert same(float(value), want), (name, a, b, value)


ROUNDINGS: dict[str, Callable[[float], float]] = {
    "round": lambda x: math.floor(abs(x) + 0.5),
    "roundeven": round,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
}
FRACTIONS = [-0.3, 0.3, -0.5, 0.5, -0.7, 1.5, -1.5, -2.5, 0.0, -0.0, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("type", sorted(DTYPES))
@pytest.mark.parametrize("name", sorted(ROUNDINGS))
def test_rounding_to_integers_keeps_the_sign(name: str, type: str, uniform: bool) -> None:
    x = np.array(FRACTIONS).astype(DTYPES[type])
    got = compute(f"%r = math.{name} %a : {type}", type, DTYPES[type], {"a": (type, x)}, uniform)
    for value, result in zip(FRACTIONS, got.tolist(), strict=True):
        want = math.copysign(ROUNDINGS[name](value), value) if math.isfinite(value) else value
        assert same(float(result), want), value


@pytest.mark.parametrize("type", ["bf16", "f32"])
@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.sampled(2)
def test_comparisons(uniform: bool, type: str) -> None:
    ordered: dict[str, Callable[[float, float], bool]] = {
        "eq": lambda a, b: a == b,
        "ne": lambda a, b: a != b,
        "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b,
        "gt": lambda a, b: a > b,
        "ge": lambda a, b: a >= b,
    }
    pairs = [
        (1.0, 2.0),
        (2.0, 1.0),
        (1.0, 1.0),
        (math.nan, 1.0),
        (1.0, math.nan),
        (0.0, -0.0),
        (math.inf, 1.0),
    ]
    a, b = (np.array(column).astype(DTYPES[type]) for column in zip(*pairs, strict=True))

    def run(predicate: str) -> list[int]:
        body = f"%r = arith.cmpf {predicate}, %a, %b : {type}"
        return compute(body, "i1", np.int8, {"a": (type, a), "b": (type, b)}, uniform).tolist()

    nan = [math.isnan(x) or math.isnan(y) for x, y in pairs]
    for name, function in ordered.items():
        plain = [int(function(x, y)) for x, y in pairs]
        assert run("o" + name) == [0 if n else p for n, p in zip(nan, plain, strict=True)]
        assert run("u" + name) == [1 if n else p for n, p in zip(nan, plain, strict=True)]
    assert run("ord") == [int(not n) for n in nan]
    assert run("uno") == [int(n) for n in nan]
    assert run("false") == [0] * len(pairs)
    assert run("true") == [1] * len(pairs)


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt, "rsqrt": lambda x: 1 / math.sqrt(x), "exp": math.exp, "exp2": lambda x: 2.0**x,
    "log": math.log, "log2": math.log2, "log10": math.log10, "log1p": math.log1p, "expm1": math.expm1,
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "tanh": math.tanh, "floor": math.floor, "ceil": math.ceil,
    "trunc": math.trunc, "roundeven": round, "absf": abs,
    "round": lambda x: math.floor(abs(x) + 0.5) * (1 if x > 0 else -1),
}  # fmt: skip


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@pytest.mark.sampled(8)
def test_functions(name: str, uniform: bool) -> None:
    positive = name in ("sqrt", "rsqrt", "log", "log2", "log10", "log1p")
    values = [0.5, 1.5, 2.5, 0.1, 3.0, 7.25] + ([] if positive else [-0.5, -1.5, -2.5, -0.3])
    for type in ("f16", "bf16", "f32", "f64"):
        a = np.array(values).astype(DTYPES[type])
        got = compute(f"%r = math.{name} %a : {type}", type, DTYPES[type], {"a": (type, a)}, uniform)
        want = np.array([FUNCTIONS[name](float(x)) for x in a]).astype(DTYPES[type])
        if type == "f64":
            assert got.tolist() == pytest.approx(want.tolist(), rel=1e-15)
        elif type == "f32" and name in REFERENCES:
            check_function(name, a, got)
        else:
            assert got.tolist() == want.tolist()


def test_division_negation_copysign_power() -> None:
    a, b = np.array([1, -7, 0, 5], np.float32), np.array([3, 2, 0, -0.0], np.float32)
    inputs = {"a": ("f32", a), "b": ("f32", b)}
    with np.errstate(all="ignore"):
        assert np.array_equal(compute("%r = arith.divf %a, %b : f32", "f32", np.float32, inputs), a / b, equal_nan=True)
    assert compute("%r = arith.negf %a : f32", "f32", np.float32, {"a": ("f32", a)}).tolist() == (-a).tolist()
    got = compute("%r = math.copysign %a, %b : f32", "f32", np.float32, inputs)
    assert [math.copysign(1, x) for x in got.tolist()] == [1, 1, 1, -1]
    got = compute("%r = math.powf %a, %b : f32", "f32", np.float32, inputs)
    assert got.tolist()[:3] == [1, 49, 1]
