# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The measured kernels at a small size on the simulator: that they are right, and what their accesses cost there."""

from collections.abc import Sequence
from pathlib import Path

from tilefold.base.errors import Code, TilefoldError
from tilefold.runtime.check import check_results
from tilefold.runtime.engine import LaunchConfig
from tilefold.runtime.sim.sim_engine import SimEngine, SimProgram

from benchmarks.gpu import FAMILIES
from benchmarks.record import Figure, Record, circumstances
from benchmarks.workloads import Workload
from tilefold.running.filled_arguments import prepare


def dry_run(families: Sequence[str] = tuple(FAMILIES)) -> Record:
    """Runs the workloads of some families that have a small size. TilefoldError where a result is wrong."""
    cases = [case for family in families for case in FAMILIES[family](1)]
    workloads = [workload for case in cases for workload in case.workloads if workload.small is not None]
    figures = tuple(figure for workload in workloads for figure in _run(workload.shrunk()))
    return Record("kernels on the simulator, small", circumstances("simulator"), figures)


def _run(workload: Workload) -> list[Figure]:
    program, launch = workload.loaded()
    module = program.at("instr")
    assert module is not None
    arguments = prepare(launch, {}, seed=0, max_bytes=1 << 30)
    given = arguments.launchable()
    result = SimEngine().launch(SimProgram(module, launch.kernel), LaunchConfig(launch.grid, launch.block), given)
    for check in launch.checks:
        for outcome in check_results(check.condition.text, arguments.logical(given), rtol=check.rtol, atol=check.atol):
            if not outcome.passed:
                raise TilefoldError(Code.CHECK_FAILED, f"{workload.name}: {outcome}")
    found: list[Figure] = []
    name = f"{Path(workload.file).stem} {workload.configuration}"
    for what, unit, (count, least) in (
        ("sectors", "of 32 bytes", result.counters.sectors()),
        ("wavefronts", "of shared memory", result.counters.wavefronts()),
    ):
        if count:
            found.append(Figure(f"{name}: {what}", count, unit, f"the least, {least}", count / least))
    return found
