# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The methods by which a program shows itself in Python: its stages, its code, remarks and a report.

Each takes the target to compile for, by default the least one that has the program's instructions, and raises
ProgramError if a pass refuses the program.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tilefold.base.target import Target

if TYPE_CHECKING:
    from tilefold.driver.lowering import Program
    from tilefold.tools.report.page import Page


class Inspection(ABC):
    """The common methods of `.cute` programs and kernels in Python."""

    @abstractmethod
    def _lowered(self) -> "Program":
        """The program on its way from text to machine code."""

    def ir(self, stage: str = "cute", target: str | None = None) -> str:
        """The program at a stage: `cute`, `folded`, `atoms`, `index` or `instr`."""
        from tilefold.compiler.frontend.program import print_program

        with self._lowered().explaining():
            return print_program(self._lowered().reached(stage, self._target(target, stage)))

    def llvm(self, target: str | None = None) -> str:
        """The program as LLVM IR."""
        with self._lowered().explaining():
            return self._lowered().llvm(self._target(target))

    def ptx(self, target: str | None = None, *, lines: bool | None = None) -> str:
        """The program as PTX. `lines` decides whether it names source lines by `.loc`; the default comes from the
        settings (docs/profiling.md).
        """
        with self._lowered().explaining():
            return self._lowered().ptx(self._target(target), lines=lines)

    def cubin(self, target: str | None = None) -> bytes:
        """The program as machine code, an ELF file."""
        with self._lowered().explaining():
            return self._lowered().cubin(self._target(target)).code

    def explain(self, target: str | None = None) -> str:
        """The decisions of the compiler, line by line of the source (docs/passes.md#remarks)."""
        with self._lowered().explaining():
            remarks = self._lowered().remarks(self._target(target), compiled=True)
        return "\n".join(remark.diagnostic.render() for remark in remarks)

    def report_html(self, target: str | None = None) -> "Page":
        """Source, code at every stage, passes, remarks and resources as one HTML page, which a notebook displays."""
        from tilefold.tools.report.contents import contents_of
        from tilefold.tools.report.page import Page, page_of

        with self._lowered().explaining():
            return Page(page_of(contents_of(self._lowered(), (), self._target(target))))

    def report(self, target: str | None = None) -> str:
        """The costs of each kernel: instructions, registers, shared memory (docs/passes.md)."""
        with self._lowered().explaining():
            return self._lowered().report(self._target(target))

    def _target(self, target: str | None, stage: str = "instr") -> Target:
        return Target(target) if target is not None else self._lowered().simulated_target(stage)
