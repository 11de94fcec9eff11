# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tile.map` and `tile.fill`: what they compute at every stage, and that fragments stay in registers."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilefold.base.target import Target
from tilefold.compiler.reports.kernel_report import count_instructions
from tilefold.runtime.sim.faults import SimulationError

from tests.kernels.harness import STAGES, assert_checks_hold, program_of, simulate
from tilefold.driver.launches import Changes, Launch, read_launches
from tilefold.driver.lowering import Program


@cache
def launch_of(text: str) -> tuple[Program, Launch]:
    """A program and its only launch."""
    found = program_of(text)
    (launch,) = read_launches(found.module, found.source, Changes())
    return found, launch


def assert_holds_at_every_stage(text: str) -> None:
    """The checks of the launch hold at all stages, and its results have the same bits."""
    found, launch = launch_of(text)
    first = simulate(found, launch, STAGES[0])
    assert_checks_hold(launch, first.after)
    for stage in STAGES[1:]:
        other = simulate(found, launch, stage)
        for name in first.after:
            assert other.array(name).tobytes() == first.array(name).tobytes(), (stage, name)


def ptx_counts(text: str, arch: str = "sm_80") -> dict[str, int]:
    """How often each instruction stands in the PTX of the only kernel, which has no local memory."""
    ptx = launch_of(text)[0].ptx(Target(arch))
    assert ".local" not in ptx
    return count_instructions(ptx)["k"]


ROWS = """
!in = !tile.tensor<f32, gmem, align<16>, "(32,64):(64,1)">
!out = !tile.tensor<f16, gmem, align<16>, "(32,64):(64,1)">
!sums = !tile.tensor<f32, gmem, align<4>, "32:1">
gpu.module @kernels {
  tile.kernel @k(%A: !in, %B: !out, %S: !sums, %scale: f32) threads(32) {
    %t = gpu.thread_id x
    %a = tile.local_tile %A, "(1,64)", (%t, 0)
    %b = tile.local_tile %B, "(1,64)", (%t, 0)
    %x = tile.alloc : !tile.tensor<f32, rmem, align<16>, "(1,64):(0,1)">
    %y = tile.alloc : !tile.tensor<f16, rmem, align<16>, "(1,64):(0,1)">
    %sum = tile.alloc : !tile.tensor<f32, rmem, align<4>, "1:1">
    %zero = arith.constant 0.0 : f32
    tile.copy %a, %x
    tile.fill %sum, %zero
    %every = tile.composition %sum, "(1,64):(0,0)"
    tile.map %every, %x (%e: f32, %old: f32) {
      %r = arith.addf %old, %e : f32
      tile.yield %r : f32
    }
    tile.map %y, %x, %every (%e: f32, %s: f32) {
      %p = arith.mulf %e, %s : f32
      %q = arith.mulf %p, %scale : f32
      %h = arith.truncf %q : f32 to f16
      tile.yield %h : f16
    }
    tile.copy %y, %b
    %total = tile.load %sum(0)
    tile.store %total, %S(%t)
    return
  }
}
run.launch @kernels::@k grid(1) {
  run.arg "A" : !in = "normal(seed=0)"
  run.arg "B" : !out = "poison"
  run.arg "S" : !sums = "poison"
  run.arg "scale" : f32 = "0.5"
  run.check "S ~= sum(A, axis=1)"
  run.check "B ~= A * sum(A, axis=1, keepdims=1) * scale"
}
"""
"""Each thread sums a row in order, and multiplies the row by the sum."""


def test_a_stride_of_zero_reduces_in_order_and_repeats() -> None:
    assert_holds_at_every_stage(ROWS)
    ran = simulate(*launch_of(ROWS), "instr")
    total = np.zeros(32, np.float32)
    for column in range(64):
        total = total + np.asarray(ran.before["A"])[:, column]
    assert np.array_equal(ran.array("S"), total)


def test_pairs_are_converted_by_one_instruction() -> None:
    counts = ptx_counts(ROWS)
    assert counts["cvt.rn.f16x2.f32"] == 32
    assert counts["ld.global.v4.b32"] == 16
    assert counts["st.global.v4.b32"] == 8
    assert not any(name.startswith("bra") for name in counts)


ACCUMULATOR = """
// param M = 2
// param N = 4
!in = !tile.tensor<f32, gmem, align<16>, "(32,${4 * M * N}):(${4 * M * N},1)">
!rows = !tile.tensor<f32, gmem, align<4>, "(32,${2 * M}):(${2 * M},1)">
gpu.module @kernels {
  tile.kernel @k(%A: !in, %R: !rows) threads(32) {
    %t = gpu.thread_id x
    %a = tile.slice %A, (%t, _)
    %acc = tile.alloc : !tile.tensor<f32, rmem, align<16>, "((2,2),${M},${N}):((1,2),4,${4 * M})">
    %flat = tile.composition %acc, "${4 * M * N}:1"
    tile.copy %a, %flat
    %rc = tile.composition %acc, "((2,${M}),(2,${N})):((2,4),(1,${4 * M}))"
    %row = tile.alloc : !tile.tensor<f32, rmem, align<4>, "${2 * M}:1">
    %least = arith.constant 0xFF800000 : f32
    tile.fill %row, %least
    %rows = tile.composition %row, "(${2 * M},${2 * N}):(1,0)"
    tile.map %rows, %rc (%x: f32, %m: f32) {
      %r = arith.maxnumf %m, %x : f32
      tile.yield %r : f32
    }
    %out = tile.slice %R, (%t, _)
    tile.copy %row, %out
    return
  }
}
run.launch @kernels::@k grid(1) {
  run.arg "A" : !in = "normal(seed=0)"
  run.arg "R" : !rows = "poison"
  run.check "R[:, 0] == max(concatenate(A[:, 0:${4 * M * N}:${4 * M}], A[:, 1:${4 * M * N}:${4 * M}], 1), axis=1)"
  run.check "R[:, 3] == max(concatenate(A[:, 6:${4 * M * N}:${4 * M}], A[:, 7:${4 * M * N}:${4 * M}], 1), axis=1)"
}
"""
"""The accumulator of m16n8 atoms, ((2,2),M,N), seen as rows and columns: the maximum of each of a thread's rows."""


def test_an_accumulator_is_seen_as_rows_and_columns() -> None:
    assert_holds_at_every_stage(ACCUMULATOR)
    assert ptx_counts(ACCUMULATOR)["max.f32"] == 32


SPACES = """
!g = !tile.tensor<{source}, gmem, align<16>, "{layout}">
!d = !tile.tensor<{target}, gmem, align<16>, "{layout}">
gpu.module @kernels {{
  tile.kernel @k(%A: !g, %B: !d) threads(1) {{
    %s = tile.alloc : !tile.tensor<{source}, smem, align<128>, "{swizzled}">
    tile.map %s, %A (%x: {source}) {{
      tile.yield %x : {source}
    }}
    tile.map %B, %s (%x: {source}) {{
      {convert}
      tile.yield %y : {target}
    }}
    return
  }}
}}
run.launch @kernels::@k grid(1) {{
  run.arg "A" : !g = "arange(-20)"
  run.arg "B" : !d = "poison"
  run.check "B == A"
}}
"""


@pytest.mark.parametrize(("source", "target", "convert"), [
    ("i32", "f32", "%y = arith.sitofp %x : i32 to f32"),
    ("f32", "bf16", "%y = arith.truncf %x : f32 to bf16"),
    ("f16", "f64", "%y = arith.extf %x : f16 to f64"),
    ("i8", "i16", "%y = arith.extsi %x : i8 to i16"),
])  # fmt: skip
def test_conversions_in_all_spaces(source: str, target: str, convert: str) -> None:
    layout, swizzled = "(8,(2,2)):(4,(1,2))", "S<1,2,2> o 0 o (8,4):(4,1)"
    parts = {"source": source, "target": target, "layout": layout, "swizzled": swizzled, "convert": convert}
    assert_holds_at_every_stage(SPACES.format(**parts))


@st.composite
def layouts(draw: st.DrawFn) -> str:
    """A permutation of the modes of a compact layout of sizes (4, 6), with the first one split."""
    order = draw(st.permutations([0, 1, 2]))
    extents, strides = (2, 2, 6), [0, 0, 0]
    step = 1
    for mode in order:
        strides[mode] = step
        step *= extents[mode]
    return f"((2,2),6):(({strides[0]},{strides[1]}),{strides[2]})"


@settings(max_examples=6, deadline=None)
@given(layouts(), layouts(), layouts())
def test_coordinates_meet_whatever_the_layouts(first: str, second: str, third: str) -> None:
    tensors = [f'!tile.tensor<i32, gmem, align<16>, "{layout}">' for layout in (first, second, third)]
    text = f"""
    gpu.module @kernels {{
      tile.kernel @k(%A: {tensors[0]}, %B: {tensors[1]}, %C: {tensors[2]}) threads(1) {{
        %f = tile.alloc : !tile.tensor<i32, rmem, align<16>, "(4,(3,2)):(6,(1,3))">
        tile.map %f, %A, %B (%a: i32, %b: i32) {{
          %r = arith.subi %a, %b : i32
          tile.yield %r : i32
        }}
        tile.map %C, %f (%x: i32, %old: i32) {{
          %r = arith.addi %x, %old : i32
          tile.yield %r : i32
        }}
        return
      }}
    }}
    run.launch @kernels::@k grid(1) {{
      run.arg "A" : {tensors[0]} = "integers(-99, 99, seed=1)"
      run.arg "B" : {tensors[1]} = "integers(-99, 99, seed=2)"
      run.arg "C" : {tensors[2]} = "integers(-99, 99, seed=3)"
    }}
    """
    found, launch = launch_of(text)
    for stage in STAGES:
        ran = simulate(found, launch, stage)
        before = {name: np.asarray(value) for name, value in ran.before.items()}
        assert np.array_equal(ran.array("C"), before["A"] - before["B"] + before["C"]), stage


STRIDES = """
!rows = !tile.tensor<f32, gmem, align<4>, "(32,14):(14,1)">
gpu.module @kernels {
  tile.kernel @k(%A: !tile.tensor<f32, gmem, align<4>, "(4,2):(?,1)">, %C: !rows) threads(32) {
    %t = gpu.thread_id x
    %one = arith.constant 1.0 : f32
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %own = tile.slice %C, (%t, _)
    %rest = arith.remui %t, %c3 : index
    %stride = arith.maxui %rest, %c1 : index
    %part = tile.make_tensor %own, "(3,2):(?,7)" (%stride)
    tile.fill %part, %one
    tile.map %part (%old: f32) {
      %y = arith.addf %old, %one : f32
      tile.yield %y : f32
    }
    %few = arith.cmpi ult, %t, %c1 : index
    scf.if %few {
      tile.fill %A, %one
    }
    return
  }
}
run.launch @kernels::@k grid(1) {
  run.arg "A" : !tile.tensor<f32, gmem, align<4>, "(4,2):(3,1)"> = "poison"
  run.arg "C" : !rows = "zeros"
  run.check "A == 1"
}
"""


def test_strides_known_at_run_time_may_differ_from_thread_to_thread() -> None:
    assert_holds_at_every_stage(STRIDES)
    found, launch = launch_of(STRIDES)
    expected = np.zeros((32, 14), np.float32)
    for thread in range(32):
        for i in range(3):
            expected[thread, [i * max(thread % 3, 1), i * max(thread % 3, 1) + 7]] = 2
    assert np.array_equal(simulate(found, launch, "cute").array("C"), expected)


def test_elements_beyond_a_ragged_tensor_are_not_computed() -> None:
    text = """
    !g = !tile.tensor<f32, gmem, align<4>, "(6,4):(4,1)">
    gpu.module @kernels {
      tile.kernel @k(%A: !g) threads(1) {
        %one = arith.constant 1.0 : f32
        %last = tile.local_tile %A, "(4,3)", (0, 1) ragged
        tile.fill %last, %one
        return
      }
    }
    run.launch @kernels::@k grid(1) {
      run.arg "A" : !g = "zeros"
    }
    """
    with pytest.raises(SimulationError, match=r"outside the tensor's shape \(6, 4\), in a ragged tile"):
        simulate(*launch_of(text), "cute")
