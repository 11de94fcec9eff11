# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where kernels run: on the simulator, at a stage of lowering, or on a GPU. Callers get an engine with the kernel in
the form that it takes; they need not know which engine it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tilefold.driver.lowering import Program
from tilefold.runtime.engine import Engine, LaunchConfig, RunResult
from tilefold.runtime.options import RunOptions

if TYPE_CHECKING:
    from tilefold.runtime.compiled.artifact import Artifact
    from tilefold.runtime.cuda import CudaEngine
    from tilefold.runtime.sim.sim_engine import SimEngine, SimProgram

CodeT = TypeVar("CodeT")


@dataclass(frozen=True)
class Executable(Generic[CodeT]):
    """A kernel of a program, in the form that its engine takes. `where` names the stage or the target."""

    program: Program
    engine: Engine[CodeT]
    code: CodeT
    where: str

    def launch(self, config: LaunchConfig, args: Mapping[str, Any]) -> RunResult:
        """Runs the kernel and waits for it. TilefoldError as `Engine.launch`, with the line of the source."""
        if self.program.target is not None:
            config.check_target(self.program.target)
        with self.program.explaining():
            return self.engine.launch(self.code, config, args)


def executable(program: Program, kernel: str, device: str, stage: str | None, options: RunOptions) -> Executable[Any]:
    """A kernel for `device` (auto, sim or cuda). Where a stage is given, that is the simulator.

    Raises TilefoldError if the program cannot be lowered or compiled, CudaUnavailable without a GPU.
    """
    if stage is None and chosen_device(device) == "cuda":
        return on_gpu(program, kernel)
    from tilefold.runtime.sim.sim_engine import SimEngine

    return simulated(program, kernel, stage or program.simulated_stage, SimEngine.of(options))


def simulated(program: Program, kernel: str, stage: str, engine: "SimEngine") -> "Executable[SimProgram]":
    """A kernel for the simulator. Raises TilefoldError if the program was written at a later stage, or a pass
    refuses it.
    """
    from tilefold.runtime.sim.sim_engine import SimProgram

    with program.explaining():
        module = program.reached(stage, program.simulated_target(stage))
    engine = replace(engine, tensor_cores=program.tensor_cores)
    return Executable(program, engine, SimProgram(module, kernel, program.module), f"stage {stage}")


def on_gpu(program: Program, kernel: str) -> "Executable[Artifact]":
    """A kernel for the first GPU, as machine code for the program's target or that of the GPU.

    Raises TilefoldError if the compiler refuses the program, CudaUnavailable without a GPU.
    """
    engine = gpu_engine(0)
    target = program.target or engine.driver.target
    with program.explaining():
        artifact = program.artifact(kernel, target)
    return Executable(program, engine, artifact, str(target))


@cache
def gpu_engine(ordinal: int) -> "CudaEngine":
    """The engine of a GPU, one in a process. CudaUnavailable where there is no such GPU."""
    from tilefold.runtime.cuda import CudaEngine

    return CudaEngine(ordinal)


def chosen_device(device: str) -> str:
    """`sim` or `cuda`: for `auto` the GPU if there is one."""
    if device != "auto":
        return device
    from tilefold.runtime.cuda import is_available

    return "cuda" if is_available() else "sim"
