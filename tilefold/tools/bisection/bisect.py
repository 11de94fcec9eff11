# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a launch after each pass, and stops at the first that changes its behaviour. Where all passes keep it, the
machine code is compared with the operations at stage `instr`: kinds of instructions that the assembler has left out,
and those that it runs one at a time.
"""

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilefold.base.assembler_warnings import assembler_warnings
from tilefold.base.errors import Code, TilefoldError
from tilefold.base.spaces import DSMEM, GMEM, SMEM, Space
from tilefold.base.target import Target
from tilefold.compiler.emit import emit_llvm
from tilefold.compiler.machine.nvdisasm import disassemble
from tilefold.compiler.machine.nvptx import compile_llvm
from tilefold.dialects.ptx import EntryOp, PtxOp
from tilefold.dialects.ptx.effects import (
    Accesses,
    Act,
    Effect,
    Group,
    Mbarrier,
    Memory,
    Moment,
    NamedBarrier,
    Unit,
    agent_of,
    effects_of,
    space_of,
)
from tilefold.driver.lowering import Program, passes_to_instr
from tilefold.driver.trial import Difference, Outcome, Trial, difference
from tilefold.layout.atoms.contract import Agent, Proxy
from tilefold.runtime.settings import ptxas_settings
from tilefold.tools.bisection.emission import Discrepancy, discrepancies
from tilefold.tools.bisection.emitted import run_ptx
from tilefold.tools.bisection.steps import RefusedError, Step, steps
from tilefold.tools.bisection.verdict import Culprit, Verdict

_STORES: Mapping[Space | None, str] = MappingProxyType({GMEM: r"ST|STG", SMEM: r"ST|STS", DSMEM: r"ST|STS"})
_FUNCTION = re.compile(r"^\.text\.(\w+):", re.MULTILINE)
_OPERATION = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z]\w*)", re.MULTILINE)


def assembler_changes(program: Program, kernel: str, target: Target) -> tuple[str, ...]:
    """The changes that the assembler makes to a kernel unasked, a line for each; or why that is not known."""
    name = kernel.rpartition("::")[2]
    entries = [entry for entry in program.entries(target) if entry.sym_name.data == name]
    try:
        cubin = program.cubin(target)
        text = disassemble(cubin.code, ptxas_settings().cuda_home)
    except TilefoldError as error:
        if error.code == Code.ASSEMBLE_UNAVAILABLE:
            return (f"machine code is not compared: {error.message}",)
        return (error.message,)
    slower = [
        f"the assembler: {message.cause}" for message in assembler_warnings(cubin.log) if message.kernel in ("", name)
    ]
    return (*(missing for entry in entries for missing in find_dropped(entry, text)), *slower)


def find_dropped(entry: EntryOp, text: str) -> list[str]:
    """The kernel's instructions of a kind that its machine code, as nvdisasm prints it, lacks."""
    parts = _FUNCTION.split(text)
    bodies = dict(zip(parts[1::2], parts[2::2], strict=True))
    have = set(_OPERATION.findall(bodies.get(entry.sym_name.data, "")))
    wanted = {
        mnemonic: operation
        for op in entry.walk()
        if isinstance(op, PtxOp) and (mnemonic := op.mnemonic()) is not None
        if (operation := _operation_for(op)) is not None
    }
    return [
        f"the machine code has nothing for {mnemonic}, which the kernel executes"
        for mnemonic, operation in sorted(wanted.items())
        if not any(re.fullmatch(operation, name) for name in have)
    ]


def _operation_for(op: PtxOp) -> str | None:
    """The pattern of the operations of machine code that have the effects of an instruction; None for one that has no
    operation of its own.
    """
    effects, agent = list(effects_of(op)), agent_of(op)
    for effect in effects:
        match effect:
            case Effect(Act.WAITS | Act.ARRIVES, NamedBarrier()):
                return r"BAR|WARPSYNC"
            case Effect(Act.WRITES, Memory(), Proxy.GENERIC, Group.CP_ASYNC):
                return r"LDGSTS"
            case Effect(Act.ISSUES, Group.WGMMA):
                return r"[A-Z]GMMA"
            case Effect(Act.ISSUES, Group() | Mbarrier(), Proxy.ASYNC):
                return r"(UBLK|UTMA)\w*"
            case Effect(Act.ISSUES, Unit.TENSOR_CORE):
                return r"[A-Z]+MMA"
            case Effect(Act.READS, Memory()) if agent is Agent.WARP and len(effects) == 1:
                return r"LDSM"
            case Effect(Act.WRITES, Memory()) if agent is Agent.WARP and len(effects) == 1:
                return r"STSM"
            case Effect(Act.WRITES, Memory() as memory, Proxy.GENERIC, Moment.NOW) if effects[0] is effect:
                return _STORES.get(space_of(op, memory))
            case Effect(Act.UPDATES, Memory(), Proxy.GENERIC):
                return r"(U)?(ATOM|RED)\w*"
            case Effect(Act.FENCES, Accesses((GMEM.ptx, SMEM.ptx))) if len(effects) == 1:
                return r"MEMBAR|FENCE"
            case Effect(Act.WAITS | Act.ENDS, Unit.REGISTERS):
                return r"USETMAXREG"
            case _:
                pass
    return None


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
    ptx = compile_llvm(emit_llvm(last.module, target), target, keeps_undefined=True)
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
    ptx = ptx or compile_llvm(emit_llvm(module, target), target, keeps_undefined=True)
    name = kernel.rpartition("::")[2]
    entries = [op for op in module.walk() if isinstance(op, EntryOp) and op.sym_name.data == name]
    return tuple(discrepancy for entry in entries for discrepancy in discrepancies(entry, ptx, target, executed))
