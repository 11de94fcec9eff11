# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches a kernel of Python: on the GPU that holds its arguments, on copies of the host's arrays, or simulated."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tilefold.base.errors import Code
from tilefold.driver.devices import chosen_device, devices_of_process
from tilefold.runtime.arrays.array import NOWHERE, Array
from tilefold.runtime.arrays.host_tensors import HostTensors
from tilefold.runtime.engine import LaunchConfig, RunResult
from tilefold.runtime.errors import LaunchError, argument_error
from tilefold.runtime.options import LaunchAttributes, SimOptions, dim3
from tilefold.runtime.settings import looks_for_races, resident_blocks

from .specialise import BoundArguments

if TYPE_CHECKING:
    from .compiled_kernel import CompiledKernel

_DEVICES = "auto, sim, cuda, or cuda:1 and so on"


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """The settings of a launch besides its arguments, sizes and options; see `KernelCall.launch`."""

    device: str
    stage: str | None
    stream: Any
    attributes: LaunchAttributes
    smem: int | None = None


def simulate(
    built: "CompiledKernel", bound: BoundArguments, grid: object, request: LaunchRequest, options: SimOptions
) -> RunResult | None:
    """Submits a kernel to the simulator. LaunchError for arrays in the memory of a GPU, or another value than a stream.

    The result is None where the launch is kept for later.
    """
    block = dim3("block", built.traced.bounds.threads)
    config = LaunchConfig(dim3("grid", grid), block, attributes=request.attributes)
    launch, devices = partial(_simulate, built, bound, config, request, options), devices_of_process()
    if devices.on_launch is not None:
        devices.on_launch(built, bound, config.grid, request, options)
    return devices.simulator.submit(launch, config, request.stream)


def _simulate(
    built: "CompiledKernel",
    bound: BoundArguments,
    config: LaunchConfig,
    request: LaunchRequest,
    options: SimOptions,
) -> RunResult:
    for name, array in bound.arrays.items():
        if array.device is not None:
            problem = f"is in the memory of GPU {array.device}, which the simulator cannot reach"
            raise argument_error(name, problem, "pass an array in the host's memory")
    if request.stream is not None:
        check_stream(request.stream)
    values, tensors = on_host(bound)
    resident = max(options.resident, resident_blocks())
    options = replace(options, races=options.races and looks_for_races(), resident=resident)
    stream = devices_of_process().stream(request.stream)
    result = built.simulate(config, values, request.stage or "instr", options, stream)
    tensors.finish()
    if not options.exact:
        return result
    from tilefold.runtime.arrays.storage import read_logical_numbers

    return replace(result, exact=read_logical_numbers(result.exact, tensors.arguments))


def check_stream(stream: object) -> None:
    """LaunchError (E3106) for a value that is not a stream."""
    from tilefold.runtime.streams import handle_of

    from .host.streams import is_stream

    if not is_stream(stream):
        handle_of(stream)


def check_device(device: str) -> None:
    """LaunchError (E3105) for a device that does not exist."""
    kind, _, number = str(device).partition(":")  # any object, not only text
    if device not in ("auto", "sim", "cuda") and not (kind == "cuda" and number.isdecimal()):
        raise LaunchError(Code.RUN_LAUNCH, f"device is {device!r}", f"one of: {_DEVICES}")


def on_host(bound: BoundArguments, *, apart: bool = False) -> tuple[dict[str, Any], HostTensors]:
    """The arguments as the engines take those of the host, and its tensors, to be finished after the launch; see
    `HostTensors`.
    """
    tensors = HostTensors(bound.arrays, apart=apart)
    return {**bound.values, **tensors.arguments}, tensors


def place_of(arrays: Mapping[str, Array], device: str, stage: str | None = None) -> int | None:
    """The number of the GPU to run on; None for the simulator. LaunchError for an unknown device, for a GPU where a
    stage is given, for arrays without memory, and for arrays in different places.
    """
    check_device(device)
    for name, array in arrays.items():
        if array.device == NOWHERE:
            problem = "is a description of a tensor without memory"
            raise argument_error(name, problem, "pass an array; kernels are built for descriptions: .build(block)")
    if stage is not None and device not in ("sim", "auto"):
        hint = 'a GPU runs machine code; leave out stage=, or say device="sim"'
        raise LaunchError(Code.RUN_LAUNCH, f"stage is {stage!r}, and device {device!r}", hint)
    if device == "sim" or stage is not None:
        return None
    ordinal = int(device.partition(":")[2] or 0)
    first: tuple[str, Array] | None = None
    for name, array in arrays.items():
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
    return None if device == "auto" and chosen_device(device) == "sim" else ordinal


def _where(array: Array) -> str:
    return "in the host's memory" if array.device is None else f"on GPU {array.device}"
