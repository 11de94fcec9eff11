# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order that a program gives to the work of its streams, and the races between work that has none.

Work comes after earlier work of its stream, after what an event that the stream waits for was recorded behind, and
after all work for which the program itself has waited (CUDA C++ Programming Guide, Asynchronous Concurrent Execution).
Where launches meet by atomic accesses of the same bytes, such as a flag, the later one counts as behind the earlier
one: whether the flag orders them is not looked at. Launches that ran together, whose accesses the simulator has
compared, count as behind each other.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tilefold.base.errors import Code
from tilefold.runtime.accesses import Accesses
from tilefold.runtime.arrays.reachable import reachable
from tilefold.runtime.sim.faults import SimulationError, Site

Clock: TypeAlias = Mapping[int, int]
"""By the handle of each stream, how much of its work is known."""


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """The place of work, number `number` of its stream: behind what `clock` knows. `work` keeps its arguments alive."""

    site: Site
    stream: int
    number: int
    clock: Clock
    work: object

    @property
    def after(self) -> Clock:
        """What is known behind it."""
        return {**self.clock, self.stream: self.number}

    def is_known(self, clock: Clock) -> bool:
        """Whether a clock knows it."""
        return clock.get(self.stream, 0) >= self.number

    @property
    def where(self) -> str:
        """Its stream in words."""
        if self.stream < 0:
            return "a graph"
        return f"stream {self.stream:#x}" if self.stream else "the default stream"


@dataclass(frozen=True, slots=True, eq=False)
class _Done:
    """Work that is done. `owners` are those of its memory, which they keep: other memory must not get its addresses."""

    turn: Turn
    clock: Clock
    accesses: Accesses
    owners: Sequence[object]


@dataclass(eq=False)
class StreamOrder:
    """The work of a device so far: by stream what its next work comes after, and what the program has waited for."""

    _streams: dict[int, Clock] = field(default_factory=dict[int, Clock])
    _counts: dict[int, int] = field(default_factory=dict[int, int])
    _host: Clock = field(default_factory=dict[int, int])
    _begun: set[Turn] = field(default_factory=set[Turn])
    _done: list[_Done] = field(default_factory=list[_Done])
    """The work for which the program has not waited, and whose bytes no later work of its stream has accessed alike."""
    _learned: list[tuple[Turn, Clock]] = field(default_factory=list[tuple[Turn, Clock]])
    """The work that has met other work, and what it knows by that."""

    def begin(self, site: Site, stream: int, clock: Clock, work: object) -> Turn:
        """The next turn of a stream, behind what a clock knows."""
        number = self._counts[stream] = self._counts.get(stream, 0) + 1
        turn = Turn(site, stream, number, clock, work)
        self._begun.add(turn)
        self._streams[stream] = turn.after
        return turn

    def known(self, *streams: int) -> Clock:
        """What the next work of streams comes after."""
        return joined([self._host, *(self._streams[stream] for stream in streams if stream in self._streams)])

    def follow(self, stream: int, clock: Clock) -> None:
        """Makes the next work of a stream come after what a clock knows."""
        self._streams[stream] = joined([self._streams.get(stream, {}), clock])

    def wait(self, clock: Clock | None = None) -> None:
        """The program has waited for what a clock knows, or for all work."""
        self._host = self._complete(joined([self._host, self._counts if clock is None else clock]))
        self._forget()

    def give_up(self, turn: Turn) -> None:
        """The work has failed."""
        self._begun.discard(turn)

    def end(self, turn: Turn, accesses: Accesses | None) -> None:
        """The work is done, and has accessed some bytes. SimulationError (E3205) if these are bytes of other work, and
        neither comes after the other.
        """
        self._begun.discard(turn)
        if accesses is None:
            return
        before = clock = self._complete(turn.clock)
        for other in self._done:
            if not other.turn.is_known(clock) and (accesses is other.accesses or accesses.meets(other.accesses)):
                clock = joined([clock, other.clock, other.turn.after])
        if clock is not before:
            self._learned.append((turn, clock))
        for other in self._done:
            if accesses is other.accesses:
                self._learned.append((other.turn, joined([clock, turn.after])))
            elif not other.turn.is_known(clock) and not turn.is_known(other.clock):
                _compare(turn, accesses, other)
        if not self._begun:
            self._done = [
                other for other in self._done if other.turn.stream != turn.stream or not accesses.covers(other.accesses)
            ]
        owners = [owner for start, end, _ in accesses.names for owner in reachable().owners(start, end)]
        self._done.append(_Done(turn, clock, accesses, owners))
        self._forget()

    def _complete(self, clock: Clock) -> Clock:
        """A clock with what the work that it knows has learned."""
        before: Clock = {}
        while clock != before:
            before = clock
            clock = joined([clock, *(learned for turn, learned in self._learned if turn.is_known(clock))])
        return clock

    def _forget(self) -> None:
        """Forgets work for which the program has waited, unless other work began before that."""
        if not self._begun:
            self._done = [done for done in self._done if not done.turn.is_known(self._host)]
            self._learned = [each for each in self._learned if not each[0].is_known(self._host)]


def joined(clocks: Iterable[Clock]) -> Clock:
    """All that any of some clocks knows."""
    total: dict[int, int] = {}
    for clock in clocks:
        for stream, number in clock.items():
            total[stream] = max(number, total.get(stream, 0))
    return total


def _compare(turn: Turn, accesses: Accesses, other: _Done) -> None:
    overlap = accesses.overlap(other.accesses)
    if overlap is None:
        return
    (ours, theirs), (own, their) = ("writes" if writes else "reads" for writes in overlap.writes), overlap.names
    text = (
        f"race: {ours} {overlap.count} bytes of {own} in {turn.where}; {other.turn.site} {theirs} them, as {their}, "
        f"in {other.turn.where}, and neither waits for the other"
    )
    hint = "record an event behind the first, and let the stream of the second wait for it; or call wait_stream"
    raise SimulationError(Code.SIM_RACE, text, hint, site=turn.site, other=other.turn.site)
