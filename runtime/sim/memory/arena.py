# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bytes with a state for each, the stuff of state spaces of the simulator."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...engine import AccessCount, NumPyArray
from ..faults import Site

ABSENT, UNWRITTEN, READY, IN_FLIGHT, MBARRIER = range(5)
"""The states of a byte: not allocated, allocated but undefined, defined, being written by an asynchronous copy, part of
an mbarrier.
"""

TAKEN = np.isin(np.arange(MBARRIER + 1), (ABSENT, IN_FLIGHT, MBARRIER))
"""Whether no thread may write a byte, by its state."""

WIDTHS = (1, 2, 4, 8, 16, 32)
"""Sizes in bytes that one access can have."""

WORDS = {width: np.dtype({16: "c16", 32: "V32"}.get(width, f"u{width}")) for width in WIDTHS}
"""Types of these sizes, by which NumPy copies fastest."""

NAMED = "shared tensor "
"""The words before the name of a tensor in shared memory, `%bars`."""


def unnamed(byte: int) -> str | None:
    """The name of a byte of an allocation whose elements have no names."""
    return None


@dataclass(frozen=True, slots=True)
class Allocation:
    """`size` bytes from offset `start` on, and their name in messages; `element` names the element of a byte, and
    `sharing` the elements of one that several have.
    """

    name: str
    start: int
    size: int
    element: Callable[[int], str | None] = unnamed
    sharing: Callable[[int], str | None] = unnamed


class Arena:
    """A range of bytes from which allocations are cut, with unallocated gaps between them.

    `data[w]` and `state[w]` show the bytes as rows of `w`, so that row `i` is the naturally aligned access of
    `w` bytes at offset `i * w`. They hold one window after the other: `span` bytes each, with the same allocations.
    """

    ALIGN = 256

    def __init__(self, guard: int = ALIGN) -> None:
        """An empty arena that leaves `guard` bytes before, between and after its allocations."""
        self.guard = guard
        self.allocations: list[Allocation] = []
        self.parts: list[Allocation] = []
        """Allocations within others that have names of their own."""
        self.size = guard
        self._again: Iterator[Allocation] = iter(())
        self.data: dict[int, NDArray[np.uint8]] = {}
        self.state: dict[int, NDArray[np.uint8]] = {}

    def allocate(
        self,
        name: str,
        size: int,
        align: int = ALIGN,
        element: Callable[[int], str | None] = unnamed,
        like: int = 0,
        sharing: Callable[[int], str | None] = unnamed,
    ) -> int:
        """Reserves `size` bytes at a multiple of `align`, or as far behind one as the address `like` is; returns their
        offset. Only before `build`.
        """
        align = max(align, 16)
        known = next(self._again, None)
        if known is not None and (known.name, known.size, known.start % align) == (name, size, like % align):
            return known.start
        self._again = iter(())
        start = -(-self.size // align) * align + like % align
        self.allocations.append(Allocation(name, start, size, element, sharing))
        self.size = start + size + self.guard
        return start

    def begin_again(self, first: int) -> None:
        """Reuses the existing allocations after the `first` ones for the next, as long as they are alike: those
        of a kernel on another device, whose blocks have windows of their own.
        """
        self._again = iter(self.allocations[first:])

    def at(self, start: int) -> Allocation:
        """The allocation that begins at an offset, or the part of one."""
        known = (*self.parts, *self.allocations)
        return next(allocation for allocation in known if allocation.start == start)

    @property
    def allocated(self) -> int:
        """The bytes of all allocations."""
        return sum(allocation.size for allocation in self.allocations)

    @property
    def span(self) -> int:
        """The bytes of a window, a multiple of `ALIGN`."""
        return -(-self.size // self.ALIGN) * self.ALIGN

    def build(self, windows: int = 1) -> None:
        """Creates the bytes; allocated ones are undefined. Pages that are not touched take no memory."""
        data, state = np.zeros(windows * self.span, np.uint8), np.zeros(windows * self.span, np.uint8)
        self.data = {w: data.reshape(-1, w) for w in WIDTHS}
        self.state = {w: state.reshape(-1, w) for w in WIDTHS}
        self.reset()

    def reset(self) -> None:
        """Makes all allocated bytes undefined."""
        windows = self.state[1].reshape(-1, self.span)
        for allocation in self.allocations:
            windows[:, allocation.start : allocation.start + allocation.size] = UNWRITTEN

    def fill(self, start: int, content: NumPyArray, defined: bool) -> None:
        """Writes an array's bytes at offset `start`; unless `defined`, they stay undefined for the kernel."""
        raw = content.view(np.uint8)
        self.data[1][start : start + raw.size, 0] = raw
        if defined:
            self.state[1][start : start + raw.size, 0] = READY

    def remove(self, start: int, size: int) -> None:
        """Makes bytes unallocated: accesses of their addresses are faults."""
        self.state[1][start : start + size, 0] = ABSENT

    def read_back(self, start: int, content: NumPyArray) -> None:
        """Copies the bytes at offset `start` into an array."""
        raw = content.view(np.uint8)
        raw[:] = self.data[1][start : start + raw.size, 0]

    def sharing(self, offset: int) -> str | None:
        """The elements that have the byte at an offset, if they are several."""
        home = next((a for a in self.allocations if a.start <= offset < a.start + a.size), None)
        return None if home is None else home.sharing(offset - home.start)

    def ended_before(self, offset: int) -> Allocation | None:
        """The nearest allocation that ends before an offset; None where one begins there, or none is before."""
        index = bisect_right([a.start for a in self.allocations], offset) - 1
        allocation = self.allocations[index] if index >= 0 else None
        return None if allocation is None or offset < allocation.start + allocation.size else allocation

    def place(self, offset: int, width: int) -> str | None:
        """The element of `width` bytes at an offset, as `%bars[1]`, if its memory has a name."""
        home = next((a for a in (*self.parts, *self.allocations) if a.start <= offset < a.start + a.size), None)
        if home is None or not home.name.startswith(NAMED):
            return None
        name = home.name.removeprefix(NAMED)
        return name if home.size == width else f"{name}[{(offset - home.start) // width}]"

    def describe(self, offset: int) -> str:
        """An offset in words, relative to the nearest allocation at or before it."""
        index = bisect_right([a.start for a in self.allocations], offset) - 1
        if index < 0:
            return "before the first allocation"
        allocation = next(
            (part for part in self.parts if part.start <= offset < part.start + part.size), self.allocations[index]
        )
        relative = offset - allocation.start
        if relative < allocation.size:
            place = allocation.element(relative) or f"byte {relative}"
            return f"{place} of {allocation.name} ({allocation.size} bytes)"
        return f"{relative - allocation.size} bytes past the end of {allocation.name} ({allocation.size} bytes)"


Bytes = NDArray[np.uint8]


@dataclass(slots=True)
class Access:
    """A memory operation of the program with the costs of its executions so far."""

    site: Site
    space: str
    kind: str
    width: int
    requests: int = 0
    threads: int = 0
    transactions: int = 0
    minimum: int = 0
    home: Allocation | None = None
    """The allocation from which the address was computed, where that is known."""
    scope: str = "gpu"
    """The threads among which it is atomic, if it is."""
    constant: bool = False
    """Whether it is a load that promises that nothing writes its data."""

    def count(self) -> AccessCount:
        """The counts so far, for the report."""
        return AccessCount(
            self.site.op, self.site.location, self.space, self.kind, self.width,
            self.requests, self.threads, self.transactions, self.minimum,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Atomic:
    """The effect of an atomic write, and its order: `change` returns the bytes to write, from the number of the access
    and the bytes from before.
    """

    change: Callable[[int, Bytes], Bytes]
    acquires: bool
    releases: bool
    is_seen: bool = True
    """Whether the kernel uses the old value, so that its next operations may depend on earlier writes."""
    reads: bool = True
    """Whether it reads the old value; a store does not."""
    operands: Callable[[int], bytes] | None = None
    """The operands of the access of a number: equal ones change equal bytes alike; None if they are not known."""
