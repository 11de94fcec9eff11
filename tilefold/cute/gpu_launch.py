# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches of kernels in Python that are built; on GPUs: prepared once for arguments of the same types, by device."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tilefold.driver import devices
from tilefold.runtime.arrays.array import is_torch
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.cuda.comparison import Rules
from tilefold.runtime.cuda.direct import Args
from tilefold.runtime.cuda.launcher import Launcher, Resolve
from tilefold.runtime.cuda.packed_arguments import PackedArguments
from tilefold.runtime.cuda.prepared import Prepared
from tilefold.runtime.engine import LaunchConfig, RunResult
from tilefold.runtime.options import LaunchAttributes, SimOptions, dim3
from tilefold.runtime.streams import current_stream_of, handle_of

from .launch import LaunchRequest, check_device, on_host, place_of, simulate
from .parameters import Signature
from .specialise import BoundArguments

if TYPE_CHECKING:
    from .compiled_kernel import CompiledKernel


LauncherKey: TypeAlias = str | tuple[str, int]
"""A device, with the bytes of shared memory that the launches give, if they give any."""


@dataclass(frozen=True)
class GpuLaunches:
    """The launches of one kernel on GPUs: the prepared ones by their keys, its parameters, and how it is built."""

    launchers: dict[LauncherKey, Launcher]
    signature: Signature
    build: Callable[[BoundArguments, Sequence[int]], "CompiledKernel"]

    def launcher(self, device: str, smem: int | None = None) -> Launcher:
        """The prepared launches for a device, with `smem` bytes. LaunchError for one that does not exist."""
        launchers, signature = self.launchers, self.signature
        key = device if smem is None else (device, smem)
        if key not in launchers:

            def resolve(args: Args, *rest: Any) -> tuple[RunResult | None, Prepared | None]:
                bound = signature.bind_in_order(args)
                bound.smem = smem
                ordinal = place_of(bound.arrays, device)
                assert ordinal is not None, "a device that has launches is a GPU"
                return self.resolve(ordinal, bound, *rest)

            launchers[key] = launcher_of(signature, device, resolve)
        return launchers[key]

    def resolve(
        self,
        ordinal: int,
        bound: BoundArguments,
        block: object,
        grid: object,
        stream: object,
        attributes: LaunchAttributes,
    ) -> tuple[RunResult | None, Prepared | None]:
        """Launches on arguments that are bound, which are checked and packed one by one, without waiting for the GPU.

        The result is that of a launch on copies of the host's arrays, which is waited for, else None; then the prepared
        launch, if this was one. Raises the errors of building, preparing and launching.
        """
        return launch_built(self.build(bound, dim3("block", block)), ordinal, bound, grid, stream, attributes)

    def prepared(self, bound: BoundArguments, block: object, device: str) -> tuple[Prepared, list[bytes]] | None:
        """The prepared kernel for arguments that are bound, and the bytes of its values. None where a launch would be
        on the simulator, or on copies of the host's arrays.
        """
        ordinal = place_of(bound.arrays, device)
        if ordinal is None or any(array.device is None for array in bound.arrays.values()):
            return None
        engine = devices.gpu_engine(ordinal)
        with engine.driver.current():
            built = self.build(bound, dim3("block", block))
            prepared = engine.load(built.loaded_on(engine.driver.target.arch))
            return prepared, PackedArguments(engine.driver, prepared.kernel.artifact, bound.values).values


def run(
    built: "CompiledKernel", bound: BoundArguments, grid: object, request: LaunchRequest, options: SimOptions
) -> tuple[RunResult | None, Prepared | None]:
    """Launches a kernel that is built on arguments that are bound, where `request` says and these are; see
    `GpuLaunches.resolve`.
    """
    ordinal = place_of(bound.arrays, request.device, request.stage)
    if ordinal is None:
        return simulate(built, bound, grid, request, options), None
    return launch_built(built, ordinal, bound, grid, request.stream, request.attributes)


def launch_built(
    built: "CompiledKernel",
    ordinal: int,
    bound: BoundArguments,
    grid: object,
    stream: object,
    attributes: LaunchAttributes,
) -> tuple[RunResult | None, Prepared | None]:
    """Launches a kernel that is built on a GPU; see `GpuLaunches.resolve`."""
    engine = devices.gpu_engine(ordinal)
    with engine.driver.current():
        if any(array.device is None for array in bound.arrays.values()):
            return _on_copies(built, bound, engine, grid, stream, attributes), None
        prepared = engine.load(built.loaded_on(engine.driver.target.arch))
        packed = PackedArguments(engine.driver, prepared.kernel.artifact, bound.values)
        frame = prepared.ready(packed, grid, _stream(stream, bound, ordinal), attributes)
        prepared.run(frame)
        prepared.give(frame)
        return None, prepared


def _on_copies(
    built: "CompiledKernel",
    bound: BoundArguments,
    engine: CudaEngine,
    grid: object,
    stream: object,
    attributes: LaunchAttributes,
) -> RunResult:
    artifact = built.loaded_on(engine.driver.target.arch)
    config = LaunchConfig(dim3("grid", grid), artifact.block, 0 if stream is None else handle_of(stream), attributes)
    values, tensors = on_host(bound, apart=True)
    result = engine.launch(artifact, config, values)
    tensors.finish()
    return result


def launcher_of(signature: Signature, device: str, resolve: Resolve) -> Launcher:
    """The launches for parameters of such a signature. LaunchError for a device that does not exist."""
    check_device(device)
    rules = Rules(signature.names, signature.constants, signature.rules, signature.ranges)
    return Launcher(rules, resolve)


def _stream(stream: object, bound: BoundArguments, ordinal: int) -> int:
    """The handle of the stream to launch in; see `Launcher.launch`."""
    if stream is not None:
        return handle_of(stream)
    if any(is_torch(value) for value in bound.values.values()):
        return current_stream_of(sys.modules["torch"])(ordinal)
    return 0
