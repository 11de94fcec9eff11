# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks programs that begin on the host: each launch that the host makes, with the arguments that it passes."""

from collections.abc import Sequence
from dataclasses import replace

from tilefold.base.errors import Code, TilefoldError
from tilefold.driver.gaps import Gap, gap_of
from tilefold.driver.host_program import STAGES, Arguments, Host, values_of
from tilefold.runtime.cute_ir.host_engine import HostEngine
from tilefold.runtime.cute_ir.rules import KernelLaunch
from tilefold.runtime.sim.diagnosis import DiagnosedLaunch
from tilefold.runtime.sim.sim_engine import discard
from tilefold.runtime.sim.warp import Warp
from tilefold.tools.checking.check import Examination, Outcome, examined


def check_host(host: Host, entry: str, stages: Sequence[str]) -> Examination:
    """The faults of the launches that `@entry` makes. Raises TilefoldError (E4003) for stages that such kernels do not
    have, and for faults of the host itself, with the place in the file.
    """
    for stage in stages:
        if stage not in STAGES:
            known = f"stages: {', '.join(STAGES)}"
            raise TilefoldError(
                Code.CLI_VALUE, f"--stage {stage}: kernels launched by a host do not run at this stage", known
            )
    labels: list[str] = []
    outcomes: list[Outcome] = []

    def launcher(launch: KernelLaunch, arguments: Arguments, warp: Warp) -> None:
        labels.append(launch.kernel)
        for stage in stages:
            engine = replace(host.simulator, budget=host.left(warp), sink=discard)
            ready = host.ready(launch, stage, engine)
            values = values_of(ready, arguments)
            made = DiagnosedLaunch(ready.code, launch.config, lambda values=values: values, engine)
            outcome = examined(launch.kernel, stage, made, host.program.source)
            warp.launch.spend(outcome.steps, launch.site)
            outcomes.append(outcome if stage == stages[0] else replace(outcome, reached=None))

    gaps: list[Gap] = []
    try:
        with host.program.explaining():
            HostEngine(launcher, host.environment, host.simulator.limits, discard).run(host.program.module, entry)
    except TilefoldError as error:
        if (gap := gap_of(error)) is None:
            raise
        gaps.append(gap)
    return Examination(labels, stages, outcomes, host.program.source, gaps)
