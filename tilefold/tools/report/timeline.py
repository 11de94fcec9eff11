# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""When the warps of a launch run, wait, stall and copy, as rows of slices: a drawing of bounded size."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from markupsafe import Markup

from tilefold.compiler.reports.source_map import Spot
from tilefold.driver.column_picture import column_picture
from tilefold.driver.line_costs import Costs
from tilefold.runtime.errors import Dim3
from tilefold.runtime.sim.timeline import Event

COLUMNS = 640
"""How many parts of its time a row distinguishes."""
MAX_ROWS = 24
"""The warps that are drawn, of whole blocks; those of the first block even where it has more."""
MAX_LOSSES = 20
"""The waits and stalls that the table has."""

_WARPGROUP = 4
_BULK = "cp.async.bulk"
_MMA = "tcgen05.mma"
_INDENT = 2
"""The columns before a name."""
_LETTER = 4.2
"""The columns of a letter."""
_MOST_LETTERS = 28

Warp: TypeAlias = tuple[Dim3, int]


@dataclass(frozen=True, slots=True)
class Activity:
    """The activity of a warp, in words, and its line."""

    kind: str
    text: str
    spot: Spot | None


@dataclass(frozen=True, slots=True)
class Slice:
    """The columns in which a warp does mostly one thing, the act of this number."""

    kind: str
    begin: int
    end: int
    act: int
    label: str = ""
    """The name of the operation, where the slice is wide enough for it."""


@dataclass(frozen=True, slots=True)
class Row:
    """A warp: its activities, its copies in flight, and the percentages of its time until the last warp's end."""

    name: str
    slices: tuple[Slice, ...]
    shares: str


@dataclass(frozen=True, slots=True)
class Loss:
    """A cause of waits or stalls at a line, with the cycles of all warps."""

    act: Activity
    cycles: int
    warps: int


@dataclass(frozen=True, slots=True)
class Chart:
    """The warps of a launch on one scale of `cycles`, of the `warps` that it has."""

    label: str
    cycles: int
    warps: int
    rows: tuple[Row, ...]
    acts: tuple[Activity, ...]
    losses: tuple[Loss, ...]
    cells: Markup | None
    """The picture of tensor memory, for a launch that allocates some."""

    def ticks(self) -> Iterator[tuple[int, float]]:
        """The numbers of the axis, in cycles, and their columns."""
        step = next(n for power in range(20) for n in (10**power, 2 * 10**power, 5 * 10**power) if self.cycles <= 8 * n)
        for cycle in range(0, self.cycles + 1, step):
            yield cycle, cycle * COLUMNS / self.cycles


def chart_of(costs: Costs) -> Chart | None:
    """The drawing of a launch whose events are known; None for one without events."""
    blocks: dict[Dim3, dict[int, list[Event]]] = {}
    for event in costs.events:
        blocks.setdefault(event.block, {}).setdefault(event.warp, []).append(event)
    shown: dict[Warp, list[Event]] = {}
    for block, warps in blocks.items():
        if shown and len(shown) + len(warps) > MAX_ROWS:
            break
        shown.update(((block, number), warps[number]) for number in sorted(warps))
    if not shown:
        return None
    cycles = max(event.end for events in shown.values() for event in events)
    acts: dict[Activity, int] = {}
    roles = {block: roles_of(warps) for block, warps in blocks.items()}
    rows = tuple(_row(warp, roles[warp[0]][warp[1]], events, cycles, acts) for warp, events in shown.items())
    cells = column_picture(costs.label, costs.columns)
    drawn = None if cells is None else Markup(cells.svg())  # its texts are escaped where it is drawn
    return Chart(costs.label, cycles, costs.warps, rows, tuple(acts), _losses(shown.values()), drawn)


def roles_of(warps: Mapping[int, Sequence[Event]]) -> dict[int, str]:
    """The roles of a block's warps, by their numbers: those that load by bulk copies are producers, those that have the
    tensor core of Blackwell multiply are of the role `mma`, others that wait for mbarriers are consumers, counted by
    fours where four neighbours or a multiple of them consume.
    """
    loads = {n: [e for e in events if _BULK in e.text and e.text.endswith("load")] for n, events in warps.items()}
    copying = {n for n, events in loads.items() if events}
    waiting = {n for n, events in warps.items() if any(e.site and "mbarrier" in e.site.op for e in events)}
    multiplying = {n for n, events in warps.items() if any(_MMA in e.text for e in events)} - copying
    consumers = sorted(waiting - copying - multiplying)
    if not copying or not (consumers or multiplying):
        return dict.fromkeys(warps, "")
    runs = [len(list(run)) for _, run in groupby(enumerate(consumers), lambda pair: pair[1] - pair[0])]
    size = 1 if any(length % _WARPGROUP for length in runs) else _WARPGROUP
    order = {n: place // size for place, n in enumerate(consumers)}
    named = {n: f"consumer {number}" for n, number in order.items()}
    named |= dict.fromkeys(multiplying, "mma") | dict.fromkeys(copying, "producer")
    return {n: named.get(n, "") for n in warps}


def _row(warp: Warp, role: str, events: Sequence[Event], cycles: int, acts: dict[Activity, int]) -> Row:
    spent = {kind: sum(e.end - e.begin for e in events if e.kind == kind) for kind in ("runs", "waits", "stalls")}
    spent["runs"] -= spent["stalls"]  # which are part of it
    shares = ", ".join(f"{kind} {100 * part // cycles} %" for kind, part in spent.items() if part > 0)
    drawn = [*_slices(events, cycles, acts), *_copies(events, cycles, acts)]
    name = "block ({},{},{}) warp {}".format(*warp[0], warp[1])
    return Row(f"{name}: {role}" if role else name, tuple(drawn), shares)


def _slices(events: Sequence[Event], cycles: int, acts: dict[Activity, int]) -> Iterator[Slice]:
    """The activity with the most cycles in each column, equal neighbours together."""
    columns: list[dict[Activity, float]] = [{} for _ in range(COLUMNS)]
    for event in events:
        if event.kind != "copies":
            act = _act(event)
            for column, part in _parts(event, cycles):
                columns[column][act] = columns[column].get(act, 0.0) + part
    for column in columns:
        stalled = sum(part for act, part in column.items() if act.kind == "stalls")
        for act in column:
            column[act] -= stalled if act.kind == "runs" else 0
    most = [max(column, key=column.__getitem__) if column else None for column in columns]
    yield from _merge(most, acts)


def _copies(events: Sequence[Event], cycles: int, acts: dict[Activity, int]) -> Iterator[Slice]:
    """The copies in flight, by their number in each column."""
    flying: list[list[Activity]] = [[] for _ in range(COLUMNS)]
    for event in events:
        if event.kind == "copies":
            act = _act(event)
            for column, _ in _parts(event, cycles):
                flying[column].append(act)
    counted = [Activity("copies", f"{len(all)} in flight, the last by {all[-1].text}", all[-1].spot) if all else None
               for all in flying]  # fmt: skip
    yield from _merge(counted, acts)


def _parts(event: Event, cycles: int) -> Iterator[tuple[int, float]]:
    """The columns of an event, each with the cycles of the event in it."""
    begin, end = event.begin * COLUMNS, event.end * COLUMNS
    for column in range(begin // cycles, min(-(-end // cycles), COLUMNS)):
        yield column, (min(end, (column + 1) * cycles) - max(begin, column * cycles)) / COLUMNS


def _merge(columns: Iterable[Activity | None], acts: dict[Activity, int]) -> Iterator[Slice]:
    at = 0
    for act, group in groupby(columns):
        begin, at = at, at + len(list(group))
        if act is not None:
            yield Slice(act.kind, begin, at, acts.setdefault(act, len(acts)), _label(act, at - begin))


def _label(act: Activity, columns: int) -> str:
    """The name of a warp's operation, or a part of it, as far as there is room."""
    if act.kind not in ("runs", "stalls"):
        return ""
    name = act.text.partition(", to ")[0].replace("ptx.", "")
    parts = name.split(".")
    room = min((columns - _INDENT) / _LETTER, _MOST_LETTERS)
    return next((text for text in (name, ".".join(parts[-2:]), parts[0], parts[-1]) if 1 < len(text) < room), "")


def _act(event: Event) -> Activity:
    known = event.site is not None and event.site.file
    return Activity(event.kind, event.text, (event.site.file, event.site.line) if event.site and known else None)


def _losses(warps: Iterable[Sequence[Event]]) -> tuple[Loss, ...]:
    """The causes of waits and stalls, the longest first."""
    lost: dict[Activity, dict[int, int]] = {}
    for number, events in enumerate(warps):
        for event in events:
            if event.kind in ("waits", "stalls"):
                own = lost.setdefault(_act(event), {})
                own[number] = own.get(number, 0) + event.end - event.begin
    losses = [Loss(act, sum(own.values()), len(own)) for act, own in lost.items()]
    return tuple(sorted(losses, key=lambda loss: -loss.cycles)[:MAX_LOSSES])
