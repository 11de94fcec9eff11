# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Work of different streams that ends one after the other: a race where the program puts neither behind the other."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.runtime.accesses import READ, READ_ATOMICALLY, WRITTEN, WRITTEN_ATOMICALLY, Accesses, Piece

from tests.devices.test_streams import Exchange, N, increment, torch_without_tensors
from tilefold.cutlass.replacements import Replacements
from tilefold.cutlass.without_gpu.device_calls import MissingGpu, device_on_host, take_the_place_of_gpus
from tilefold.cutlass.without_gpu.host_memory import memory_on_host
from tilefold.cutlass.without_gpu.streams import streams_on_host


class Program:
    """A program with two streams, one of which has launched a kernel that writes `data`."""

    def __init__(self) -> None:
        torch = torch_without_tensors()
        self.cuda: Any = torch.cuda
        self.gpu, self.replaced = MissingGpu(), Replacements()
        take_the_place_of_gpus(self.gpu, self.replaced)
        memory_on_host(self.gpu.streams, self.replaced)
        device_on_host(self.gpu, self.replaced)
        streams_on_host(torch, self.gpu, self.replaced)
        self.first, self.second = self.cuda.Stream(), self.cuda.Stream()
        self.data, self.copy = np.zeros((2, 2 * N), np.float32)
        self.launch(self.first)

    def launch(self, stream: Any) -> None:
        increment(self.data).launch(grid=2, block=N, stream=stream)

    def copy_in(self, stream: Any, begin: int = 0) -> None:
        runtime: Any = pytest.importorskip("cuda.bindings.runtime")
        kind, source = runtime.cudaMemcpyKind.cudaMemcpyDefault, self.data[begin:]
        runtime.cudaMemcpyAsync(self.copy, source, source.nbytes, kind, stream.cuda_stream)

    def event(self) -> None:
        self.second.wait_event(self.first.record_event())


@pytest.fixture
def program() -> Iterator[Program]:
    program = Program()
    with program.replaced:
        yield program


RACES: dict[str, tuple[Callable[[Program], object], str]] = {
    "a copy reads what a launch writes": (
        lambda p: p.copy_in(p.second),
        r"cudaMemcpyAsync at .*: race: reads 256 bytes .* in stream 0x1001; launch at .* writes them, as out",
    ),
    "a copy reads a part of it": (lambda p: p.copy_in(p.second, 2 * N - 1), ".*race: reads 4 bytes"),
    "a launch writes what a copy reads": (
        lambda p: (p.event(), p.copy_in(p.second), p.launch(p.first)),
        "launch at .*: race: writes 256 bytes of out in stream 0x1000; cudaMemcpyAsync at .* reads them",
    ),
    "two launches": (lambda p: p.launch(p.second), "launch at .*: race: writes 256 bytes of out"),
    "an event that is recorded before the launch": (
        lambda p: (p.event(), p.launch(p.first), p.copy_in(p.second)),
        ".*race: reads 256 bytes",
    ),
    "the default stream beside one that does not wait for it": (lambda p: p.launch(None), ".*in the default stream"),
}  # fmt: skip


@pytest.mark.parametrize("name", RACES)
def test_races_are_found(program: Program, name: str) -> None:
    act, words = RACES[name]
    with pytest.raises(TilefoldError, match=rf"E3205: {words}"):
        act(program)


ORDERED: dict[str, Callable[[Program], object]] = {
    "an event": lambda p: (p.event(), p.copy_in(p.second), p.launch(p.second)),
    "a stream that waits for another": lambda p: (p.second.wait_stream(p.first), p.launch(p.second)),
    "the program waits": lambda p: (p.first.synchronize(), p.launch(p.second)),
    "the program waits for all": lambda p: (p.cuda.synchronize(), p.launch(None)),
    "the same stream": lambda p: (p.launch(p.first), p.copy_in(p.first)),
    "by way of a third stream": lambda p: (
        (third := p.cuda.Stream()).wait_stream(p.first), p.second.wait_stream(third), p.launch(p.second),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERED)
def test_ordered_work_is_no_race(program: Program, name: str) -> None:
    ORDERED[name](program)


def test_a_flag_orders_launches(program: Program) -> None:
    exchange = Exchange()
    exchange.receive(stream=program.first)
    exchange.send(stream=program.second)  # the two run together
    exchange.increment(stream=program.second)
    exchange = Exchange()
    exchange.back[0] = 1
    exchange.send(stream=program.second)  # one after the other
    exchange.receive(stream=program.first)
    with pytest.raises(TilefoldError, match=r"E3205: .*: race: writes .* of out in stream 0x1001"):
        exchange.increment(stream=program.second)


def test_the_order_of_a_graph_is_that_of_its_streams(program: Program) -> None:
    for is_ordered in (True, False):
        graph = program.cuda.CUDAGraph()
        with program.cuda.graph(graph, stream=program.first):
            program.second.wait_stream(program.first)
            program.launch(program.second)
            if is_ordered:
                program.first.wait_stream(program.second)
            program.launch(program.first)
        if is_ordered:
            graph.replay()
            continue
        with pytest.raises(TilefoldError, match=r"E3205: launch at .* in a graph"):
            graph.replay()


def test_accesses_that_conflict() -> None:
    def at(address: int, *flags: int) -> Accesses:
        return Accesses.of([Piece("memory", address, np.array(flags, np.uint8))])

    conflict = {(READ, WRITTEN), (WRITTEN, WRITTEN), (WRITTEN, READ_ATOMICALLY), (WRITTEN, WRITTEN_ATOMICALLY)}
    conflict |= {(READ, WRITTEN_ATOMICALLY)}
    conflict |= {(second, first) for first, second in conflict}
    kinds = READ, WRITTEN, READ_ATOMICALLY, WRITTEN_ATOMICALLY
    for first in kinds:
        for second in kinds:
            overlap = at(10, 0, first, first).overlap(at(12, second))
            assert (overlap is not None) is ((first, second) in conflict), (first, second)
            covers = all(
                pair in conflict for pair in ((first, third) for third in kinds if (second, third) in conflict)
            )
            is_lost = second == WRITTEN_ATOMICALLY != first
            assert at(10, first).covers(at(10, second)) is (covers and not is_lost), (first, second)
    several = Accesses.of([Piece("a", 0, np.full(8, READ, np.uint8)), Piece("b", 4, np.full(8, WRITTEN, np.uint8))])
    assert several.overlap(at(2, *[READ] * 4)).count == 2  # pyright: ignore[reportOptionalMemberAccess]
    assert several.overlap(at(0, *[READ] * 4)) is None
    assert at(0, WRITTEN_ATOMICALLY).meets(at(0, WRITTEN_ATOMICALLY))
    assert not at(0, READ).meets(at(0, WRITTEN_ATOMICALLY))
    assert at(0).overlap(several) is None
