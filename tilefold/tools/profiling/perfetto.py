# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Timelines in the trace event format, which Perfetto and Chromium's about:tracing show.

A block is a process and a warp a thread; a cycle is a microsecond, the unit of the format. Tensor memory has a track
for each range of columns that an instruction uses or an allocation makes, and a counter of allocated columns.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tilefold.runtime.sim.tcgen05.column_events import HELD, ColumnEvent
from tilefold.runtime.sim.timeline import Event

_COLOURS = {"runs": "good", "waits": "terrible", "stalls": "bad"}


def trace(
    launches: Mapping[str, Sequence[Event]],
    columns: Mapping[str, Sequence[ColumnEvent]] = MappingProxyType({}),
) -> str:
    """The events of launches by their names, and those of their tensor memory, as JSON."""
    records: list[dict[str, Any]] = []
    processes: dict[tuple[str, tuple[int, int, int]], int] = {}
    for label, events in launches.items():
        for event in events:
            key = label, event.block
            if key not in processes:
                processes[key] = len(processes) + 1
                name = f"{label}: block ({','.join(map(str, event.block))})"
                records.append(_meta("process_name", processes[key], 0, name))
            records += _records(event, processes[key], len(records))
    threads = sorted({(record["pid"], record["tid"]) for record in records if record["ph"] != "M"})
    for label, uses in columns.items():
        for pid, block in [(pid, block) for (of, block), pid in processes.items() if of == label]:
            records += _of_columns([use for use in uses if use.block == block], pid, len(records))
    records += [_meta("thread_name", pid, tid, f"warp {tid}") for pid, tid in threads]
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": records}, separators=(",", ":")) + "\n"


def _records(event: Event, pid: int, number: int) -> list[dict[str, Any]]:
    place = {"at": event.site.location} if event.site is not None and event.site.file else {}
    common = {"name": event.text, "cat": event.kind, "pid": pid, "tid": event.warp}
    if event.kind == "copies":  # they overlap, which slices of a thread may not
        ends = {"ph": "e", "ts": event.end}
        return [{**common, "ph": phase["ph"], "ts": phase["ts"], "id": number, "args": place}
                for phase in ({"ph": "b", "ts": event.begin}, ends)]  # fmt: skip
    times = {"ts": event.begin, "dur": event.end - event.begin}
    return [{**common, **times, "ph": "X", "cname": _COLOURS[event.kind], "args": place}]


def _of_columns(events: Sequence[ColumnEvent], pid: int, number: int) -> Iterator[dict[str, Any]]:
    """Uses of columns, which overlap; and how many columns are allocated."""
    for at, event in enumerate(events, number):
        track = f"tensor memory, columns {event.first} to {event.end - 1}"
        common = {"cat": track, "name": event.kind, "pid": pid, "tid": event.warp, "id": at}
        yield {**common, "ph": "b", "ts": event.begin, "args": {"at": event.site.location, "columns": track}}
        yield {**common, "ph": "e", "ts": event.over, "args": {}}
    changes = [(event.begin, event.end - event.first) for event in events if event.kind == HELD]
    changes += [(event.over, event.first - event.end) for event in events if event.kind == HELD]
    total = 0
    for cycle, change in sorted(changes):
        total += change
        yield {"name": "columns allocated", "ph": "C", "pid": pid, "tid": 0, "ts": cycle, "args": {"columns": total}}


def _meta(name: str, pid: int, tid: int, value: str) -> dict[str, object]:
    return {"name": name, "ph": "M", "pid": pid, "tid": tid, "args": {"name": value}}
