# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""When columns of tensor memory are held and used: the events, their picture, the report and the timeline."""

import json
from pathlib import Path

import pytest
from tilefold.base.target import Target
from tilefold.runtime.sim.faults import Site
from tilefold.runtime.sim.tcgen05.column_events import HELD, ColumnEvent
from tilefold.runtime.sim.timeline import Event

from tests.tcgen05.kernels import PROGRAM
from tilefold.commands.cli import main
from tilefold.driver.column_picture import COLOURS, MAX_BLOCKS, column_picture
from tilefold.driver.line_costs import Costs
from tilefold.tools.report.timeline import chart_of

Capture = pytest.CaptureFixture[str]
ALLOC, LOAD = Site("ptx.tcgen05.alloc", "k.cute", 3, 7), Site("ptx.tcgen05.ld", "k.cute", 9, 7)


def event(kind: str, first: int, end: int, begin: int, over: int, block: int = 0) -> ColumnEvent:
    return ColumnEvent(kind, (block, 0, 0), 1, first, end, begin, over, ALLOC if kind == HELD else LOAD)


def test_uses_of_the_same_columns_that_lie_close_are_one_box() -> None:
    held, loads = event(HELD, 0, 64, 0, 1000), [event("ld", 0, 8, 10 + n, 11 + n) for n in range(500)]
    picture = column_picture("k", [held, *loads, event("ld", 0, 8, 900, 950)])
    assert picture is not None
    text = picture.svg()
    assert text.count(f'fill="{COLOURS["ld"]}"') == 3  # one is that of the legend
    assert COLOURS["shift"] not in text  # which has the colours that are used
    assert "64 columns, warp 1, k.cute:3:7" in text
    assert "columns 0 to 63 of block (0,0,0), warp 1: k.cute:3:7, cycles 0 to 1000" in picture.title


def test_a_few_blocks_are_drawn_and_launches_without_columns_are_not() -> None:
    picture = column_picture("k", [event(HELD, 0, 64, 0, 9, block) for block in range(9)])
    assert picture is not None
    assert picture.svg().count("64 columns, warp") == MAX_BLOCKS
    assert column_picture("k", []) is None


def test_the_report_has_the_picture() -> None:
    def chart(*columns: ColumnEvent):
        ran = Event("runs", "runs", (0, 0, 0), 0, 0, 9, LOAD)
        return chart_of(Costs("kernels::k", Target("sm_100a"), (1, 1, 1), (32, 1, 1), (), (ran,), columns))

    with_cells, without = chart(event(HELD, 0, 64, 0, 9)), chart()
    assert with_cells is not None
    assert without is not None
    assert "64 columns, warp 1" in str(with_cells.cells)
    assert without.cells is None


@pytest.mark.sampled(1)
@pytest.mark.parametrize("stage", ["cute", "instr"])
def test_the_timeline_has_tracks_of_columns(stage: str, tmp_path: Path) -> None:
    (tmp_path / "k.cute").write_text(PROGRAM)
    out = tmp_path / "t.json"
    assert main(["run", str(tmp_path / "k.cute"), "--device", "sim", "--stage", stage, "--timeline", str(out)]) == 0
    records = json.loads(out.read_text())["traceEvents"]
    held = [record["args"]["columns"] for record in records if record["ph"] == "C"]
    assert held == [64, 0]
    begun = {(record["name"], record["cat"]): record["ts"] for record in records
             if record["ph"] == "b" and record["tid"] == 0}  # fmt: skip
    multiplied = begun["mma", "tensor memory, columns 0 to 63"]
    assert begun[HELD, "tensor memory, columns 0 to 63"] < multiplied
    assert all(begun["ld", f"tensor memory, columns {n} to {n + 3}"] > multiplied for n in range(0, 64, 4))


def test_show_draws_the_columns_and_counts_accesses_to_one_place(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "k.cute").write_text(PROGRAM)
    assert main(["show", str(tmp_path / "k.cute"), "--accesses", "-o", str(tmp_path / "k.svg")]) == 0
    written = (tmp_path / "k.svg").read_text()
    assert "64 columns, warp 0, k.cute:" in written
    assert "mbarrier" not in written
    assert "left out: 5 accesses to shared memory of kernels::multiply" in capsys.readouterr().err
