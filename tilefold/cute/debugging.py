# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks calls of kernels in Python, and finds the pass that changes the behaviour of a call."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tilefold.base.errors import Code
from tilefold.dialects.ptx import EntryOp
from tilefold.driver.devices import on_gpu, simulator
from tilefold.driver.line_costs import Costs
from tilefold.driver.lowering import Program, passes_to_instr
from tilefold.driver.trial import Trial
from tilefold.runtime.arrays.host_tensors import HostTensors, copied, stretches
from tilefold.runtime.engine import Argument, LaunchConfig, TensorArgument
from tilefold.runtime.errors import LaunchError
from tilefold.runtime.options import LaunchAttributes, SimOptions, dim3
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import discard
from tilefold.tools.bisection.bisect import bisect
from tilefold.tools.bisection.verdict import Verdict
from tilefold.tools.checking.check import Checked, Examination
from tilefold.tools.checking.outputs import outputs_of
from tilefold.tools.joined import report_on
from tilefold.tools.profiling.simulated_costs import costs_of
from tilefold.tools.report.page import Page
from tilefold.tools.reproduction.folder import PROGRAM
from tilefold.tools.reproduction.replay import Repeated

from .compiled_kernel import CompiledKernel
from .launch import on_host
from .specialise import BoundArguments

if TYPE_CHECKING:
    from tilefold.tools.reproduction.folder import Reproduction

PARTIAL = "partial"
"""The `outputs` of a launch that may leave elements of its outputs unwritten."""
Outputs = Collection[str] | None
"""The outputs of a launch by their names, None for those that its text tells, or `PARTIAL`."""


class BoundCall(Protocol):
    """A kernel with its arguments: see `DebuggableCall`."""

    @property
    def bound(self) -> BoundArguments: ...

    def build(self, block: Any) -> CompiledKernel: ...


@dataclass(frozen=True)
class RepeatableLaunch:
    """A launch of a call that can be repeated on copies of its arguments."""

    call: BoundCall
    grid: Any
    block: Any
    attributes: LaunchAttributes
    options: SimOptions

    @property
    def config(self) -> LaunchConfig:
        """The sizes and attributes of the launch. LaunchError (E3105) for sizes that are not positive integers."""
        return LaunchConfig(dim3("grid", self.grid), dim3("block", self.block), attributes=self.attributes)

    def bisect(self, *, stores: bool, gpu: bool) -> Verdict:
        """Runs the kernel after each pass; see `KernelCall.bisect`."""
        built = self.call.build(self.block)
        engine = simulator(self.options, texts=built.traced.texts)
        _keep, arguments = self._copies(())
        trial = Trial(built.symbol, self.config, arguments, engine, stores)
        program = built.program
        with program.explaining():
            passes = passes_to_instr(program, program.simulated_target("instr"))
            return bisect(program, trial, passes, gpu=on_gpu(program, built.symbol) if gpu else None)

    def costs(self) -> Costs:
        """Counts the costs of the lines; see `KernelCall.costs`."""
        built = self.call.build(self.block)
        engine = simulator(self.options, discard, built.traced.texts)
        _keep, arguments = self._copies(())
        with built.program.explaining():
            return costs_of(built.program, built.name, Trial(built.symbol, self.config, arguments, engine))

    def report_html(self) -> Page:
        """A page about the kernel and the launch; see `KernelCall.report_html`."""
        built = self.call.build(self.block)
        engine = simulator(self.options, discard, built.traced.texts)
        _keep, arguments = self._copies(())
        checked = Checked(built.name, built.program, built.symbol, self.config, arguments, engine)
        with built.program.explaining():
            return report_on(built.program, [checked])

    @property
    def is_repeatable(self) -> bool:
        """Whether files can hold the arguments: no two arrays share memory."""
        storages = [tensor.storage for tensor in on_host(self.call.bound)[1].arguments.values()]
        return len(set(stretches(storages).values())) == len(storages)

    def examine(
        self, outputs: Outputs, stages: Sequence[str], input: str
    ) -> tuple[Examination, Callable[[], Repeated]]:
        """The launch at some stages with arguments that `input` describes, and the data that repeat it elsewhere."""
        built = self.call.build(self.block)
        engine = simulator(self.options, discard, built.traced.texts)
        partial = outputs == PARTIAL
        if outputs is None or outputs == PARTIAL:
            with built.program.explaining():
                outputs = self._outputs(built.program, built.symbol)
        _keep, arguments = self._copies(outputs)
        checked = Checked(built.name, built.program, built.symbol, self.config, arguments, engine, partial=partial)
        with built.program.explaining():
            outcome = checked.outcome(stages)

        def repeated() -> Repeated:
            from .reproducing import reproduction

            made = reproduction(built, self.config, arguments(), self.options, "check")
            words = [*made.words[2:], *(word for stage in stages for word in ("--stage", stage))]
            words += ["--outputs", PARTIAL] if partial else []
            return Repeated(PROGRAM, made.text, words, made.launches[0].arrays, input=input)

        return Examination([built.name], stages, [outcome], built.program.source, input=input), repeated

    def _outputs(self, program: Program, symbol: str) -> Collection[str]:
        """The tensors that the kernel writes and never reads, and that share no memory with others."""
        kernel = SimProgram(program.reached("instr", program.simulated_target("instr")), symbol).find()
        assert isinstance(kernel, EntryOp), "stage instr"
        _, tensors = on_host(self.call.bound)
        where = stretches(tensor.storage for tensor in tensors.arguments.values())
        uses = Counter(where[id(tensor.storage)] for tensor in tensors.arguments.values())
        outputs = outputs_of(kernel)
        return [
            name
            for name, argument in tensors.arguments.items()
            if name in outputs and uses[where[id(argument.storage)]] == 1
        ]

    def reproduction(self, command: str, outputs: Collection[str] = ()) -> "Reproduction":
        """The files that repeat the launch by a command; see `KernelCall.repro`."""
        from .reproducing import reproduction

        built = self.call.build(self.block)
        _keep, arguments = self._copies(outputs)
        return reproduction(built, self.config, arguments(), self.options, command)

    def _copies(self, outputs: Collection[str]) -> tuple[HostTensors, Callable[[], dict[str, Argument]]]:
        """A function that copies the arguments, those of `outputs` without values. The arrays live as long as the first
        result.
        """
        values, tensors = on_host(self.call.bound)
        for name in outputs:
            if name not in tensors.arguments:
                known = ", ".join(tensors.arguments) or "none"
                raise LaunchError(Code.RUN_ARGUMENT, f"outputs: '{name}' is not a tensor argument", f"tensors: {known}")
        unset = {id(tensors.arguments[name].storage) for name in outputs}

        def copy(given: TensorArgument, copies: dict[int, Any]) -> TensorArgument:
            bare = id(given.storage) in unset
            if bare:
                copies[id(given.storage)].view(np.uint8)[:] = 0xFF
            return replace(given, storage=copies[id(given.storage)], initialised=not bare)

        def arguments() -> dict[str, Argument]:
            copies = copied(tensors.arguments)
            return {
                name: copy(value, copies) if isinstance(value, TensorArgument) else value
                for name, value in values.items()
            }

        return tensors, arguments
