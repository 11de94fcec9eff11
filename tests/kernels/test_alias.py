# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that share memory: the same bytes at every stage, and the same races."""

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tests.kernels.harness import STAGES, program_of, simulate
from tilefold.driver.launches import Changes, read_launches

# Each thread writes a word; after the barrier it reads the low half of its neighbour's.
SHARED = """\
!g = !tile.tensor<i32, gmem, align<16>, "64:1">
!h = !tile.tensor<i16, gmem, align<16>, "64:1">
gpu.module @kernels {
  tile.kernel @k(%A: !g, %B: !h) threads(64) {
    %t = gpu.thread_id x
    %buf = tile.alloc : !tile.tensor<i8, smem, align<128>, "512:1">
    %words = tile.alias %buf at 128 : !tile.tensor<i32, smem, align<128>, "64:1">
    %inner = tile.alias %buf at 64 : !tile.tensor<i8, smem, align<64>, "448:1">
    %halves = tile.alias %inner at 64 : !tile.tensor<i16, smem, align<64>, "(2,64):(1,2)">
    %v = tile.load %A(%t)
    tile.store %v, %words(%t)
    BARRIER
    %c1 = arith.constant 1 : index
    %other = arith.xori %t, %c1 : index
    %low = tile.load %halves(0, %other)
    tile.store %low, %B(%t)
    return
  }
}
run.launch @kernels::@k grid(1) {
  run.arg "A" : !g = "arange(70000, 3)"
  run.arg "B" : !h = "poison"
}
"""

# A fragment written as words and read as half words: each thread sees its own.
REGISTERS = """\
!g = !tile.tensor<i32, gmem, align<16>, "64:1">
!h = !tile.tensor<i16, gmem, align<16>, "64:1">
gpu.module @kernels {
  tile.kernel @k(%A: !g, %B: !h) threads(64) {
    %t = gpu.thread_id x
    %words = tile.alloc : !tile.tensor<i32, rmem, align<16>, "4:1">
    %halves = tile.alias %words at 8 : !tile.tensor<i16, rmem, align<8>, "4:1">
    %v = tile.load %A(%t)
    tile.store %v, %words(INDEX)
    %low = tile.load %halves(0)
    tile.store %low, %B(%t)
    return
  }
}
run.launch @kernels::@k grid(1) {
  run.arg "A" : !g = "arange(70000, 3)"
  run.arg "B" : !h = "poison"
}
"""


def _run(text: str, stage: str) -> np.ndarray:
    program = program_of(text)
    launch = read_launches(program.module, program.source, Changes())[0]
    return simulate(program, launch, stage).array("B")


WORDS = 70000 + 3 * np.arange(64, dtype=np.int32)


@pytest.mark.parametrize("stage", STAGES)
def test_names_of_the_same_bytes(stage: str) -> None:
    assert np.array_equal(
        _run(SHARED.replace("BARRIER", "ptx.bar.sync 0"), stage), WORDS.astype(np.int16)[np.arange(64) ^ 1]
    )
    assert np.array_equal(_run(REGISTERS.replace("INDEX", "2"), stage), WORDS.astype(np.int16))


@pytest.mark.parametrize("stage", STAGES)
def test_races_and_unwritten_bytes_are_those_of_the_bytes(stage: str) -> None:
    with pytest.raises(TilefoldError, match="race: reads shared") as race:
        _run(SHARED.replace("BARRIER", ""), stage)
    assert race.value.code == "E3205"
    with pytest.raises(TilefoldError, match=r"of (a )?fragment .*, which is unwritten") as unwritten:
        _run(REGISTERS.replace("INDEX", "0"), stage)
    assert unwritten.value.code == "E3204"


def test_aliases_add_no_memory() -> None:
    program = program_of(SHARED.replace("BARRIER", "ptx.bar.sync 0"))
    text = str(program.at("instr"))
    assert "shared(512)" in text
