# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far a long launch is: blocks done of all, an estimate of the time left, and the sizes that make it long.

A launch looks at the clock after some thousand steps, so that a short one pays nothing, and one that hangs in a block
says so, too. On a terminal and in a notebook one line is written over; elsewhere each text is a line, once.
"""

import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from math import prod
from typing import Protocol, TextIO

from ...base.target import WARP
from ..engine import LaunchConfig
from .faults import Site
from .launch import LaunchState

SLOW, LONG = 2.0, 10.0
"""Seconds after which a launch shows how far it is, and names the sizes to cut."""
_EVERY = 0.25
"""Seconds between two texts of a line that is written over."""
_NAMED = 2
"""The most loops that a message names."""


def _standard_error() -> TextIO | None:
    return sys.stderr


@dataclass(frozen=True, slots=True)
class Display:
    """Where progress is shown, None for nowhere, and the clock that it is measured by, in seconds."""

    stream: Callable[[], TextIO | None] = _standard_error
    clock: Callable[[], float] = time.perf_counter

    @property
    def is_live(self) -> bool:
        """Whether a line can be written over: on a terminal, and in a notebook."""
        stream = self.stream()
        return stream is not None and (type(stream).__module__.startswith("ipykernel") or stream.isatty())

    @contextmanager
    def following(self, configs: Sequence[LaunchConfig]) -> "Generator[Progress]":
        """Within it, a launch of some grids shows how far it is; no line that is written over stays behind."""
        progress = Progress(self, configs)
        try:
            yield progress
        finally:
            progress.clear()

    def write(self, text: str) -> None:
        """Writes text at once; nothing where the stream is closed."""
        stream = self.stream()
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.write(text)
                stream.flush()


class Loop(Protocol):
    """A loop of the program."""

    @property
    def site(self) -> Site:
        """Its operation."""
        ...

    @property
    def bodies(self) -> int:
        """How often warps have executed the body so far."""
        ...

    @property
    def steps(self) -> int:
        """The operations of the body itself that they have executed there."""
        ...


class Progress:
    """The progress of one launch, which may run several times until its outcome is sure."""

    def __init__(self, display: Display, configs: Sequence[LaunchConfig]) -> None:
        self._display = display
        self._blocks = sum(config.blocks for config in configs)
        self._largest = max(configs, key=lambda config: config.blocks * config.threads)
        self._began = self._ran = display.clock()
        self._due = self._began + SLOW
        self._shown = 0
        self._has_named = False
        self._before, self._processes = 0, 1
        self._loops: Sequence[Loop] = ()

    def begin(self, loops: Sequence[Loop]) -> None:
        """A run of a program with these loops begins, from the first block."""
        self._loops = loops
        self._ran = self._display.clock()
        self._before, self._processes = 0, 1

    def share(self, done: int, processes: int) -> None:
        """The blocks after those that are done are shared out: each process has done as many as this one."""
        self._before, self._processes = done, processes

    def look(self, launch: LaunchState) -> None:
        """Shows how far a launch is, if it is time to."""
        now = self._display.clock()
        if now < self._due:
            return
        live, seconds = self._display.is_live, now - self._began
        self._due = now + _EVERY if live else self._began + LONG if seconds < LONG else float("inf")
        if seconds >= LONG and not self._has_named:
            self._has_named = True
            self.clear()
            self._display.write(f"simulator: {self._far(launch, now)}; {self._cures(launch)}\n")
        elif live:
            text = f"simulator: {self._far(launch, now)}"
            self._display.write(f"\r{text:<{self._shown}}")
            self._shown = len(text)
        else:
            self._display.write(f"simulator: {self._far(launch, now)}\n")

    def clear(self) -> None:
        """Removes the line that is written over, before another text or the end."""
        if self._shown:
            self._display.write(f"\r{' ' * self._shown}\r")
            self._shown = 0

    def _far(self, launch: LaunchState, now: float) -> str:
        total = self._blocks
        done = min(total, self._before + (launch.ended - self._before) * self._processes)
        text = f"{done} of {total} {'block' if total == 1 else 'blocks'} in {now - self._began:.0f} s"
        if not 0 < done < total:
            return text
        return f"{text}, about {_duration((now - self._ran) * (total - done) / done)} left"

    def _cures(self, launch: LaunchState) -> str:
        """The sizes that make a launch long, with their extents."""
        sizes = [f"the grid {self._largest.grid}"] if self._largest.blocks > 1 else []
        warps = max(1, launch.started * -(-prod(self._largest.block) // WARP))
        loops = sorted(self._loops, key=lambda loop: loop.steps, reverse=True)
        for loop in [loop for loop in loops if loop.bodies > warps][:_NAMED]:
            place = loop.site.location or loop.site.op
            sizes.append(f"the loop at {place} (so far {round(loop.bodies / warps)} times in each warp)")
        return f"for a shorter simulation, cut {' or '.join(sizes or [f'the block {self._largest.block}'])}"


def _duration(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(1, round(seconds))} s"
