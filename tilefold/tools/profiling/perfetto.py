# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Timelines in the trace event format, which Perfetto and Chromium's about:tracing show.

A block is a process and a warp a thread; a cycle is a microsecond, the unit of the format.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tilefold.runtime.sim.timeline import Event

_COLOURS = {"runs": "good", "waits": "terrible", "stalls": "bad"}


def trace(launches: Mapping[str, Sequence[Event]]) -> str:
    """The events of launches by their names, as JSON."""
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
    records += [_meta("thread_name", pid, tid, f"warp {tid}") for pid, tid in threads]
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": records}, separators=(",", ":")) + "\n"


def _records(event: Event, pid: int, number: int) -> list[dict[str, Any]]:
    place = {"at": event.site.location} if event.site is not None and event.site.file else {}
    common: dict[str, Any] = {"name": event.text, "cat": event.kind, "pid": pid, "tid": event.warp}
    if event.kind == "copies":  # they overlap, which slices of a thread may not
        ends = {"ph": "e", "ts": event.end}
        return [{**common, "ph": phase["ph"], "ts": phase["ts"], "id": number, "args": place}
                for phase in ({"ph": "b", "ts": event.begin}, ends)]  # fmt: skip
    times = {"ts": event.begin, "dur": event.end - event.begin}
    return [{**common, **times, "ph": "X", "cname": _COLOURS[event.kind], "args": place}]


def _meta(name: str, pid: int, tid: int, value: str) -> dict[str, Any]:
    return {"name": name, "ph": "M", "pid": pid, "tid": tid, "args": {"name": value}}
