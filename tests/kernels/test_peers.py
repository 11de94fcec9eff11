# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared tensors of peers in a cluster: the same at every stage, and the same mistakes."""

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target

from tests.kernels.harness import STAGES, program_of, simulate
from tilefold.driver.launches import Changes, read_launches

SM90 = Target("sm_90")

# Each block copies the swizzled tile of its peer.
SWAP = """\
!g = !tile.tensor<f16, gmem, align<16>, "(64,64,4):(64,1,4096)">
!s = !tile.tensor<f16, smem, align<128>, "S<3,3,3> o 0 o (64,64):(64,1)">
gpu.module @kernels {
  tile.kernel @k(%A: !g, %B: !g) threads(128) cluster(2) {
    %t = gpu.thread_id x
    %b = gpu.block_id x
    %rank = gpu.cluster_block_id x
    %one = arith.constant 1 : index
    %other = arith.xori %rank, %one : index
    %s = tile.alloc : !s
    %copy = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint128_t>", f16> thr "(16,8):(8,1)" val "(1,8):(8,1)"
    %gA = tile.slice %A, (_, _, %b)
    %gB = tile.slice %B, (_, _, %b)
    %tAg = tile.partition_S %copy, %gA, %t
    %tAs = tile.partition_D %copy, %s, %t
    tile.copy %copy, %tAg, %tAs
    ptx.barrier.cluster.arrive aligned
    ptx.barrier.cluster.wait aligned
    %p = tile.peer %s, %other
    %tBs = tile.partition_S %copy, %p, %t
    %tBg = tile.partition_D %copy, %gB, %t
    tile.copy %copy, %tBs, %tBg
    ptx.barrier.cluster.arrive aligned
    ptx.barrier.cluster.wait aligned
    tile.return
  }
}
run.launch @kernels::@k grid(4) {
  run.arg "A" : !g = "normal(seed=0)"
  run.arg "B" : !g = "poison"
}
"""


def simulated(text: str, stage: str) -> tuple[np.ndarray, np.ndarray]:
    """A and B after a run."""
    program = program_of(text)
    (launch,) = read_launches(program.module, program.source, Changes())
    ran = simulate(program, launch, stage, SM90)
    return ran.array("A"), ran.array("B")


@pytest.mark.parametrize("stage", STAGES)
def test_copies_from_peers(stage: str) -> None:
    a, b = simulated(SWAP, stage)
    assert np.array_equal(b, a[:, :, [1, 0, 3, 2]])


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("place", "code"), [(0, "E3218"), (1, "E3220")])
def test_missing_barriers(stage: str, place: int, code: str) -> None:
    sync = "    ptx.barrier.cluster.arrive aligned\n    ptx.barrier.cluster.wait aligned\n"
    before, between, after = SWAP.split(sync)
    text = before + between + sync + after if place == 0 else before + sync + between + after
    with pytest.raises(TilefoldError) as caught:
        simulated(text, stage)
    assert caught.value.code == code


def test_ptx() -> None:
    text = program_of(SWAP).ptx(SM90)
    assert text.count("mapa.shared::cluster.u32") == 1
    assert text.count("ld.shared::cluster.v4.b32") == 4
    assert "\n.reqnctapercluster 2, 1, 1\n" in text
    with pytest.raises(TilefoldError, match="a cluster of blocks needs sm_90") as caught:
        program_of(SWAP).ptx(Target("sm_80"))
    assert caught.value.code == "E2102"
