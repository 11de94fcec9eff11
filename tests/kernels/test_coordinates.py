# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ragged tiles and the coordinates that tell what of them exists, at every stage."""

import re

import numpy as np
import pytest
from tilefold.base.target import Target
from tilefold.runtime.sim.faults import SimulationError

from tests.kernels.harness import STAGES, program_of, simulate
from tilefold.driver.launches import Changes, read_launches

_COPY = """\
// param M = {m}
// param N = {n}
!g = !tile.tensor<f32, gmem, align<4>, "(${{M}},${{N}}):(1,${{M}})">
gpu.module @m {{
  tile.kernel @k(%A: !g, %B: !g) threads(32) {{
    %t = gpu.thread_id x
    %m = gpu.block_id x
    %n = gpu.block_id y
    %copy = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint32_t>", f32> thr "(8,4):(1,8)" val "(2,1):(1,1)"
    %I = tile.identity like %A
    {views}
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    scf.for %i = %c0 to %c16 step %c1 {{
      %inside = tile.load %p(%i)
      scf.if %inside {{
        %v = tile.load %tA(%i)
        tile.store %v, %tB(%i)
      }}
    }} {{unroll}}
    return
  }}
}}
run.launch @m::@k grid(${{-(-M // 32)}}, ${{-(-N // 16)}}) {{
  run.arg "A" : !g = "normal(seed=0)"
  run.arg "B" : !g = "poison"
  run.check "B == A"
}}
"""

_TILES = """\
%gA = tile.local_tile %A, "(32,16)", (%m, %n) ragged
%gB = tile.local_tile %B, "(32,16)", (%m, %n) ragged
%gI = tile.local_tile %I, "(32,16)", (%m, %n) ragged
%tA = tile.partition_S %copy, %gA, %t
%tB = tile.partition_D %copy, %gB, %t
%tI = tile.partition_S %copy, %gI, %t
"""
_DIVIDED = """\
%dA = tile.zipped_divide %A, "(32,16)" ragged
%dB = tile.flat_divide %B, "(32,16)" ragged
%dI = tile.tiled_divide %I, "(32,16)" ragged
%gA = tile.slice %dA, ((_,_), (%m, %n))
%gB = tile.slice %dB, (_, _, %m, %n)
%sI = tile.slice %dI, ((_,_), %m, %n)
%gI = tile.coalesce %sI
%tA = tile.partition_S %copy, %gA, %t
%tB = tile.partition_D %copy, %gB, %t
%uI = tile.composition %gI, "(32,16):(1,32)"
%tI = tile.partition_D %copy, %uI, %t
"""
_BOUNDS = """\
%rows = arith.constant {m} : index
%p = tile.bounds %tI, (%rows, {n})
"""


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("views", "m", "n"), [(_TILES, 100, 50), (_DIVIDED, 40, 16), (_TILES, 5, 3)])
def test_what_lies_within_is_copied(views: str, m: int, n: int, stage: str) -> None:
    found = program_of(_COPY.format(m=m, n=n, views=views + _BOUNDS.format(m=m, n=n)))
    (launch,) = read_launches(found.module, found.source, Changes())
    ran = simulate(found, launch, stage)
    assert np.array_equal(ran.array("A"), ran.array("B"))


def test_predicates_are_registers_and_compared_in_32_bits() -> None:
    found = program_of(_COPY.format(m=100, n=50, views=_TILES + _BOUNDS.format(m=100, n=50)))
    ptx = found.ptx(Target("sm_80"))
    assert ".local" not in ptx
    assert re.search(r"setp\.\w+\.[su]32", ptx)
    assert not re.search(r"setp\.\w+\.[su]64", ptx)


_NUMBERS = """\
!g = !tile.tensor<i64, gmem, align<8>, "(6,4,3):(1,6,24)">
gpu.module @m {
  tile.kernel @k(%A: !g) threads(24) {
    %t = gpu.thread_id x
    %k = gpu.block_id x
    %I = tile.identity "(6,(4,3))"
    %s = tile.slice %I, (_, (_, %k))
    %c = tile.select %s, [1, 0]
    %g = tile.group_modes %c, [0, 2]
    %i, %j, %l = tile.coordinate %g(%t)
    %ten = arith.constant 10 : index
    %a = arith.muli %i, %ten : index
    %b = arith.addi %a, %j : index
    %d = arith.muli %b, %ten : index
    %e = arith.addi %d, %l : index
    %v = arith.index_cast %e : index to i64
    tile.store %v, %A(%i, %j, %l)
    return
  }
}
run.launch @m::@k grid(3) {
  run.arg "A" : !g = "poison"
}
"""


@pytest.mark.parametrize("stage", STAGES)
def test_a_coordinate_is_where_its_element_is(stage: str) -> None:
    found = program_of(_NUMBERS)
    (launch,) = read_launches(found.module, found.source, Changes())
    i, j, k = np.indices((6, 4, 3))
    assert np.array_equal(simulate(found, launch, stage).array("A"), (i * 10 + j) * 10 + k)


@pytest.mark.parametrize(("bound", "allowed"), [(50, True), (51, False)])
@pytest.mark.parametrize("shape", ["(64,50):(50,1)", "(?,?):(?,1)"])
def test_an_access_beyond_a_row_is_a_fault_although_its_address_is_not(shape: str, bound: int, allowed: bool) -> None:
    text = _COPY.format(m=64, n=50, views=_TILES + _BOUNDS.format(m=64, n=bound))
    whole = '!w = !tile.tensor<f32, gmem, align<4>, "(64,50):(50,1)">'
    text = text.replace('align<4>, "(${M},${N}):(1,${M})">', f'align<4>, "{shape}">\n{whole}').replace(
        ": !g =", ": !w ="
    )
    found = program_of(text)
    (launch,) = read_launches(found.module, found.source, Changes())
    if allowed:
        simulate(found, launch, "cute")
        return
    with pytest.raises(SimulationError, match=r"outside the tensor's shape \(64, 50\), in a ragged tile"):
        simulate(found, launch, "cute")


_NESTED = """\
!r = !tile.tensor<f32, gmem, align<4>, "(2,(2,4)):(8,(1,2))">
gpu.module @m {
  tile.kernel @k(%A: !r, %B: !r) threads(1) {
    %I = tile.identity like %A
    %a = tile.slice %A, (1, _)
    %b = tile.slice %B, (1, _)
    %i = tile.slice %I, (1, _)
    %p = tile.bounds %i, (_, (_, 3))
    tile.copy %a, %b if %p
    return
  }
}
run.launch @m::@k grid(1) {
  run.arg "A" : !r = "normal(seed=0)"
  run.arg "B" : !r = "zeros"
}
"""


@pytest.mark.parametrize("stage", STAGES)
def test_predicates_of_one_nested_mode(stage: str) -> None:
    found = program_of(_NESTED)
    (launch,) = read_launches(found.module, found.source, Changes())
    ran = simulate(found, launch, stage)
    copied = ran.array("A").copy()
    copied[0] = copied[:, 6:] = 0
    assert np.array_equal(ran.array("B"), copied)
