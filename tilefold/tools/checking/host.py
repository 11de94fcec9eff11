# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks programs that begin on the host: each launch that the host makes, with the arguments that it passes."""

from collections.abc import Sequence
from dataclasses import replace

from tilefold.base.errors import Code, TilefoldError
from tilefold.driver.faults import Fault, Report, merge
from tilefold.driver.host_program import STAGES, Arguments, Host, values_of
from tilefold.runtime.cute_ir.host_engine import HostEngine
from tilefold.runtime.cute_ir.rules import KernelLaunch
from tilefold.runtime.sim.diagnosis import DiagnosedLaunch, diagnose
from tilefold.runtime.sim.sim_engine import discard
from tilefold.runtime.sim.warp import Warp
from tilefold.tools.checking.check import make_report_finding


def check_host(host: Host, entry: str, stages: Sequence[str]) -> Report:
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
    faults: list[Fault] = []

    def launcher(launch: KernelLaunch, arguments: Arguments, warp: Warp) -> None:
        labels.append(launch.kernel)
        for stage in stages:
            engine = replace(host.simulator, budget=host.left(warp), sink=discard)
            ready = host.ready(launch, stage, engine)
            values = values_of(ready, arguments)
            diagnosis = diagnose(DiagnosedLaunch(ready.code, launch.config, lambda values=values: values, engine))
            warp.launch.spend(diagnosis.steps, launch.site)
            faults.extend(
                make_report_finding(launch.kernel, stage, finding, host.program.source)
                for finding in diagnosis.findings
            )

    with host.program.explaining():
        HostEngine(launcher, host.environment, host.simulator.limits, discard).run(host.program.module, entry)
    return Report(tuple(dict.fromkeys(labels)), tuple(stages), merge(faults))
