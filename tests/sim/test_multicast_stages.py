# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A stage of two blocks that one of them fills by multicasts: warpgroups of both multiply from it, and it is filled
again when both have ended.
"""

import numpy as np
import pytest
from tilefold.runtime.sim.faults import SimulationError
from tilefold.runtime.sim.launch import Completion
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.sim.harness import launch_on, seeded
from tests.sim.test_wgmma import COMMIT, FENCE, MULTIPLY, POINTERS, SETUP, WAIT

MAP = '%m: !ptx.tensor_map of "f16 A dims (64, 16) strides (128) box (64, 16)"'
HEAD = f"gpu.module @kernels {{\nptx.entry @k({POINTERS}, {MAP}) threads(128) cluster(2, 1, 1) shared(8448) {{\n"
BEGIN = """
%rank = ptx.sreg "cluster_ctarank"
%both = arith.constant 3 : i16
%two = arith.constant 2 : i32
%first = arith.cmpi eq, %rank, %zero : i32
%loads = arith.andi %first, %leads : i1
%empty = ptx.smem.addr 8200
scf.if %leads {
ptx.mbarrier.init %bar, %one
ptx.mbarrier.init %empty, %two
ptx.fence.mbarrier_init
}
"""
MEET = "ptx.barrier.cluster.arrive aligned\nptx.barrier.cluster.wait aligned\n"
EXPECT = "scf.if %leads {\nptx.mbarrier.arrive.expect_tx %bar, %bytes\n}\n"
LOAD = "ptx.cp.async.bulk.tensor.load %m[%zero, %zero], %s, %bar multicast %both\n"
RELEASE = "scf.if %leads {\n%far = ptx.mapa %empty, %zero\nptx.mbarrier.arrive %far\n}\n"
AGAIN = f'scf.if %loads {{\nptx.mbarrier.wait %empty, %zero scope "cluster"\n{LOAD}}}\n'


def run(body: str, completion: Completion, seed: int | None, races: bool = True) -> None:
    a, out = np.ones(1024, np.float16), np.zeros(512, np.float32)
    first = f"scf.if %loads {{\n{LOAD}}}\nptx.mbarrier.wait %bar, %zero\n"
    text = HEAD + SETUP + BEGIN + MEET + EXPECT + first + FENCE + MULTIPLY + COMMIT + body + MEET + "ptx.ret\n}\n}\n"
    engine = SimEngine(seeded(seed, races=races), completion=completion)
    launch_on(text, {"A": a.view(np.uint8), "C": out}, (2, 1, 1), (128, 1, 1), engine, (2, 1, 1))


@pytest.mark.parametrize("completion", Completion)
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_a_stage_is_filled_again_when_all_have_multiplied(completion: Completion, seed: int | None) -> None:
    second = EXPECT + AGAIN + "ptx.mbarrier.wait %bar, %one\n"
    run(WAIT + RELEASE + second, completion, seed)
    run(WAIT + RELEASE + second, completion, seed, races=False)


@pytest.mark.parametrize("completion", Completion)
def test_a_multicast_over_a_stage_that_a_peer_still_multiplies_from(completion: Completion) -> None:
    """The block that loads has waited for its own multiplication, the peer releases the stage before it does."""
    early = f"scf.if %first {{\n{WAIT}{RELEASE}}} else {{\n{RELEASE}}}\n"
    early += EXPECT + AGAIN + "ptx.mbarrier.wait %bar, %one\n" + WAIT
    with pytest.raises(SimulationError) as caught:
        run(early, completion, None)
    assert caught.value.code == "E3206", str(caught.value)
    assert "ptx.wgmma.mma_async" in str(caught.value)
    assert "is still reading it" in str(caught.value)
    assert "in the block of rank 1" in str(caught.value)
