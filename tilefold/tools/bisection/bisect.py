# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a launch after each pass, and stops at the first that changes its behaviour."""

from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilefold.base.errors import Code
from tilefold.base.target import Target
from tilefold.compiler.emit import emit_llvm
from tilefold.compiler.machine.nvptx import compile_llvm
from tilefold.dialects.ptx import EntryOp
from tilefold.driver.lowering import Program, passes_to_instr
from tilefold.driver.trial import Difference, Outcome, Trial, difference
from tilefold.tools.bisection.dropped_instructions import assembler_changes
from tilefold.tools.bisection.emission import Discrepancy, discrepancies
from tilefold.tools.bisection.emitted import run_ptx
from tilefold.tools.bisection.steps import RefusedError, Step, steps
from tilefold.tools.bisection.verdict import Culprit, Verdict

if TYPE_CHECKING:
    from tilefold.driver.devices import Executable
    from tilefold.runtime.compiled.artifact import Artifact

Observer = Callable[[Step, Outcome | None, Difference | None], None]
"""Sees each step, with its outcome, or None if the pass has changed nothing or the simulator cannot run the step."""


def bisect(
    program: Program,
    trial: Trial,
    passes: Sequence[ModulePass],
    observe: Observer = lambda step, outcome, divergence: None,
    gpu: "Executable[Artifact] | None" = None,
) -> Verdict:
    """Launches the program as it was written and after each pass that changes it, until an outcome differs; compares
    the PTX with the last step, if that is at stage `instr`, launches the PTX, and compares the machine code; and at
    last launches on a GPU, if one is given, where floats may differ within the tolerance of their type. Forms of the
    program that the simulator cannot run are passed over, also that in which it was written.

    Raises ProgramError if a pass refuses the program, InternalError if one fails, and TilefoldError for a launch
    that cannot begin.
    """
    trial = replace(trial, engine=replace(trial.engine, tensor_cores=program.tensor_cores))
    sequence = steps(program, passes)
    last = next(sequence)
    reference = trial.run(last.module)
    observe(last, None if _cannot_run(reference) else reference, None)
    stage, skipped, executed = last.stage, list[str](), reference.executed
    try:
        for step in sequence:
            outcome = trial.run(step.module) if step.changed else None
            if outcome is not None and _cannot_run(outcome):
                observe(step, None, None)
                skipped.append(step.name)
                continue
            if outcome is not None and _cannot_run(reference):
                reference = outcome
            divergence = None if outcome is None else difference(reference, outcome)
            observe(step, outcome, divergence)
            if outcome is not None and divergence is not None:
                step = replace(step, name=",".join([*skipped, step.name]))
                return Verdict(reference, stage, _culprit(trial, last, step, outcome, divergence))
            last, stage = step, step.stage
            if outcome is not None:
                skipped, executed = [], outcome.executed
    except RefusedError as error:
        error.pass_name = ",".join([*skipped, error.pass_name])
        raise
    if stage != "instr":
        return Verdict(reference, stage)
    target = program.simulated_target("instr")
    ptx = compile_llvm(emit_llvm(last.module, target), target)
    discrepancy = wrong_emission(last.module, trial.kernel, target, executed, ptx)
    emitted = None if reference.fault is not None else run_ptx(last, ptx, trial, reference, observe)
    if discrepancy or emitted is not None or reference.fault is not None:
        return Verdict(reference, stage, emission=discrepancy, emitted=emitted)
    usual = list(map(str, passes)) == list(map(str, passes_to_instr(program, target)))
    notes = assembler_changes(program, trial.kernel, target) if usual else ()
    if gpu is None:
        return Verdict(reference, stage, notes=notes)
    step = Step(last.number + 2, f"machine code for {gpu.where}", stage, last.module, last.lister)
    arguments = trial.arguments()
    outcome = Outcome(arguments, reference.printed, seconds=gpu.launch(trial.config, arguments).seconds)
    divergence = difference(reference, outcome, exact=False)
    observe(step, outcome, divergence)
    culprit = None if divergence is None else Culprit(last, step, divergence, trial.writer(last.module, divergence))
    return Verdict(reference, stage, culprit, notes=notes)


def _cannot_run(outcome: Outcome) -> bool:
    return outcome.fault is not None and outcome.fault.code == Code.SIM_UNSUPPORTED


def _culprit(trial: Trial, before: Step, after: Step, outcome: Outcome, divergence: Difference) -> Culprit:
    if divergence.argument is None:
        return Culprit(before, after, divergence, fault=None if outcome.fault is None else outcome.fault.site)
    wrote, writes = (trial.writer(step.module, divergence) for step in (before, after))
    return Culprit(before, after, divergence, wrote, writes)


def wrong_emission(
    module: ModuleOp, kernel: str, target: Target, executed: Container[str], ptx: str = ""
) -> tuple[Discrepancy, ...]:
    """How the PTX of a kernel, compiled unless it is given, differs from its operations, of which a launch has
    `executed` some.
    """
    ptx = ptx or compile_llvm(emit_llvm(module, target), target)
    name = kernel.rpartition("::")[2]
    entries = [op for op in module.walk() if isinstance(op, EntryOp) and op.sym_name.data == name]
    return tuple(discrepancy for entry in entries for discrepancy in discrepancies(entry, ptx, target, executed))
