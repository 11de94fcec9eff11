# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Searches for the pass that changes what a call of a kernel in Python does."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilefold.bisection.bisect import bisect, passes_to_instr
from tilefold.bisection.trial import Trial
from tilefold.bisection.verdict import Verdict
from tilefold.running.devices import on_gpu
from tilefold.runtime.engine import Argument, LaunchConfig, TensorArgument
from tilefold.runtime.errors import dim3
from tilefold.runtime.options import LaunchAttributes, RunOptions
from tilefold.runtime.sim.sim_engine import SimEngine

from .launch import on_host

if TYPE_CHECKING:
    from .kernel import KernelCall


def bisect_call(
    call: "KernelCall",
    grid: Any,
    block: Any,
    attributes: LaunchAttributes,
    options: RunOptions,
    *,
    stores: bool,
    gpu: bool,
) -> Verdict:
    """Runs copies of a call's arguments through the kernel after each pass; see `KernelCall.bisect`."""
    built = call.build(block)
    values, tensors = on_host(call.bound)  # the arrays live as long as `tensors`

    def arguments() -> dict[str, Argument]:
        copies = {id(given.storage): given.storage.copy() for given in tensors.arguments.values()}
        return {
            name: replace(value, storage=copies[id(value.storage)]) if isinstance(value, TensorArgument) else value
            for name, value in values.items()
        }

    program, symbol = built.program, built.symbol
    config = LaunchConfig(dim3("grid", grid), dim3("block", block), attributes=attributes)
    trial = Trial(symbol, config, arguments, SimEngine.of(options, texts=built.traced.texts), stores)
    with program.explaining():
        passes = passes_to_instr(program, program.simulated_target("instr"))
        return bisect(program, trial, passes, gpu=on_gpu(program, symbol) if gpu else None)
