# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sizes and attributes of a launch: which ones there are, and in which form they reach the driver."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.parameters import SCALARS
from tilefold.base.target import Target
from tilefold.runtime.compiled.artifact import Artifact, Parameter
from tilefold.runtime.cuda import cuda_engine
from tilefold.runtime.cuda.cuda_engine import CudaEngine
from tilefold.runtime.cuda.driver import Driver, Library
from tilefold.runtime.cuda.loaded_kernel import query_max_active_clusters
from tilefold.runtime.engine import LaunchConfig
from tilefold.runtime.options import Cluster, ProgrammaticStreamSerialization, launch_attributes

import tilefold
from tests.runtime.fakes import FakeDriver, FakeLibrary
from tilefold import cute
from tilefold.driver import devices

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
    config = LaunchConfig((4, 2, 1), BLOCK, 5, launch_attributes((2, 1), use_pdl=True))
    result = engine.launch(_artifact(dynamic=65536), config, {"n": 7})
    assert result.seconds == 2e-3
    (launched,) = library.launched
    assert (launched.grid, launched.block, launched.shared, launched.stream) == ((4, 2, 1), BLOCK, 65536, 5)
    assert launched.attributes == [CLUSTER, SERIALISED]
    assert launched.values == (7).to_bytes(4, "little")
    calls = {call[0]: call for call in cast(FakeDriver, engine.driver).calls}
    assert calls["cuFuncSetAttribute"][2:] == (8, 65536)


def test_attributes_are_those_of_each_launch(engine: CudaEngine, library: FakeLibrary) -> None:
    for attributes in ((), launch_attributes(2), launch_attributes(use_pdl=True), ()):
        engine.launch(_artifact(), LaunchConfig((4, 1, 1), BLOCK, 0, attributes), {"n": 1})
    assert [each.attributes for each in library.launched] == [[], [CLUSTER], [SERIALISED], []]


def test_cooperative_launches_and_events(engine: CudaEngine, library: FakeLibrary) -> None:
    event = SimpleNamespace(cuda_event=(3 << 32) + 7)  # as torch's
    attributes = launch_attributes(
        cooperative=True, launch_completion_event=5, programmatic_event=event, programmatic_event_flags=1,
        programmatic_event_trigger_at_block_start=1,
    )  # fmt: skip
    engine.launch(_artifact(), LaunchConfig((4, 1, 1), BLOCK, 0, attributes), {"n": 1})
    (launched,) = library.launched
    assert launched.attributes == [(2, (1, 0, 0, 0)), (12, (5, 0, 0, 0)), (7, (7, 3, 1, 1))]


def test_options_and_events_that_there_are_not() -> None:
    with pytest.raises(TilefoldError, match="a launch has no option 'cooperativ'"):
        launch_attributes(**cast(Any, {"cooperativ": True}))
    with pytest.raises(TilefoldError, match="expected an event, got str"):
        launch_attributes(launch_completion_event="now")


def test_the_device_is_asked_once_whether_it_holds_a_cluster(engine: CudaEngine, library: FakeLibrary) -> None:
    for cluster in (2, 2, 4, (2, 2), 1):
        config = LaunchConfig((4, 2, 1), BLOCK, 0, launch_attributes(cluster))
        engine.launch(_artifact(dynamic=65536), config, {"n": 1})
    assert library.asked == [(size[0], 65536, 4, size) for size in ((2, 1, 1), (4, 1, 1), (2, 2, 1))]
    assert len(library.launched) == 5


@pytest.mark.parametrize(("multiprocessors", "status"), [(15, 0), (132, 912)])
def test_a_cluster_that_the_device_cannot_hold_is_not_launched(
    engine: CudaEngine, library: FakeLibrary, multiprocessors: int, status: int
) -> None:
    library.multiprocessors, library.cluster_status = multiprocessors, status
    config = LaunchConfig((8, 1, 1), BLOCK, 0, launch_attributes(8))
    message = r"cluster of \(8, 1, 1\) .* 'k' does not fit .*: each has 32 threads with 168 registers, and 65536 bytes"
    with pytest.raises(TilefoldError, match=message) as caught:
        engine.launch(_artifact(dynamic=65536), config, {"n": 1})
    assert caught.value.code == "E3105"
    assert not library.launched


def test_large_clusters_are_allowed_to_a_kernel(engine: CudaEngine, library: FakeLibrary) -> None:
    prepared = engine.load(_artifact())
    assert [query_max_active_clusters(prepared.kernel, prepared.library, (size, 1, 1)) for size in (8, 16)] == [16, 8]
    calls = [call[2:] for call in cast(FakeDriver, engine.driver).calls if call[0] == "cuFuncSetAttribute"]
    assert calls == [(14, 1)]


def test_a_kernel_says_its_clusters(engine: CudaEngine, library: FakeLibrary) -> None:
    kernel = replace(_artifact(), cluster=(16, 1, 1), non_portable=True)
    for attributes in ((), launch_attributes(16)):
        engine.launch(kernel, LaunchConfig((32, 1, 1), BLOCK, 0, attributes), {"n": 1})
    calls = [call[2:] for call in cast(FakeDriver, engine.driver).calls if call[0] == "cuFuncSetAttribute"]
    assert calls == [(14, 1)]  # before the first launch
    assert library.asked == [(16, 0, 4, (16, 1, 1))]
    with pytest.raises(
        TilefoldError, match=r"E3105: the grid \(24, 1, 1\) does not consist of clusters of \(16, 1, 1\)"
    ):
        engine.launch(kernel, LaunchConfig((24, 1, 1), BLOCK), {"n": 1})
    with pytest.raises(TilefoldError, match=r"E3105: the kernel has clusters of \(16, 1, 1\) .* asks for \(2, 1, 1\)"):
        engine.launch(kernel, LaunchConfig((32, 1, 1), BLOCK, 0, launch_attributes(2)), {"n": 1})
    assert len(library.launched) == 2


def test_other_failures_are_those_of_the_driver(engine: CudaEngine, library: FakeLibrary) -> None:
    library.cluster_status = 1
    with pytest.raises(RuntimeError, match="counting clusters of kernel 'k': cuOccupancyMaxActiveClusters 1"):
        engine.launch(_artifact(), LaunchConfig((2, 1, 1), BLOCK, 0, launch_attributes(2)), {"n": 1})


def test_more_shared_memory_than_the_device_has_is_refused(engine: CudaEngine) -> None:
    size = engine.driver.max_shared_bytes
    engine.load(_artifact(dynamic=size))
    with pytest.raises(TilefoldError, match=rf"E3105: kernel 'k' needs {size + 1} bytes .* at most {size} on"):
        engine.load(_artifact(dynamic=size + 1))


def test_hardware_says_how_many_clusters_a_persistent_grid_has(
    engine: CudaEngine, library: FakeLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gpu_engine(ordinal: int) -> CudaEngine:
        assert ordinal == 0
        return engine

    monkeypatch.setattr(devices, "gpu_engine", gpu_engine)
    hardware, driver = cute.utils.HardwareInfo(), cast(FakeDriver, engine.driver)
    with pytest.raises(TilefoldError, match=r"E3105: a device of the tests has no clusters"):
        hardware.get_max_active_clusters(2)
    driver.target = Target("sm_90a")
    assert [hardware.get_max_active_clusters(size) for size in (1, 2, 4, 16)] == [128, 64, 32, 8]
    assert library.asked[0] == (1, driver.max_shared_bytes, 4, (1, 1, 1))  # one block fills a multiprocessor
    for size in (0, 17, 2.0, True):
        with pytest.raises(TilefoldError, match=r"E3105: a cluster cannot have .* blocks(.|\n)*1 to 16"):
            hardware.get_max_active_clusters(cast(int, size))
    assert hardware.get_device_multiprocessor_count() == 132
    assert hardware.get_l2_cache_size_in_bytes() == 50 << 20


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
        ((4, 1, 1), (3,), r"the grid \(4, 1, 1\) does not consist of clusters of \(3, 1, 1\): x leaves 1"),
    ],
)
def test_cluster_that_cannot_be(grid: Any, cluster: Any, message: str) -> None:
    with pytest.raises(TilefoldError, match=message) as caught:
        LaunchConfig(grid, BLOCK, 0, launch_attributes(cluster))
    assert caught.value.code == "E3105"
    assert caught.value.hint


def test_the_cluster_of_a_kernel() -> None:
    plain, large = LaunchConfig((4, 2, 1), BLOCK), LaunchConfig((16, 1, 1), BLOCK)
    assert plain.of_kernel(None, False) is plain
    assert plain.of_kernel((2, 2, 1), False).cluster == (2, 2, 1)
    assert replace(plain, attributes=launch_attributes((2, 2))).of_kernel((2, 2, 1), False).cluster == (2, 2, 1)
    assert large.of_kernel((16, 1, 1), True).cluster == (16, 1, 1)
    for config, cluster, message in (
        (replace(plain, attributes=launch_attributes(2)), (2, 2, 1), r"has clusters of \(2, 2, 1\) blocks, but the"),
        (plain, (1, 3, 1), r"does not consist of clusters of \(1, 3, 1\): y leaves 2"),
        (large, (16, 1, 1), r"a cluster of \(16, 1, 1\) has 16 blocks"),
        (replace(large, attributes=launch_attributes(16)), None, r"a cluster of \(16, 1, 1\) has 16 blocks"),
    ):
        with pytest.raises(TilefoldError, match=message) as caught:
            config.of_kernel(cluster, False)
        assert caught.value.code == "E3105"


@pytest.mark.parametrize("device", ["sim", "cuda"])
def test_kernels_name_their_cluster(engine: CudaEngine, library: FakeLibrary, device: str) -> None:
    out = np.zeros(32, np.float32)
    kernel = cute.kernel(cluster=(2, 1))(ones.function)
    call = kernel(out)
    assert "threads(32) cluster(2) {" in call.build(32).to_cute()
    assert "\n.reqnctapercluster 2, 1, 1\n" in call.build(32).ptx("sm_90")
    if device == "sim":
        call.launch(4, 32, device="sim", races=False)
        assert out.all()
        with pytest.raises(TilefoldError, match=r"E3105: the grid \(3, 1, 1\) does not consist of .*: x leaves 1"):
            call.launch(3, 32, device="sim")
        with pytest.raises(TilefoldError, match=r"E3105: the kernel has clusters of \(2, 1, 1\) blocks"):
            call.launch(4, 32, cluster=4, device="sim")
        return
    artifact = replace(_artifact(), cluster=(2, 1, 1))
    engine.launch(artifact, LaunchConfig((4, 1, 1), BLOCK), {"n": 1})
    with pytest.raises(TilefoldError, match=r"E3105: the grid \(3, 1, 1\) does not consist of .*: x leaves 1"):
        engine.launch(artifact, LaunchConfig((3, 1, 1), BLOCK), {"n": 1})
    with pytest.raises(TilefoldError, match=r"E3105: the kernel has clusters of \(2, 1, 1\) blocks"):
        engine.launch(artifact, LaunchConfig((4, 1, 1), BLOCK, 0, launch_attributes(4)), {"n": 1})
    assert len(library.launched) == 1


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
