# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiplications with a sparse A by blocks that run in step: each as by itself, and faults name their lanes."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import Code, TilefoldError
from tilefold.layout.atoms.mma_sync import registers
from tilefold.layout.atoms.mma_table import mma_atom
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.cuda.test_sparse_sums import warp_kernel, words
from tests.emit.harness import parse

ATOM = mma_atom("SM80_SPARSE_16x8x32_F32F16F16F32_TN")
PROGRAM = parse(warp_kernel(ATOM, 1, ordered=True))


def arguments(blocks: int) -> dict[str, NDArray[Any]]:
    rng, count = np.random.default_rng(0), {name: registers(ATOM, name).count for name in "ABCD"}
    made: dict[str, NDArray[Any]] = {
        name: rng.standard_normal(64 * blocks * count[name]).astype(np.float16).view(np.uint32) for name in "AB"
    }
    made["C"] = rng.standard_normal(32 * blocks * count["C"]).astype(np.float32)
    return made | {"D": np.zeros(32 * blocks * count["D"], np.float32), "E": words(rng, "f16", (32 * blocks,))}


def run(arrays: dict[str, NDArray[Any]], blocks: int) -> NDArray[Any]:
    args = {name: TensorArgument(array) for name, array in arrays.items()}
    SimEngine(sink=lambda _: None).launch(SimProgram(PROGRAM, "k"), LaunchConfig((blocks, 1, 1), (32, 1, 1)), args)
    return arrays["D"]


def test_blocks_multiply_as_each_by_itself() -> None:
    arrays = arguments(3)
    parts = [{name: np.split(array.copy(), 3)[block] for name, array in arrays.items()} for block in range(3)]
    np.testing.assert_array_equal(run(arrays, 3), np.concatenate([run(part, 1) for part in parts]))


def test_a_fault_names_the_block_and_the_thread() -> None:
    arrays = arguments(3)
    arrays["E"][64 + 4 * 5 + 2] &= 0xFFFFFFF0  # of row 5 of the last block
    with pytest.raises(TilefoldError, match=r"block \(2,0,0\), thread \(22,0,0\).*metadata of row 5") as caught:
        run(arrays, 3)
    assert caught.value.code is Code.SIM_METADATA
