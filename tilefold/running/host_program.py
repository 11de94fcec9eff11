# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a program that begins on the host: interprets its `@main`, and launches what it launches where it is told to."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from xdsl.ir import Attribute

from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.frontend.diagnostics import Diagnostic, Severity
from tilefold.dialects.cute.types import CuteType
from tilefold.lowering import TO_INDEX, TO_SIMULATOR, Program
from tilefold.messages import print_diagnostics
from tilefold.running.simulation import Simulation
from tilefold.runtime.cute_ir.host_engine import HostEngine
from tilefold.runtime.cute_ir.rules import Launch
from tilefold.runtime.engine import LaunchConfig
from tilefold.runtime.sim.sim_engine import SimProgram
from tilefold.runtime.sim.warp import Budget, Warp

if TYPE_CHECKING:
    from tilefold.runtime.cuda import CudaEngine

STAGES = ("cute", "index", "instr")
"""The stages at which the simulator runs kernels that a host launches: as written, lowered, and as instructions."""

Arguments = list[tuple[Any, Attribute]]


@dataclass
class Host:
    """One run of a program's host part. The limits of `simulation` are those of host and simulator together."""

    program: Program
    environment: Mapping[str, str | None]
    simulation: Simulation = field(default_factory=Simulation)
    _gpu: "CudaEngine | None" = None

    def run_on_gpu(self, entry: str) -> None:
        """Runs `@entry`, and its kernels on the GPU. Raises TilefoldError with the place in the file."""
        with self.program.explaining():
            HostEngine(self._on_gpu, self.environment, self.simulation.budget).run(self.program.module, entry)

    def simulate(self, entry: str, stage: str | None) -> bool:
        """Runs `@entry`, and its kernels on the simulator at a stage, by default as they are written.

        For `all` stages in turn; then says whether what is printed is the same. Raises TilefoldError as `run_on_gpu`.
        """
        asked = STAGES if stage == "all" else (stage or STAGES[0],)
        if asked[0] not in STAGES:
            known = f"{', '.join(STAGES)}, or all"
            raise TilefoldError(
                Code.CLI_VALUE, f"--stage {stage}: kernels that a host launches do not run there", known
            )
        texts: list[str] = []
        for each in asked:
            printed: list[str] = []

            def write(text: str, printed: list[str] = printed, first: bool = not texts) -> None:
                printed.append(text)
                if first:
                    sys.stdout.write(text)

            self._simulate(entry, each, write)
            texts.append("".join(printed))
            if texts[-1] != texts[0]:
                message = f"at stage {each} the program prints other text than at the one before: a pass changed it"
                print_diagnostics(Diagnostic(Severity.ERROR, message, code=Code.STAGES_DIFFER.id).render())
                return False
        return True

    def _simulate(self, entry: str, stage: str, write: Any) -> None:
        def launcher(launch: Launch, arguments: Arguments, host: Warp) -> None:
            program = self._for(launch, TO_SIMULATOR if stage == STAGES[0] else TO_INDEX)
            module = program.module
            if stage == "instr":
                module = program.reached(stage, program.simulated_target(stage))
            engine = replace(self.simulation.engine, budget=self._left(host), sink=host.launch.print)
            kernel = SimProgram(module, launch.kernel)
            names = [name.data for name in kernel.find().arg_names]
            values = dict(zip(names, _scalars(arguments), strict=True))
            result = engine.launch(kernel, LaunchConfig(launch.grid, launch.block), values)
            host.launch.spend(result.counters.steps, launch.site)

        with self.program.explaining():
            HostEngine(launcher, self.environment, self.simulation.budget, write).run(self.program.module, entry)

    def _left(self, host: Warp) -> Budget:
        """The budget without what the host has used."""
        return replace(self.simulation.budget, steps=self.simulation.budget.steps - host.launch.steps)

    def _on_gpu(self, launch: Launch, arguments: Arguments, host: Warp) -> None:
        from tilefold.runtime.cuda import CudaEngine

        if self._gpu is None:
            self._gpu = CudaEngine()
        target = self.program.target or self._gpu.driver.target
        artifact = self._for(launch, TO_INDEX).artifact(launch.kernel, target)
        values = dict(zip(artifact.names, _scalars(arguments), strict=True))
        sys.stdout.flush()  # what the kernel prints, the driver writes without Python's buffer
        self._gpu.launch(artifact, LaunchConfig(launch.grid, launch.block), values)

    def _for(self, launch: Launch, passes: tuple[str, ...]) -> Program:
        """The device program for blocks of a launch's size."""
        return self.program.device_program(passes, launch.block)


def _scalars(arguments: Arguments) -> list[Any]:
    """What a launch passes: of a value of the `cute` dialect its dynamic integers."""
    scalars: list[Any] = []
    for value, type in arguments:
        scalars += value if isinstance(type, CuteType) else [value]
    return scalars
