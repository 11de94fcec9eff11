# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clusters: values that blocks hand on in a ring, and sums in a peer's memory, by the simulator and on a GPU."""

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.target import Target
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.sim.launch import Completion
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.cuda.harness import artifact
from tests.emit.harness import kernel, parse
from tests.sim.harness import seeded

ROUNDS, THREADS = 9, 64

RING = f"""
%t = ptx.sreg "tid.x"
%block = ptx.sreg "ctaid.x"
%rank = ptx.sreg "cluster_ctarank"
%size = ptx.sreg "cluster_nctarank"
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%two = arith.constant 2 : i32
%four = arith.constant 4 : i32
%threads = arith.constant {THREADS} : i32
%bytes = arith.constant {4 * THREADS} : i32
%rounds = arith.constant {ROUNDS} : i32
%s = ptx.smem.addr 0
%total = ptx.smem.addr 1024
%full = ptx.smem.addr 2048
%empty = ptx.smem.addr 2056
%is_first = arith.cmpi eq, %t, %zero : i32
scf.if %is_first {{
  ptx.st %zero, %total align 4 : i32, !ptx.ptr<shared>
  ptx.mbarrier.init %full, %one
  ptx.mbarrier.init %empty, %threads
  ptx.fence.mbarrier_init
}}
ptx.barrier.cluster.arrive aligned
ptx.barrier.cluster.wait aligned
%after = arith.addi %rank, %one : i32
%next = arith.remui %after, %size : i32
%less = arith.addi %rank, %size : i32
%lesser = arith.subi %less, %one : i32
%previous = arith.remui %lesser, %size : i32
%o = arith.muli %t, %four : i32
%mine = ptx.ptr_add %s, %o : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
%theirs = ptx.mapa %mine, %next
%their_full = ptx.mapa %full, %next
%their_empty = ptx.mapa %empty, %previous
%their_total = ptx.mapa %total, %next
%found = ptx.getctarank %theirs
%n.0 = arith.muli %block, %threads : i32
%n = arith.addi %n.0, %t : i32
%at = arith.muli %n, %four : i32
%a = ptx.ptr_add %A, %at : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
%b = ptx.ptr_add %B, %at : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
%start = ptx.ld %a align 4 : !ptx.ptr<global> -> i32
%end = scf.for %i = %zero to %rounds step %one iter_args(%v = %start) -> (i32) : i32 {{
  %parity = arith.andi %i, %one : i32
  scf.if %is_first {{
    ptx.mbarrier.arrive.expect_tx %full, %bytes
  }}
  ptx.st.async %v, %theirs, %their_full : i32
  ptx.mbarrier.wait %full, %parity scope "cluster"
  %u = ptx.ld %mine align 4 : !ptx.ptr<shared> -> i32
  ptx.fence.proxy.async
  %w = arith.addi %u, %found : i32
  ptx.red "add" %their_total, %w scope "cluster" : !ptx.ptr<shared_cluster>, i32
  ptx.mbarrier.arrive %their_empty
  ptx.mbarrier.wait %empty, %parity scope "cluster"
  scf.yield %w : i32
}}
ptx.barrier.cluster.arrive aligned
ptx.barrier.cluster.wait aligned
%sum = ptx.ld.acquire %their_total scope "cluster" : !ptx.ptr<shared_cluster> -> i32
%result = arith.addi %end, %sum : i32
ptx.st %result, %b align 4 : i32, !ptx.ptr<global>
ptx.barrier.cluster.arrive aligned
ptx.barrier.cluster.wait aligned
"""
"""Each thread hands its value to the thread of its number in the next block, `ROUNDS` times, and adds what it gets."""


def _text(size: int) -> str:
    text = kernel(RING, "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16", str(THREADS), shared=3072)
    portable = " non_portable" if size > 8 else ""
    return text.replace(f"threads({THREADS})", f"threads({THREADS}) cluster({size}){portable}")


def _expected(a: NDArray[np.int32], size: int) -> NDArray[np.int32]:
    values = a.reshape(-1, size, THREADS)
    totals = np.zeros(values.shape[:2], np.int32)
    next_of = (np.arange(size) + 1) % size
    for _ in range(ROUNDS):
        values = np.roll(values, 1, axis=1) + next_of[None, :, None]
        totals += np.roll(values.sum(axis=2), 1, axis=1)
    return (values + np.roll(totals, -1, axis=1)[..., None]).reshape(-1).astype(np.int32)


def _arguments(blocks: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    a = np.random.default_rng(0).integers(-1000, 1000, blocks * THREADS, np.int32)
    return a, np.zeros_like(a)


@pytest.mark.parametrize("completion", Completion)
@pytest.mark.parametrize(("size", "seed"), [(2, None), (2, 1), (4, 2)])
@pytest.mark.sampled(4)
def test_ring_on_the_simulator(size: int, seed: int | None, completion: Completion) -> None:
    a, b = _arguments(2 * size)
    config = LaunchConfig((2 * size, 1, 1), (THREADS, 1, 1))
    given = {"A": TensorArgument(a), "B": TensorArgument(b)}
    SimEngine(seeded(seed), completion=completion).launch(SimProgram(parse(_text(size)), "k"), config, given)
    np.testing.assert_array_equal(b, _expected(a, size))


@pytest.mark.gpu
@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 16])
def test_ring_on_a_gpu(size: int) -> None:
    engine = CudaEngine()
    assert engine.driver.capability >= (9, 0), "this test needs compute capability 9.0 or newer"
    a, b = _arguments(12 * size)
    code = artifact(_text(size), Target("sm_90"))
    for _ in range(20):
        b[:] = 0
        given = {"A": TensorArgument(a), "B": TensorArgument(b)}
        engine.launch(code, LaunchConfig((12 * size, 1, 1), (THREADS, 1, 1)), given)
        np.testing.assert_array_equal(b, _expected(a, size))
