# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sizes and attributes of a launch: which ones there are, and in which form they reach the driver."""

from typing import Any, cast

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.parameters import SCALARS
from tilefold.base.target import Target
from tilefold.runtime.compiled.artifact import Artifact, Parameter
from tilefold.runtime.cuda import cuda_engine
from tilefold.runtime.cuda.cuda_engine import CudaEngine
from tilefold.runtime.cuda.driver import Driver
from tilefold.runtime.cuda.library import Library
from tilefold.runtime.engine import LaunchConfig
from tilefold.runtime.options import Cluster, ProgrammaticStreamSerialization, launch_attributes

import tilefold
from tests.runtime.fakes import FakeDriver, FakeLibrary
from tilefold import cute

BLOCK = (32, 1, 1)
CLUSTER, SERIALISED = (4, (2, 1, 1, 0)), (6, (1, 0, 0, 0))
"""The attributes as the driver takes them: a cluster of 2 x 1 x 1 blocks, and a programmatic launch."""


@pytest.fixture
def library() -> FakeLibrary:
    return FakeLibrary()


@pytest.fixture
def engine(library: FakeLibrary, monkeypatch: pytest.MonkeyPatch) -> CudaEngine:
    """The engine on a fake device of compute capability 9.0."""

    def open_device(ordinal: int) -> Driver:
        driver = FakeDriver(library)
        driver.capability = 9, 0
        return cast(Driver, driver)

    def load_library() -> Library:
        return cast(Library, library)

    monkeypatch.setattr(cuda_engine, "open_device", open_device)
    monkeypatch.setattr(cuda_engine, "load_library", load_library)
    return CudaEngine()


def _artifact(arch: str = "sm_90", dynamic: int = 0) -> Artifact:
    return Artifact("k", "code", Target(arch), (Parameter("n", SCALARS["i32"]),), BLOCK, dynamic_shared=dynamic)


def test_a_launch_passes_grid_block_shared_memory_stream_and_attributes(
    engine: CudaEngine, library: FakeLibrary
) -> None:
    library.kinds = [SCALARS["i32"]]
    config = LaunchConfig((4, 2, 1), BLOCK, 5, launch_attributes((2, 1), programmatic=True))
    result = engine.launch(_artifact(dynamic=65536), config, {"n": 7})
    assert result.seconds == 2e-3
    (launched,) = library.launched
    assert (launched.grid, launched.block, launched.shared, launched.stream) == ((4, 2, 1), BLOCK, 65536, 5)
    assert launched.attributes == [CLUSTER, SERIALISED]
    assert launched.values == (7).to_bytes(4, "little")
    calls = {call[0]: call for call in cast(FakeDriver, engine.driver).calls}
    assert calls["cuFuncSetAttribute"][2:] == (8, 65536)


def test_attributes_are_those_of_each_launch(engine: CudaEngine, library: FakeLibrary) -> None:
    for attributes in ((), launch_attributes(2), launch_attributes(programmatic=True), ()):
        engine.launch(_artifact(), LaunchConfig((4, 1, 1), BLOCK, 0, attributes), {"n": 1})
    assert [each.attributes for each in library.launched] == [[], [CLUSTER], [SERIALISED], []]


def test_timed_launches_are_alike(engine: CudaEngine, library: FakeLibrary) -> None:
    timing = engine.time(_artifact(), LaunchConfig((3, 1, 1), BLOCK), {"n": 1}, warmup=1, repeat=2)
    assert timing.samples == (2.0, 2.0)
    assert [each.grid for each in library.launched] == [(3, 1, 1)] * 3


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (LaunchConfig((1, 1, 1), (64, 1, 1)), r"blocks of \(32, 1, 1\) threads, not \(64, 1, 1\)"),
        (LaunchConfig((1, 65536, 1), BLOCK), "a GPU has at most"),
        (LaunchConfig((2, 1, 1), BLOCK, 0, (Cluster((2, 1, 1)),)), "compiled for sm_80, which has no clusters"),
    ],
)
def test_launch_that_does_not_fit_the_kernel(engine: CudaEngine, config: LaunchConfig, message: str) -> None:
    with pytest.raises(TilefoldError, match=message) as caught:
        engine.launch(_artifact("sm_80"), config, {"n": 1})
    assert caught.value.code == "E3105"


def test_options_of_a_launch_become_attributes() -> None:
    assert launch_attributes() == launch_attributes(cluster=(1, 1)) == ()
    assert launch_attributes([2, np.int64(2)]) == (Cluster((2, 2, 1)),)
    assert launch_attributes(None, True) == (ProgrammaticStreamSerialization(),)
    assert launch_attributes(4, True) is launch_attributes((4,), True)


@pytest.mark.parametrize(
    ("grid", "cluster", "message"),
    [
        ((4, 1, 1), (0,), "the cluster is"),
        ((4, 1, 1), (2.0,), "the cluster is"),
        ((4, 1, 1), (3,), r"the grid \(4, 1, 1\) is not made of clusters of \(3, 1, 1\): x leaves 1"),
        ((16, 1, 1), (16,), r"a cluster of \(16, 1, 1\) has 16 blocks"),
    ],
)
def test_cluster_that_cannot_be(grid: Any, cluster: Any, message: str) -> None:
    with pytest.raises(TilefoldError, match=message) as caught:
        LaunchConfig(grid, BLOCK, 0, launch_attributes(cluster))
    assert caught.value.code == "E3105"
    assert caught.value.hint


@cute.kernel
def ones(out: cute.Tensor):
    out[cute.arch.thread_idx()[0]] = cute.Float32(1)


def test_python_takes_a_cluster() -> None:
    out = np.zeros(32, np.float32)
    ones(out).launch(2, 32, cluster=(1, 1), device="sim", races=False)
    assert out.all()
    with pytest.raises(TilefoldError, match="E3105: a cluster of"):
        ones(out).launch(16, 32, cluster=16, device="sim")
    out[:] = 0
    ones(out).launch(2, 32, cluster=2, device="sim", races=False)
    assert out.all()


def test_a_program_for_a_target_without_clusters_is_not_launched_in_clusters() -> None:
    text = ones(np.zeros(32, np.float32)).build(32).to_cute()
    for target in (None, "sm_90"):
        tilefold.load(text, target=target).kernel()(np.zeros(32, np.float32)).launch(
            2, cluster=2, device="sim", races=False
        )
    with pytest.raises(TilefoldError, match="E3105: the kernel is compiled for sm_80, which has no clusters"):
        tilefold.load(text, target="sm_80").kernel()(np.zeros(32, np.float32)).launch(2, cluster=2, device="sim")
