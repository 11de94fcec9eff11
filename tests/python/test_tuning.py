# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Autotuning: compiled in parallel, pruned, timed, remembered. The GPU of these tests is one that has times only."""

import importlib
import pickle
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import Target
from tilefold.runtime.errors import LaunchError

from tilefold import cute
from tilefold.cute.tuning import Candidate
from tilefold.driver import devices, machine_code

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

SIZE = 64


@cute.kernel
def scaled(A, B, VALUES: cute.Constexpr, FACTOR: cute.Constexpr = 2):
    i, _, _ = cute.arch.thread_idx()
    for k in cute.range_constexpr(VALUES):
        B[i * VALUES + k] = A[i * VALUES + k] * FACTOR


CONFIGS = [{"VALUES": 1}, {"VALUES": 2}, {"VALUES": 4}]


def block_of(config: Any) -> int:
    """As many threads as have something to do."""
    return SIZE // config["VALUES"]


class Timer:
    """An engine that gives the times of a list in turn, instead of running on a GPU."""

    def __init__(self, times: list[float]) -> None:
        self.times = times
        self.driver = SimpleNamespace(name="a device of the tests", target=Target("sm_80"), current=nullcontext)

    def time(self, artifact: Any, config: Any, values: Any, repeat: int) -> Any:
        assert (artifact.block, [*values]) == (config.block, ["A", "B"])
        return SimpleNamespace(median_ms=self.times.pop(0))


def _use(monkeypatch: pytest.MonkeyPatch, *times: float) -> Timer:
    timer = Timer(list(times))

    def gpu_engine(ordinal: int) -> Timer:
        return timer

    monkeypatch.setattr(devices, "gpu_engine", gpu_engine)
    return timer


def _arrays(length: int = SIZE) -> tuple[Any, Any]:
    return np.arange(length, dtype=np.float32), np.zeros(length, np.float32)


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setenv("TILEFOLD_CACHE_DIR", str(tmp_path))


def test_fastest_is_found_and_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = _arrays()
    with ThreadPoolExecutor(2) as executor:
        tuned = cute.autotune(configs=CONFIGS, grid=1, block=block_of, executor=executor)(scaled)
        timer = _use(monkeypatch, 3.0, 1.0, 2.0)
        tuning = tuned.tune(a, b)
    assert tuning.best.config == {"VALUES": 2}
    assert [each.milliseconds for each in tuning.candidates] == [3.0, 1.0, 2.0]
    assert all(each.resources is not None and each.resources.registers > 0 for each in tuning.candidates)
    assert not timer.times
    assert tuned.tune(a, b) is tuning
    assert cute.autotune(configs=CONFIGS, grid=1, block=block_of)(scaled).tune(a, b) == tuning  # off the disk
    text = tuning.table()
    assert text.index("VALUES=2") < text.index("VALUES=4") < text.index("VALUES=1")


@cute.kernel(min_blocks=1)
def handed(A, B, REGISTERS: cute.Constexpr):
    i, _, _ = cute.arch.thread_idx()
    cute.arch.inline_ptx(f"setmaxnreg.dec.sync.aligned.u32 {REGISTERS};", "")
    B[i] = A[i]


def test_kernels_that_the_driver_assembles_tell_their_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers and local memory are the driver's words, and a kernel that it refuses has a problem."""
    a, b = _arrays(128)

    def load(artifact: Any) -> Any:
        assert isinstance(artifact.code, str)
        if "u32 24;" in artifact.code:
            raise TilefoldError(Code.ASSEMBLE_SLOWER, "too few registers")
        local = 8 if "u32 40;" in artifact.code else 0
        return SimpleNamespace(kernel=SimpleNamespace(registers=168, local_bytes=local, shared_bytes=1024))

    with ThreadPoolExecutor(2) as executor:
        configs = [{"REGISTERS": 24}, {"REGISTERS": 40}, {"REGISTERS": 56}]
        tuned = cute.autotune(configs=configs, grid=1, block=128, executor=executor)(handed)
        timer = _use(monkeypatch, 1.0)
        timer.driver.target = Target("sm_90a")
        monkeypatch.setattr(timer, "load", load, raising=False)
        tuning = tuned.tune(a, b)
    refused, spilled, best = tuning.candidates
    assert (refused.resources, refused.problem) == (None, "E2303: too few registers")
    assert spilled.problem == "pruned"
    assert spilled.resources is not None
    assert (spilled.resources.registers, spilled.resources.spill_stores) == (168, 8)
    assert (best.problem, best.milliseconds) == ("", 1.0)


def test_other_arguments_are_tuned_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadPoolExecutor(2) as executor:
        tuned = cute.autotune(configs=CONFIGS, grid=1, block=block_of, executor=executor)(scaled)
        _use(monkeypatch, 3.0, 1.0, 2.0, 1.0, 2.0, 3.0)
        assert tuned.tune(*_arrays()).best.config == {"VALUES": 2}
        assert tuned.tune(*_arrays(2 * SIZE)).best.config == {"VALUES": 1}


def test_what_is_pruned_or_wrong_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def few(candidate: Candidate) -> bool:
        return candidate.config["VALUES"] < 4

    a, b = _arrays()
    configs = [*CONFIGS, {"VALUES": 1, "FACTOR": "no number"}]
    with ThreadPoolExecutor(2) as executor:
        tuned = cute.autotune(configs=configs, grid=1, block=block_of, executor=executor, prune=few)(scaled)
        timer = _use(monkeypatch, 3.0, 1.0)
        tuning = tuned.tune(a, b)
    *problems, wrong = [each.problem for each in tuning.candidates]
    assert problems == ["", "", "pruned"]
    assert wrong.startswith("E5")
    with pytest.raises(TilefoldError, match="no configuration works"):
        _ = cute.Tuning(tuning.candidates[2:], "a device").best
    assert not timer.times


def test_nothing_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadPoolExecutor(2) as executor:
        never = cute.autotune(configs=CONFIGS, grid=1, block=block_of, executor=executor, prune=lambda _: False)
        _use(monkeypatch)
        with pytest.raises(TilefoldError, match="no configuration works"):
            never(scaled).tune(*_arrays())


def _local(factor: int) -> Any:
    """A kernel that no module has, and that is another for each factor."""

    @cute.kernel
    def local(A, B, VALUES: cute.Constexpr):
        assert VALUES < 4, "too many"
        scaled.function(A, B, VALUES, factor)

    return local


class Remote(Executor):
    """Another machine: it sees nothing but what can be sent, and its disk is its own."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        fn, args = pickle.loads(pickle.dumps((fn, args)))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TILEFOLD_CACHE_LIMIT", "0")
            future.set_result(pickle.loads(pickle.dumps(fn(*args))))
        return future


class Dead(Executor):
    """A machine that does nothing."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(ConnectionError("nobody is there"))
        return future


def test_kernels_are_sent_as_text_and_come_back_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def tuned(factor: int, executor: Executor) -> Any:
        return cute.autotune(configs=iter(CONFIGS), grid=1, block=block_of, executor=executor)(_local(factor))

    _use(monkeypatch)
    with pytest.raises(TilefoldError, match=r"no configuration works:(.|\n)*ConnectionError: nobody is there"):
        tuned(2, Dead()).tune(*_arrays())
    _use(monkeypatch, 2.0, 1.0)  # what is no fault of the kernel has not been kept
    first = tuned(2, Remote()).tune(*_arrays())
    assert [each.milliseconds for each in first.candidates] == [2.0, 1.0, None]
    assert first.candidates[2].problem == "AssertionError: too many"
    _use(monkeypatch)
    assert tuned(2, Dead()).tune(*_arrays()) == first  # off the disk
    with pytest.raises(TilefoldError, match="nobody is there"):  # another kernel, of the same source
        tuned(3, Dead()).tune(*_arrays())
    _use(monkeypatch, 1.0, 2.0)
    monkeypatch.setattr(machine_code, "_assemble", None)  # cannot be called: all machine code is here
    assert cute.autotune(configs=CONFIGS, grid=2, block=block_of, executor=Dead())(_local(2)).tune(*_arrays())


def test_processes_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch, 2.0, 1.0)
    tuned = cute.autotune(configs=CONFIGS, grid=1, block=block_of)(_local(2))
    assert tuned.tune(*_arrays()).best.config == {"VALUES": 2}


def test_simulator_takes_the_first() -> None:
    a, b = _arrays()
    result = cute.autotune(configs=CONFIGS[1:], grid=1, block=block_of)(scaled)(a, b).launch(device="sim")
    assert result is not None
    np.testing.assert_array_equal(b, 2 * a)


def test_configurations_that_are_none() -> None:
    with pytest.raises(LaunchError, match="names 'OTHER', which is not a constant"):
        cute.autotune(configs=[{"OTHER": 1}], grid=1, block=1)(scaled)
    with pytest.raises(LaunchError, match="no configurations to choose from"):
        cute.autotune(configs=[], grid=1, block=1)(scaled)
    with pytest.raises(LaunchError, match="is not a kernel"):
        cute.autotune(configs=CONFIGS, grid=1, block=1)(scaled.function)  # pyright: ignore[reportArgumentType]


@cute.kernel
def halved(A: cute.Tensor, B: cute.Tensor, factor: cute.Float32, N: cute.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    B[t] = A[t] * factor / N


class Worker:
    """The GPU of a worker: a time for each block, whatever the arguments."""

    def __init__(self, name: str = "a device of the tests") -> None:
        self.driver = SimpleNamespace(name=name, target=Target("sm_80"), current=nullcontext)

    @staticmethod
    def of(ordinal: int) -> "Worker":
        return Worker()

    def time(self, artifact: Any, config: Any, values: Any, repeat: int) -> Any:
        assert values["factor"] == 0.5
        assert values["A"].storage.std() > 0.5
        assert (values["A"].storage.dtype, values["A"].layout.shape, repeat) == (np.float16, (256,), 7)
        return SimpleNamespace(median_ms=1000 / config.block[0])


def _halves(executor: Executor | None) -> Any:
    configs = [{"N": n} for n in (2, 4, 8)]
    tuned = cute.autotune(
        configs=configs,
        grid=1,
        block=lambda c: 32 * c["N"],
        executor=executor,
        repeat=7,
        time_on_workers=executor is not None,
    )
    return tuned(halved)


def test_workers_of_dask_compile_and_time_each_on_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "gpu_engine", Worker.of)
    arrays = np.zeros(256, np.float16), np.zeros(256, np.float16)
    distributed = importlib.import_module("distributed")  # which machines with a GPU may lack, for other tests
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=50
    )
    with cluster, distributed.Client(cluster) as client:
        assert len(client.scheduler_info()["workers"]) == 2
        tuning = _halves(client.get_executor()).tune(*arrays, 0.5)
    assert [each.milliseconds for each in tuning.candidates] == [1000 / 64, 1000 / 128, 1000 / 256]
    assert tuning.best.config == {"N": 8}
    assert _halves(None).tune(*arrays, 0.5) == tuning  # from the cache that all share


class Losing(ThreadPoolExecutor):
    """A machine that loses the first calls."""

    left = 3

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.left -= 1
        if self.left >= 0:
            raise BrokenPipeError("the worker is gone")
        return super().submit(fn, *args, **kwargs)


def test_configurations_of_lost_workers_are_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "gpu_engine", Worker.of)
    with Losing(1) as executor:
        tuning = _halves(executor).tune(np.zeros(256, np.float16), np.zeros(256, np.float16), 0.5)
    assert [each.problem for each in tuning.candidates] == [""] * 3
    assert tuning.best.config == {"N": 8}


def test_workers_with_another_gpu_do_not_time(monkeypatch: pytest.MonkeyPatch) -> None:
    engines = iter([Worker(), Worker("another"), Worker(), Worker()])

    def gpu_engine(ordinal: int) -> Worker:
        return next(engines)

    monkeypatch.setattr(devices, "gpu_engine", gpu_engine)
    with ThreadPoolExecutor(1) as executor:
        tuning = _halves(executor).tune(np.zeros(256, np.float16), np.zeros(256, np.float16), 0.5)
    assert "a worker has the GPU another" in tuning.candidates[0].problem
    assert tuning.best.config == {"N": 8}


def test_workers_need_an_executor() -> None:
    with pytest.raises(LaunchError, match="there are no workers to time"):
        cute.autotune(configs=CONFIGS, grid=1, block=32, time_on_workers=True)
