# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a program that begins on the host: interprets its `@main`, and launches what it launches where it is told to."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from tilefold.compiler.driver import parse_passes, run_passes_quickly
from tilefold.dialects import gpu
from tilefold.dialects.cute.types import CuteType
from tilefold.dialects.gpu_launch import FuncOp
from tilefold.layout.errors import Code
from tilefold.lowering import Program
from tilefold.passes.registry import PASSES
from tilefold.runtime.engine import LaunchConfig
from tilefold.runtime.host.engine import HostEngine
from tilefold.runtime.host.rules import Launch
from tilefold.runtime.sim.engine import SimEngine, SimProgram
from tilefold.runtime.sim.faults import SimulationError
from tilefold.runtime.sim.warp import Budget, Warp

if TYPE_CHECKING:
    from tilefold.runtime.cuda import CudaEngine

TO_SIMULATOR = ("gpu-to-ptx{{block={block}}}",)
"""The passes that lead from a program with kernels of the `gpu` dialect to one that the simulator runs."""
TO_INDEX = (
    *TO_SIMULATOR, "inline-calls", "cute-fold-static", "cute-expand-ops", "cute-to-base", "gpu-to-ptx", "cse",
)  # fmt: skip
"""The passes that lead from there to stage `index`."""

Arguments = list[tuple[Any, Attribute]]


@dataclass
class Host:
    """One run of a program's host part. `device` is sim or cuda; the budget counts what host and simulator execute."""

    program: Program
    device: str
    environment: Mapping[str, str | None]
    budget: Budget
    seed: int = 0
    _lowered: dict[tuple[tuple[str, ...], str], ModuleOp] = field(default_factory=lambda: {})
    _gpu: "CudaEngine | None" = None

    def run(self, entry: str) -> None:
        """Runs `@entry`. Raises TilefoldError, with the place in the file, for what the program does wrong."""
        launcher = self._on_gpu if self.device == "cuda" else self._on_simulator
        with self.program.explaining():
            HostEngine(launcher, self.environment, self.budget).run(self.program.module, entry)

    def _on_simulator(self, launch: Launch, arguments: Arguments, host: Warp) -> None:
        module = self._for_block(launch, TO_SIMULATOR)
        left = Budget(self.budget.steps - host.launch.steps, self.budget.bytes, self.budget.characters)
        engine = SimEngine(left, seed=self.seed or None, sink=host.launch.print)
        program = SimProgram(module, launch.kernel)
        names = [name.data for name in program.find().arg_names]
        config = LaunchConfig(launch.grid, launch.block)
        result = engine.launch(program, config, dict(zip(names, _scalars(arguments), strict=True)))
        host.launch.spend(result.counters.steps)

    def _on_gpu(self, launch: Launch, arguments: Arguments, host: Warp) -> None:
        from tilefold.runtime.cuda import CudaEngine

        if self._gpu is None:
            self._gpu = CudaEngine()
        target = self.program.target or self._gpu.driver.target
        module = self._for_block(launch, TO_INDEX)
        device = Program(self.program.source, module, self.program.context, target)
        artifact = device.artifact(launch.kernel, target)
        values = dict(zip(artifact.names, _scalars(arguments), strict=True))
        sys.stdout.flush()  # what the kernel prints, the driver writes without Python's buffer
        self._gpu.launch(artifact, LaunchConfig(launch.grid, launch.block), values)

    def _for_block(self, launch: Launch, passes: tuple[str, ...]) -> ModuleOp:
        """The device program for blocks of the size of a launch. SimulationError (E3107) for an unknown kernel."""
        if launch.kernel not in kernels(self.program.module):
            known = ", ".join(f"@{name}" for name in kernels(self.program.module)) or "none"
            text = f"the program has no kernel @{launch.kernel.replace('::', '::@')}"
            raise SimulationError(Code.RUN_KERNEL, text, f"its kernels: {known}", site=launch.site)
        block = ",".join(map(str, launch.block))
        if (passes, block) not in self._lowered:
            module = self.program.module.clone()
            chosen = parse_passes(",".join(passes).format(block=block), PASSES)
            run_passes_quickly(self.program.context, module, chosen, source=self.program.source)
            self._lowered[passes, block] = module
        return self._lowered[passes, block]


def kernels(module: ModuleOp) -> list[str]:
    """The kernels that a host can launch, as `module::kernel`."""
    return [
        f"{device.name_of()}::{op.name_of()}"
        for device in module.ops
        if isinstance(device, gpu.ModuleOp)
        for op in device.body.block.ops
        if isinstance(op, FuncOp) and op.kernel is not None
    ]


def _scalars(arguments: Arguments) -> list[Any]:
    """What a launch passes: of a value of the `cute` dialect its dynamic integers."""
    scalars: list[Any] = []
    for value, type in arguments:
        scalars += value if isinstance(type, CuteType) else [value]
    return scalars
