# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks that take over the work of others (clusterlaunchcontrol), and the mistakes that they can make."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.target import Target
from tilefold.compiler.ptx.stage import read_back
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.errors import Dim3
from tilefold.runtime.sim.launch import Completion
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.emit.harness import ptx_of
from tests.sim.harness import entry, fault, launch, module_of, seeded

ARGS = "%A: !ptx.ptr<global> align 16"
SETUP = """
%t = ptx.sreg "tid.x"
%x0 = ptx.sreg "ctaid.x"
%y0 = ptx.sreg "ctaid.y"
%rank = ptx.sreg "cluster_ctarank"
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%four = arith.constant 4 : i32
%sixteen = arith.constant 16 : i32
%true = arith.constant true
%answer = ptx.smem.addr 0
%bar = ptx.smem.addr 16
%leads = arith.cmpi eq, %t, %zero : i32
scf.if %leads {
  ptx.mbarrier.init %bar, %one
  ptx.fence.mbarrier_init
}
"""
ASK = "ptx.clusterlaunchcontrol.try_cancel %answer, %bar\n"
EXPECT = "ptx.mbarrier.arrive.expect_tx %bar, %sixteen\n"
WAIT = "ptx.mbarrier.wait %bar, %parity\n"
FENCE = "ptx.fence.proxy.async\n"
QUERY = "%again = ptx.clusterlaunchcontrol.is_canceled %v\n"
LOOP = f"""
ptx.bar.sync 0
%w:4 = scf.while (%x = %x0, %y = %y0, %parity = %zero, %more = %true) : (i32, i32, i32, i1) -> (i32, i32, i32, i1) {{
  scf.condition(%more) %x, %y, %parity, %more : i32, i32, i32, i1
}} do {{
^bb0(%x: i32, %y: i32, %parity: i32, %more: i1):
  scf.if %leads {{
    {EXPECT}    {ASK}  }}
  %row = arith.muli %y, %four : i32
  %tile = arith.addi %row, %x : i32
  %o = arith.muli %tile, %four : i32
  %at = ptx.ptr_add %A, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
  scf.if %leads {{
    %old = ptx.atom "add" %at, %one : !ptx.ptr<global>, i32
  }}
  {WAIT}  %v = ptx.ld %answer align 16 : !ptx.ptr<shared> -> vector<2xi64>
  {FENCE}  ptx.bar.sync 0
  {QUERY}  %next:2 = scf.if %again -> (i32, i32) {{
    %nx, %ny, %nz = ptx.clusterlaunchcontrol.get_first_ctaid %v
    scf.yield %nx, %ny : i32, i32
  }} else {{
    scf.yield %zero, %zero : i32, i32
  }}
  %other = arith.xori %parity, %one : i32
  scf.yield %next#0, %next#1, %other, %again : i32, i32, i32, i1
}}
"""
"""Each block adds 1 at its tile, and at those of the blocks that it cancels: a grid of (4, n) blocks."""


def program(body: str = LOOP, setup: str = SETUP) -> str:
    return entry(setup + body, ARGS, "64", shared=32)


def run(text: str, grid: Dim3 = (4, 3, 1), **options: Any) -> NDArray[Any]:
    a = np.zeros(16, np.int32)
    launch(text, grid, (64, 1, 1), SimEngine(**options), A=a)
    return a


@pytest.mark.parametrize("completion", Completion)
def test_each_tile_is_computed_once(completion: Completion) -> None:
    for options in (seeded(None), seeded(1), seeded(2, resident=3)):
        a = run(program(), completion=completion, options=options)
        assert a.tolist() == [1] * 12 + [0] * 4


def test_the_kernel_that_is_read_from_ptx_is_the_same() -> None:
    a = np.zeros(16, np.int32)
    module = read_back(module_of(program()), ptx_of(program(), Target("sm_100a")), "k.ptx")
    config = LaunchConfig((4, 3, 1), (64, 1, 1))
    SimEngine().launch(SimProgram(module, "k"), config, {"A": TensorArgument(a)})
    assert a.tolist() == [1] * 12 + [0] * 4


ONE_ASKS = "%first = arith.cmpi eq, %rank, %zero : i32\n%asks = arith.andi %leads, %first : i1\n"
ALL_ASK = "%asks = arith.andi %leads, %leads : i1\n"


def of_cluster(asks: str) -> str:
    """The loop in clusters of two blocks, of which some thread asks for both."""
    sync = "ptx.barrier.cluster.arrive aligned\nptx.barrier.cluster.wait aligned\n"
    ask = f"{EXPECT}scf.if %asks {{\n{ASK.replace('%bar', '%bar multicast')}}}\n"
    body = (
        asks + sync
        + LOOP.replace(f"{EXPECT}    {ASK}", ask)
        .replace("scf.yield %nx", "%own = arith.addi %nx, %rank : i32\nscf.yield %own")
        .replace(f"{FENCE}  ptx.bar.sync 0", FENCE + sync)
        .replace("%parity\n  %v", '%parity scope "cluster"\n  %v')
    )  # fmt: skip
    return program(body).replace("threads(64)", "threads(64) cluster(2)")


def test_all_blocks_of_a_cluster_get_the_answer() -> None:
    a = np.zeros(16, np.int32)
    launch(of_cluster(ONE_ASKS), (4, 3, 1), (64, 1, 1), SimEngine(), (2, 1, 1), A=a)
    assert a.tolist() == [1] * 12 + [0] * 4


MISTAKES = {
    "the answer is read without a wait": (WAIT, "", "E3206", "try_cancel at"),
    "no fence before the bytes are used again": (FENCE, "", "E3216", "fence.proxy.async between them is missing"),
    "a phase that expects 8 bytes": (
        EXPECT, "%eight = arith.constant 8 : i32\nptx.mbarrier.arrive.expect_tx %bar, %eight\n", "E3207", "mbarrier"
    ),
    "another request after a refusal": (
        "scf.condition(%more)", "%always = arith.constant true\nscf.condition(%always)", "E3266",
        "asks for another cluster after an answer said that no cluster is left",
    ),
    "a coordinate though nothing was cancelled": (
        "%next:2 = scf.if %again", "%next:2 = scf.if %true", "E3266", "an answer that cancelled none"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found(name: str) -> None:
    old, new, code, message = MISTAKES[name]
    assert old in LOOP
    found = fault(program(LOOP.replace(old, new)), code, grid=(4, 3, 1), block=(64, 1, 1), A=np.zeros(16, np.int32))
    assert message in str(found)


def test_the_fence_is_missing_for_the_warp_that_asks_too() -> None:
    text = program(LOOP.replace(FENCE, "")).replace("threads(64)", "threads(32)")
    found = fault(text, "E3216", grid=(4, 3, 1), block=(32, 1, 1), A=np.zeros(16, np.int32))
    assert "which thread (31,0,0) read; fence.proxy.async between them is missing" in str(found)


def test_each_block_of_a_cluster_asks() -> None:
    """The answer goes to all blocks, so one asks for them."""
    found = fault(
        of_cluster(ALL_ASK), "E3205", grid=(4, 3, 1), block=(64, 1, 1), cluster=(2, 1, 1), A=np.zeros(16, np.int32)
    )
    assert "in the block of rank 0" in str(found)
