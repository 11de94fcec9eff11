# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simulator: the time that it takes (`python -m benchmarks.simulated`), and the measured kernels at a small size,
that they are right and what their accesses cost there.
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.frontend.params import expand
from tilefold.runtime.check import check_results
from tilefold.runtime.engine import LaunchConfig
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine

from benchmarks.compiler import GEMM_TILE
from benchmarks.gpu import FAMILIES
from benchmarks.record import Figure, Record, add_options, circumstances, keep_record, this_machine
from benchmarks.workloads import Workload
from tilefold.driver.filled_arguments import prepare
from tilefold.driver.launches import Changes, Launch, read_launches
from tilefold.driver.lowering import STAGE_NAMES, Program, load

CUBE = {"M": 512, "N": 512, "K": 512}
GEMMS = (
    Workload("f16 GEMM 512^3", GEMM_TILE.file, CUBE),
    Workload("i8 GEMM 512^3", GEMM_TILE.file, CUBE | {"AB": "i8"}),
)
LOOP = """gpu.module @kernels {
  tile.kernel @spin() threads(32) {
    %first = arith.constant 0 : index
    %step = arith.constant 1 : index
    %count = arith.constant 1000000 : index
    %t = gpu.thread_id x
    %more = arith.addi %count, %t : index
    scf.for %i = %first to LIMIT step %step {
    }
    return
  }
}
run.launch @kernels::@spin grid(1) {
}
"""
"""A million steps and nothing else, at stage `cute`, since the passes erase the loop."""
_TICK = 0.01
"""Seconds, the least difference of user CPU times."""
LIMITS = {"one bound": "%count", "a bound for each lane": "%more"}


def times(earlier: Mapping[str, float], **facts: str) -> Record:
    """The user CPU time of launches on the simulator, against `earlier` times by their names."""
    taken = {workload.name: seconds(*workload.loaded(), "instr") for workload in GEMMS}
    for stage in STAGE_NAMES:
        program, launch = GEMM_TILE.loaded()
        name = f"f16 GEMM, tile of 128 x 128 x 64, stage {stage}"
        taken[name] = median(seconds(program, launch, stage) for _ in range(5))
    for name, limit in LIMITS.items():
        program = load(expand(LOOP.replace("LIMIT", limit), "loop.cute", {}))
        (launch,) = read_launches(program.module, program.source, Changes())
        taken[f"loop of a million steps, {name}"] = seconds(program, launch, "cute")
    figures = tuple(_against(earlier, name, value) for name, value in taken.items())
    return Record("simulator, user CPU time", circumstances(this_machine(), **facts), figures, "simulator")


def _against(earlier: Mapping[str, float], name: str, value: float) -> Figure:
    if name not in earlier:
        return Figure(name, value, "s")
    return Figure(name, value, "s", f"{earlier[name]:.4g} s before", earlier[name] / max(value, _TICK))


def seconds(program: Program, launch: Launch, stage: str) -> float:
    """The user CPU time of a launch at a stage, which is lowered before."""
    module = program.at(stage)
    assert module is not None
    given = prepare(launch, {}, seed=0, max_bytes=1 << 30).launchable()
    began = time.process_time()
    SimEngine().launch(SimProgram(module, launch.kernel), LaunchConfig(launch.grid, launch.block), given)
    return time.process_time() - began


def dry_run(families: Sequence[str] = tuple(FAMILIES)) -> Record:
    """Runs the workloads of some families that have a small size. TilefoldError where a result is wrong."""
    cases = [case for family in families for case in FAMILIES[family](1)]
    workloads = [workload for case in cases for workload in case.workloads if workload.small is not None]
    figures = tuple(figure for workload in workloads for figure in _run(workload.shrunk()))
    return Record("kernels on the simulator, small", circumstances("simulator"), figures)


def _run(workload: Workload) -> list[Figure]:
    program, launch = workload.loaded()
    module = program.at("instr", program.simulated_target("instr"))
    assert module is not None
    arguments = prepare(launch, {}, seed=0, max_bytes=1 << 30)
    given = arguments.launchable()
    result = SimEngine().launch(SimProgram(module, launch.kernel), LaunchConfig(launch.grid, launch.block), given)
    for check in launch.checks:
        for outcome in check_results(check.condition.text, arguments.logical(given), rtol=check.rtol, atol=check.atol):
            if not outcome.passed:
                raise TilefoldError(Code.CHECK_FAILED, f"{workload.name}: {outcome}")
    figures: list[Figure] = []
    name = f"{Path(workload.file).stem} {workload.configuration}"
    for quantity, unit, (count, least) in (
        ("sectors", "of 32 bytes", result.counters.sectors()),
        ("wavefronts", "of shared memory", result.counters.wavefronts()),
    ):
        if count:
            figures.append(Figure(f"{name}: {quantity}", count, unit, f"the least, {least}", count / least))
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, prints and keeps the times."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulated", description="the simulator's CPU time")
    parser.add_argument("--before", type=Path, metavar="JSON", help="a record with which the times are compared")
    add_options(parser)
    args = parser.parse_args(arguments)
    facts, figures = {"commit": args.commit}, list[Any]()
    if args.before is not None:
        record = json.loads(args.before.read_text(encoding="utf-8"))
        facts["before"], figures = record["circumstances"]["commit"], record["figures"]
    keep_record(times({figure["name"]: figure["value"] for figure in figures}, **facts), args.out)


if __name__ == "__main__":
    main()
