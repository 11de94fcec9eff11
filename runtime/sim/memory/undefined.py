# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Unwritten bytes that a thread reads: a fault where the kernel does anything that depends on them.

A matrix instruction reads whole tiles, of which a kernel may have written and may use only some rows. The launch runs
again to find the uses of a byte, once for each of some contents of all such bytes. The runs agree in all that is seen
from outside and in every decision: stores to global memory, addresses, conditions, printed text, other faults. Where
two runs differ, something undefined was used. A launch that reads no such byte runs once.
"""

from array import array
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar
from zlib import crc32

import numpy as np

from ....base.errors import Code
from ...engine import NumPyArray
from ..faults import WRITE_FIRST, At, SimulationError, Site, Thread

T = TypeVar("T")

FILLS = (0x00, 0xFF, 0x3C, 0xBC, 0x6D)
"""The undefined bytes of each run: 0, -1 or not a number, a positive number, a negative one, and an odd one."""

_ENDS = "ends"


class _CapturedError(Exception):
    """A run has reached the event whose data it keeps."""


class _DifferenceError(Exception):
    """An event of a run differs from that of the first one."""

    def __init__(self, index: int, event: "_Event") -> None:
        super().__init__()
        self.index = index
        self.event = event


class Lanes(Protocol):
    """The threads of a warp."""

    def lane_numbers(self) -> NumPyArray:
        """The numbers of the active lanes."""
        ...

    def thread_in(self, lane: int) -> Thread:
        """The coordinates of the block and of the thread in a lane."""
        ...


@dataclass(frozen=True, slots=True)
class _Event:
    """An act of a warp that must not depend on undefined bytes: its place, its name, and the data in its lanes."""

    site: Site | None
    does: str
    data: NumPyArray
    warp: Lanes | None = None
    error: SimulationError | None = None


@dataclass(slots=True)
class Trace:
    """The events of a run; `expected` are those of another one, with which they are compared."""

    fill: int
    only: Site | None = None
    """The operation that reads `fill`, where all others read the same values as in the first run."""
    expected: "array[int] | None" = None
    capture: int = -1
    """The number of the event whose data goes to `captured`, and which ends the run."""
    events: "array[int]" = field(default_factory=lambda: array("I"))
    captured: NumPyArray | None = None
    loads: dict[Site, tuple[str, At]] = field(default_factory=dict[Site, tuple[str, At]])
    """The operations that have read undefined bytes, with the first read of each in words, and its byte."""

    def read(self, site: Site, text: str, at: At = None) -> int:
        """The value of an undefined byte, `at`, that the operation at `site` reads; `text` describes the read."""
        self.loads.setdefault(site, (text, at))
        return self.fill if self.only in (None, site) else FILLS[0]

    def note(self, warp: Lanes | None, site: Site | None, does: str, data: object) -> None:
        """Adds an event, with data of each active lane: an array whose first axis is these lanes."""
        self._add(_Event(site, does, np.ascontiguousarray(data), warp))

    def note_error(self, error: SimulationError) -> None:
        """Adds the fault that ends the run."""
        text = np.frombuffer(str(error).encode(), np.uint8)
        self._add(_Event(error.site, "faults by", text, error=error))

    def _add(self, event: _Event) -> None:
        index = len(self.events)
        digest = crc32(event.data.tobytes(), crc32(repr(event.site).encode()))
        self.events.append(digest)
        if index == self.capture:
            self.captured = event.data.copy()
            raise _CapturedError
        if self.expected is not None and (index >= len(self.expected) or self.expected[index] != digest):
            raise _DifferenceError(index, event)


def run_agreed(run: Callable[[Trace], T]) -> T:
    """The result of `run`, if it does not depend on undefined bytes. Raises SimulationError (E3204) if it does, and
    the fault that `run` raises where that is always the same.
    """
    first = Trace(FILLS[0])
    outcome = _outcome(run, first)
    for fill in FILLS[1:]:
        difference = _difference(run, Trace(fill, expected=first.events))
        if difference is not None:
            raise _fault(run, first, fill, *difference)
    if isinstance(outcome, SimulationError):
        raise outcome
    return outcome


def _outcome(run: Callable[[Trace], T], trace: Trace) -> T | SimulationError:
    try:
        return run(trace)
    except SimulationError as error:
        trace.note_error(error)
        return error


def _difference(run: Callable[[Trace], object], trace: Trace) -> tuple[_DifferenceError, Trace] | None:
    """Where a run first differs from the events that are expected of it."""
    try:
        _outcome(run, trace)
        trace.note(None, None, _ENDS, np.zeros(0))  # a run that ends too early
    except _DifferenceError as difference:
        assert trace.expected is not None
        same = difference.event.does == _ENDS and difference.index == len(trace.expected)
        return None if same else (difference, trace)
    return None


def _fault(
    run: Callable[[Trace], object], first: Trace, fill: int, difference: _DifferenceError, trace: Trace
) -> SimulationError:
    """The fault of an operation that uses an undefined byte: it also names the operation that read it."""
    read = next(iter(trace.loads))
    if len(trace.loads) > 1:
        for site in trace.loads:
            alone = _difference(run, Trace(fill, site, first.events))
            if alone is not None:
                read, difference = site, alone[0]
                break
    event = difference.event
    block, thread = (event.error.block, event.error.thread) if event.error else (None, None)
    if event.warp is not None:
        lane = _lane(run, difference.index, event)
        block, thread = event.warp.thread_in(lane)
    described, at = trace.loads[read]
    where = described if read == event.site else f"{read}: {described}"
    text = f"{event.does} a value that depends on undefined bytes: {where}"
    return SimulationError(
        Code.SIM_UNINITIALISED, text, WRITE_FIRST,
        site=event.site or read, block=block, thread=thread, at=at, origin=read,
    )  # fmt: skip


def _lane(run: Callable[[Trace], object], index: int, event: _Event) -> int:
    """The first lane whose data in an event differ from those in the first run."""
    assert event.warp is not None
    lanes = event.warp.lane_numbers()
    first = Trace(FILLS[0], capture=index)
    with suppress(_CapturedError, SimulationError):
        run(first)
    data = event.data
    if first.captured is None or first.captured.shape != data.shape or len(data) != len(lanes):
        return int(lanes[0])
    differs = (first.captured != data).reshape(len(data), -1).any(axis=1)
    return int(lanes[differs.argmax()])
