# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quotients and remainders of one number are combined, and sums keep their values."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tilefold.dialects.arith.semantics import constant_of
from xdsl.dialects import arith
from xdsl.ir import Operation

from tests.examples import examples
from tests.passes.expressions import BY_CONSTANT, OPERATIONS, SHIFTS, Arithmetic
from tests.passes.harness import apply, entry, execute

THREADS, BLOCKS = 40, 2
HEAD = """\
%t = gpu.thread_id x
%b = gpu.block_id x
%n = arith.index_cast %x : i32 to index
%d = arith.constant 40 : index
%flat0 = arith.muli %b, %d : index
%flat = arith.addi %flat0, %t : index
%t32 = arith.index_cast %t : index to i32
%b32 = arith.index_cast %b : index to i32
%n32 = arith.ori %x, %x : i32
%flat32 = arith.index_cast %flat : index to i32
"""
NAMES = ("%t", "%b", "%n", "%flat")


@st.composite
def sums(draw: Any) -> Arithmetic:
    """Multiples of the digits of some numbers, added up; coefficients often go on where the one before ends."""
    type, bits, suffix = draw(st.sampled_from([("index", 64, ""), ("i32", 32, "32")]))
    made = Arithmetic(type, bits)
    for name in NAMES:
        made.input(name + suffix)
    terms: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        number, step = draw(st.sampled_from(list(made.values))), draw(st.sampled_from([1, 3, 6, 8, 1000, 2**30]))
        signed = draw(st.booleans())
        for _ in range(draw(st.integers(1, 3))):
            by = draw(st.sampled_from([2, 3, 4, 6, 16, 40]))
            digit = _divided(made, "rem", number, by, signed, draw(st.booleans()))
            number = _divided(made, "div", number, by, signed, draw(st.booleans()))
            if draw(st.integers(0, 5)):
                terms.append(made.apply("muli", OPERATIONS["muli"], digit, made.constant(step)))
            step = step * by if draw(st.integers(0, 3)) else draw(st.sampled_from([0, 1, -5, 7]))
        terms.append(made.apply("muli", OPERATIONS["muli"], number, made.constant(step)))
    for op in ("addi", "subi", "addi"):
        left, right = draw(st.sampled_from(terms)), draw(st.sampled_from(terms))
        terms.append(made.apply(op, OPERATIONS[op], left, right))
    total = made.constant(draw(st.integers(-3, 3)))
    for term in draw(st.permutations(terms)):
        total = made.apply("addi", OPERATIONS["addi"], total, term)
    return made


def _divided(made: Arithmetic, what: str, number: str, by: int, signed: bool, by_bits: bool) -> str:
    """The quotient or remainder of a number, also by shifts and masks."""
    if by_bits and by & (by - 1) == 0:
        if what == "div":
            return made.apply("shrui", SHIFTS["shrui"], number, made.constant(by.bit_length() - 1))
        return made.apply("andi", OPERATIONS["andi"], number, made.constant(by - 1))
    op = f"{what}{'si' if signed else 'ui'}"
    return made.apply(op, BY_CONSTANT[op], number, made.constant(by))


@given(sums(), st.sampled_from([0, 1, 77, 2**31 - 1, -1, -12, -(2**31)]), st.booleans())
@settings(max_examples=examples(20))
def test_sums_keep_their_values(made: Arithmetic, x: int, as_address: bool) -> None:
    """The last sum is stored, or it is where an element is loaded from; in an address, quotients may be left alone."""
    last = list(made.values)[-1]
    everyone = [
        {
            name + suffix: value
            for suffix in ("", "32")
            for name, value in zip(NAMES, (t, b, x, b * THREADS + t), strict=True)
        }
        for b in range(BLOCKS)
        for t in range(THREADS)
    ]
    expected = [made.values[last](inputs) for inputs in everyone]
    low, most = min(expected), max(expected)
    as_address = as_address and most - low < 1 << 16
    if as_address:
        lines = [
            f"%low = arith.constant {-low} : {made.type}",
            f"%from = arith.addi {last}, %low : {made.type}",
            f"%source = ptx.ptr_add %table, %from : !ptx.ptr<global>, {made.type} -> !ptx.ptr<global>",
            "%byte = ptx.ld %source align 1 : !ptx.ptr<global> -> i8",
            "%result = arith.extui %byte : i8 to i64",
        ]
        table = np.random.default_rng(0).integers(0, 256, most - low + 1, np.uint8)
        expected = [int(table[each - low]) for each in expected]
    else:
        cast = f"arith.index_cast {last} : index" if made.type == "index" else f"arith.extsi {last} : i32"
        lines, table = [f"%result = {cast} to i64"], np.zeros(1, np.uint8)
    store = [
        "%eight = arith.constant 8 : index",
        "%place = arith.muli %flat, %eight : index",
        "%p = ptx.ptr_add %out, %place : !ptx.ptr<global>, index -> !ptx.ptr<global>",
        "ptx.st %result, %p align 8 : i64, !ptx.ptr<global>",
    ]
    args = "%x: i32, %table: !ptx.ptr<global> align 16, %out: !ptx.ptr<global> align 16"
    text = entry("\n".join([HEAD, *made.lines, *lines, *store]), args, str(THREADS))
    for passes in ("", "combine-remainders", "combine-remainders,cse,convert-index,strength-reduce"):
        out = np.zeros(BLOCKS * THREADS, np.int64)
        arguments = {"x": np.int32(x), "table": table.view(np.int8), "out": out}
        execute(apply(text, passes), arguments, grid=(BLOCKS, 1, 1), threads=THREADS, outputs=["out"])
        assert out.tolist() == expected, passes


SYMBOLS: dict[type[Operation], str] = {arith.DivUIOp: "/", arith.RemUIOp: "%", arith.MuliOp: "*"}
CONSTANTS = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (3, 4, 6, 16, 96, 100, 1000))


def left(lines: str) -> list[str]:
    """The divisions, remainders and multiplications that `%s`, an offset of an address, takes; with their constants."""
    text = f"""%t = gpu.thread_id x
        {CONSTANTS}
        {lines}
        %p = ptx.ptr_add %A, %s : !ptx.ptr<global>, index -> !ptx.ptr<global>
        %v = ptx.ld %p align 1 : !ptx.ptr<global> -> i8
        ptx.st %v, %A align 1 : i8, !ptx.ptr<global>"""
    module = apply(entry(text, "%A: !ptx.ptr<global> align 16, %x: i32, %y: i32", "192"), "combine-remainders,cse")
    found: list[str] = []
    for op in module.walk():
        if (symbol := SYMBOLS.get(op.__class__)) is not None:
            number = constant_of(op.operands[1])
            found.append(symbol if number is None else f"{symbol}{number}")
    return found


PAIR = """
    %r = arith.remui %t, %c16 : index
    %q = arith.divui %t, %c16 : index
    %a = arith.muli %r, %c6 : index
"""
SIX = """
    %r = arith.remui %t, %c6 : index
    %q = arith.divui %t, %c6 : index
    %a = arith.muli %r, %c16 : index
    %b = arith.muli %q, %c100 : index
    %s = arith.addi %a, %b : index
"""


def test_what_goes_on_is_combined() -> None:
    ends = "%b = arith.muli %q, %c96 : index\n%s = arith.addi %a, %b : index"
    assert left(PAIR + ends) == ["*6"]
    assert left(PAIR + ends.replace("96", "100")) == ["%16", "/16", "*6", "*100"]


def test_only_what_does_not_go_on_is_divided() -> None:
    """The layout (16,4,3):(6,96,1000)."""
    lines = """
        %m = arith.remui %q, %c4 : index
        %n = arith.divui %q, %c4 : index
        %b = arith.muli %m, %c96 : index
        %c = arith.muli %n, %c1000 : index
        %d = arith.addi %a, %b : index
        %s = arith.addi %d, %c : index
    """
    assert left(PAIR + lines) == ["%64", "*6", "/64", "*1000"]


def test_an_address_has_the_number_itself_where_its_remainder_takes_a_multiplication() -> None:
    assert left(SIX) == ["*16", "/6", "*4"]  # 100 - 6 * 16 is 4
    compared = "%f = arith.cmpi ult, %r, %c3 : index\nscf.if %f {\nptx.bar.sync 0\n}"
    assert left(SIX + compared) == ["%6", "/6", "*16", "*100"]  # the remainder is there anyway


def test_run_time_divisors_and_strides_are_combined() -> None:
    lines = """
        %n = arith.index_cast %x : i32 to index
        %k = arith.constant 1073741823 : index
        %by = arith.andi %n, %k : index
        %ld = arith.index_cast %y : i32 to index
        %r = arith.remui %t, %by : index
        %q = arith.divui %t, %by : index
        %a = arith.muli %r, %ld : index
        %e = arith.muli %ld, %by : index
        %b = arith.muli %q, %e : index
        %s = arith.addi %a, %b : index
    """
    assert left(lines) == ["*"]


def test_coordinates_in_registers_of_32_bits_are_combined() -> None:
    lines = """
        %r = arith.remui %t, %c16 : index
        %q = arith.divui %t, %c16 : index
        %m = arith.index_cast %q : index to i32
        %k = arith.index_cast %r : index to i32
        %six = arith.constant 6 : i32
        %row = arith.constant 96 : i32
        %c = arith.muli %m, %row : i32
        %d = arith.muli %k, %six : i32
        %e = arith.addi %c, %d : i32
        %s = arith.index_cast %e : i32 to index
    """
    assert left(lines) == ["*6"]


def test_a_number_that_may_be_negative_stays_divided() -> None:
    lines = """
        %by = arith.constant 16 : i32
        %r = arith.remui %x, %by : i32
        %q = arith.divui %x, %by : i32
        %six = arith.constant 6 : i32
        %row = arith.constant 96 : i32
        %a = arith.muli %r, %six : i32
        %b = arith.muli %q, %row : i32
        %e = arith.addi %a, %b : i32
        %s = arith.index_cast %e : i32 to index
    """
    assert left(lines) == ["%16", "/16", "*6", "*96"]
