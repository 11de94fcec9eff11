# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches of tuned kernels: each goes to the configuration that was chosen for its types, without looking again. The
GPU of these tests keeps the launches and gives times.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Annotated, Any, cast

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.runtime.compiled.artifact import Artifact
from tilefold.runtime.cuda.driver import Driver, Library
from tilefold.runtime.cuda.loaded_kernel import Kernel
from tilefold.runtime.cuda.prepared import Prepared
from tilefold.runtime.errors import LaunchError

from tests.runtime.fakes import FakeDriver, FakeLibrary, Tensor, torch_module
from tilefold import cute
from tilefold.cute.gpu_launch import GpuLaunches
from tilefold.driver import devices

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

__all__ = ["torch_module"]
pytestmark = pytest.mark.usefixtures("torch_module")

SIZE = 64
CONFIGS = [{"VALUES": 1}, {"VALUES": 2}]


def scaled(A: Annotated[cute.Tensor, cute.Dynamic()], B, *, VALUES: cute.Constexpr, factor=2):
    i, _, _ = cute.arch.thread_idx()
    for k in cute.range_constexpr(VALUES):
        B[i * VALUES + k] = A[i * VALUES + k] * factor


class Device:
    """An engine whose launches are kept, and take the times of a list."""

    def __init__(self, *times: float) -> None:
        self.times = list(times)
        self.library = FakeLibrary()
        self.driver = FakeDriver(self.library)
        self.driver.capability = 9, 0
        self.loaded: dict[Artifact, Prepared] = {}

    def load(self, artifact: Artifact) -> Prepared:
        if artifact not in self.loaded:
            self.loaded[artifact] = Prepared(Kernel(cast(Driver, self.driver), artifact), cast(Library, self.library))
        return self.loaded[artifact]

    def measure(self, run: Callable[[], object], kernel: str, repeat: int) -> Any:
        run()
        return SimpleNamespace(median_ms=self.times.pop(0))

    def launched(self) -> list[tuple[int, int, int]]:
        """Grid, threads and stream of what was launched since it was asked last."""
        found = [(each.grid[0], each.block[0], each.stream) for each in self.library.launched]
        self.library.launched.clear()
        return found


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Callable[..., Device]:
    """Makes the GPU one that has these times for configurations that are tried."""
    monkeypatch.setenv("TILEFOLD_CACHE_DIR", str(tmp_path))

    def make(*times: float) -> Device:
        device = Device(*times)

        def gpu_engine(ordinal: int) -> Device:
            return device

        monkeypatch.setattr(devices, "gpu_engine", gpu_engine)
        return device

    return make


def _tuned(**options: Any) -> cute.Tuned:
    sizes: dict[str, Any] = {"grid": lambda c: 10 * c["VALUES"], "block": lambda c: SIZE // c["VALUES"], **options}
    return cute.autotune(configs=CONFIGS, executor=ThreadPoolExecutor(2), **sizes)(cute.kernel(scaled))


def _tensors(count: int = SIZE, at: int = 0x1000, dtype: str = "float32") -> tuple[Tensor, Tensor]:
    return Tensor(at, (count,), dtype=dtype), Tensor(at + 0x1000, (count,), dtype=dtype)


def test_launches_of_types_that_were_tuned_do_not_look_again(
    use: Callable[..., Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, tuned = use(3.0, 1.0, 1.0, 3.0), _tuned()
    halves = _tensors(dtype="float16")
    assert tuned(*_tensors()).launch() is None
    assert device.launched() == [(10, 64, 0), (20, 32, 0), (20, 32, 0)]  # each was tried, and the best one was launched
    tuned(*halves).launch(stream=7)
    assert device.launched()[2:] == [(10, 64, 7)]
    monkeypatch.setattr(GpuLaunches, "resolve", None)  # cannot be called: all is prepared
    monkeypatch.setattr(cute.Tuned, "tuning", None)
    for _ in range(2):
        tuned(*_tensors(at=0x5000)).launch()
        tuned(*halves).launch(use_pdl=True)
        tuned(B=halves[1], A=halves[0]).launch(stream=9)
        tuned(Tensor(0x9000, (2 * SIZE,)), _tensors()[1]).launch((4, 1))  # extents of A may differ
    assert device.launched() == [(20, 32, 0), (10, 64, 0), (10, 64, 9), (4, 32, 0)] * 2
    with pytest.raises(TypeError):
        tuned(*_tensors(SIZE // 2)).launch()


def test_what_was_only_tried_is_not_launched(use: Callable[..., Device]) -> None:
    device, tuned = use(1.0, 3.0), _tuned()
    tuned.tune(*_tensors())
    tuned.kernel(*_tensors(), VALUES=2).launch(1, 32)
    for _ in range(2):
        tuned(*_tensors()).launch()
    assert device.launched()[3:] == [(10, 64, 0)] * 2


def test_grid_of_one_launch(use: Callable[..., Device]) -> None:
    asked: list[int] = []

    def grid(config: Any) -> int:
        asked.append(config["VALUES"])
        return 10

    device, tuned = use(3.0, 1.0), _tuned(grid=grid)
    tuned(*_tensors()).launch(lambda c: 100 * c["VALUES"])  # which is the grid of the trials, too
    assert [each[0] for each in device.launched()] == [100, 200, 200]
    sizes: list[Any] = [None, None, 7, [8], None, lambda c: c["VALUES"], lambda c: c["VALUES"] + 1, None]
    for size in sizes:
        tuned(*_tensors()).launch(size)
    assert [each[0] for each in device.launched()] == [10, 10, 7, 8, 10, 2, 3, 10]
    assert set(asked) == {2}
    for wrong in (0, "x", lambda _: (1, 2, 3, 4)):
        with pytest.raises(LaunchError, match="the grid is"):
            tuned(*_tensors()).launch(cast(Any, wrong))
    tuned(*_tensors()).launch()
    assert [each[0] for each in device.launched()] == [10]


def test_kernel_of_a_configuration(use: Callable[..., Device]) -> None:
    use(3.0, 1.0)
    tuned, spec = _tuned(), cute.TensorSpec(SIZE, cute.Float32)
    with pytest.raises(TilefoldError, match="not been built"):
        tuned.ptx()
    assert ".reqntid 64" in tuned(spec, spec).build().ptx()
    assert ".reqntid 32" in tuned(spec, spec).build({"VALUES": 2}).ptx()
    assert ".reqntid 32" in tuned(*_tensors()).build().ptx()
    assert tuned.ir() == tuned.last.ir()
    assert "configurations of <kernel scaled(A, B, VALUES, factor)" in repr(tuned(spec, spec))
    with pytest.raises(LaunchError, match="description of a tensor"):
        tuned(spec, spec).launch(device="cuda")


def test_tuned_method_on_the_simulator_at_a_stage() -> None:
    class Model:
        weight = 3

        @cute.autotune(configs=CONFIGS, grid=1, block=lambda c: SIZE // c["VALUES"])
        @cute.kernel
        def run(self, A, B, VALUES: cute.Constexpr):
            scaled(A, B, VALUES=VALUES, factor=self.weight)

    a, b = np.arange(SIZE, dtype=np.float32), np.zeros(SIZE, np.float32)
    result = Model().run(a, b).launch(stage="cute")
    assert result is not None
    np.testing.assert_array_equal(b, 3 * a)
    for wrong in ("gpu", ["cuda"]):
        with pytest.raises(LaunchError, match="device is"):
            Model().run(a, b).launch(device=cast(Any, wrong))
    with pytest.raises(TilefoldError, match="smem is -1"):
        Model().run(a, b).launch(device="sim", smem=-1)
