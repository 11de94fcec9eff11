# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What emitted arithmetic and control flow compute, executed on the CPU and compared with Python."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.emit.cpu import apply, run_on_cpu
from tests.emit.harness import kernel, llvm_of

INTEGERS = (-(2**31), -13, -7, -6, -1, 1, 2, 6, 7, 13, 2**31 - 1)


def wrap(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def _unsigned(value: int) -> int:
    return value % 2**32


def _towards_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


INTEGER_OPS: dict[str, Callable[[int, int], int]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divsi": _towards_zero,
    "remsi": lambda a, b: a - b * _towards_zero(a, b),
    "divui": lambda a, b: _unsigned(a) // _unsigned(b),
    "remui": lambda a, b: _unsigned(a) % _unsigned(b),
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "ceildivui": lambda a, b: -(-_unsigned(a) // _unsigned(b)),
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "minsi": min,
    "maxsi": max,
    "minui": lambda a, b: min(_unsigned(a), _unsigned(b)),
    "maxui": lambda a, b: max(_unsigned(a), _unsigned(b)),
}


def _run_pairs(body: str, pairs: list[tuple[Any, Any]], dtype: Any, out_dtype: Any, count: int) -> Any:
    """Runs a kernel over rows of %A and %B; its loop body computes %r from %x and %y."""
    a, b = (np.array(column, dtype) for column in zip(*pairs, strict=True))
    out = np.zeros(count, out_dtype)
    run_on_cpu(body, [a, b, out])
    return out


def loop_kernel(op: str, type: str, result: str, size: int, out_size: int, count: int) -> str:
    """A kernel that applies an operation to `count` pairs of values."""
    return kernel(
        f"""
        %z = arith.constant 0 : i32
        %one = arith.constant 1 : i32
        %n = arith.constant {count} : i32
        %in = arith.constant {size} : i32
        %outs = arith.constant {out_size} : i32
        scf.for %i = %z to %n step %one : i32 {{
          %o = arith.muli %i, %in : i32
          %p = arith.muli %i, %outs : i32
          %pa = ptx.ptr_add %A, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
          %pb = ptx.ptr_add %B, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
          %pc = ptx.ptr_add %C, %p : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
          %x = ptx.ld %pa align {size} : !ptx.ptr<global> -> {type}
          %y = ptx.ld %pb align {size} : !ptx.ptr<global> -> {type}
          %r = {op}
          ptx.st %r, %pc align {out_size} : {result}, !ptx.ptr<global>
        }}
        """,
        "%A: !ptx.ptr<global> align 8, %B: !ptx.ptr<global> align 8, %C: !ptx.ptr<global> align 8",
        threads="1",
    )


@pytest.mark.parametrize("name", INTEGER_OPS)
def test_integer_operation_computes_what_python_does(name: str) -> None:
    pairs = [
        (a, b)
        for a in INTEGERS
        for b in INTEGERS
        if not ("div" in name or "rem" in name) or (a, b) != (-(2**31), -1)  # overflows in two's complement
    ]
    text = loop_kernel(f"arith.{name} %x, %y : i32", "i32", "i32", 4, 4, len(pairs))
    got = _run_pairs(llvm_of(text), pairs, np.int32, np.int32, len(pairs))
    assert got.tolist() == [wrap(INTEGER_OPS[name](a, b)) for a, b in pairs]


SHIFTS: dict[str, Callable[[int, int], int]] = {
    "shli": lambda a, b: a << b,
    "shrsi": lambda a, b: a >> b,
    "shrui": lambda a, b: _unsigned(a) >> b,
}


@pytest.mark.parametrize("name", SHIFTS)
def test_shift_computes_what_python_does(name: str) -> None:
    pairs = [(a, b) for a in INTEGERS for b in (0, 1, 7, 31)]
    text = loop_kernel(f"arith.{name} %x, %y : i32", "i32", "i32", 4, 4, len(pairs))
    got = _run_pairs(llvm_of(text), pairs, np.int32, np.int32, len(pairs))
    assert got.tolist() == [wrap(SHIFTS[name](a, b)) for a, b in pairs]


FLOATS = (0.0, -0.0, 1.0, -1.5, 3.25, 1e30, -1e-30, math.inf, -math.inf, math.nan)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("addf", np.add),
        ("subf", np.subtract),
        ("mulf", np.multiply),
        ("divf", np.divide),
        ("maximumf", np.maximum),
        ("minimumf", np.minimum),
        ("maxnumf", np.fmax),
        ("minnumf", np.fmin),
    ],
)
def test_float_operation_computes_what_numpy_does(name: str, expected: Callable[..., Any]) -> None:
    pairs = [(a, b) for a in FLOATS for b in FLOATS if (a, b) not in ((0.0, -0.0), (-0.0, 0.0))]
    text = loop_kernel(f"arith.{name} %x, %y : f32", "f32", "f32", 4, 4, len(pairs))
    got = _run_pairs(llvm_of(text), pairs, np.float32, np.float32, len(pairs))
    with np.errstate(all="ignore"):
        want = [expected(np.float32(a), np.float32(b)) for a, b in pairs]
    np.testing.assert_array_equal(got, np.array(want, np.float32))


PREDICATES: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
    "ult": lambda a, b: _unsigned(a) < _unsigned(b),
    "ule": lambda a, b: _unsigned(a) <= _unsigned(b),
    "ugt": lambda a, b: _unsigned(a) > _unsigned(b),
    "uge": lambda a, b: _unsigned(a) >= _unsigned(b),
}


@pytest.mark.parametrize("name", PREDICATES)
def test_comparison_and_select_compute_what_python_does(name: str) -> None:
    pairs = [(a, b) for a in INTEGERS for b in INTEGERS]
    op = f"arith.cmpi {name}, %x, %y : i32\n  %w = arith.extui %r : i1 to i8"
    text = loop_kernel(op, "i32", "i8", 4, 1, len(pairs)).replace("ptx.st %r", "ptx.st %w")
    got = _run_pairs(llvm_of(text), pairs, np.int32, np.int8, len(pairs))
    assert got.tolist() == [int(PREDICATES[name](a, b)) for a, b in pairs]


@pytest.mark.parametrize(
    ("op", "types", "result", "operand", "expected"),
    [
        ("arith.extsi {0} : i8 to i32", ["i8"], "i32", -3, -3),
        ("arith.extui {0} : i8 to i32", ["i8"], "i32", -3, 253),
        ("arith.trunci {0} : i64 to i16", ["i64"], "i16", 0x12345, 0x2345),
        ("arith.sitofp {0} : i32 to f32", ["i32"], "f32", -7, -7.0),
        ("arith.uitofp {0} : i32 to f32", ["i32"], "f32", -1, 4294967296.0),
        ("arith.fptosi {0} : f32 to i32", ["f32"], "i32", -2.75, -2),
        ("arith.fptoui {0} : f32 to i64", ["f32"], "i64", 3e9, 3000000000),
        ("arith.extf {0} : f16 to f32", ["f16"], "f32", 1.5, 1.5),
        ("arith.truncf {0} : f64 to f32", ["f64"], "f32", 0.1, np.float32(0.1)),
        ("arith.truncf {0} : f32 to f16", ["f32"], "f16", 2049.0, 2048.0),  # a tie, rounded to even
        ("arith.bitcast {0} : f32 to i32", ["f32"], "i32", 1.0, 0x3F800000),
        ("math.absf {0} : f32", ["f32"], "f32", -2.5, 2.5),
        ("math.floor {0} : f32", ["f32"], "f32", -2.5, -3.0),
        ("math.ceil {0} : f32", ["f32"], "f32", -2.5, -2.0),
        ("math.trunc {0} : f32", ["f32"], "f32", -2.5, -2.0),
        ("math.roundeven {0} : f32", ["f32"], "f32", 2.5, 2.0),
        ("math.round {0} : f32", ["f32"], "f32", 2.5, 3.0),
        ("math.sqrt {0} : f32", ["f32"], "f32", 2.0, np.sqrt(np.float32(2))),
        ("math.absi {0} : i32", ["i32"], "i32", -5, 5),
        ("math.ctlz {0} : i32", ["i32"], "i32", 0, 32),
        ("math.cttz {0} : i32", ["i32"], "i32", 8, 3),
        ("math.ctpop {0} : i32", ["i32"], "i32", 0b1011, 3),
        ("arith.negf {0} : f32", ["f32"], "f32", 2.0, -2.0),
    ],
)
def test_conversion_or_function(op: str, types: list[str], result: str, operand: Any, expected: Any) -> None:
    assert apply(op, types, result, [operand]) == expected


@pytest.mark.parametrize("value", [0.0, -0.0, 1.0, -1.5, 65504.0, 6e-8, 1e9, -1e9, math.inf, math.nan, 0.1])
@pytest.mark.parametrize(("type", "dtype"), [("f16", np.float16), ("f32", np.float32), ("f64", np.float64)])
def test_float_constant_keeps_its_value(type: str, dtype: Any, value: float) -> None:
    with np.errstate(over="ignore"):
        rounded = dtype(value)
    literal = f"{value:.16e}"
    if not np.isfinite(rounded):
        literal = hex(int.from_bytes(rounded.tobytes(), "little"))
    body = f"%y = arith.constant {literal} : {type}\nptx.st %y, %a0 align 8 : {type}, !ptx.ptr<global>"
    out = np.zeros(1, dtype)
    run_on_cpu(llvm_of(kernel(body, "%a0: !ptx.ptr<global> align 8", threads="1")), [out])
    np.testing.assert_array_equal(out[0], rounded)


def test_loop_carries_values_and_branches_choose() -> None:
    """The Collatz sequence: a while loop whose body branches, inside a for loop that keeps the longest."""
    text = kernel(
        """%zero = arith.constant 0 : i32 %one = arith.constant 1 : i32 %two = arith.constant 2 : i32 %three
        = arith.constant 3 : i32 %end = arith.constant 30 : i32 %best, %where = scf.for %i = %one to %end
        step %one iter_args(%m = %zero, %w = %zero) -> (i32, i32) : i32 { %last, %steps = scf.while (%x =
        %i, %n = %zero) : (i32, i32) -> (i32, i32) { %more = arith.cmpi ne, %x, %one : i32
        scf.condition(%more) %x, %n : i32, i32 } do { ^bb0(%x: i32, %n: i32): %bit = arith.remui %x, %two :
        i32 %odd = arith.cmpi eq, %bit, %one : i32 %next = scf.if %odd -> (i32) { %t = arith.muli %x, %three
        : i32 %u = arith.addi %t, %one : i32 scf.yield %u : i32 } else { %h = arith.divui %x, %two : i32
        scf.yield %h : i32 } %k = arith.addi %n, %one : i32 scf.yield %next, %k : i32, i32 } %longer =
        arith.cmpi sgt, %steps, %m : i32 %m2 = arith.select %longer, %steps, %m : i32 %w2 = arith.select
        %longer, %i, %w : i32 scf.yield %m2, %w2 : i32, i32 } ptx.st %best, %A align 4 : i32,
        !ptx.ptr<global> ptx.st %where, %B align 4 : i32, !ptx.ptr<global>
        """,
        "%A: !ptx.ptr<global> align 4, %B: !ptx.ptr<global> align 4",
        threads="1",
    )

    def steps(x: int) -> int:
        return 0 if x == 1 else 1 + steps(3 * x + 1 if x % 2 else x // 2)

    best, where = np.zeros(1, np.int32), np.zeros(1, np.int32)
    run_on_cpu(llvm_of(text), [best, where])
    assert (best[0], where[0]) == max(((steps(i), i) for i in range(1, 30)), key=lambda pair: (pair[0], -pair[1]))


def test_loop_that_never_runs_hands_on_its_start() -> None:
    text = kernel(
        """
        %one = arith.constant 1 : i32
        %five = arith.constant 5 : i32
        %r = scf.for %i = %five to %one step %one iter_args(%x = %five) -> (i32) : i32 {
          %y = arith.addi %x, %i : i32
          scf.yield %y : i32
        }
        ptx.st %r, %A align 4 : i32, !ptx.ptr<global>
        """,
        "%A: !ptx.ptr<global> align 4",
        threads="1",
    )
    out = np.zeros(1, np.int32)
    run_on_cpu(llvm_of(text), [out])
    assert out[0] == 5


def test_vector_operations_move_the_elements_they_name() -> None:
    text = kernel(
        """
        %v = ptx.ld %A align 16 : !ptx.ptr<global> -> vector<4xi32>
        %a = vector.extract %v[1] : i32 from vector<4xi32>
        %w = vector.insert %a, %v[3] : i32 into vector<4xi32>
        %b = vector.broadcast %a : i32 to vector<4xi32>
        %s = arith.addi %w, %b : vector<4xi32>
        %p = vector.shuffle %s, %v [3, 2, 5, 0] : vector<4xi32>, vector<4xi32>
        %h = vector.bitcast %p : vector<4xi32> to vector<8xi16>
        %last = vector.extract %h[6] : i16 from vector<8xi16>
        %o = ptx.local.alloc 16 align 16
        ptx.st %p, %o align 16 : vector<4xi32>, !ptx.ptr<local>
        %q = ptx.ld %o align 16 : !ptx.ptr<local> -> vector<8xi16>
        ptx.st %q, %B align 16 : vector<8xi16>, !ptx.ptr<global>
        ptx.st %last, %C align 2 : i16, !ptx.ptr<global>
        """,
        "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16, %C: !ptx.ptr<global> align 2",
        threads="1",
    )
    source, out, last = np.array([10, 20, 30, 40], np.int32), np.zeros(4, np.int32), np.zeros(1, np.int16)
    run_on_cpu(llvm_of(text), [source, out, last])
    assert out.tolist() == [40, 50, 20, 30]
    assert last[0] == 30


@pytest.mark.parametrize(
    ("literal", "type", "expected"),
    [
        ("dense<7>", "vector<4xi32>", np.full(4, 7, np.int32)),
        ("dense<[1, -2, 3, 4]>", "vector<4xi32>", np.array([1, -2, 3, 4], np.int32)),
        ("dense<0.5>", "vector<8xf16>", np.full(8, 0.5, np.float16)),
        ("dense<[0.1, 2.0]>", "vector<2xf64>", np.array([0.1, 2.0])),
    ],
)
def test_vector_constant_keeps_its_values(literal: str, type: str, expected: NDArray[Any]) -> None:
    out = np.zeros_like(expected)
    body = f"%y = arith.constant {literal} : {type}\nptx.st %y, %a0 align 16 : {type}, !ptx.ptr<global>"
    run_on_cpu(llvm_of(kernel(body, "%a0: !ptx.ptr<global> align 16", threads="1")), [out])
    np.testing.assert_array_equal(out, expected)
