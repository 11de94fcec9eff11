# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the examples print and copy, thread by thread, is what the literature shows for the same inputs."""

import re

import numpy as np
import pytest
from tilefold.dialects.tile import TiledCopyOp

from tests.kernels.harness import STAGES, example, launches, program, simulated


@pytest.mark.parametrize("stage", STAGES)
def test_local_tile_prints_the_tiles(stage: str) -> None:
    output = simulated(example("local_tile"), 0, stage).result.output
    layouts = re.findall(r"^(.*): gmem_ptr\[32b\]\(0x[0-9a-f]+\) o (.*)$", output, re.MULTILINE)
    assert layouts == [
        ("local_tile(A, (32,4), (m,0))", "(32,4):(1,64)"),
        ("local_tile(A, (32,4), (m,_))", "(32,4,4):(1,64,256)"),
        ("ctaA", "(32,4,4):(1,64,256)"),  # (32,4,k)
        ("ctaB", "(64,4,4):(1,128,512)"),  # (64,4,k)
        ("ctaC", "(32,64):(1,64)"),  # (32,64)
    ]


@pytest.mark.parametrize("stage", STAGES)
def test_the_second_thread_prints_its_part(stage: str) -> None:
    output = simulated(example("six_threads"), 0, stage).result.output.splitlines()
    pointer = re.sub(r"0x[0-9a-f]+", "P", output[0])
    assert pointer == "dst_t: gmem_ptr[64b](P) o ((1,(2,3)),1,1):((0,(1,4)),0,0)"
    assert [float(line) for line in output[2:]] == [1.3, 1.4, 1.7, 1.8, 2.1, 2.2]


def test_the_tiled_copy_of_six_threads() -> None:
    types = {op.result.type for op in program(example("six_threads")).module.walk() if isinstance(op, TiledCopyOp)}
    (copy,) = (type.tiled_copy for type in types)
    assert str(copy.layout_tv) == "((3,2),(2,3)):((12,2),(1,4))"
    assert copy.tiler == (4, 9)


@pytest.mark.parametrize(("label", "columns"), [("second thread", (3, 6)), ("third thread", (6, 9))])
@pytest.mark.parametrize("stage", STAGES)
def test_one_thread_copies_its_elements(stage: str, label: str, columns: tuple[int, int]) -> None:
    path = example("six_threads")
    number = [launch.label for launch in launches(path)].index(label)
    expected = np.zeros((4, 9))
    source = np.arange(1, 37).reshape((4, 9), order="F") * 0.1
    expected[0:2, slice(*columns)] = source[0:2, slice(*columns)]
    assert np.array_equal(simulated(path, number, stage).array("dst"), expected)
