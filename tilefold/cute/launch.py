# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a kernel of Python runs: on the GPU that holds its arguments, on copies of the host's arrays, or simulated."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from tilefold.base.errors import Code
from tilefold.runtime.arrays.arrays import NOWHERE, Array
from tilefold.runtime.arrays.host_tensors import HostTensors
from tilefold.runtime.cuda.comparison import Rules
from tilefold.runtime.cuda.direct import Args
from tilefold.runtime.cuda.launcher import Launcher, Resolve
from tilefold.runtime.cuda.prepared import Prepared
from tilefold.runtime.engine import LaunchConfig, RunResult
from tilefold.runtime.errors import LaunchError, argument_error, dim3
from tilefold.runtime.streams import handle_of

from .parameters import Signature
from .specialise import BoundArguments

if TYPE_CHECKING:
    from tilefold.running.simulation import Simulation
    from tilefold.runtime.cuda import CudaEngine

    from .kernel import Kernel
    from .program import CompiledKernel

_DEVICES = "auto, sim, cuda, or cuda:1 and so on"


@cache
def engine_of(ordinal: int) -> "CudaEngine":
    """The engine of a GPU, one in a process. CudaUnavailable where there is no such GPU."""
    from tilefold.runtime.cuda import CudaEngine

    return CudaEngine(ordinal)


@dataclass
class Launches:
    """The launches of one kernel: for each device that is asked for, those that are prepared."""

    kernel: "Kernel"
    launchers: dict[str, Launcher]
    _prepared: "dict[tuple[int, int], tuple[CompiledKernel, Prepared]]" = field(default_factory=lambda: {})

    def launch(
        self, args: Args, block: Any, grid: Any, stream: Any, device: str, programmatic: bool
    ) -> RunResult | None:
        """Launches on arguments in the order of the parameters; returns without waiting for the GPU.

        The result is that of the simulator, or of a launch on copies of the host's arrays, which is waited for; else
        None. Raises what building, preparing and launching raise.
        """
        launcher = self.launchers.get(device)
        if launcher is None:
            signature = self.kernel.signature

            def resolve(args: Args, *rest: Any) -> tuple[RunResult | None, Prepared | None]:
                return self.resolve(device, signature.bind_in_order(args), *rest)

            launcher = self.launchers[device] = launcher_of(signature, device, resolve)
        return launcher.launch(args, block, grid, stream, programmatic)

    def simulate(
        self,
        bound: BoundArguments,
        block: Any,
        grid: Any,
        stage: str,
        device: str = "sim",
        simulation: "Simulation | None" = None,
    ) -> RunResult:
        """Runs on the simulator at a stage. LaunchError for arrays in the memory of a GPU, and if `device` is one."""
        _check_device(device)
        if device not in ("sim", "auto"):
            hint = 'a GPU runs machine code; leave out stage=, or say device="sim"'
            raise LaunchError(Code.RUN_LAUNCH, f"stage is {stage!r}, and device {device!r}", hint)
        for name, array in bound.arrays.items():
            _check_memory(name, array)
            if array.device is not None:
                problem = f"is in the memory of GPU {array.device}, where the simulator does not reach"
                raise argument_error(name, problem, "pass an array in the host's memory")
        built = self.kernel.build(bound, dim3("block", block))
        values, tensors = on_host(bound)
        result = built.simulate(dim3("grid", grid), values, stage, simulation)
        tensors.finish()
        return result

    def resolve(
        self,
        device: str,
        bound: BoundArguments,
        block: Any,
        grid: Any,
        stream: Any,
        programmatic: bool,
        simulation: "Simulation | None" = None,
    ) -> tuple[RunResult | None, Prepared | None]:
        """Launches on arguments that are bound, one by one checked and packed; what `launch` returns, and the prepared
        launch, if this was one.
        """
        ordinal = place_of(bound.arrays, device)
        if ordinal is None:
            from tilefold.running.session import DEFAULT_STAGE

            return self.simulate(bound, block, grid, DEFAULT_STAGE, simulation=simulation), None
        built = self.kernel.build(bound, dim3("block", block))
        engine = engine_of(ordinal)
        with engine.driver.current():
            if any(array.device is None for array in bound.arrays.values()):
                return self._on_copies(built, bound, engine, grid, stream), None
            from tilefold.runtime.cuda.packed_arguments import PackedArguments

            prepared = self.prepare(built, engine)
            kernel = prepared.kernel
            packed = PackedArguments(kernel.driver, kernel.artifact, bound.values)
            prepared.launch(packed, grid, _stream(stream, bound, ordinal), programmatic)
            return None, prepared

    def prepare(self, built: "CompiledKernel", engine: "CudaEngine") -> Prepared:
        """The launches of a kernel that is built, on a GPU, where it is loaded."""
        ordinal = engine.driver.ordinal
        found = self._prepared.get((id(built), ordinal))
        if found is None:
            from tilefold.runtime.cuda.library import load_library

            prepared = Prepared(engine.load(built.artifact(engine.driver.target.arch)), load_library())
            found = self._prepared[id(built), ordinal] = (built, prepared)  # which keeps the object of this id
        return found[1]

    def _on_copies(
        self, built: "CompiledKernel", bound: BoundArguments, engine: "CudaEngine", grid: Any, stream: Any
    ) -> RunResult:
        artifact = built.artifact(engine.driver.target.arch)
        config = LaunchConfig(dim3("grid", grid), artifact.block)
        values, tensors = on_host(bound)
        result = engine.launch(artifact, config, values, 0 if stream is None else handle_of(stream))
        tensors.finish()
        return result


def launcher_of(signature: Signature, device: str, resolve: Resolve) -> Launcher:
    """The launches for parameters of such a signature. LaunchError for a device that is none."""
    _check_device(device)
    rules = Rules(signature.names, signature.constants, signature.rules, signature.ranges)
    return Launcher(rules, resolve)


def _check_device(device: str) -> None:
    kind, _, number = str(device).partition(":")  # of what is no name, too
    if device not in ("auto", "sim", "cuda") and not (kind == "cuda" and number.isdecimal()):
        raise LaunchError(Code.RUN_LAUNCH, f"device is {device!r}", f"one of: {_DEVICES}")


def on_host(bound: BoundArguments) -> tuple[dict[str, Any], HostTensors]:
    """The arguments as the engines take those of the host, and its tensors, to be finished after the launch."""
    tensors = HostTensors(bound.arrays)
    return {**bound.values, **tensors.arguments}, tensors


def place_of(arrays: Mapping[str, Array], device: str) -> int | None:
    """The number of the GPU to run on; None for the simulator. LaunchError for a device that is none, and for arrays in
    different places.
    """
    _check_device(device)
    if device == "sim":
        return None
    ordinal = int(device.partition(":")[2] or 0)
    first: tuple[str, Array] | None = None
    for name, array in arrays.items():
        _check_memory(name, array)
        if first is None:
            first = name, array
        elif array.device != first[1].device:
            problem = f"is {_where(array)}, argument '{first[0]}' {_where(first[1])}"
            raise argument_error(name, problem, "move them to the same place")
    if first is not None and first[1].device is not None:
        if ":" in device and first[1].device != ordinal:
            raise argument_error(
                first[0], f"is {_where(first[1])}, not on {device}", "move it there, or leave out device="
            )
        return first[1].device
    if device == "auto":
        from tilefold.runtime.cuda import is_available

        return ordinal if is_available() else None
    return ordinal


def _check_memory(name: str, array: Array) -> None:
    if array.device == NOWHERE:
        problem = "is the description of a tensor, without memory"
        raise argument_error(name, problem, "pass an array; kernels are built for descriptions: .build(block)")


def _where(array: Array) -> str:
    return "in the host's memory" if array.device is None else f"on GPU {array.device}"


def _stream(stream: Any, bound: BoundArguments, ordinal: int) -> int:
    """The handle of the stream to launch in; see `Launcher.launch`."""
    if stream is not None:
        return handle_of(stream)
    from tilefold.runtime.arrays.arrays import is_torch

    if any(is_torch(value) for value in bound.values.values()):
        import sys

        return int(sys.modules["torch"]._C._cuda_getCurrentRawStream(ordinal))
    return 0
