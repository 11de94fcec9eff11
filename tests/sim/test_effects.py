# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rule of each operation touches the bytes that its effects declare, and no others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tilefold.dialects.ptx import PTX, EntryOp, InlineOp
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.dialects.samples import NVF4
from tests.sim.harness import entry, launch_on, module_of
from tests.sim.tcgen05_effects import TEXT as CELLS
from tests.sim.tensor_maps import ACQUIRE, ARGS, COPY, IN_SHARED, LOAD, PUBLISH, RELEASE, REPLACE, SYNC, lead
from tests.sim.tensor_maps import SETUP as MAPS
from tests.sim.test_cluster_memory import POINTERS
from tests.sim.test_cluster_memory import SETUP as CLUSTER
from tests.sim.traced import Trace, agents, declared, once, touched_by
from tests.warpgroups import Problem


@dataclass(frozen=True)
class Kernel:
    """A kernel whose operations are executed once, by all its threads or, in a branch, by one thread or one warp."""

    text: str
    arguments: Mapping[str, Any]
    threads: int = 32
    blocks: int = 1


def words(count: int = 1024) -> np.ndarray:
    return np.arange(count, dtype=np.int32)


SETUP = """
%t = ptx.sreg "tid.x"
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%sixteen = arith.constant 16 : i32
%all = arith.constant 32 : i32
%bytes = arith.constant 512 : i32
%true = arith.constant true
%x = arith.constant 1.0 : f32
%o = arith.muli %t, %sixteen : i32
%a = ptx.ptr_add %A, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
%b = ptx.ptr_add %B, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
%s = ptx.smem.addr 0
%mine = ptx.ptr_add %s, %o : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
%bar = ptx.smem.addr 2048
%other = ptx.smem.addr 2056
%leads = arith.cmpi eq, %t, %zero : i32
"""
ACCESSES = """
%v = ptx.ld %a align 16 : !ptx.ptr<global> -> vector<4xf32>
ptx.st %v, %mine align 16 : vector<4xf32>, !ptx.ptr<shared>
%w = ptx.ld %mine align 4 : !ptx.ptr<shared> -> i32
ptx.st %v, %b align 16 : vector<4xf32>, !ptx.ptr<global>
ptx.bar.warp.sync -1
%m = ptx.ldmatrix x 4 %mine : vector<4xi32>
ptx.bar.warp.sync -1
ptx.stmatrix x 4 %m, %mine : vector<4xi32>
%l = ptx.local.alloc 32 align 16
ptx.st %v, %l align 16 : vector<4xf32>, !ptx.ptr<local>
%k = ptx.ld %l align 8 : !ptx.ptr<local> -> vector<2xf32>
%q = ptx.ld.acquire %b : !ptx.ptr<global> -> i64
ptx.st.release %w, %b : i32, !ptx.ptr<global>
%old = ptx.atom "add" %b, %one order "acq_rel" : !ptx.ptr<global>, i32
%cas = ptx.atom.cas %b, %old, %one : !ptx.ptr<global>, i32
ptx.red "max" %b, %one : !ptx.ptr<global>, i32
ptx.fence "acq_rel"
ptx.bar.sync 0
ptx.cp.async "cg" 16 %mine, %a
ptx.cp.async.commit_group
ptx.cp.async.wait_group 0
ptx.cp.async.wait_all
"""
MBARRIERS = """
scf.if %leads {
ptx.mbarrier.init %bar, %all
ptx.mbarrier.init %other, %one
}
ptx.bar.sync 0
ptx.mbarrier.arrive %bar
ptx.mbarrier.wait %bar, %zero
%d = ptx.mbarrier.test_wait %bar, %zero
%e = ptx.mbarrier.try_wait %bar, %zero
%state = ptx.mbarrier.arrive.state %bar
%f = ptx.mbarrier.try_wait.state %bar, %state
ptx.bar.sync 0
scf.if %leads {
ptx.mbarrier.expect_tx %bar, %sixteen
ptx.mbarrier.complete_tx %bar, %sixteen
ptx.mbarrier.arrive.expect_tx %other, %zero
}
ptx.cp.async "ca" 8 %mine, %a
ptx.cp.async.mbarrier.arrive noinc %bar
ptx.mbarrier.wait %bar, %zero
ptx.bar.sync 0
scf.if %leads {
ptx.mbarrier.inval %bar
}
"""
BULK = """
scf.if %leads {
ptx.mbarrier.init %bar, %one
ptx.fence.mbarrier_init
ptx.mbarrier.arrive.expect_tx %bar, %bytes
ptx.cp.async.bulk.prefetch %A, %bytes
ptx.cp.async.bulk.load %s, %A, %bytes, %bar
ptx.mbarrier.wait %bar, %zero
ptx.cp.async.bulk.store %B, %s, %bytes
ptx.cp.async.bulk.commit_group
ptx.cp.async.bulk.wait_group 0
ptx.cp.reduce.async.bulk "add.u32" %B, %s, %bytes
ptx.cp.async.bulk.commit_group
ptx.cp.async.bulk.wait_group 0 read
}
"""
TENSORS = (
    lead("%word = ptx.tensormap.load %m at 8\n", COPY, REPLACE, RELEASE, ACQUIRE, "ptx.prefetch.tensormap %m\n",
         "ptx.cp.async.bulk.tensor.prefetch %m[%zero, %zero]\n", LOAD)
    + SYNC + lead(IN_SHARED) + SYNC + f"scf.if %first {{\n{PUBLISH}}}\n" + SYNC
    + lead("ptx.cp.async.bulk.tensor.store %m[%zero, %four], %s\n", "ptx.cp.async.bulk.commit_group\n",
           "ptx.cp.async.bulk.wait_group 0\n", 'ptx.cp.reduce.async.bulk.tensor "add" %m[%zero, %four], %s\n',
           "ptx.cp.async.bulk.commit_group\n", "ptx.cp.async.bulk.wait_group 0\n")
)  # fmt: skip
PEERS = """
%r = ptx.getctarank %theirs
%leader = ptx.pair.leader %mine
%further = arith.constant 1024 : i32
%behind = arith.constant 2560 : i32
%low = ptx.ptr_add %mine, %further : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
%there = ptx.ptr_add %theirs, %further : !ptx.ptr<shared_cluster>, i32 -> !ptx.ptr<shared_cluster>
%target = ptx.ptr_add %theirs, %behind : !ptx.ptr<shared_cluster>, i32 -> !ptx.ptr<shared_cluster>
scf.if %is_first {
ptx.mbarrier.init %bar, %threads
}
ptx.st %number, %mine align 4 : i32, !ptx.ptr<shared>
ptx.st %number, %low align 4 : i32, !ptx.ptr<shared>
ptx.fence.mbarrier_init
ptx.barrier.cluster.arrive aligned
ptx.barrier.cluster.wait aligned
%got = ptx.ld %theirs align 4 : !ptx.ptr<shared_cluster> -> i32
ptx.mbarrier.arrive %their_bar
ptx.mbarrier.wait %bar, %zero scope "cluster"
scf.if %is_first {
%k = arith.constant 512 : i32
ptx.mbarrier.expect_tx %bar, %k
}
ptx.barrier.cluster.arrive aligned
ptx.barrier.cluster.wait aligned
ptx.st.async %number, %there, %their_bar : i32
ptx.fence.proxy.async
ptx.bar.sync 0
scf.if %is_first {
ptx.cp.async.bulk.send %target, %s, %bytes, %their_bar
}
ptx.mbarrier.arrive %bar
ptx.mbarrier.wait %bar, %one scope "cluster"
ptx.barrier.cluster.arrive aligned
ptx.barrier.cluster.wait aligned
"""
CONTROL = """
%given = arith.constant dense<1> : vector<2xi64>
%c:3 = ptx.clusterlaunchcontrol.get_first_ctaid %given
scf.if %leads {
ptx.mbarrier.init %bar, %one
ptx.fence.mbarrier_init
ptx.mbarrier.arrive.expect_tx %bar, %sixteen
ptx.clusterlaunchcontrol.try_cancel %s, %bar
ptx.mbarrier.wait %bar, %zero
%answer = ptx.ld %s align 16 : !ptx.ptr<shared> -> vector<2xi64>
%more = ptx.clusterlaunchcontrol.is_canceled %answer
}
"""
OTHERS = """
%p0 = ptx.shfl.sync "bfly" %t, %one : i32
%p1:2 = ptx.shfl.sync.valid "up" %t, %one, %zero : i32
%p2 = ptx.vote.sync "ballot" %true : i32
%p3 = ptx.match.any.sync %t
%p4 = ptx.redux.sync "add" %t : i32
%p5 = ptx.elect.sync
%p6 = ptx.activemask
%p7 = ptx.movmatrix trans %t
%p8:4 = ptx.mma.sync "SM80_16x8x16_F32F16F16F32_TN" (%t, %t, %t, %t), (%t, %t), (%x, %x, %x, %x)
%s8:4 = SCALED (%t, %t, %t, %t), (%t, %t), (%x, %x, %x, %x) scales (%t, %t) select (0, 0, 0, 0)
%p9 = ptx.bar.red "or" %true, 1 threads 32 : i1
ptx.bar.sync 2 threads 32
ptx.nanosleep %one
ptx.griddepcontrol.wait
ptx.griddepcontrol.launch_dependents
ptx.printf "%d"(%t) : i32
%ex2 = ptx.ex2.approx %x : f32
%lg2 = ptx.lg2.approx %x : f32
%rcp = ptx.rcp.approx %x : f32
%rsqrt = ptx.rsqrt.approx %x : f32
%sqrt = ptx.sqrt.approx %x : f32
%three = ptx.minmax3 "max.NaN" %x, %x, %x
%pair = vector.broadcast %x : f32 to vector<2xf32>
%pairs = ptx.f32x2 "add.rn" %pair, %pair : vector<2xf32>, vector<2xf32> -> vector<2xf32>
%sin = ptx.sin.approx %x : f32
%cos = ptx.cos.approx %x : f32
%tanh = ptx.tanh.approx %x : f32
%cvt = ptx.cvt "rna.tf32.f32" %x : (f32) -> f32
%prmt = ptx.prmt %t, %t, %t
%dp4a = ptx.dp4a "s32.s32" %t, %t, %t
%policy = ptx.createpolicy "L2::evict_first"
%number = ptx.ptrtoint %A : !ptx.ptr<global> -> i64
%pointer = ptx.inttoptr %number align 16 : i64 -> !ptx.ptr<global>
%nth = ptx.inline "fns.b32 $0, $1, $2, $3;" constraints "=r,r,r,r"(%t, %t, %t) : (i32, i32, i32) -> (i32)
%named = arith.constant 0x44444444 : i32
%sparse:4 = ptx.mma.sync.sp "SM80_SPARSE_16x8x16_F32F16F16F32_TN"
  (%t, %t), (%t, %t), (%x, %x, %x, %x) metadata %named select 0
""".replace("SCALED", f'ptx.mma.sync.block_scale "{NVF4}"')
GROUP = """
ptx.bar.arrive 1 threads 128
ptx.wgmma.fence
ptx.wgmma.commit_group
ptx.wgmma.wait_group 0
ptx.setmaxnreg dec 40
"""
GLOBAL = "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16"


def plain(body: str, threads: int = 32) -> Kernel:
    text = entry(SETUP + body, GLOBAL, str(threads), shared=4096)
    return Kernel(text, {"A": words(), "B": words()}, threads)


def multiplication(name: str) -> Kernel:
    problem = Problem(name, "SW32", 1)
    a, b = problem.elements(seed=1, exact=True)
    given = problem.given(a, b)
    return Kernel(problem.text(), {"A": given[0], "B": given[1], "C": problem.output()}, 128)


def peers(body: str) -> Kernel:
    text = entry(CLUSTER + body, POINTERS, "64", shared=4096).replace("threads(64)", "threads(64) cluster(2)")
    return Kernel(text, {"A": np.zeros(1, np.int32), "B": np.zeros(128, np.int32)}, 64, 2)


KERNELS = {
    "accesses": plain(ACCESSES), "mbarriers": plain(MBARRIERS), "bulk": plain(BULK), "others": plain(OTHERS),
    "group": plain(GROUP, 128), "control": plain(CONTROL),
    "peers": peers(PEERS), "reduced": peers(PEERS.replace("ptx.st.async", 'ptx.red.async "add"')),
    "tensors": Kernel(
        entry(MAPS + TENSORS, ARGS, "64", shared=2056),
        {"A": np.arange(512, dtype=np.float32), "B": words(128), "W": words(32), "n": 2, "d": 256}, 64,
    ),
    "cells": Kernel(CELLS, {"A": words()}),
    "shared": multiplication("SM90_64x64x16_F32F16F16_SS<Major::K,Major::K>"),
    "registers": multiplication("SM90_64x24x8_F32TF32TF32_RS_TN"),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_rules_touch_what_effects_declare(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, trace = KERNELS[name], Trace()
    trace.watch_fragments(monkeypatch)
    engine = SimEngine(sink=lambda _: None, journal=trace)
    grid, block, cluster = (kernel.blocks, 1, 1), (kernel.threads, 1, 1), (kernel.blocks, 1, 1)
    launch_on(kernel.text, kernel.arguments, grid, block, engine, cluster)
    compared = 0
    for op, alone in once(module_of(kernel.text)):
        if isinstance(op, InlineOp | EntryOp):
            continue
        touched, count = touched_by(trace, op), kernel.blocks * agents(op, kernel.threads, alone)
        given = {place: bytes and count * bytes for place, bytes in declared(op).items()}
        assert touched == {place: touched.get(place) if bytes is None else bytes for place, bytes in given.items()}, op
        compared += bool(touched)
    assert compared or name in ("others", "group")


def test_every_operation_is_executed() -> None:
    executed = {type(op) for kernel in KERNELS.values() for op, _ in once(module_of(kernel.text))}
    missing = {op.name for op in PTX.operations} - {kind.name for kind in executed}
    # a definition, one of the stage before, and one whose effects a package declares; several devices execute multimem
    # (tests/devices), and tests/sim/test_wide_accesses.py st.bulk
    multimem = {"ptx.multimem.ld_reduce", "ptx.multimem.red", "ptx.multimem.st"}
    assert missing == {"ptx.entry", "ptx.smem.alloc", "ptx.instruction", "ptx.st.bulk", *multimem}
