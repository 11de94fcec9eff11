# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bulk copies in and out through a ring of two stages: the same bytes by the simulator and on a GPU."""

import numpy as np
import pytest
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.options import SimOptions
from tilefold.runtime.sim.launch import Completion
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.cuda.harness import artifact
from tests.emit.harness import kernel, parse
from tests.sim import test_cluster_memory as cluster_memory

CHUNKS = 37
"""Pieces of 1024 bytes that go through the ring."""
LAUNCH = LaunchConfig((3, 1, 1), (64, 1, 1))

RING = f"""
%t = ptx.sreg "tid.x"
%block = ptx.sreg "ctaid.x"
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%two = arith.constant 2 : i32
%eight = arith.constant 8 : i32
%sixteen = arith.constant 16 : i32
%threads = arith.constant 64 : i32
%last = arith.constant 63 : i32
%half = arith.constant 512 : i32
%stage_bytes = arith.constant 1024 : i32
%chunks = arith.constant {CHUNKS} : i32
%all_bytes = arith.constant {1024 * CHUNKS} : i32
%s = ptx.smem.addr 0
%out = ptx.smem.addr 2048
%full = ptx.smem.addr 4096
%first = arith.cmpi eq, %t, %zero : i32
scf.if %first {{
  scf.for %i = %zero to %two step %one : i32 {{
    %at = arith.muli %i, %eight : i32
    %f = ptx.ptr_add %full, %at : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
    ptx.mbarrier.init %f, %one
  }}
  ptx.fence.mbarrier_init
  ptx.fence.proxy.async
}}
ptx.bar.sync 0
%from = arith.muli %block, %all_bytes : i32
%a = ptx.ptr_add %A, %from : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
%b = ptx.ptr_add %B, %from : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
%own = arith.muli %t, %sixteen : i32
%mirrored = arith.subi %last, %t : i32
%others = arith.muli %mirrored, %sixteen : i32
scf.for %i = %zero to %chunks step %one : i32 {{
  %stage = arith.remui %i, %two : i32
  %round = arith.divui %i, %two : i32
  %parity = arith.andi %round, %one : i32
  %at = arith.muli %stage, %eight : i32
  %f = ptx.ptr_add %full, %at : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
  %chunk = arith.muli %i, %stage_bytes : i32
  %place = arith.muli %stage, %stage_bytes : i32
  %ac = ptx.ptr_add %a, %chunk : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
  %bc = ptx.ptr_add %b, %chunk : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
  %sc = ptx.ptr_add %s, %place : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
  %oc = ptx.ptr_add %out, %place : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
  scf.if %first {{
    ptx.mbarrier.arrive.expect_tx %f, %stage_bytes
    %ah = ptx.ptr_add %ac, %half : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    %sh = ptx.ptr_add %sc, %half : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
    ptx.cp.async.bulk.prefetch %ac, %stage_bytes
    ptx.cp.async.bulk.load %sc, %ac, %half, %f
    ptx.cp.async.bulk.load %sh, %ah, %half, %f
    ptx.cp.async.bulk.wait_group 1 read
  }}
  ptx.bar.sync 0
  ptx.mbarrier.wait %f, %parity
  %at_other = ptx.ptr_add %sc, %others : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
  %v = ptx.ld %at_other align 16 : !ptx.ptr<shared> -> vector<4xf32>
  %dst = ptx.ptr_add %oc, %own : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
  ptx.st %v, %dst align 16 : vector<4xf32>, !ptx.ptr<shared>
  ptx.fence.proxy.async
  ptx.bar.sync 0
  scf.if %first {{
    ptx.cp.async.bulk.store %bc, %oc, %stage_bytes
    ptx.cp.async.bulk.commit_group
  }}
}}
scf.if %first {{
  ptx.cp.async.bulk.wait_group 0
}}
"""
"""Thread t reads what its mirror image would, and writes it to the stage of the output."""


def _text() -> str:
    pointers = "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16"
    return kernel(RING, pointers, "64", shared=4112)


def _arguments() -> tuple[dict[str, TensorArgument], np.ndarray]:
    numbers = np.random.default_rng(1).standard_normal((3 * CHUNKS, 64, 4)).astype(np.float32)
    out = np.full(numbers.size, np.nan, np.float32)
    return {"A": TensorArgument(numbers.reshape(-1)), "B": TensorArgument(out)}, numbers[:, ::-1].reshape(-1)


@pytest.mark.parametrize("completion", Completion)
def test_a_ring_in_the_simulator(completion: Completion) -> None:
    given, expected = _arguments()
    SimEngine(SimOptions(seed=1), completion=completion).launch(SimProgram(parse(_text()), "k"), LAUNCH, given)
    np.testing.assert_array_equal(given["B"].storage, expected)


@pytest.mark.gpu
def test_a_ring_on_a_gpu() -> None:
    engine = CudaEngine()
    if engine.driver.target.sm < 90:
        pytest.skip("bulk copies need sm_90")
    given, expected = _arguments()
    engine.launch(artifact(_text(), engine.driver.target), LAUNCH, given)
    np.testing.assert_array_equal(given["B"].storage, expected)


REDUCE = """
%t = ptx.sreg "tid.x"
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%bytes = arith.constant 256 : i32
%bar = ptx.smem.addr 256
%s = ptx.smem.addr 0
%first = arith.cmpi eq, %t, %zero : i32
scf.if %first {
  ptx.mbarrier.init %bar, %one
  ptx.fence.mbarrier_init
  ptx.mbarrier.arrive.expect_tx %bar, %bytes
  ptx.cp.async.bulk.load %s, %A, %bytes, %bar
  ptx.mbarrier.wait %bar, %zero
  ptx.cp.reduce.async.bulk "KIND" %B, %s, %bytes
  ptx.cp.async.bulk.commit_group
  ptx.cp.async.bulk.wait_group 0
}
"""


@pytest.mark.gpu
@pytest.mark.parametrize(("kind", "dtype"), [
    ("add.f32", "float32"), ("add.f16", "float16"), ("min.f16", "float16"), ("add.u32", "uint32"), ("add.s32", "int32"),
    ("min.s32", "int32"), ("max.u32", "uint32"), ("and.b32", "uint32"), ("xor.b64", "uint64"), ("add.f64", "float64"),
    ("add.u64", "uint64"), ("max.s64", "int64"),
])  # fmt: skip
def test_reductions_on_a_gpu(kind: str, dtype: str) -> None:
    """Ten blocks, each with the same numbers."""
    engine = CudaEngine()
    if engine.driver.target.sm < 90:
        pytest.skip("bulk copies need sm_90")
    pointers = "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16"
    text = kernel(REDUCE.replace("KIND", kind), pointers, "64", shared=264)
    rng, count = np.random.default_rng(0), 256 // np.dtype(dtype).itemsize
    a, b = (rng.integers(0 if dtype[0] == "u" else -20, 20, count).astype(dtype) for _ in range(2))
    config, results = LaunchConfig((10, 1, 1), (64, 1, 1)), [b.copy(), b.copy()]
    SimEngine().launch(SimProgram(parse(text), "k"), config, {"A": TensorArgument(a), "B": TensorArgument(results[0])})
    engine.launch(
        artifact(text, engine.driver.target), config, {"A": TensorArgument(a), "B": TensorArgument(results[1])}
    )
    np.testing.assert_array_equal(results[1], results[0])


@pytest.mark.gpu
def test_blocks_send_bytes_to_each_other_on_a_gpu() -> None:
    engine = CudaEngine()
    if engine.driver.target.sm < 90:
        pytest.skip("clusters need sm_90")
    b = np.zeros(128, np.int32)
    code = artifact(cluster_memory.text_of(cluster_memory.SENT), engine.driver.target)
    given = {"A": TensorArgument(np.zeros(4, np.int32)), "B": TensorArgument(b)}
    engine.launch(code, LaunchConfig((2, 1, 1), (64, 1, 1)), given)
    assert b.tolist() == cluster_memory.EXCHANGED
