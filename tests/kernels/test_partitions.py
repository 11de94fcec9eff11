# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles, and what lies at one place of every tile, at run-time coordinates: the same at every stage, and in NumPy."""

import pytest

from tests.kernels.harness import STAGES, program_of, simulate
from tilefold.driver.launches import Changes, read_launches

KERNEL = """\
!a = !tile.tensor<i32, gmem, align<16>, "(8,12):(12,1)">
!b = !tile.tensor<i32, gmem, align<16>, "(2,2,24):(1,2,4)">
gpu.module @kernels {
  tile.kernel @k(%A: !a, %B: !b) threads(24) {
    %t = gpu.thread_id x
    %four = arith.constant 4 : index
    %i = arith.remui %t, %four : index
    %j = arith.divui %t, %four : index
    %part = VIEW
    %mine = tile.slice %B, (_, _, %t)
    tile.copy %part, %mine
    return
  }
}
run.launch @kernels::@k grid(1) {
  run.arg "A" : !a = "arange"
  run.arg "B" : !b = "poison"
}
"""


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    "view",
    [
        'tile.local_tile %A, "(2,2)", (%i, %j)',
        'tile.local_tile %A, "(2,2)", %t',
        'tile.outer_partition %A, "(4,6)", (%i, %j)',
        'tile.outer_partition %A, "(4,6)", %t',
        'tile.outer_partition %A, "(4,9,6)", (%i, 0, %j) proj "(1,_,1)"',
    ],
)
def test_a_partition_at_run_time(view: str, stage: str) -> None:
    """Thread t takes the tile of 2 x 2 at (t % 4, t // 4) of 4 x 6 tiles, or that place of each of 2 x 2 tiles."""
    program = program_of(KERNEL.replace("VIEW", view))
    ran = simulate(program, read_launches(program.module, program.source, Changes())[0], stage)
    a, b = ran.array("A"), ran.array("B")
    for t in range(24):
        i, j = t % 4, t // 4
        wanted = a[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] if "local_tile" in view else a[i::4, j::6]
        assert b[:, :, t].tolist() == wanted.tolist()
