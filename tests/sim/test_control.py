# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Structured control flow whose conditions and bounds differ by lane."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sim.harness import compute, entry, fault, launch

COLLATZ = """
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %zero = arith.constant 0 : i32
    %x, %r = scf.while (%v = %a, %n = %zero) : (i32, i32) -> (i32, i32) {
      %going = arith.cmpi sgt, %v, %one : i32
      scf.condition(%going) %v, %n : i32, i32
    } do {
    ^bb0(%v: i32, %n: i32):
      %odd = arith.remui %v, %two : i32
      %is_odd = arith.cmpi eq, %odd, %one : i32
      %next = scf.if %is_odd -> (i32) {
        %m = arith.muli %v, %three : i32
        %m1 = arith.addi %m, %one : i32
        scf.yield %m1 : i32
      } else {
        %h = arith.divui %v, %two : i32
        scf.yield %h : i32
      }
      %n1 = arith.addi %n, %one : i32
      scf.yield %next, %n1 : i32, i32
    }"""


def collatz(value: int) -> int:
    steps = 0
    while value > 1:
        value = 3 * value + 1 if value % 2 else value // 2
        steps += 1
    return steps


@pytest.mark.parametrize("uniform", [False, True])
def test_while_until_each_lane_is_done(uniform: bool) -> None:
    values = np.array([1, 7, 27, 2, 9, 97], np.int32)
    got = compute(COLLATZ, "i32", np.int32, {"a": ("i32", values)}, uniform)
    assert got.tolist() == [collatz(int(v)) for v in values]


SUM = """
    %zero = arith.constant 0 : {t}
    %r = scf.for %i = %a to %b step %s iter_args(%sum = %zero) -> ({t}) {for_type} {{
      %i2 = arith.muli %i, %i : {t}
      %next = arith.addi %sum, %i2 : {t}
      scf.yield %next : {t}
    }}"""


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize(("type", "dtype"), [("index", np.int64), ("i32", np.int32)])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_for_with_bounds_by_lane(type: str, dtype: Any, uniform: bool, data: st.DataObject) -> None:
    bounds = st.tuples(st.integers(-9, 9), st.integers(-9, 20), st.integers(1, 5))
    without_iterations = st.tuples(st.integers(4, 9), st.integers(-9, 4), st.integers(-1, 1))
    rows = data.draw(st.lists(bounds | without_iterations, min_size=1, max_size=6))
    body = SUM.format(t=type, for_type="" if type == "index" else ": i32")
    inputs = {
        name: (type, np.array(column, dtype)) for name, column in zip("abs", zip(*rows, strict=True), strict=True)
    }
    got = compute(body, type, dtype, inputs, uniform)
    assert got.tolist() == [sum(i * i for i in range(a, b, max(s, 1))) for a, b, s in rows]


def test_step_must_be_positive() -> None:
    body = SUM.format(t="index", for_type="").replace("%s", "%zero").replace("%a", "%zero").replace("%b", "%four")
    body = f"    %four = arith.constant 4 : index\n{body}"
    assert "not positive" in fault(entry(body), "E3209").message


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=32))
def test_nested_conditions(lanes: list[tuple[bool, bool]]) -> None:
    body = """
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %r = scf.if %a -> (i32) {
      %q = scf.if %b -> (i32) {
        scf.yield %c1 : i32
      } else {
        scf.yield %c2 : i32
      }
      scf.yield %q : i32
    } else {
      scf.yield %c3 : i32
    }"""
    a, b = (np.array(column, np.int8) for column in zip(*lanes, strict=True))
    got = compute(body, "i32", np.int32, {"a": ("i1", a), "b": ("i1", b)})
    assert got.tolist() == [(1 if y else 2) if x else 3 for x, y in lanes]


def test_masked_lanes_do_not_write() -> None:
    body = """
    %t = gpu.thread_id x
    %c4 = arith.constant 4 : index
    %c10 = arith.constant 10 : index
    %o = arith.muli %t, %c4 : index
    %p = ptx.ptr_add %A, %o : !ptx.ptr<global>, index -> !ptx.ptr<global>
    %few = arith.cmpi ult, %t, %c10 : index
    %v = arith.constant 5 : i32
    scf.if %few {
      ptx.st %v, %p align 4 : i32, !ptx.ptr<global>
    }"""
    array = np.zeros(32, np.int32)
    result = launch(entry(body, "%A: !ptx.ptr<global> align 16"), A=array)
    assert array.tolist() == [5] * 10 + [0] * 22
    assert result.counters.instructions["st.global.b32"].threads == 10
    assert result.counters.instructions["st.global.b32"].warps == 1


@pytest.mark.parametrize("block", [(32, 1, 1), (5, 3, 2), (1, 1, 1), (4, 40, 1)])
def test_coordinates(block: tuple[int, int, int]) -> None:
    lines: list[str] = []
    for d in "xyz":
        for value, op in (("t", "thread_id"), ("b", "block_id"), ("n", "block_dim"), ("g", "grid_dim")):
            lines.append(f"%{value}{d} = gpu.{op} {d}")
            lines.append(f"%{value}{d}.i = arith.index_cast %{value}{d} : index to i32")
        lines.append(f'ptx.printf "%d %d %d %d "(%t{d}.i, %b{d}.i, %n{d}.i, %g{d}.i) : i32, i32, i32, i32')
    text = entry("\n".join(lines), threads=", ".join(map(str, block)))
    grid = (2, 1, 3)
    printed = [int(word) for word in launch(text, grid, block).output.split()]
    want: list[int] = []
    threads = [(x, y, z) for z in range(block[2]) for y in range(block[1]) for x in range(block[0])]
    for bz in range(3):
        for bx in range(2):
            for first in range(0, len(threads), 32):
                for axis in range(3):
                    for thread in threads[first : first + 32]:
                        want += [thread[axis], (bx, 0, bz)[axis], block[axis], grid[axis]]
    assert printed == want
