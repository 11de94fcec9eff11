# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where kernels run: on the simulator, at a stage of lowering, or on a GPU. Callers get an engine with the kernel in
the form that it takes; they need not know which engine it is. A program that asks for a device, its sizes and launches
on it, gets the simulator or a GPU only here.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import Target
from tilefold.driver.lowering import Program
from tilefold.runtime.engine import Engine, LaunchConfig, RunResult
from tilefold.runtime.errors import LaunchError
from tilefold.runtime.options import SimOptions

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tilefold.runtime.compiled.artifact import Artifact
    from tilefold.runtime.cuda import CudaEngine
    from tilefold.runtime.sim.launch import Stream
    from tilefold.runtime.sim.preparation import SimProgram
    from tilefold.runtime.sim.sim_engine import SimEngine
    from tilefold.runtime.sim.translate import InlineMeanings

    from .world import World

CodeT = TypeVar("CodeT")


@dataclass(frozen=True)
class Executable(Generic[CodeT]):
    """A kernel of a program, in the form that its engine takes. `where` names the stage or the target."""

    program: Program
    engine: Engine[CodeT]
    code: CodeT
    where: str

    def launch(self, config: LaunchConfig, args: Mapping[str, object]) -> RunResult:
        """Runs the kernel and waits for it. TilefoldError as `Engine.launch`, with the line of the source."""
        if self.program.target is not None:
            config.check_target(self.program.target)
        with self.program.explaining():
            return self.engine.launch(self.code, config, args)


def executable(program: Program, kernel: str, device: str, stage: str | None, options: SimOptions) -> Executable[Any]:
    """A kernel for `device` (auto, sim or cuda). Where a stage is given, that is the simulator.

    Raises TilefoldError if the program cannot be lowered or compiled, CudaUnavailable without a GPU.
    """
    if stage is None and chosen_device(device) == "cuda":
        return on_gpu(program, kernel)
    return simulated(program, kernel, stage or program.simulated_stage, simulator(options))


def simulator(
    options: SimOptions,
    sink: Callable[[str], None] | None = None,
    texts: "InlineMeanings" = MappingProxyType({}),
) -> "SimEngine":
    """A simulator that executes PTX as text by the operations of its instructions, but for `texts`, which have
    functions.
    """
    from tilefold.runtime.sim.sim_engine import SimEngine

    return SimEngine(options, sink, texts, _without_texts)


def _without_texts(module: "ModuleOp", known: Collection[str]) -> "ModuleOp":
    """A program with operations in place of PTX as text."""
    from tilefold.dialects.ptx import InlineOp

    if not any(isinstance(op, InlineOp) for op in module.walk()):
        return module  # most programs need no reader of PTX
    from tilefold.compiler.ptx.inline_text import read_texts
    from tilefold.runtime.sim.rules.ptx_inline import executes

    return read_texts(module, lambda op: op.text.data in known or executes(op))


def simulated(program: Program, kernel: str, stage: str, engine: "SimEngine") -> "Executable[SimProgram]":
    """A kernel for the simulator. Raises TilefoldError if the program was written at a later stage, or a pass
    refuses it.
    """
    from tilefold.runtime.sim.preparation import SimProgram

    with program.explaining():
        module = program.reached(stage, program.simulated_target(stage))
    devices = devices_of_process()
    engine = replace(engine, tensor_cores=program.tensor_cores, keeps_accesses=devices.keeps_accesses)
    registers = partial(_registers, program, kernel, stage)
    world, code = devices.world, SimProgram(module, kernel, program.module, registers)
    if world is None:
        return Executable(program, engine, code, f"stage {stage}")
    from .world import DeviceEngine

    return Executable(program, DeviceEngine(world, engine), code, f"stage {stage}")


def _registers(program: Program, kernel: str, stage: str) -> int | None:
    """The registers of a kernel's thread, by the assembler; None where it is missing or refuses the program."""
    try:
        kernels = program.cubin(program.simulated_target(stage)).kernels
    except TilefoldError:
        return None
    return kernels[kernel.rpartition("::")[2].removeprefix("@")].registers


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


class Device(Protocol):
    """A device that runs launches of Python: its sizes, and the launches that it is given."""

    @property
    def multiprocessors(self) -> int:
        """The number of multiprocessors."""
        ...

    @property
    def l2_bytes(self) -> int:
        """The bytes of the L2 cache."""
        ...

    def max_active_clusters(self, blocks: int) -> int:
        """The number of clusters of this many blocks that run at a time, if each block fills a multiprocessor."""
        ...

    def submit(self, launch: Callable[[], RunResult], config: LaunchConfig, stream: object) -> RunResult | None:
        """Executes a launch in a stream; None where it is kept for later."""
        ...


@dataclass(eq=False)
class Simulator:
    """The simulator as a device, with the sizes of a small GPU: persistent kernels then have few blocks."""

    target: Target = field(default_factory=lambda: Target("sm_90a"))
    multiprocessors: int = 4
    l2_bytes: int = 1 << 20

    def max_active_clusters(self, blocks: int) -> int:
        """The number of clusters of this many blocks that run at a time."""
        return max(self.multiprocessors // blocks, 1)

    def submit(self, launch: Callable[[], RunResult], config: LaunchConfig, stream: object) -> RunResult | None:
        """Executes a launch at once."""
        return launch()


_EMPTY = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry empty()\n{\n\tret;\n}\n"


@dataclass(frozen=True)
class CudaDevice:
    """A GPU by its number. CudaUnavailable (E3301) if there is no such GPU."""

    ordinal: int

    @property
    def multiprocessors(self) -> int:
        """The number of multiprocessors."""
        return self._attribute("CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT")

    @property
    def l2_bytes(self) -> int:
        """The bytes of the L2 cache."""
        return self._attribute("CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE")

    def max_active_clusters(self, blocks: int) -> int:
        """As the driver answers for a kernel that fills a multiprocessor. LaunchError (E3105) for a GPU without
        clusters.
        """
        from tilefold.runtime.compiled.artifact import Artifact
        from tilefold.runtime.cuda.loaded_kernel import query_max_active_clusters

        engine = gpu_engine(self.ordinal)
        if not engine.driver.target.has_clusters:
            message = f"{engine.driver.name} has no clusters"
            raise LaunchError(Code.RUN_LAUNCH, message, "GPUs of compute capability 9.0 and newer have them")
        filling = engine.driver.max_shared_bytes
        prepared = engine.load(Artifact("empty", _EMPTY, Target("sm_90"), (), (128, 1, 1), dynamic_shared=filling))
        return query_max_active_clusters(prepared.kernel, prepared.library, (blocks, 1, 1))

    def submit(self, launch: Callable[[], RunResult], config: LaunchConfig, stream: object) -> RunResult | None:
        """Executes a launch, which is prepared for this GPU."""
        return launch()

    def _attribute(self, name: str) -> int:
        driver = gpu_engine(self.ordinal).driver
        return driver.attribute(getattr(driver.api.CUdevice_attribute, name))


@dataclass(eq=False)
class Devices:
    """The devices of a process: the simulator, and the GPUs unless the simulator stands for them. `on_launch` is called
    before a launch on the simulator: with the kernel, its arguments, the grid, the request and the options. `world` has
    several simulated devices, while their programs run. Simulated launches keep their accesses, if it `keeps_accesses`.
    """

    simulator: Device = field(default_factory=Simulator)
    stands_for_gpus: bool = False
    on_launch: Callable[..., None] | None = None
    world: "World | None" = None
    keeps_accesses: bool = False
    _stream: "Stream | None" = None

    def stream(self, handle: object) -> "Stream | None":
        """The stream of a simulated launch; None where several devices run at a time."""
        if self.world is not None and not self.world.is_alone:
            return None
        if self._stream is None:
            from tilefold.runtime.sim.launch import Stream

            self._stream = Stream()
        return self._stream.of(handle)

    def gpu(self, ordinal: int) -> Device:
        """The GPU of a number."""
        return self.simulator if self.stands_for_gpus else CudaDevice(ordinal)


@cache
def devices_of_process() -> Devices:
    """The devices of this process."""
    return Devices()
