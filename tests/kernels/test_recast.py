# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors seen as elements of other types, and partitions by layouts of threads, at every stage."""

from typing import Any

import numpy as np
import pytest

from tests.kernels.harness import STAGES, program_of, simulate
from tilefold.driver.launches import Changes, read_launches


def _run(text: str, stage: str) -> Any:
    found = program_of(text)
    (launch,) = read_launches(found.module, found.source, Changes())
    return simulate(found, launch, stage)


_WIDER = """\
!a = !tile.tensor<f16, gmem, align<16>, "(8,?):(1,?{div=8})">
!static = !tile.tensor<f16, gmem, align<16>, "(8,16):(1,24)">
!o = !tile.tensor<i32, gmem, align<16>, "(4,16):(1,4)">
gpu.module @m {
  tile.kernel @k(%A: !a, %O: !o) threads(2, 16) {
    %row = gpu.thread_id x
    %column = gpu.thread_id y
    %w = tile.recast %A, i32 : !tile.tensor<i32, gmem, align<16>, "(4,?):(1,?{div=4})">
    %two = tile.local_tile %w, "(2,1)", (%row, %column)
    %to = tile.local_tile %O, "(2,1)", (%row, %column)
    tile.copy %two, %to
    return
  }
}
run.launch @m::@k grid(1) {
  run.arg "A" : !static = "normal(seed=0)"
  run.arg "O" : !o = "poison"
}
"""


@pytest.mark.parametrize("stage", STAGES)
def test_wider_elements(stage: str) -> None:
    ran = _run(_WIDER, stage)
    assert np.array_equal(np.ascontiguousarray(ran.before["A"].T).view(np.int32).T, ran.array("O"))


_SWIZZLED = """\
!a = !tile.tensor<i32, gmem, align<16>, "(8,8):(8,1)">
!o = !tile.tensor<i16, gmem, align<16>, "(8,16):(16,1)">
!s = !tile.tensor<i32, smem, align<128>, "S<2,2,2> o 0 o (8,8):(8,1)">
gpu.module @m {
  tile.kernel @k(%A: !a, %O: !o) threads(8) {
    %t = gpu.thread_id x
    %S = tile.alloc : !s
    %from = tile.slice %A, (%t, _)
    %to = tile.slice %S, (%t, _)
    tile.copy %from, %to
    ptx.bar.sync 0
    %lower = tile.local_tile %S, "(4,4)", (1, 1)
    %narrow = tile.recast %lower, i16
    %whole = tile.recast %S, i16
    %again = tile.recast %whole, i32
    %row = tile.slice %whole, (%t, _)
    %out = tile.slice %O, (%t, _)
    tile.copy %row, %out
    %c1 = arith.constant 1 : index
    %x = tile.load %narrow(%c1, 3)
    tile.store %x, %O(%t, 0)
    %y = tile.load %again(7, %t)
    %z = arith.trunci %y : i32 to i16
    tile.store %z, %O(%t, 5)
    return
  }
}
run.launch @m::@k grid(1) {
  run.arg "A" : !a = "arange() * 65537"
  run.arg "O" : !o = "poison"
}
"""


@pytest.mark.parametrize("stage", STAGES)
def test_swizzled_elements(stage: str) -> None:
    ran = _run(_SWIZZLED, stage)
    a = np.ascontiguousarray(ran.before["A"])
    expected = a.view(np.int16).reshape(8, 16).copy()
    expected[:, 0] = a.view(np.int16)[5, 8 + 3]
    expected[:, 5] = a[7].astype(np.int16)
    assert np.array_equal(expected, ran.array("O"))


_PARTS = """\
!a = !tile.tensor<i32, gmem, align<16>, "(12,?):(1,?)">
!static = !tile.tensor<i32, gmem, align<16>, "(12,16):(1,12)">
gpu.module @m {
  tile.kernel @k(%A: !a, %B: !a) threads(24) {
    %t = gpu.thread_id x
    %I = tile.identity like %A
    %a = tile.local_partition %A, "(3,8):(8,1)", %t ragged
    %b = tile.local_partition %B, "(3,8):(8,1)", %t ragged
    %i = tile.local_partition %I, "(3,8):(8,1)", %t ragged
    %columns = tile.dim %B, 1
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %n = tile.dim %a, 1
    scf.for %k = %c0 to %n step %c1 {
      %p = tile.slice %i, (_, %k)
      %inside = tile.bounds %p, (_, %columns)
      scf.for %j = %c0 to %c4 step %c1 {
        %q = tile.load %inside(%j)
        scf.if %q {
          %v = tile.load %a(%j, %k)
          tile.store %v, %b(%j, %k)
        }
      } {unroll}
    }
    return
  }
}
run.launch @m::@k grid(1) {
  run.arg "A" : !static = "arange()"
  run.arg "B" : !static = "poison"
  run.check "B == A"
}
"""


@pytest.mark.parametrize("stage", STAGES)
def test_partitions_by_a_layout_of_threads(stage: str) -> None:
    ran = _run(_PARTS.replace("(12,16):(1,12)", "(12,13):(1,14)"), stage)
    assert np.array_equal(ran.array("A"), ran.array("B"))
