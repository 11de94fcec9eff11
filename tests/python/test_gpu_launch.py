# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of Python on a GPU, on arrays of torch, CuPy, JAX and NumPy: streams, graphs, threads, devices."""

import threading
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from tilefold.runtime.errors import LaunchError

from tilefold import cute

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportInvalidTypeForm=false

pytestmark = pytest.mark.gpu

THREADS = 128
BLOCKS = 8
SIZE = THREADS * BLOCKS


@cute.kernel
def axpy(A, B, factor):
    x, _, _ = cute.arch.block_idx()
    i, _, _ = cute.arch.thread_idx()
    at = x * THREADS + i
    B[at] = B[at] + A[at] * factor


@cute.kernel
def rows(A: cute.Dynamic(divisibility={1: 32}), B: cute.Dynamic(divisibility={1: 32})):
    x, _, _ = cute.arch.block_idx()
    i, _, _ = cute.arch.thread_idx()
    B[x, i] = A[x, i]


@cute.kernel
def ranks(R):
    x, _, _ = cute.arch.block_idx()
    i, _, _ = cute.arch.thread_idx()
    rank = cute.arch.inline_ptx("mov.u32 $0, %cluster_ctarank;", "=r", results=cute.Int32)
    size = cute.arch.inline_ptx("mov.u32 $0, %cluster_nctarank;", "=r", results=cute.Int32)
    if i == 0:
        R[x] = rank + 10 * size


@pytest.fixture(scope="module")
def torch() -> Any:
    """PyTorch, which sees the GPU."""
    found = import_module("torch")
    assert found.cuda.is_available()
    return found


def _pair(torch: Any, **options: Any) -> tuple[Any, Any]:
    a = torch.arange(SIZE, dtype=torch.float32, device="cuda", **options)
    return a, torch.zeros_like(a)


def _launch(a: Any, b: Any, factor: float, **options: Any) -> None:
    axpy(a, b, factor).launch(BLOCKS, THREADS, **options)


def test_tensors_of_torch_are_passed_as_they_are(torch: Any) -> None:
    a, b = _pair(torch)
    for count in range(1, 6):
        _launch(a, b, 1.0)
        torch.testing.assert_close(b, a * count)
    assert len(axpy.launchers) == 1


def test_tensor_that_is_aligned_worse_gets_a_kernel_of_its_own(torch: Any) -> None:
    base = torch.zeros(SIZE + 1, device="cuda")
    a, _ = _pair(torch)
    for view in (base[1:], base[:-1], base[1:]):
        base.zero_()
        _launch(a, view, 2.0)
        torch.testing.assert_close(view, a * 2)


def test_tensors_that_change_between_launches(torch: Any) -> None:
    a, b = _pair(torch)
    for _ in range(3):
        _launch(a, b, 1.0)
    a.set_(torch.full((2 * SIZE,), 2.0, device="cuda"), SIZE, (SIZE,), (1,))
    _launch(a, b, 1.0)
    torch.testing.assert_close(b, 3 * torch.arange(SIZE, dtype=torch.float32, device="cuda") + 2)
    a.set_(torch.arange(2 * SIZE, dtype=torch.float32, device="cuda"), 0, (SIZE,), (2,))
    b.zero_()
    _launch(a, b, 1.0)
    torch.testing.assert_close(b, a)
    b.data = torch.zeros(SIZE, dtype=torch.float64, device="cuda")
    _launch(a, b, 1.0)
    torch.testing.assert_close(b, a.double())
    for _ in range(2):
        _launch(b, b, 1.0)  # one tensor twice
    torch.testing.assert_close(b, 4 * a.double())
    with torch.inference_mode():
        _launch(b, b, 1.0)
    torch.testing.assert_close(b, 8 * a.double())
    with pytest.raises(LaunchError, match="is a view that torch negates"):
        _launch(torch._neg_view(b), b, 1.0)


def test_current_stream_of_torch(torch: Any) -> None:
    a, b = _pair(torch)
    _launch(a, b, 1.0)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        b.zero_()
        _launch(a, b, 3.0)  # in the stream, after the zeros
    torch.cuda.current_stream().wait_stream(stream)
    torch.testing.assert_close(b, a * 3)
    _launch(a, b, 1.0, stream=stream)
    stream.synchronize()
    torch.testing.assert_close(b, a * 4)


def test_graph_of_torch(torch: Any) -> None:
    a, b = _pair(torch)
    _launch(a, b, 1.0)
    b.zero_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        _launch(a, b, 1.0)
        _launch(a, b, 1.0)
    torch.cuda.synchronize()
    assert not b.any()
    for _ in range(3):
        graph.replay()
    torch.testing.assert_close(b, a * 6)


def test_streams_events_and_graphs_of_cuda_core(torch: Any) -> None:
    core: Any = import_module("cuda.core")
    device = core.Device(0)
    device.set_current()
    a, b = _pair(torch)
    torch.cuda.synchronize()
    stream, timed = device.create_stream(), core.EventOptions(timing_enabled=True)
    begin = stream.record(options=timed)
    _launch(a, b, 1.0, stream=stream)
    end = stream.record(options=timed)
    end.sync()
    assert 0 <= end - begin < 1000
    torch.testing.assert_close(b, a)
    builder = stream.create_graph_builder().begin_building()
    _launch(a, b, 1.0, stream=builder)
    graph = builder.end_building().complete()
    for _ in range(4):
        graph.launch(stream)
    stream.sync()
    torch.testing.assert_close(b, a * 5)
    other = device.create_stream()
    other.wait(end)
    graph.launch(other)
    other.sync()
    torch.testing.assert_close(b, a * 6)


def test_stream_of_cuda_python(torch: Any) -> None:
    bindings: Any = import_module("cuda.bindings.driver")
    a, b = _pair(torch)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    _launch(a, b, 1.0, stream=bindings.CUstream(stream.cuda_stream))
    stream.synchronize()
    torch.testing.assert_close(b, a)


def test_threads_without_a_context(torch: Any) -> None:
    a, b = _pair(torch)
    _launch(a, b, 0.0)
    torch.cuda.synchronize()
    outputs = [torch.zeros_like(a) for _ in range(4)]
    failed: list[BaseException] = []

    def run(output: Any, factor: int) -> None:
        try:
            for _ in range(200):
                _launch(a, output, float(factor))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(output, n)) for n, output in enumerate(outputs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    assert not failed
    for factor, output in enumerate(outputs):
        torch.testing.assert_close(output, a * (200 * factor))


def test_programmatic_launch_order(torch: Any) -> None:
    a, b = _pair(torch)
    for _ in range(20):
        _launch(a, b, 1.0, use_pdl=True)
        torch.cuda.synchronize()  # the kernel does not wait for the one before by itself
    torch.testing.assert_close(b, a * 20)


@pytest.mark.parametrize("programmatic", [False, True])
def test_launch_in_clusters(torch: Any, programmatic: bool) -> None:
    result = torch.zeros(8, dtype=torch.int32, device="cuda")
    for cluster, size in ((1, 1), (2, 2), (4, 4), ((2, 1), 2), (8, 8), (None, 1)):
        ranks(result).launch(8, 32, cluster=cluster, use_pdl=programmatic)
        torch.cuda.synchronize()
        assert result.tolist() == [block % size + 10 * size for block in range(8)]


def test_dynamic_extents(torch: Any) -> None:
    for shape in ((1, 32), (5, 64), (7, 96)):
        a = torch.rand(shape, device="cuda", generator=torch.Generator("cuda").manual_seed(0))
        b = torch.zeros_like(a)
        rows(a, b).launch(shape[0], 32)
        torch.testing.assert_close(b[:, :32], a[:, :32])
    assert len(rows._built) == 1  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(LaunchError, match="extent 33 of mode 1 is not a multiple of 32"):
        rows(torch.zeros(2, 33, device="cuda"), b).launch(2, 32)


def test_arrays_of_numpy_are_copied() -> None:
    a = np.arange(SIZE, dtype=np.float32)
    b = np.ones_like(a)
    _launch(a, b, 2.0, device="cuda")
    np.testing.assert_array_equal(b, 2 * a + 1)


def test_arrays_of_cupy() -> None:
    cupy: Any = import_module("cupy")
    a = cupy.arange(SIZE, dtype=cupy.float32)
    b = cupy.zeros_like(a)
    for count in range(1, 4):
        _launch(a, b, 1.0)
        np.testing.assert_array_equal(b.get(), count * a.get())
    with cupy.cuda.Stream() as stream:
        _launch(a, b, 1.0, stream=stream)
        stream.synchronize()
    np.testing.assert_array_equal(b.get(), 4 * a.get())


def test_arrays_of_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the other tests need memory as well
    jax: Any = import_module("jax")
    a = jax.numpy.arange(SIZE, dtype=jax.numpy.float32)
    b = jax.numpy.zeros_like(a).block_until_ready()
    _launch(a, b, 2.0)
    import_module("torch").cuda.synchronize()
    np.testing.assert_array_equal(np.from_dlpack(jax.device_get(b)), 2 * np.arange(SIZE, dtype=np.float32))


def test_array_on_the_host_among_those_of_the_gpu(torch: Any) -> None:
    a, b = _pair(torch)
    with pytest.raises(LaunchError, match="argument 'B' is in the host's memory, argument 'A' on GPU 0"):
        _launch(a, b.cpu(), 1.0)
    with pytest.raises(LaunchError, match="which the simulator cannot reach"):
        _launch(a, b, 1.0, device="sim")


def test_second_device(torch: Any) -> None:
    if torch.cuda.device_count() < 2:
        with pytest.raises(Exception, match="there is no device 1"):
            axpy(np.zeros(SIZE, "f4"), np.zeros(SIZE, "f4"), 1.0).launch(BLOCKS, THREADS, device="cuda:1")
        return
    a, b = (x.to("cuda:1") for x in _pair(torch))
    for count in range(1, 4):
        _launch(a, b, 1.0)
        torch.cuda.synchronize(1)
        torch.testing.assert_close(b, a * count)
        assert torch.cuda.current_device() == 0
