# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Executes a problem on the simulator at every stage, as emitted LLVM IR on the CPU, as PTX, and on a GPU."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from traceback import format_exception
from typing import Any

from tilefold.base.errors import TilefoldError
from tilefold.base.target import Target
from tilefold.compiler.frontend.program import print_program
from tilefold.compiler.frontend.source import plain_source
from tilefold.compiler.pass_runner import parse_passes
from tilefold.compiler.pipeline import PASSES, STAGE_NAMES, STAGES
from tilefold.layout.algebra.scalars import scalars_of
from tilefold.runtime.compiled.artifact import make_artifact
from tilefold.runtime.cuda import CudaEngine
from tilefold.runtime.engine import LaunchConfig, TensorArgument
from tilefold.runtime.options import launch_attributes
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine

from tests.emit.cpu import NotOnCpu, run_kernel
from tests.emit.ptx_interpreter import run_ptx
from tests.fuzz.problem import Generator, Problem, Tensor
from tests.passes.costs import accesses, compare
from tilefold.driver.lowering import Program, load

CPU, GPU, PTX, DUMP = "cpu", "gpu", "ptx", "dump"
PASS_TEXTS = tuple(text for stage in STAGES for text in stage.passes)
"""All passes that lead to stage `instr`, as a pipeline names them."""


class Fault(AssertionError):  # noqa: N818
    """A kernel that computes something else, or is treated wrongly."""


@dataclass
class Totals:
    """What a search did: programs, elements that were compared by engine, and programs that were not, with the code of
    the refusal or the instruction that does not run on the CPU.
    """

    programs: int = 0
    elements: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    not_on_cpu: Counter[str] = field(default_factory=Counter[str])

    def __str__(self) -> str:
        parts = [f"{self.programs} programs", f"elements compared: {dict(self.elements)}"]
        parts += [f"refused: {dict(self.refused)}"] if self.refused else []
        parts += [f"not run on the CPU: {dict(self.not_on_cpu)}"] if self.not_on_cpu else []
        return "; ".join(parts)


def attempt(name: str, generator: Generator, seed: int, totals: Totals, gpu: CudaEngine | None = None) -> None:
    """Executes the problem of a seed: on the GPU if one is given, else at all stages, from the text
    after one of the passes, and on the CPU.

    Raises Fault, with the seed and the program, for a wrong element and for an exception that is not allowed.
    """
    totals.programs += 1
    problem: Problem | None = None
    try:
        problem = generator.make(seed)
        if gpu is not None:
            on_gpu(problem, totals, gpu)
        else:
            on_simulator(problem, totals)
            on_dump(problem, totals, seed % len(PASS_TEXTS))
            on_cpu(problem, totals)
            on_interpreter(problem, totals)
    except TilefoldError as error:
        if error.code not in generator.refusals:
            raise Fault(_told(name, seed, problem, error)) from error
        totals.refused[error.code] += 1
    except Exception as error:
        raise Fault(_told(name, seed, problem, error)) from error


def _told(name: str, seed: int, problem: Problem | None, error: Exception) -> str:
    known = isinstance(error, TilefoldError | Fault)
    notes = [] if problem is None else [problem.source or problem.text]
    notes += getattr(error, "__notes__", [])
    message = str(error) if known else "".join(format_exception(error))
    return "\n".join((f"{name}, seed {seed}: {message}", *notes))


def _program(problem: Problem) -> Program:
    return load(plain_source(problem.text, "fuzz.cute"), problem.target)


def _compare(problem: Problem, engine: str, totals: Totals, run: "Callable[[dict[str, Any]], object]") -> None:
    """Runs the kernel on copies of its arguments, and compares what is left in them."""
    copies: dict[str, Any] = {
        name: each.storage.copy() if isinstance(each, Tensor) else each for name, each in problem.arguments.items()
    }
    run(copies)
    if difference := problem.differences(copies):
        raise Fault(f"on {engine}: {difference}")
    totals.elements[engine] += sum(tensor.storage.size for tensor in problem.compared.values())


def _bound(problem: Problem, copies: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: TensorArgument(copies[name], each.layout, not each.fresh) if isinstance(each, Tensor) else each
        for name, each in problem.arguments.items()
    }


def config_of(problem: Problem) -> LaunchConfig:
    """The launch of a problem."""
    return LaunchConfig(problem.grid, problem.block, attributes=launch_attributes(problem.cluster))


def on_simulator(problem: Problem, totals: Totals) -> None:
    """Executes the kernel at every stage; the last one must cost what was said before the run, if the problem asks."""
    program, target = _program(problem), Target(problem.target)
    simulator, config = SimEngine(sink=lambda _: None), config_of(problem)
    for stage, module in [(stage, program.reached(stage, target)) for stage in STAGE_NAMES]:
        kernel = SimProgram(module, problem.kernel)
        run = partial(_simulate, simulator, kernel, config, problem, stage)
        _compare(problem, stage, totals, run)


def _simulate(
    simulator: SimEngine,
    kernel: SimProgram,
    config: LaunchConfig,
    problem: Problem,
    stage: str,
    copies: Mapping[str, Any],
) -> None:
    ran = simulator.launch(kernel, config, _bound(problem, copies))
    if problem.costs and stage == STAGE_NAMES[-1]:
        compare(accesses(kernel.module, problem.kernel), ran.counters)


def on_dump(problem: Problem, totals: Totals, last: int = 0) -> None:
    """Executes the program that is read from what the passes up to number `last` leave."""
    program, target = _program(problem), Target(problem.target)
    module = program.module.clone()
    for each in parse_passes(",".join(PASS_TEXTS[: last + 1]).format(target=target.arch), PASSES):
        each.apply(program.context, module)
    text = print_program(module, locations=True, header=True)
    again = load(plain_source(text, "dump.cute"), problem.target).reached("instr", target)
    simulator, config = SimEngine(sink=lambda _: None), config_of(problem)
    run = partial(_simulate, simulator, SimProgram(again, problem.kernel), config, problem, DUMP)
    _compare(problem, DUMP, totals, run)


def on_cpu(problem: Problem, totals: Totals) -> None:
    """Executes the emitted LLVM IR; the program must become PTX, too."""
    program, target = _program(problem), Target(problem.target)
    program.ptx(target)
    given = partial(_given, program, target, problem)

    def run(copies: dict[str, Any]) -> None:
        run_kernel(program.llvm(target), problem.kernel, problem.grid, problem.block, given(copies), target=target)

    try:
        _compare(problem, CPU, totals, run)
    except NotOnCpu as error:
        totals.not_on_cpu[error.instruction] += 1


def _given(program: Program, target: Target, problem: Problem, copies: Mapping[str, Any]) -> list[Any]:
    """The values of the compiled kernel's parameters."""
    (entry,) = [each for each in program.entries(target) if each.sym_name.data == problem.kernel]
    values: list[Any] = []
    for parameter in make_artifact(entry, "", target).parameters:
        values.append(copies[parameter.name])
        tensor = problem.arguments[parameter.name]
        if isinstance(tensor, Tensor) and parameter.layout is not None:
            assert tensor.layout is not None
            values += scalars_of(parameter.layout, tensor.layout)
    return values


def on_interpreter(problem: Problem, totals: Totals) -> None:
    """Executes the PTX of each target that the problem names, by the PTX ISA."""
    for arch in problem.interpreted:
        program, target = load(plain_source(problem.text, "fuzz.cute"), arch), Target(arch)
        ptx, given = program.ptx(target), partial(_given, program, target, problem)
        _compare(problem, PTX, totals, partial(_interpret, ptx, problem, given))


def _interpret(ptx: str, problem: Problem, given: Callable[[Mapping[str, Any]], list[Any]], copies: Any) -> None:
    run_ptx(ptx, problem.grid[0], problem.block[0], given(copies))


def on_gpu(problem: Problem, totals: Totals, gpu: CudaEngine) -> None:
    """Executes the machine code."""
    program, target = _program(problem), gpu.driver.target
    config = config_of(problem)
    artifact = program.artifact(problem.kernel, target)
    _compare(problem, GPU, totals, lambda copies: gpu.launch(artifact, config, _bound(problem, copies)))
