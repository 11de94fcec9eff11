# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a program that begins on the host: interprets its `@main`, and runs its launches on the chosen device."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.ir import Attribute

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.limits import Limits
from tilefold.compiler.frontend.diagnostics import Diagnostic, Severity
from tilefold.dialects.cute.types import CuteType
from tilefold.driver.devices import Executable, on_gpu, simulated
from tilefold.driver.lowering import TO_INDEX, TO_SIMULATOR, Program
from tilefold.driver.messages import print_diagnostics
from tilefold.runtime.cute_ir.host_engine import HostEngine
from tilefold.runtime.cute_ir.rules import KernelLaunch
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine
from tilefold.runtime.sim.warp import Warp

STAGES = ("cute", "index", "instr")
"""The stages at which the simulator runs kernels that a host launches: as written, lowered, and as instructions."""

Arguments = list[tuple[Any, Attribute]]


@dataclass
class Host:
    """One run of a program's host part. The budget of `simulator` is that of host and kernels together."""

    program: Program
    environment: Mapping[str, str | None]
    simulator: SimEngine = field(default_factory=SimEngine)

    def run_on_gpu(self, entry: str) -> None:
        """Runs `@entry`, and its kernels on the GPU. Raises TilefoldError with the place in the file."""
        with self.program.explaining():
            HostEngine(self._on_gpu, self.environment, self.simulator.limits).run(self.program.module, entry)

    def simulate(self, entry: str, stage: str | None) -> bool:
        """Runs `@entry`, and its kernels on the simulator at a stage, by default as they are written.

        For `all` stages in turn; then reports whether the printed text is the same. Raises TilefoldError as
        `run_on_gpu`.
        """
        stages = STAGES if stage == "all" else (stage or STAGES[0],)
        if stages[0] not in STAGES:
            known = f"{', '.join(STAGES)}, or all"
            raise TilefoldError(
                Code.CLI_VALUE, f"--stage {stage}: kernels launched by a host do not run at this stage", known
            )
        texts: list[str] = []
        for stage in stages:
            printed: list[str] = []

            def write(text: str, printed: list[str] = printed, first: bool = not texts) -> None:
                printed.append(text)
                if first:
                    sys.stdout.write(text)

            self._simulate(entry, stage, write)
            texts.append("".join(printed))
            if texts[-1] != texts[0]:
                message = f"at stage {stage} the program prints different text from the stage before: a pass changed it"
                print_diagnostics(Diagnostic(Severity.ERROR, message, code=Code.STAGES_DIFFER).render())
                return False
        return True

    def _simulate(self, entry: str, stage: str, write: Any) -> None:
        def launcher(launch: KernelLaunch, arguments: Arguments, host: Warp) -> None:
            engine = replace(self.simulator, budget=self.left(host), sink=host.launch.print)
            ready = self.ready(launch, stage, engine)
            result = ready.launch(launch.config, values_of(ready, arguments))
            host.launch.spend(result.counters.steps, launch.site)

        with self.program.explaining():
            HostEngine(launcher, self.environment, self.simulator.limits, write).run(self.program.module, entry)

    def ready(self, launch: KernelLaunch, stage: str, engine: SimEngine) -> Executable[SimProgram]:
        """The kernel of a launch for the simulator, at a stage of `STAGES`."""
        program = self._for(launch, TO_SIMULATOR if stage == STAGES[0] else TO_INDEX)
        if stage == "instr":
            return simulated(program, launch.kernel, stage, engine)
        return Executable(program, engine, SimProgram(program.module, launch.kernel), stage)

    def left(self, host: Warp) -> Limits:
        """The rest of the budget after the work of the host."""
        return replace(self.simulator.limits, steps=self.simulator.limits.steps - host.launch.steps)

    def _on_gpu(self, launch: KernelLaunch, arguments: Arguments, host: Warp) -> None:
        ready = on_gpu(self._for(launch, TO_INDEX), launch.kernel)
        values = dict(zip(ready.code.names, _scalars(arguments), strict=True))
        sys.stdout.flush()  # the driver writes the kernel's output without Python's buffer
        ready.launch(launch.config, values)

    def _for(self, launch: KernelLaunch, passes: tuple[str, ...]) -> Program:
        """The device program for blocks of a launch's size."""
        return self.program.device_program(passes, launch.config.block)


def values_of(ready: Executable[SimProgram], arguments: Arguments) -> dict[str, Any]:
    """The arguments of a launch by the names that the kernel's have."""
    return dict(zip((name.data for name in ready.code.find().arg_names), _scalars(arguments), strict=True))


def _scalars(arguments: Arguments) -> list[Any]:
    """The arguments of a launch: of a value of the `cute` dialect its dynamic integers."""
    scalars: list[Any] = []
    for value, type in arguments:
        scalars += value if isinstance(type, CuteType) else [value]
    return scalars
