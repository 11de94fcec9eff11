# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clusters of a launch on several processes: each is a copy of this one, simulates some of them, and returns their
writes and costs.

The outcome is that of one process, where none accesses bytes that the clusters of another write. Where one does, and
where a process does not come to its end, OutOfStepError says that nothing may be used.
"""

import os
import pickle
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...base.errors import Code
from .faults import Site
from .launch import LaunchState, OutOfStepError, refuse_output
from .memory.arena import READY
from .memory.spaces import Space
from .translate import Translator

Clusters: TypeAlias = list[tuple[int, int]]
"""Clusters by number and size."""
WORTH = 1.0
"""Seconds that clusters take in one process, by the first one, from which on several are worth it."""


def can_share() -> bool:
    """Whether this process may be copied: only with a single thread are all locks free in the copy. JAX has more."""
    return sys.platform == "linux" and threading.active_count() == 1 and "jax" not in sys.modules


@dataclass(frozen=True, slots=True)
class Share:
    """The work of a process: its steps, executions and costs of accesses, the granules of global memory, of `granule`
    bytes each, that it has written and read, with the bytes of the former, its remarks, and the
    assumptions that it makes.
    """

    counts: NDArray[np.int64]
    granule: int
    written: NDArray[np.int64]
    read: NDArray[np.int64]
    data: NDArray[np.uint8]
    remarks: dict[Site, tuple[Code, str]]
    assumed: dict[Site, str]


@dataclass(slots=True)
class Ledger:
    """The counters and the global memory of a launch, by which processes report their work."""

    launch: LaunchState
    space: Space
    translator: Translator
    _before: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    _began: int = 0

    def begin(self) -> None:
        """Begins the work that is shared out."""
        self._before, self._began = self._counts(), self.launch.tick()

    def share(self) -> Share:
        """The work of this process since then."""
        assert self.space.shadow is not None
        granule, written, read = self.space.shadow.since(self._began)
        data = self.space.arena.data[1].reshape(-1, granule)[written]
        journal = self.space.journal
        remarks, assumed = ({}, {}) if journal is None else (journal.remarks, journal.assumed)
        return Share(self._counts() - self._before, granule, written, read, data, remarks, assumed)

    def add(self, share: Share) -> None:
        """Takes over the results of another process. OutOfStepError beyond the budget."""
        steps, *counts = share.counts.tolist()
        self.launch.steps += steps
        if self.launch.steps > self.launch.budget.steps:
            raise OutOfStepError(always=False)
        numbers = iter(counts)
        for counter, names in self._counters():
            for name in names:
                setattr(counter, name, getattr(counter, name) + next(numbers))
        arena = self.space.arena
        arena.data[1].reshape(-1, share.granule)[share.written] = share.data
        arena.state[1].reshape(-1, share.granule)[share.written] = READY
        assert self.space.shadow is not None
        several = np.zeros(len(share.written), np.int64)
        self.space.shadow.date(share.written, share.granule, self.launch.clock, several)
        for site, (code, text) in share.remarks.items():
            assert self.space.journal is not None
            self.space.journal.remark(site, text, code)
        for site, text in share.assumed.items():
            assert self.space.journal is not None
            self.space.journal.assume(site, text)

    def _counts(self) -> NDArray[np.int64]:
        counts = [getattr(counter, name) for counter, names in self._counters() for name in names]
        return np.array([self.launch.steps, *counts], np.int64)

    def _counters(self) -> Iterator[tuple[object, tuple[str, ...]]]:
        """The counters of blocks and of accesses, with the names of their numbers."""
        for part in self.translator.parts:
            yield part.executions, ("warps", "threads")
        for access in self.translator.accesses:
            yield access, ("requests", "threads", "transactions", "minimum")


@dataclass(slots=True)
class _Process:
    """A copy of this process that simulates clusters, and the end of its pipe."""

    number: int
    pipe: int
    ended: bool = False

    def share(self) -> Share:
        """Its work, once it has ended. OutOfStepError if it has failed."""
        with os.fdopen(os.dup(self.pipe), "rb") as stream:
            content = stream.read()
        status = os.waitpid(self.number, 0)[1]
        self.ended = True
        if status:
            raise OutOfStepError(always=False)
        share = pickle.loads(content)  # the bytes are those of our own copy
        assert isinstance(share, Share)
        return share

    def close(self) -> None:
        """Ends it, if it has not ended."""
        os.close(self.pipe)
        if not self.ended:
            os.kill(self.number, signal.SIGKILL)
            os.waitpid(self.number, 0)


def run_by_processes(clusters: Clusters, count: int | None, run: Callable[[Clusters], None], ledger: Ledger) -> None:
    """Runs clusters: the first one here, the others in `count` processes, or in one per core where these are worth
    it. All of them run here where the first one prints.
    """
    began = time.perf_counter()
    run(clusters[:1])
    others = clusters[1:]
    worth = count is not None or (time.perf_counter() - began) * len(others) > WORTH
    if ledger.launch.printed or not worth:
        run(others)
        return
    ledger.launch.sink = refuse_output
    share_out(others, count or os.cpu_count() or 1, run, ledger)


def share_out(clusters: Clusters, count: int, run: Callable[[Clusters], None], ledger: Ledger) -> None:
    """Runs clusters in `count` processes, this one among them: each has some that follow each other. Where this
    process may not be copied, it runs all of them.
    """
    count = min(count, len(clusters)) if can_share() else 1
    borders = [len(clusters) * number // count for number in range(count + 1)]
    parts = [clusters[first:last] for first, last in pairwise(borders)]
    ledger.begin()
    if ledger.launch.progress is not None:
        ledger.launch.progress.share(ledger.launch.ended, count)
    processes: list[_Process] = []
    try:
        for part in parts[1:]:
            processes.append(_begin(part, run, ledger))
        run(parts[0])
        shares = [ledger.share(), *[process.share() for process in processes]]
    finally:
        for process in processes:
            process.close()
    _refuse_conflicts(shares, ledger.space.arena.span)
    for share in shares[1:]:
        ledger.add(share)


def _begin(part: Clusters, run: Callable[[Clusters], None], ledger: Ledger) -> _Process:
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the threads of NumPy's library, which provides for copies
        number = os.fork()
    if number:
        os.close(writing)
        return _Process(number, reading)
    status = 1
    ledger.launch.progress = None  # one process tells it
    with suppress(BaseException):
        run(part)
        with os.fdopen(writing, "wb") as stream:
            pickle.dump(ledger.share(), stream)
        status = 0
    os._exit(status)


def _refuse_conflicts(shares: Sequence[Share], size: int) -> None:
    """OutOfStepError if a process has accessed a byte that another one has written."""
    granule = min(share.granule for share in shares)
    written, read = np.zeros(size // granule, bool), np.zeros(size // granule, bool)
    for share in shares:
        writes, reads = (_marks(size, share.granule, which, granule) for which in (share.written, share.read))
        if (writes & (written | read)).any() or (reads & written).any():
            raise OutOfStepError(always=False)
        written |= writes
        read |= reads


def _marks(size: int, granule: int, which: NDArray[np.int64], unit: int) -> NDArray[np.bool_]:
    """Granules by their numbers as marks of units, which are no larger."""
    marks = np.zeros(size // granule, bool)
    marks[which] = True
    return np.repeat(marks, granule // unit)
