# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches of different streams of a simulated GPU: those that wait for each other run together."""

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import TilefoldError

from tilefold import cute
from tilefold.cute.utils import distributed
from tilefold.cutlass.replacements import Replacements
from tilefold.cutlass.without_gpu.device_calls import MissingGpu, take_the_place_of_gpus
from tilefold.cutlass.without_gpu.streams import streams_on_host
from tilefold.cutlass.without_gpu.work import Capture, Copy, Streams

N = 32


@cute.kernel
def send(data: cute.Tensor, there: cute.Tensor, back: cute.Tensor, order: cute.Constexpr[str]):
    """Writes data, says so, and waits for the answer."""
    t, _, _ = cute.arch.thread_idx()
    data[t] = t + 1.0
    cute.arch.sync_threads()
    if t == 0:
        distributed.red_add1(there.iterator, order=order, scope="gpu")
        distributed.spin_lock_atom_cas_acquire_wait(back.iterator, expected_val=1, scope="gpu")


@cute.kernel
def receive(data: cute.Tensor, there: cute.Tensor, back: cute.Tensor, out: cute.Tensor):
    """Waits for data, doubles it, and answers."""
    t, _, _ = cute.arch.thread_idx()
    if t == 0:
        distributed.spin_lock_atom_cas_acquire_wait(there.iterator, expected_val=1, scope="gpu")
    cute.arch.sync_threads()
    for i in range(2):
        out[2 * t + i] = 2 * data[t]
    cute.arch.sync_threads()
    if t == 0:
        distributed.red_add1(back.iterator, order="release", scope="gpu")


@cute.kernel
def increment(out: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    out[block * N + t] = out[block * N + t] + 1.0


class Exchange:
    """The memory of the two kernels, and their launches."""

    def __init__(self, order: str = "release") -> None:
        self.data, self.out = np.zeros(N, np.float32), np.zeros(2 * N, np.float32)
        there, self.back = np.zeros(1, np.int32), np.zeros(1, np.int32)
        self.send = partial(send(self.data, there, self.back, order).launch, grid=1, block=N)
        self.receive = partial(receive(self.data, there, self.back, self.out).launch, grid=1, block=N)
        self.increment = partial(increment(self.out).launch, grid=2, block=N)

    def result(self, more: int = 0) -> NDArray[Any]:
        """What must be in `out` after some increments."""
        return np.repeat(2 * np.arange(1, N + 1, dtype=np.float32), 2) + more


def torch_without_tensors() -> Any:
    """The parts of torch that streams replace."""
    parts = ("_C", "accelerator")
    return SimpleNamespace(
        cuda=SimpleNamespace(profiler=SimpleNamespace()), **{part: SimpleNamespace() for part in parts}
    )


@pytest.fixture
def cuda() -> Iterator[Any]:
    """`torch.cuda` of a GPU that there is not."""
    torch = torch_without_tensors()
    with Replacements() as replaced:
        take_the_place_of_gpus(gpu := MissingGpu(), replaced)
        streams_on_host(torch, gpu, replaced)
        yield torch.cuda


def test_launches_of_two_streams_wait_for_each_other(cuda: Any) -> None:
    exchange, first, second = Exchange(), cuda.Stream(), cuda.Stream()
    assert exchange.receive(stream=first) is None  # it is kept
    exchange.increment(stream=first)  # behind it
    assert not exchange.out.any()
    assert exchange.send(stream=second) is not None
    np.testing.assert_array_equal(exchange.out, exchange.result(1))
    exchange.increment(stream=first)
    cuda.synchronize()
    np.testing.assert_array_equal(exchange.out, exchange.result(2))


def test_the_current_stream_goes_on_beside_a_kept_launch(cuda: Any) -> None:
    exchange, other = Exchange(), cuda.Stream()
    exchange.receive(stream=other)
    exchange.send()
    np.testing.assert_array_equal(exchange.out, exchange.result())


def test_events_order_streams(cuda: Any) -> None:
    exchange, first, second, third = Exchange(), cuda.Stream(), cuda.Stream(), cuda.Stream()
    exchange.receive(stream=first)
    third.wait_event(first.record_event())
    exchange.increment(stream=third)
    assert not exchange.out.any()
    exchange.send(stream=second)
    third.synchronize()
    np.testing.assert_array_equal(exchange.out, exchange.result(1))


def test_a_launch_that_nothing_answers_is_found_where_the_program_waits(cuda: Any) -> None:
    exchange, first = Exchange(), cuda.Stream()
    exchange.receive(stream=first)
    Exchange().increment(stream=cuda.Stream())  # another one ends although that waits
    with pytest.raises(TilefoldError, match=r"E3231.*waits for memory that no thread changes"):
        first.synchronize()
    with pytest.raises(TilefoldError, match="E3231"):
        exchange.send()  # by the current stream, which is not kept


def test_races_of_launches_that_run_together_are_found(cuda: Any) -> None:
    exchange, first, second = Exchange("relaxed"), cuda.Stream(), cuda.Stream()
    exchange.receive(stream=first)
    with pytest.raises(TilefoldError, match=r"(?s)E3205.*@receive: race: reads .* of @send wrote.*does not release"):
        exchange.send(stream=second)


def test_a_copy_of_a_graph_comes_behind_launches_that_do_not_wait_for_it(cuda: Any) -> None:
    launched, copied, order = Streams(), Streams(), list[str]()
    for streams, copy in ((launched, None), (copied, Copy("copy", list))):
        first, other = streams.create(), streams.create()
        streams.capture = capture = Capture()
        streams.do(partial(order.append, "work"), other, copy)
        streams.do(partial(order.append, "launch"), first)
        streams.follow(other, streams.mark(first))
        streams.do(partial(order.append, "behind"), other)
        streams.capture = None
        streams.replay(capture.nodes)
    assert order == ["work", "launch", "behind", "launch", "work", "behind"]


def test_streams_of_a_graph_run_together(cuda: Any) -> None:
    exchange, graph, origin, fork = Exchange(), cuda.CUDAGraph(), cuda.Stream(), cuda.Stream()
    with cuda.graph(graph, stream=origin):
        fork.wait_stream(origin)
        exchange.receive(stream=fork)
        exchange.send(stream=origin)
        origin.wait_stream(fork)
        exchange.increment(stream=origin)
    for _ in range(2):
        graph.replay()
        np.testing.assert_array_equal(exchange.out, exchange.result(1))
