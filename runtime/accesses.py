# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bytes of the host's memory that work of a stream has accessed, a launch or a copy, and how: by them, work of
different streams is compared.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

READ, WRITTEN, READ_ATOMICALLY, WRITTEN_ATOMICALLY = 1, 2, 4, 8
"""The flags of bytes."""
_WRITES, _ATOMIC = WRITTEN | WRITTEN_ATOMICALLY, READ_ATOMICALLY | WRITTEN_ATOMICALLY

Flags: TypeAlias = NDArray[np.uint8]


def _rivals(flags: int) -> int:
    """The flags of accesses that conflict with those of some flags."""
    each = {READ: _WRITES, WRITTEN: 0xF, READ_ATOMICALLY: WRITTEN, WRITTEN_ATOMICALLY: WRITTEN | READ}
    return sum(flag for flag in each if any(flags & own and flag & rivals for own, rivals in each.items()))


_RIVALS = np.array([_rivals(flags) for flags in range(16)], np.uint8)


class Piece(NamedTuple):
    """Memory by its name: the address of its first byte, and the flags of each byte."""

    name: str
    address: int
    flags: Flags

    @property
    def end(self) -> int:
        """The address behind the last byte."""
        return self.address + len(self.flags)


@dataclass(frozen=True, slots=True)
class Overlap:
    """`count` bytes that two have accessed, and at least one has written: the names by which the two know the first of
    them, and whether each has written it.
    """

    count: int
    names: tuple[str, str]
    writes: tuple[bool, bool]


@dataclass(frozen=True, slots=True, eq=False)
class Accesses:
    """Ranges of bytes in ascending order, each with the same flags: their `starts` and `ends` are addresses. The pieces
    of memory have the `names`.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    flags: Flags
    names: Sequence[tuple[int, int, str]]

    @classmethod
    def of(cls, pieces: Iterable[Piece]) -> "Accesses":
        """Those to pieces of memory, which may overlap."""
        total = cls(*_NOTHING, ())
        for piece in pieces:
            borders = np.flatnonzero(np.diff(piece.flags, prepend=0, append=0))
            starts, ends = borders[:-1], borders[1:]
            used = piece.flags[starts] != 0 if len(starts) else np.zeros(0, bool)
            ranges = starts[used] + piece.address, ends[used] + piece.address, piece.flags[starts[used]]
            total = total.joined(cls(*ranges, ((piece.address, piece.end, piece.name),)))
        return total

    def joined(self, other: "Accesses") -> "Accesses":
        """Both, together."""
        if not len(self.starts):
            return Accesses(other.starts, other.ends, other.flags, (*self.names, *other.names))
        points, ours, theirs = self._beside(other)
        flags = ours | theirs
        used = np.flatnonzero(flags)
        return Accesses(points[used], points[used + 1], flags[used], (*self.names, *other.names))

    def overlap(self, other: "Accesses") -> Overlap | None:
        """The bytes of accesses that conflict: at least one is a write, and not both are atomic."""
        points, ours, theirs = self._beside(other)
        bad = _RIVALS[ours] & theirs != 0
        if not bad.any():
            return None
        first = int(bad.argmax())
        names = self._name(int(points[first])), other._name(int(points[first]))
        writes = bool(ours[first] & _WRITES), bool(theirs[first] & _WRITES)
        return Overlap(int(np.diff(points)[bad[:-1]].sum()), names, writes)

    def meets(self, other: "Accesses") -> bool:
        """Whether it accesses a byte atomically that another one has written so: it may know what that did before."""
        _, ours, theirs = self._beside(other)
        return bool((((ours & _ATOMIC) != 0) & ((theirs & WRITTEN_ATOMICALLY) != 0)).any())

    def covers(self, other: "Accesses") -> bool:
        """Whether whatever conflicts with other ones, or may know of their atomic writes, does so with these, too."""
        _, ours, theirs = self._beside(other)
        return not (_RIVALS[theirs] & ~_RIVALS[ours] | theirs & WRITTEN_ATOMICALLY & ~ours).any()

    def _beside(self, other: "Accesses") -> tuple[NDArray[np.int64], Flags, Flags]:
        """The addresses at which flags of either change, and from each on those of both."""
        points = np.unique(np.concatenate([self.starts, self.ends, other.starts, other.ends]))
        return points, self._flags_at(points), other._flags_at(points)

    def _flags_at(self, points: NDArray[np.int64]) -> Flags:
        if not len(self.starts):
            return np.zeros(len(points), np.uint8)
        place = np.maximum(np.searchsorted(self.starts, points, "right") - 1, 0)
        inside = (self.starts[place] <= points) & (points < self.ends[place])
        return np.where(inside, self.flags[place], 0).astype(np.uint8)

    def _name(self, address: int) -> str:
        return next(name for start, end, name in self.names if start <= address < end)


_NOTHING = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8)
