# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that the tests of the command line run."""

from pathlib import Path

SCALE = """\
// Writes A + A to B.
// param M = 32
!g = !tile.tensor<f32, gmem, align<16>, "(${M},8):(1,${M})">
gpu.module @kernels {
  tile.kernel @double(%A: !g, %B: !g, %n: i32) threads(32) {
    %t = gpu.thread_id x
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %eight = arith.constant 8 : index
    scf.for %j = %zero to %eight step %one {
      %v = tile.load %A(%t, %j)
      %w = arith.addf %v, %v : f32
      tile.store %w, %B(%t, %j)
    }
    return
  }
}
run.launch @kernels::@double grid(1) {
  run.arg "A" : !g = "normal"
  run.arg "B" : !g = "poison"
  run.arg "n" : i32 = "${M}"
  run.check "B == A * 2"
}
"""


def write(folder: Path, text: str = SCALE, name: str = "k.cute") -> str:
    """Writes a program to a file and returns the file's name."""
    path = folder / name
    path.write_text(text)
    return str(path)
