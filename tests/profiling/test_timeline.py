# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Timelines: who waits for whom, stalls, copies in flight, and the form that Perfetto reads."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tilefold.base.target import Target
from tilefold.compiler.frontend.params import expand
from tilefold.runtime.engine import LaunchConfig
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine
from tilefold.runtime.sim.timeline import Event, Timeline

from tests.kernels.harness import EXAMPLES
from tests.profiling.kernels import CONFLICT, NAIVE, NEEDED
from tests.tcgen05.kernels import PROGRAM as MULTIPLY
from tilefold.commands.cli import main
from tilefold.driver.filled_arguments import prepare
from tilefold.driver.launches import Changes, read_launches
from tilefold.driver.lowering import load
from tilefold.tools.profiling.perfetto import trace

LATE = """\
!g = !tile.tensor<f32, gmem, align<16>, "64:1">
gpu.module @kernels {
  tile.kernel @late(%A: !g) threads(64) {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c50 = arith.constant 50 : index
    %c32 = arith.constant 32 : index
    %first = arith.cmpi ult, %t, %c32 : index
    scf.if %first {
      scf.for %i = %c0 to %c50 step %c1 {
        %v = tile.load %A(%t)
        tile.store %v, %A(%t)
      }
    }
    ptx.bar.sync 0
    return
  }
}
run.launch @kernels::@late grid(1) {
  run.arg "A" : !g = "arange"
}
"""


def events(text: str, name: str = "naive.cute", target: Target | None = None) -> list[Event]:
    program = load(expand(text, name, {}))
    launch = read_launches(program.module, program.source, Changes())[0]
    arguments = prepare(launch, {}, seed=0, max_bytes=1 << 30)
    module, timeline = program.reached("instr", program.simulated_target("instr")), Timeline(target=target)
    engine = replace(SimEngine(), journal=timeline)
    config = LaunchConfig(launch.grid, launch.block)
    engine.launch(SimProgram(module, launch.kernel), config, arguments.launchable())
    return timeline.events


def test_the_warp_that_comes_first_waits_at_the_barrier_for_the_other() -> None:
    found = events(LATE)
    (wait,) = [event for event in found if event.kind == "waits"]
    assert (wait.warp, wait.text) == (1, "barrier 0")
    assert wait.site is not None
    assert wait.site.line == 16
    late = next(event for event in found if event.kind == "runs" and event.warp == 0)
    assert wait.end == late.end
    assert wait.end - wait.begin >= 2 * 50


def test_bank_conflicts_are_stalls_at_their_lines() -> None:
    found = [event for event in events(NAIVE) if event.kind == "stalls"]
    assert {event.site.line for event in found if event.site is not None} == {CONFLICT}
    assert {event.end - event.begin for event in found} == {31}
    assert len(found) == 2 * 8 * 4


def test_slices_of_a_warp_do_not_overlap() -> None:
    last: dict[tuple[object, int], int] = {}
    for event in sorted(events(NAIVE), key=lambda event: event.begin):
        if event.kind in ("runs", "waits"):
            key = event.block, event.warp
            assert event.begin >= last.get(key, 0)
            last[key] = event.end
    assert len(last) == 16
    meet = {event.end for event in events(NAIVE) if event.site is not None and event.site.line == NEEDED}
    assert meet


@pytest.mark.parametrize("name", ["hgemm", "tma_copy"])
def test_copies_are_in_flight_from_their_begin_to_the_wait(name: str) -> None:
    path = next(path for path in EXAMPLES if path.stem == name)
    copies = [event for event in events(path.read_text(), path.name) if event.kind == "copies"]
    assert copies
    assert all("cp" in event.text for event in copies)
    assert max(event.end - event.begin for event in copies) > 1


def test_warps_wait_for_mbarriers() -> None:
    path = next(path for path in EXAMPLES if path.stem == "tma_copy")
    waits = [event for event in events(path.read_text(), path.name) if event.kind == "waits"]
    assert any(event.text.startswith("the mbarrier ") for event in waits)
    assert not any(event.text.startswith("ptx.") for event in waits)


def test_a_slice_that_multiplies_is_named_so_where_it_copies_more() -> None:
    found = events(next(p for p in EXAMPLES if p.stem == "gemm_blockscaled").read_text(), "gemm_blockscaled.cute")
    slices = [event.text for event in found if event.kind == "runs" and event.warp == 5]
    assert any(text.startswith("ptx.tcgen05.mma.block_scale, ") for text in slices)


def test_what_runs_has_the_name_of_the_access_or_the_multiplication_or_is_arithmetic() -> None:
    runs = [event.text for event in events(MULTIPLY, "multiply.cute") if event.kind == "runs"]
    for deed in ("ptx.tcgen05.mma, to ptx.mbarrier.wait", "ptx.tcgen05.ld, to ", "arithmetic, to "):
        assert any(text.startswith(deed) for text in runs), deed


def test_the_command_writes_trace_events(tmp_path: Path) -> None:
    path, out = tmp_path / "late.cute", tmp_path / "late.json"
    path.write_text(LATE)
    assert main(["run", str(path), "--device", "sim", "--timeline", str(out)]) == 0
    records = json.loads(out.read_text())["traceEvents"]
    names = {record["args"]["name"] for record in records if record["ph"] == "M"}
    assert {"kernels::late: block (0,0,0)", "warp 0", "warp 1"} <= names
    slices = [record for record in records if record["ph"] == "X"]
    assert all(record["dur"] > 0 and record["ts"] >= 0 for record in slices)
    assert any(record["name"] == "barrier 0" and record["args"]["at"].endswith("late.cute:16:5") for record in slices)
    copies = json.loads(trace({"k": [Event("copies", "cp.async", (0, 0, 0), 0, 3, 9)]}))["traceEvents"]
    assert [(record["ph"], record["ts"]) for record in copies if record["ph"] in "be"] == [("b", 3), ("e", 9)]


MANY = """\
!g = !tile.tensor<f32, gmem, align<16>, "64:1">
gpu.module @kernels {
  tile.kernel @many(%A: !g) threads(1024) {
    ptx.bar.sync 0
    return
  }
}
run.launch @kernels::@many grid(42) {
  run.arg "A" : !g = "arange"
}
"""


@pytest.mark.parametrize("room", [40, 42])
def test_blocks_beyond_the_capacity_of_the_gpu_begin_when_others_end(room: int) -> None:
    """A GPU of sm_75 holds 40 blocks of 1024 threads, one of sm_80 more than there are."""
    found = events(MANY, target=Target("sm_75" if room == 40 else "sm_80"))
    begins = [min(event.begin for event in found if event.block[0] == n) for n in range(42)]
    ends = sorted(max(event.end for event in found if event.block[0] == n) for n in range(40))
    assert begins == [0] * room + ends[: 42 - room]
