# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a function that becomes kernels shows of the one that was built last."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from .debugging_methods import NamesMethodsOfCalls

if TYPE_CHECKING:
    from tilefold.tools.report.page import Page

    from .compiled_kernel import CompiledKernel


class KernelViews(NamesMethodsOfCalls, ABC):
    """The base of such functions; its methods are those of the kernel that was built last."""

    @property
    @abstractmethod
    def last(self) -> "CompiledKernel":
        """The kernel that was built last. Raises TilefoldError (E3107) before the first."""

    def ir(self, stage: str = "cute", target: str | None = None) -> str:
        """The program at a stage: `cute`, `folded`, `atoms`, `index` or `instr`."""
        return self.last.ir(stage, target)

    def ptx(self, target: str | None = None, *, lines: bool | None = None) -> str:
        """The program as PTX; `lines` decides about `.loc` directives, by default the settings do."""
        return self.last.ptx(target, lines=lines)

    def report(self, target: str | None = None) -> str:
        """The costs of the kernel: instructions, registers, shared memory."""
        return self.last.report(target)

    def report_html(self, target: str | None = None) -> "Page":
        """Everything about the kernel as one HTML page, which a notebook displays."""
        return self.last.report_html(target)

    def explain(self, target: str | None = None) -> str:
        """The decisions of the compiler, line by line of the source."""
        return self.last.explain(target)

    def to_cute(self) -> str:
        """The kernel as the text of a `.cute` file; see `CompiledKernel.to_cute`."""
        return self.last.to_cute()
