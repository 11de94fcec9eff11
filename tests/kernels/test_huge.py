# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of more than 2^31 elements: their addresses at every stage, and copies of them on a GPU."""

import re

import numpy as np
import pytest
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.kernels.harness import STAGES, program_of

_ADDRESSES = """\
!a = !tile.tensor<f32, gmem, align<16>, "4:1">
gpu.module @m {
  tile.kernel @k(%A: !a, %n: i32) threads(1) {
    %i = arith.index_cast %n : i32 to index
    %one = arith.constant 1 : index
    %eight = arith.constant 8 : index
    %last = arith.subi %i, %one : index
    %tiles = arith.floordivsi %i, %eight : index
    %last_tile = arith.subi %tiles, %one : index
    %static = tile.make_tensor %A, "(65536,65536):(65536,1)"
    %s = tile.slice %static, (%last, _)
    tile.print "s" %s
    %big = arith.muli %i, %i : index
    %dynamic = tile.make_tensor %A, "(?,?{div=4}):(?{i64 div=4},1)" (%i, %i, %big)
    %d = tile.slice %dynamic, (%last, _)
    tile.print "d" %d
    %tile = tile.local_tile %dynamic, "(8,8)", (%last_tile, 1) ragged
    tile.print "t" %tile
    return
  }
}
"""


@pytest.mark.parametrize("stage", STAGES)
def test_addresses_beyond_32_bits(stage: str) -> None:
    module = program_of(_ADDRESSES).at(stage)
    assert module is not None
    n = 60000
    storage = TensorArgument(np.zeros(4, np.float32))
    printed = SimEngine(sink=lambda _: None).launch(
        SimProgram(module, "k"), LaunchConfig((1, 1, 1), (1, 1, 1)), {"A": storage, "n": n}
    )
    places = [int(text, 16) for text in re.findall(r"0x[0-9a-f]+", printed.output)]
    base = 0x7F00_0010_0000
    assert [place - base for place in places] == [
        (n - 1) * 65536 * 4,
        (n - 1) * n * n * 4,
        ((n - 8) * n * n + 8) * 4,
    ]


def test_a_remark_says_why_an_offset_has_64_bits() -> None:
    text = str(program_of(_ADDRESSES).at("index"))
    remarks = re.findall(r'remark = "([^"]*)"', text)
    assert "64-bit offset: nothing bounds the ? of (?):(?{i64 div=4})" in remarks
    assert "64-bit offset: (65536):(65536) reaches element 4294901760" in remarks


_COPY = """\
!any = !tile.tensor<i8, gmem, align<16>, "(?,?{div=16}):(?{div=16},1)">
!static = !tile.tensor<i8, gmem, align<16>, "(34000,65536):(65536,1)">
gpu.module @m {
  tile.kernel @k(%A: !TYPE, %B: !TYPE) threads(128) {
    %t = gpu.thread_id x
    %m = gpu.block_id x
    %n = gpu.block_id y
    %gA = tile.local_tile %A, "(64,1024)", (%m, %n) ragged
    %gB = tile.local_tile %B, "(64,1024)", (%m, %n) ragged
    %I = tile.identity like %A
    %gI = tile.local_tile %I, "(64,1024)", (%m, %n) ragged
    %copy = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint128_t>", i8> thr "(2,64):(64,1)" val "(1,16):(16,1)"
    %tA = tile.partition_S %copy, %gA, %t
    %tB = tile.partition_D %copy, %gB, %t
    %tI = tile.partition_S %copy, %gI, %t
    %rows = tile.dim %A, 0
    %columns = tile.dim %A, 1
    %p = tile.bounds %tI, (%rows, %columns)
    tile.copy %copy, %tA, %tB if %p
    return
  }
}
"""


@pytest.mark.gpu
@pytest.mark.parametrize("type", ["any", "static"])
def test_a_copy_of_more_than_2_31_elements(type: str) -> None:
    from tilefold.runtime.cuda import CudaEngine

    engine = CudaEngine()
    program = program_of(_COPY.replace("TYPE", type))
    rows, columns = 34000, 65536
    source = np.resize(np.random.default_rng(0).integers(-128, 128, 1_000_003, dtype=np.int8), rows * columns)
    target = np.full(rows * columns, 99, np.int8)
    layout = TensorArgument.of(source.reshape(rows, columns)).layout
    given = {"A": TensorArgument(source, layout), "B": TensorArgument(target, layout)}
    engine.launch(
        program.artifact("k", engine.driver.target), LaunchConfig((-(-rows // 64), 64, 1), (128, 1, 1)), given
    )
    assert np.array_equal(source, target)
