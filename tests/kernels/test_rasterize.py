# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks take tiles in grouped order, the same at every stage."""

import numpy as np
import pytest
from tilefold.dialects.tile.rasterize import rasterize

from tests.kernels.harness import STAGES, program_of, simulate
from tilefold.driver.launches import Changes, read_launches

KERNEL = """\
!t = !tile.tensor<i32, gmem, align<16>, "(ROWS,3):(3,1)">
gpu.module @kernels {
  tile.kernel @k(%B: !t, %rows: i32) threads(1) {
    %id = gpu.block_id x
    %r = arith.index_cast %rows : i32 to index
    %m, %n = tile.rasterize %id in (GRID, 3) group 2
    %v = arith.index_cast %id : index to i32
    tile.store %v, %B(%m, %n)
    return
  }
}
run.launch @kernels::@k grid(COUNT) {
  run.arg "B" : !t = "poison"
  run.arg "rows" : i32 = "ROWS"
}
"""


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("rows", "grid"), [(5, "%r"), (4, "%r"), (5, "5"), (4, "4"), (1, "1")])
def test_grid(rows: int, grid: str, stage: str) -> None:
    text = KERNEL.replace("ROWS", str(rows)).replace("GRID", grid).replace("COUNT", str(3 * rows))
    program = program_of(text)
    taken = simulate(program, read_launches(program.module, program.source, Changes())[0], stage).array("B")
    assert all(taken[rasterize(index, rows, 3, 2)] == index for index in range(3 * rows))
    assert np.unique(taken).size == 3 * rows


def test_a_whole_number_of_groups_needs_no_division() -> None:
    text = KERNEL.replace("ROWS", "4").replace("GRID", "4").replace("COUNT", "12").replace(", 3)", ", 8)")
    instr = str(program_of(text.replace('"(4,3):(3,1)"', '"(4,8):(8,1)"')).at("instr"))
    assert "arith.div" not in instr
    assert "arith.rem" not in instr
    assert "i64" not in instr.partition("ptx.sreg")[2].partition("ptx.st")[0]
