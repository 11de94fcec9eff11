# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integer arithmetic against Python's unbounded integers, for values that differ by lane and for uniform
ones.
"""

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.passes.expressions import BY_CONSTANT as DIVISION
from tests.passes.expressions import OPERATIONS as ANY
from tests.passes.expressions import SHIFTS, Operation, signed, unsigned
from tests.sim.harness import compute, entry, fault

DTYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64}
BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}


COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def interesting(bits: int) -> st.SearchStrategy[int]:
    edges = [0, 1, -1, 2, -2, 7, -(1 << (bits - 1)), (1 << (bits - 1)) - 1]
    return st.one_of(st.sampled_from(edges), st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1))


@st.composite
def lanes(draw: st.DrawFn, bits: int, kind: str) -> tuple[list[int], list[int]]:
    """Operands of a few lanes that have a result."""
    pairs: list[tuple[int, int]] = []
    for _ in range(draw(st.integers(1, 5))):
        a, b = draw(interesting(bits)), draw(interesting(bits))
        if kind == "shift":
            b = draw(st.integers(0, bits - 1))
        if kind == "division" and (b == 0 or (b == -1 and a == -(1 << (bits - 1)))):
            b = 3
        pairs.append((a, b))
    return [a for a, _ in pairs], [b for _, b in pairs]


def check(op: str, type: str, function: Operation, a: list[int], b: list[int], uniform: bool) -> None:
    bits, dtype = BITS[type], DTYPES[type]
    inputs = {"a": (type, np.array(a, dtype)), "b": (type, np.array(b, dtype))}
    got = compute(f"%r = arith.{op} %a, %b : {type}", type, dtype, inputs, uniform)
    want = [signed(function(x, y, bits), bits) for x, y in zip(a, b, strict=True)]
    assert got.tolist() == want


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize(
    ("kind", "table"),
    [("any", ANY), ("division", DIVISION), ("shift", SHIFTS)],
    ids=["any", "division", "shift"],
)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_against_python(kind: str, table: Mapping[str, Operation], uniform: bool, data: st.DataObject) -> None:
    op = data.draw(st.sampled_from(sorted(table)))
    type = data.draw(st.sampled_from(sorted(DTYPES)))
    a, b = data.draw(lanes(BITS[type], kind))
    check(op, type, table[op], a, b, uniform)


@pytest.mark.parametrize("op", sorted({**ANY, **DIVISION, **SHIFTS}))
def test_each_operation(op: str) -> None:
    table = {**ANY, **DIVISION, **SHIFTS}
    a, b = [100, -100, 2**31 - 1, -(2**31)], [7, 3, 5, 2]
    check(op, "i32", table[op], a, b, uniform=False)
    check(op, "i32", table[op], a, b, uniform=True)


@pytest.mark.parametrize("type", ["i8", "i32"])
@pytest.mark.parametrize("op", sorted({**ANY, **DIVISION, **SHIFTS}))
def test_one_operand_is_uniform(op: str, type: str) -> None:
    """Lanes that meet a number keep their width."""
    function, bits, dtype = {**ANY, **DIVISION, **SHIFTS}[op], BITS[type], DTYPES[type]
    lanes = [7, 3, 5, 2]
    for text, both in (("%a, %c", [(x, 5) for x in lanes]), ("%c, %a", [(-100, x) for x in lanes])):
        number = both[0][1] if text.endswith("c") else both[0][0]
        body = f"%c = arith.constant {number} : {type}\n%r = arith.{op} {text} : {type}"
        got = compute(body, type, dtype, {"a": (type, np.array(lanes, dtype))})
        assert got.tolist() == [signed(function(x, y, bits), bits) for x, y in both]


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
def test_comparisons(predicate: str, uniform: bool) -> None:
    a, b = [1, -1, 5, 5, -(2**31), 0], [2, 1, 5, -5, 2**31 - 1, -1]
    inputs = {"a": ("i32", np.array(a, np.int32)), "b": ("i32", np.array(b, np.int32))}
    got = compute(f"%r = arith.cmpi {predicate}, %a, %b : i32", "i1", np.int8, inputs, uniform)
    function = COMPARISONS[predicate.removeprefix("s").removeprefix("u")]
    if predicate.startswith("u"):
        a, b = [unsigned(x, 32) for x in a], [unsigned(x, 32) for x in b]
    assert got.tolist() == [int(function(x, y)) for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("op", [*ANY, "cmpi slt", "cmpi ult", "cmpi eq"])
def test_one_bit_integers(op: str) -> None:
    """An i1 is a 1-bit number: true is -1 when read as signed, and 1 when read as unsigned."""
    a, b = [0, 0, 1, 1], [0, 1, 0, 1]
    inputs = {"a": ("i1", np.array(a, np.int8)), "b": ("i1", np.array(b, np.int8))}
    comma = "," if " " in op else ""
    got = compute(f"%r = arith.{op}{comma} %a, %b : i1", "i1", np.int8, inputs)
    if op == "cmpi slt":
        want = [int(signed(x, 1) < signed(y, 1)) for x, y in zip(a, b, strict=True)]
    elif op.startswith("cmpi"):
        want = [int(x < y if "ult" in op else x == y) for x, y in zip(a, b, strict=True)]
    else:
        want = [ANY[op](signed(x, 1), signed(y, 1), 1) & 1 for x, y in zip(a, b, strict=True)]
    assert got.tolist() == want


@pytest.mark.parametrize(
    ("op", "a", "b", "words"),
    [
        ("divsi", 5, 0, "division by zero"),
        ("remui", 5, 0, "division by zero"),
        ("divsi", -(2**31), -1, "does not fit in 32 bits"),
        ("shli", 1, 32, "a shift by 32 bits or more"),
        ("shrui", 1, -1, "a shift by 32 bits or more"),
    ],
)
def test_no_result(op: str, a: int, b: int, words: str) -> None:
    error = fault(entry(f"%r = arith.{op} %a, %b : i32", "%a: i32, %b: i32"), "E3209", a=a, b=b)
    assert words in error.message
    assert "arith." + op + " at test.cute:3:" in error.message
    assert error.thread == (0, 0, 0)


@pytest.mark.parametrize(("op", "words"), [("shrui", "a shift by 1 bits or more"), ("divsi", "does not fit in 1 bits")])
def test_no_result_of_one_bit(op: str, words: str) -> None:
    """An i1 is shifted by no bit, and its -1 by -1 is not in it."""
    head = "%true = arith.constant true"
    assert words in fault(entry(f"{head}\n%r = arith.{op} %true, %true : i1"), "E3209").message


def test_division_by_zero_names_the_first_active_lane() -> None:
    body = """
        %t = gpu.thread_id x
        %five = arith.constant 5 : index
        %d = arith.subi %five, %t : index
        %r = arith.divsi %five, %d : index"""
    assert fault(entry(body), "E3209").thread == (5, 0, 0)


def test_lanes_that_are_masked_off_may_divide_by_zero() -> None:
    body = """
        %zero = arith.constant 0 : index
        %nonzero = arith.cmpi ne, %a, %zero : index
        %r = scf.if %nonzero -> (index) {
          %q = arith.divsi %b, %a : index
          scf.yield %q : index
        } else {
          scf.yield %zero : index
        }"""
    a, b = np.array([0, 2, 0, 5]), np.array([1, 10, 100, 1000])
    assert compute(body, "index", np.int64, {"a": ("index", a), "b": ("index", b)}).tolist() == [0, 5, 0, 200]


@settings(max_examples=20, deadline=None)
@given(a=st.integers(-(2**31), 2**31 - 1), b=st.integers(-(2**31), 2**31 - 1))
def test_extended_results(a: int, b: int) -> None:
    inputs = {"a": ("i32", np.array([a, b], np.int32)), "b": ("i32", np.array([b, b], np.int32))}
    ua, ub = unsigned(a, 32), unsigned(b, 32)
    for op, products in (("mulsi_extended", (a * b, b * b)), ("mului_extended", (ua * ub, ub * ub))):
        for part, shift in (("%l", 0), ("%h", 32)):
            body = f'%l, %h = "arith.{op}"(%a, %b) : (i32, i32) -> (i32, i32)\n'
            body += f"%z = arith.constant 0 : i32\n%r = arith.ori {part}, %z : i32"
            got = compute(body, "i32", np.int32, inputs)
            assert got.tolist() == [signed(p >> shift, 32) for p in products]
    body = '%s, %r = "arith.addui_extended"(%a, %b) : (i32, i32) -> (i32, i1)'
    got = compute(body, "i1", np.int8, inputs)
    assert got.tolist() == [int(unsigned(x, 32) + unsigned(b, 32) >= 2**32) for x in (a, b)]
