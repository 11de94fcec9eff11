# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches that only GPUs of compute capability 9.0 have: registers handed over, clusters, and how many there are."""

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target
from tilefold.runtime.compiled.artifact import Artifact
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.cuda.loaded_kernel import query_max_active_clusters
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.options import launch_attributes

from tests.cuda.harness import artifact
from tests.emit.harness import kernel
from tests.ptxas import EARLY, handing_over, installed, multiplying, program
from tilefold import cute

pytestmark = pytest.mark.gpu
SM90A = Target("sm_90a")


@pytest.fixture(scope="module")
def engine() -> CudaEngine:
    """The engine of a GPU of compute capability 9.0."""
    engine = CudaEngine()
    assert engine.driver.capability == (9, 0), "these tests need compute capability 9.0"
    return engine


def _run(engine: CudaEngine, code: Artifact) -> list[int]:
    out = np.zeros(384, np.int32)
    engine.launch(code, LaunchConfig((1, 1, 1), code.block), {"A": TensorArgument(out)})
    return out.tolist()


def test_the_driver_hands_registers_over(engine: CudaEngine) -> None:
    code = program(handing_over()).artifact("k", SM90A)
    assert isinstance(code.code, str)
    loaded = engine.load(code).kernel
    assert (loaded.registers, loaded.local_bytes) == (168, 0)
    assert _run(engine, code) == [0] * 128 + [7] * 256


def test_machine_code_of_ptxas_runs_too(engine: CudaEngine) -> None:
    if installed() is None:
        pytest.skip("needs ptxas: pip install nvidia-cuda-nvcc")
    code = program(handing_over()).machine_build(SM90A).artifact("k")
    assert isinstance(code.code, bytes)
    assert engine.load(code).kernel.registers == 168
    assert _run(engine, code) == [0] * 128 + [7] * 256


@pytest.mark.parametrize("text", [multiplying(EARLY), handing_over("")])
def test_the_driver_says_what_it_makes_slower(engine: CudaEngine, text: str) -> None:
    """Each time, though it assembles the kernel once."""
    (code,) = program(text).ptx_artifacts(SM90A)
    for _ in range(3):
        with pytest.raises(TilefoldError, match="E2303"):
            CudaEngine().load(code)


def test_clusters_that_the_gpu_holds(engine: CudaEngine) -> None:
    hardware = cute.utils.HardwareInfo()
    multiprocessors = hardware.get_device_multiprocessor_count()
    counts = {size: hardware.get_max_active_clusters(size) for size in (1, 2, 4, 8, 16)}
    assert counts[1] == multiprocessors
    assert all(0 < size * count <= multiprocessors for size, count in counts.items())
    assert hardware.get_l2_cache_size_in_bytes() > 1 << 20


def test_small_blocks_share_a_multiprocessor(engine: CudaEngine) -> None:
    prepared = engine.load(artifact(kernel(""), SM90A))
    few = cute.utils.HardwareInfo().get_max_active_clusters(2)
    assert query_max_active_clusters(prepared.kernel, prepared.library, (2, 1, 1)) > few


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_kernels_that_say_their_clusters(engine: CudaEngine, size: int) -> None:
    """Each block writes the size of its cluster and its rank in it."""
    body = """
    %n = ptx.sreg "cluster_nctarank"
    %r = ptx.sreg "cluster_ctarank"
    %b = ptx.sreg "ctaid.x"
    %eight = arith.constant 8 : i32
    %four = arith.constant 4 : i32
    %o = arith.muli %b, %eight : i32
    %p = ptx.ptr_add %A, %o : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    %q = ptx.ptr_add %p, %four : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    ptx.st %n, %p align 4 : i32, !ptx.ptr<global>
    ptx.st %r, %q align 4 : i32, !ptx.ptr<global>
    """
    portable = " non_portable" if size > 8 else ""
    text = kernel(body, "%A: !ptx.ptr<global> align 8", "32")
    code = artifact(text.replace("threads(32)", f"threads(32) cluster({size}){portable}"), SM90A)
    out = np.full((64, 2), -1, np.int32)
    for attributes in ((), launch_attributes(use_pdl=True)):
        out[:] = -1
        config = LaunchConfig((64, 1, 1), (32, 1, 1), 0, attributes)
        engine.launch(code, config, {"A": TensorArgument(out.reshape(-1))})
        assert out.tolist() == [[size, block % size] for block in range(64)]
