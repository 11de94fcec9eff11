# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors whose extents and strides are known at run time: what holds of static ones holds of them, at every stage."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilefold.base.errors import LayoutError
from tilefold.base.target import Target
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.scalars import scalars_of
from tilefold.layout.text.layouts import parse_layout
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.errors import LaunchError
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.kernels.harness import STAGES, loops, program_of, simulate
from tilefold.driver.launches import Changes, read_launches

_COPY = """\
!a = !tile.tensor<f32, gmem, align<{align}>, "{a}">
!b = !tile.tensor<f32, gmem, align<{align}>, "{b}">
!staticA = !tile.tensor<f32, gmem, align<{align}>, "{static_a}">
!staticB = !tile.tensor<f32, gmem, align<{align}>, "{static_b}">
gpu.module @m {{
  tile.kernel @k(%A: !a, %n: i32, %B: !b) threads(32) {{
    %t = gpu.thread_id x
    %m = gpu.block_id x
    %n0 = gpu.block_id y
    %copy = tile.tiled_copy #tile.copy_atom<"{atom}", f32> thr "(8,4):(1,8)" val "({v},1):(1,1)"
    %I = tile.identity like %A
    %gA = tile.local_tile %A, "(32,16)", (%m, %n0) ragged
    %gB = tile.local_tile %B, "(32,16)", (%m, %n0) ragged
    %gI = tile.local_tile %I, "(32,16)", (%m, %n0) ragged
    %tA = tile.partition_S %copy, %gA, %t
    %tB = tile.partition_D %copy, %gB, %t
    %tI = tile.partition_S %copy, %gI, %t
    %rows = tile.dim %A, 0
    %columns = tile.dim %I, 1
    %p = tile.bounds %tI, (%rows, %columns)
    tile.copy %copy, %tA, %tB if %p
    return
  }}
}}
run.launch @m::@k grid({grid}) {{
  run.arg "A" : !staticA = "normal(seed=0)"
  run.arg "n" : i32 = "3"
  run.arg "B" : !staticB = "poison"
  run.check "B == A"
}}
"""


def _program(m: int, n: int, **changes: str) -> str:
    values = {
        "a": "(?,?):(1,?{div=4})",
        "b": "(?,?):(?{i64},1)",
        "static_a": f"({m},{n}):(1,{-(-m // 4) * 4})",
        "static_b": f"({m},{n}):({n + 3},1)",
        "grid": f"{-(-m // 32)}, {-(-n // 16)}",
        "align": "16",
        "atom": "UniversalCopy<uint32_t>",
        "v": "2",
    }
    return _COPY.format(**(values | changes))


def _results(text: str, stage: str) -> Any:
    found = program_of(text)
    (launch,) = read_launches(found.module, found.source, Changes())
    ran = simulate(found, launch, stage)
    return ran.array("A"), ran.array("B")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("m", "n"), [(33, 17), (32, 16), (7, 3)])
def test_a_copy_of_any_shape(m: int, n: int, stage: str) -> None:
    a, b = _results(_program(m, n), stage)
    assert np.array_equal(a, b)


@pytest.mark.parametrize("stage", STAGES)
def test_divisors_of_strides_prove_wide_accesses(stage: str) -> None:
    wide = {"atom": "UniversalCopy<uint128_t>", "v": "4", "b": "(?,?):(1,?{div=4})", "static_b": "(20,18):(1,24)"}
    a, b = _results(_program(20, 18, **wide), stage)
    assert np.array_equal(a, b)


def test_a_wide_access_needs_the_divisor() -> None:
    with pytest.raises(ProgramError, match="are only known to be aligned to 4"):
        program_of(_program(20, 18, atom="UniversalCopy<uint128_t>", v="4", a="(?,?):(1,?)", b="(?,?):(1,?{div=4})"))


@settings(max_examples=6, deadline=None)
@given(m=st.integers(1, 40), n=st.integers(1, 40), stage=st.sampled_from(STAGES))
def test_run_time_layouts_mean_what_static_ones_mean(m: int, n: int, stage: str) -> None:
    dynamic = _program(m, n)
    static = dynamic.replace('"(?,?):(1,?{div=4})"', f'"({m},{n}):(1,{-(-m // 4) * 4})"')
    static = static.replace('"(?,?):(?{i64},1)"', f'"({m},{n}):({n + 3},1)"')
    for ours, theirs in zip(_results(dynamic, stage), _results(static, stage), strict=True):
        assert np.array_equal(ours, theirs)


def test_offsets_have_64_bits_and_coordinates_32() -> None:
    ptx = program_of(_program(33, 17)).ptx(Target("sm_80"))
    assert ".local" not in ptx
    assert re.search(r"setp\.\w+\.s32", ptx)
    assert not re.search(r"setp\.\w+\.[su]64", ptx)
    assert not re.search(r"(div|rem)\.", ptx)


_LOOP = """\
!a = !tile.tensor<f16, gmem, align<16>, "(?,?{div=8}):(?{i64 div=8},1)">
!s = !tile.tensor<f16, smem, align<128>, "S<3,3,3> o 0 o (64,64):(64,1)">
gpu.module @m {
  tile.kernel @k(%A: !a) threads(128) {
    %t = gpu.thread_id x
    %m = gpu.block_id x
    %I = tile.identity like %A
    %gA = tile.local_tile %A, "(64,64)", (%m, _) ragged
    %gI = tile.local_tile %I, "(64,64)", (%m, _) ragged
    %copy = tile.tiled_copy #tile.copy_atom<"SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t>", f16>
        thr "(16,8):(8,1)" val "(1,8):(8,1)"
    %S = tile.alloc : !s
    %tA = tile.partition_S %copy, %gA, %t
    %tI = tile.partition_S %copy, %gI, %t
    %tS = tile.partition_D %copy, %S, %t
    %rows = tile.dim %A, 0
    %columns = tile.dim %A, 1
    %n = tile.dim %gA, 2
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %k = %c0 to %n step %c1 {
      %a = tile.slice %tA, (_, _, _, %k)
      %i = tile.slice %tI, ((0, _), _, _, %k)
      %p = tile.bounds %i, (%rows, %columns)
      tile.copy %copy, %a, %tS if %p
      ptx.cp.async.commit_group
      ptx.cp.async.wait_group 0
      ptx.bar.sync 0
    }
    return
  }
}
"""


def test_the_addresses_of_a_loop_are_pointers_that_grow() -> None:
    ptx = program_of(_LOOP).ptx(Target("sm_80"))
    (body,) = loops(ptx)
    words = [line.split()[0] for line in body.splitlines()[1:] if line.strip()]
    assert words.count("cp.async.cg.shared.global") == 4
    assert words.count("add.s64") == 4
    assert not any(word.startswith(("mul", "mad", "div", "rem", "cvt", "shl")) for word in words), words


_CARRIED = """\
!c = !tile.coord_tensor<"(0,0) o (8,8):(1@0,1@1)">
gpu.module @m {
  tile.kernel @k() threads(32) {
    %I = tile.identity "(8,8)"
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %x = scf.for %k = %c0 to %c1 step %c1 iter_args(%c = %I) -> (!c) {
      scf.yield %c : !c
    }
    return
  }
}
"""


def test_control_flow_does_not_carry_coordinate_tensors() -> None:
    with pytest.raises(ProgramError, match=r"E2004.*a coordinate tensor or a tensor map cannot be a result") as caught:
        program_of(_CARRIED).at("folded")
    place = caught.value.diagnostics[0].place
    assert place is not None
    assert place.line == 7


_VIEWS = """\
!a = !tile.tensor<i32, gmem, align<4>, "(?,(4,?)):(?,(1,?))">
!o = !tile.tensor<i64, gmem, align<8>, "10:1">
!static = !tile.tensor<i32, gmem, align<4>, "(6,(4,3)):(20,(1,5))">
gpu.module @m {
  tile.kernel @k(%A: !a, %O: !o) threads(1) {
    %b = gpu.block_id x
    %m = tile.dim %A, 0
    %n = tile.dim %A, 1
    %l = tile.dim %A, [1, 1]
    %s = tile.stride %A, [1, 1]
    %swap = tile.select %A, [1, 0]
    %d = tile.stride %swap, 1
    %B = tile.make_tensor %A, "(?,2):(?{i64 div=4},1)" (%m, %d)
    %row = tile.slice %A, (2, (_, %b))
    %x = tile.load %row(3)
    %y = tile.load %A(%b, (1, 2))
    %z = tile.load %B(2, 1)
    %w = tile.load %swap(%b, 4)
    %half = tile.local_tile %A, "(2,2)", (%b, _) ragged
    %e = tile.dim %half, 2
    %v = tile.load %half(1, 0, 1)
{saves}
    return
  }
}
run.launch @m::@k grid(1) {
  run.arg "A" : !static = "arange()"
  run.arg "O" : !o = "0"
}
"""


@pytest.mark.parametrize("stage", STAGES)
def test_views_sizes_and_strides(stage: str) -> None:
    saves = [
        f"%save{number} = arith.{cast} %{name} : {type} to i64\ntile.store %save{number}, %O({number})"
        for number, (name, cast, type) in enumerate(
            [(name, "index_cast", "index") for name in "mnlse"] + [(name, "extsi", "i32") for name in "xyzwv"]
        )
    ]
    found = program_of(_VIEWS.replace("{saves}", "\n".join(saves)))
    (launch,) = read_launches(found.module, found.source, Changes())
    ran = simulate(found, launch, stage)
    a = np.asarray(ran.before["A"])
    assert a.shape == (6, 12)
    expected = [6, 12, 3, 5, 6, a[2, 3], a[0, 9], a[2, 1], a[4, 0], a[1, 2]]
    assert ran.array("O").tolist() == expected


def _bind(layout: str | None, stage: str = "cute") -> None:
    found = program_of(_program(32, 16))
    (launch,) = read_launches(found.module, found.source, Changes())
    storage = np.zeros(4096, np.float32)
    whole = TensorArgument(storage, parse_layout("(32,16):(19,1)"))
    args = {"A": TensorArgument(storage.copy(), None if layout is None else parse_layout(layout)), "n": 3, "B": whole}
    module = found.at(stage)
    assert module is not None
    SimEngine().launch(SimProgram(module, launch.kernel), LaunchConfig((1, 1, 1), launch.block), args)


@pytest.mark.parametrize("stage", ["cute", "instr"])
@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("(32,16):(1,30)", "'A' does not fit.*30 is not a multiple of 4"),
        ("(32,16):(2,32)", "'A' does not fit.*2 stands where 1 belongs"),
        ("512:1", "'A' does not fit.*nested differently"),
        ("S<2,2,2> o 0 o (32,16):(1,32)", "'A' does not fit.*swizzled"),
        (None, "'A' needs the layout"),
    ],
)
def test_a_launch_checks_what_the_type_says(layout: str | None, message: str, stage: str) -> None:
    with pytest.raises(LaunchError, match=message):
        _bind(layout, stage)


def test_arrays_are_passed_as_they_lie() -> None:
    given = TensorArgument.of(np.arange(24, dtype=np.int32).reshape(4, 6).T[1:5])
    assert given.layout == Layout((4, 4), (1, 6))
    assert scalars_of(Layout((4, 4), (1, 6)), Layout((4, 4), (1, 6))) == []
    with pytest.raises(LaunchError, match="positive strides"):
        TensorArgument.of(np.arange(4)[::-1])
    with pytest.raises(LayoutError, match="does not fit in 32 bits"):
        scalars_of(parse_layout("(4,4):(1,?)"), parse_layout("(4,4):(1,4294967296)"))  # pyright: ignore[reportArgumentType]
    assert scalars_of(parse_layout("(?,4):(1,?{div=8})"), parse_layout("(1,4):(7,16)")) == [1, 16]  # pyright: ignore[reportArgumentType]
