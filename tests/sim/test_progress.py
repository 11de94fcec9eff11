# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The progress of long launches, by clocks of the tests' own: blocks done, the time left, and the sizes to cut."""

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target
from tilefold.runtime.engine import LaunchConfig, RunResult, TensorArgument
from tilefold.runtime.options import SimOptions
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.progress import Display
from tilefold.runtime.sim.sim_engine import SimEngine, discard

from tilefold import cute

BLOCKS, TRIPS = 40, 50


@cute.kernel
def grows(A: cute.Tensor, n: cute.Int32):
    b, _, _ = cute.arch.block_idx()
    t, _, _ = cute.arch.thread_idx()
    x = A[b * 32 + t]
    for _ in range(n):
        x = x + 1.0
    A[b * 32 + t] = x


@cute.kernel
def prints(A: cute.Tensor, n: cute.Int32):
    b, _, _ = cute.arch.block_idx()
    t, _, _ = cute.arch.thread_idx()
    A[b * 32 + t] = n.to(cute.Float32)
    if t == 0:
        cute.printf("block {}", b)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Notebook(io.StringIO):
    pass


Notebook.__module__ = "ipykernel.iostream"


def ticking(step: float) -> Callable[[], float]:
    """A clock that goes on by so many seconds at each look."""
    times = count()
    return lambda: next(times) * step


@pytest.fixture(autouse=True)
def _every_step(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr("tilefold.runtime.sim.launch.EVERY_STEPS", 1)


def run(
    stream: io.StringIO | None, clock: Callable[[], float], kernel: Any = grows, blocks: int = BLOCKS, **options: Any
) -> RunResult:
    """Simulates a launch that shows its progress on a stream, by a clock, and checks its result."""
    A = np.zeros(BLOCKS * 32, np.float32)
    built = kernel(A, TRIPS).build(32)
    program = SimProgram(built.program.reached("instr", Target("sm_80")), built.symbol)
    engine = SimEngine(SimOptions(**options), discard)
    engine = replace(engine, display=None if stream is None else Display(lambda: stream, clock))
    result = engine.launch(program, LaunchConfig((blocks, 1, 1), (32, 1, 1)), {"A": TensorArgument.of(A), "n": TRIPS})
    assert A[0] == TRIPS
    return result


def texts(stream: io.StringIO) -> list[str]:
    """The texts of a line that was written over, one after the other."""
    return [text.rstrip() for text in re.split(r"[\r\n]", stream.getvalue()) if text.strip()]


def done(text: str) -> int:
    found = re.search(rf"simulator: (\d+) of {BLOCKS} blocks in \d+ s", text)
    assert found is not None, text
    return int(found[1])


def test_a_short_launch_shows_nothing_and_does_not_look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = count()

    def clock() -> float:
        return next(looks) * 0.0

    for stream in (io.StringIO(), Terminal(), Notebook()):
        run(stream, clock, processes=1)
        assert stream.getvalue() == ""
    monkeypatch.undo()
    before = next(looks)
    steps = run(Terminal(), clock, processes=1, races=False).counters.steps
    assert next(looks) - before - 1 <= 4 + steps // 1024


@pytest.mark.parametrize("kind", [Terminal, Notebook])
def test_a_line_is_written_over(kind: Callable[[], io.StringIO]) -> None:
    """It counts up, estimates by what is done, and is gone in the end."""
    stream = kind()
    run(stream, ticking(0.01), seed=1)
    shown = [text for text in texts(stream) if "cut" not in text]
    counts = [done(text) for text in shown]
    assert counts == sorted(counts)
    assert len(set(counts)) > 5
    for text, blocks in zip(shown, counts, strict=True):
        assert ("left" in text) == (0 < blocks < BLOCKS)
    assert "\n" not in stream.getvalue().replace(next(text for text in texts(stream) if "cut" in text) + "\n", "")
    assert re.search(r"\r +\r$", stream.getvalue())


def test_the_estimate_is_the_time_of_the_blocks_that_are_left() -> None:
    """Of equal blocks, each look takes as long."""
    stream = Terminal()
    run(stream, ticking(0.05), seed=1)
    for text in texts(stream):
        seconds, left = re.search(r"in (\d+) s", text), re.search(r"about (\d+) (s|min) left", text)
        if seconds is not None and left is not None and done(text) >= 4:
            expected = int(seconds[1]) * (BLOCKS - done(text)) / done(text)
            assert abs(int(left[1]) * (60 if left[2] == "min" else 1) - expected) <= 60 + 0.2 * expected


def test_elsewhere_each_text_is_one_line() -> None:
    """One after 2 seconds, and one after 10, which names the sizes to cut."""
    stream = io.StringIO()
    run(stream, ticking(0.02), seed=1)
    first, second = stream.getvalue().splitlines()
    assert re.fullmatch(rf"simulator: \d+ of {BLOCKS} blocks in 2 s(, about \d+ s left)?", first)
    line = grows.function.__code__.co_firstlineno + 5
    cut = re.search(r"in 10 s.*; for a shorter simulation, cut (.*)$", second)
    assert cut is not None
    place = re.escape(f"the loop at {__file__}:{line}:5")
    assert re.fullmatch(rf"the grid \({BLOCKS}, 1, 1\) or {place} \(so far \d+ times in each warp\)", cut[1])
    times = re.search(r"so far (\d+) times", second)
    assert times is not None
    assert TRIPS // 2 <= int(times[1]) <= TRIPS


def test_a_launch_of_one_block_names_its_loop() -> None:
    stream = io.StringIO()
    run(stream, ticking(1), blocks=1, processes=1)
    first, second = stream.getvalue().splitlines()
    assert first == "simulator: 0 of 1 block in 2 s"
    assert "cut the loop at" in second
    assert "the grid" not in second


def test_a_text_of_the_kernel_is_not_written_into_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    stream = Terminal()
    result = run(stream, ticking(0.1), kernel=prints, processes=1)
    assert result.output.splitlines() == [f"block {b}" for b in range(BLOCKS)]
    assert stream.getvalue().endswith("\r")


def test_a_fault_leaves_no_line_behind() -> None:
    stream = Terminal()
    with pytest.raises(TilefoldError, match="E3210"):
        run(stream, ticking(0.5), max_steps=500, seed=1)
    assert texts(stream)
    assert re.search(r"\r +\r$", stream.getvalue())


def test_processes_count_for_all() -> None:
    """One of them tells it; the others have done as much."""
    stream = Terminal()
    run(stream, ticking(0.05), processes=4)
    counts = [done(text) for text in texts(stream)]
    assert max(counts) > BLOCKS // 2
    assert all(blocks <= BLOCKS for blocks in counts)


def test_nothing_is_shown_where_nothing_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, is_shown in (("0", False), ("1", True)):
        monkeypatch.setenv("TILEFOLD_SIM_PROGRESS", value)
        assert (SimEngine().display is not None) == is_shown
    monkeypatch.setenv("TILEFOLD_SIM_PROGRESS", "maybe")
    with pytest.raises(TilefoldError, match="E4003"):
        SimEngine()
    monkeypatch.undo()
    run(None, ticking(1), processes=1)


def test_a_closed_stream_is_no_fault() -> None:
    class Closed(Terminal):
        def isatty(self) -> bool:
            return True

        def write(self, s: str) -> int:
            raise ValueError("I/O operation on closed file")

    run(Closed(), ticking(1), processes=1)
    Display(lambda: None).write("text")


PROGRAM = """
from tilefold.runtime.sim import launch, progress
progress.SLOW, launch.EVERY_STEPS = 0.0, 1
import numpy as np
from tilefold import cute

@cute.kernel
def k(A: cute.Tensor):
    b, _, _ = cute.arch.block_idx()
    A[b] = 1.0

k(np.zeros(9, np.float32)).launch(9, 1, device="sim")
"""
"""A program for which every launch is a long one."""


@pytest.mark.parametrize("setting", ["0", "1"])
def test_the_standard_error_of_a_program(tmp_path: Path, setting: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "TILEFOLD_SIM_PROGRESS": setting}
    ended = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, env=environment, check=True)
    assert ended.stdout == ""
    assert ("simulator: " in ended.stderr) == (setting == "1"), ended.stderr
