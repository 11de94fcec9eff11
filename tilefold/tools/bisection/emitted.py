# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The last step of a search: the launch runs the kernel's PTX on the simulator."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.ptx.stage import read_back
from tilefold.driver.trial import Difference, Outcome, Trial, difference
from tilefold.runtime.sim.faults import Site
from tilefold.tools.bisection.recording import Divergence, divergence, recorded
from tilefold.tools.bisection.steps import Step

MAX_FEEDING = 8
"""The most instructions that a report lists."""
PTX = "the PTX"
"""The file of places in the PTX."""


@dataclass(frozen=True)
class PtxCulprit:
    """How a launch of the PTX differs from the last step: the operations that wrote the smallest element that differs,
    or that is at fault, there and in the PTX, with the text of the instruction.
    """

    difference: Difference
    operation: Site | None
    instruction: Site | None
    text: str = ""
    divergence: Divergence | None = None
    feeding: tuple[str, ...] = ()
    """The instructions that compute the operand that differs first, with their lines."""

    def __str__(self) -> str:
        lines = [f"the PTX does something else than the operations: {self.difference.text}"]
        if self.difference.argument is not None:
            lines.append(f"  operation: {'nothing writes it' if self.operation is None else self.operation}")
        if self.instruction is None:
            lines.append("  PTX: nothing writes it")
        else:
            lines.append(f"  PTX: line {self.instruction.line}: {self.text}")
        if self.divergence is not None:
            lines += self._cause(self.divergence)
        return "\n".join(lines)

    def _cause(self, divergence: Divergence) -> list[str]:
        """Where the PTX first does something else."""
        if divergence.second is None:
            return [f"the PTX parts from the operations where {divergence} does not execute {divergence.first}"]
        what = "executes it" if divergence.operand is None else f"has another '{divergence.operand}'"
        lines = [f"the PTX parts from the operations in {divergence}, which {what}:"]
        if divergence.first is not None:
            lines.append(f"  operation: {divergence.first}")
        return [*lines, *(f"  PTX: {text}" for text in self.feeding)]


def run_ptx(
    last: Step,
    text: str,
    trial: Trial,
    reference: Outcome,
    observe: Callable[[Step, Outcome | None, Difference | None], None],
) -> PtxCulprit | None:
    """Launches the PTX of a program at stage `instr`, and compares with the reference; None if both do the same, and if
    the simulator does not know an instruction.
    """
    if trial.engine.options.exact:
        return None
    step = replace(last, number=last.number + 1, name="PTX", stage="ptx", changed=True)
    try:
        step = replace(step, module=read_back(last.module, text, PTX, in_text=True))
    except TilefoldError as error:
        if error.code not in (Code.PTX_UNSUPPORTED, Code.PTX_SYNTAX):
            raise
        observe(step, None, None)
        return None
    outcome = trial.run(step.module)
    found = difference(reference, outcome)
    observe(step, outcome, found)
    if found is None:
        return None
    operation = None
    if found.argument is None:
        instruction = None if outcome.fault is None else outcome.fault.site
    else:
        wrote, writes = (trial.writer(module, found) for module in (last.module, step.module))
        operation, instruction = (None if writer is None else writer.site for writer in (wrote, writes))
    first, second = (recorded(trial, module) for module in (last.module, step.module))
    parted = divergence(first, second)
    lines = text.splitlines()
    sites = () if parted is None or parted.second is None else (parted.second, *parted.feeding)
    feeding = tuple(
        dict.fromkeys(f"line {site.line}: {lines[site.line - 1].strip()}" for site in sites if site.file == PTX)
    )
    shown = lines[instruction.line - 1].strip() if instruction is not None and instruction.file == PTX else ""
    return PtxCulprit(found, operation, instruction, shown, parted, feeding[:MAX_FEEDING])
