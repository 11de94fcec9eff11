# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The timeline of a report: rows of slices that do not overlap, of bounded size, with the waits by lines."""

from itertools import pairwise

import pytest
from tilefold.base.target import Target
from tilefold.runtime.sim.faults import Site
from tilefold.runtime.sim.timeline import Event

from tilefold.driver.line_costs import Costs
from tilefold.tools.report.timeline import COLUMNS, MAX_ROWS, Chart, chart_of

BAR = Site("ptx.bar.sync", "k.cute", 7, 5)


def event(kind: str, begin: int, end: int, warp: int = 0, block: int = 0) -> Event:
    return Event(kind, kind, (block, 0, 0), warp, begin, end, BAR)


def chart(*events: Event, grid: int = 1) -> Chart:
    costs = Costs("kernels::k", Target("sm_80"), (grid, 1, 1), (64, 1, 1), (), events)
    made = chart_of(costs)
    assert made is not None
    return made


def drawn(made: Chart, row: int = 0) -> list[tuple[str, int, int]]:
    return [(part.kind, part.begin, part.end) for part in made.rows[row].slices]


def roles(*events: Event) -> list[str]:
    return [row.name.partition(": ")[2] for row in chart(*events).rows]


def test_columns_show_what_takes_the_most_cycles() -> None:
    stall, wait, copy = event("stalls", 3200, 4800), event("waits", 6400, 12800), event("copies", 0, 20)
    made = chart(event("runs", 0, 6400), stall, wait, copy)
    runs = [("runs", 0, 160), ("stalls", 160, 240), ("runs", 240, 320)]
    assert drawn(made) == [*runs, ("waits", 320, 640), ("copies", 0, 1)]
    assert made.rows[0].shares == "runs 37 %, waits 50 %, stalls 12 %"
    assert [(loss.act.kind, loss.act.spot, loss.cycles) for loss in made.losses] == [
        ("waits", ("k.cute", 7), 6400), ("stalls", ("k.cute", 7), 1600),
    ]  # fmt: skip


def test_a_wait_shorter_than_a_column_does_not_hide_what_runs() -> None:
    made = chart(event("runs", 0, 99_990), event("waits", 99_990, 99_992), event("runs", 99_992, 100_000))
    assert drawn(made) == [("runs", 0, COLUMNS)]


@pytest.mark.parametrize("cycles", [1, 7, 640, 10_001])
def test_slices_follow_each_other(cycles: int) -> None:
    events = [event("runs" if n % 2 else "waits", n, n + 1) for n in range(cycles)]
    parts = drawn(chart(*events))
    assert parts[0][1] == 0
    assert parts[-1][2] == COLUMNS
    assert all(before[2] == after[1] for before, after in pairwise(parts))


def test_whole_blocks_are_shown() -> None:
    made = chart(*[event("runs", 0, 9, warp, block) for block in range(5) for warp in range(7)], grid=5)
    assert [row.name for row in made.rows][6:8] == ["block (0,0,0) warp 6", "block (1,0,0) warp 0"]
    assert len(made.rows) == 21 <= MAX_ROWS
    assert made.warps == 10
    assert len(chart(*[event("runs", 0, 9, warp) for warp in range(32)]).rows) == 32


def test_warps_have_roles() -> None:
    load, wait = Site("ptx.cp.async.bulk.tensor.load", "k.cute", 3, 1), Site("ptx.mbarrier.wait", "k.cute", 5, 1)
    events = [Event("copies", load.op, (0, 0, 0), 0, 0, 400, load)]
    events += [Event("waits", "the mbarrier", (0, 0, 0), warp, 0, 400, wait) for warp in range(4, 12)]
    assert roles(*events) == ["producer", *["consumer 0"] * 4, *["consumer 1"] * 4]


def test_the_warp_that_multiplies_by_tensor_memory_is_no_consumer() -> None:
    load, wait = Site("ptx.cp.async.bulk.tensor.load", "k.cute", 3, 1), Site("ptx.mbarrier.wait", "k.cute", 5, 1)
    events = [Event("copies", load.op, (0, 0, 0), 0, 0, 400, load)]
    events += [Event("waits", "the mbarrier", (0, 0, 0), warp, 0, 400, wait) for warp in range(1, 6)]
    multiplies = Event("runs", "ptx.tcgen05.mma, to ptx.mbarrier.wait", (0, 0, 0), 1, 400, 420, wait)
    assert roles(*events, multiplies) == ["producer", "mma", *["consumer 0"] * 4]
    assert roles(*events[:4], multiplies) == ["producer", "mma", "consumer 0", "consumer 1"]


@pytest.mark.parametrize(
    ("text", "end", "label"),
    [
        ("ptx.wgmma.mma_async, to ptx.bar.sync", 640, "wgmma.mma_async"),
        ("ptx.wgmma.mma_async, to ptx.bar.sync", 30, "wgmma"),
        ("ptx.wgmma.mma_async, to ptx.bar.sync", 22, ""),  # m and w are wide
        ("ptx.cp.async.bulk.tensor.load, to ptx.mbarrier.wait", 60, "tensor.load"),
        ("ptx.tcgen05.mma, to ptx.mbarrier.wait", 20, "mma"),
        ("to ptx.bar.sync", 640, "to bar.sync"),
        ("to ptx.bar.sync", 8, ""),
    ],
)
def test_slices_have_the_name_of_their_operation_or_a_part_of_it(text: str, end: int, label: str) -> None:
    made = chart(Event("runs", text, (0, 0, 0), 0, 0, end, BAR), event("waits", end, 640 + (end == 640)))
    assert made.rows[0].slices[0].label == label


def test_ticks_are_round_numbers() -> None:
    assert [tick for tick, _ in chart(event("runs", 0, 23_892)).ticks()] == [0, 5000, 10000, 15000, 20000]
    assert [tick for tick, _ in chart(event("runs", 0, 3)).ticks()] == [0, 1, 2, 3]


def test_no_events() -> None:
    assert chart_of(Costs("k", Target("sm_80"), (1, 1, 1), (32, 1, 1), ())) is None
