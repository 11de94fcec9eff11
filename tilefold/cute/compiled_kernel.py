# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel of Python for arguments of certain types: its stages and its launches."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from tilefold.base.target import Target
from tilefold.builder.trace import MODULE, Traced
from tilefold.compiler.frontend.program import print_program
from tilefold.compiler.pipeline import make_context
from tilefold.cute.inspection import Inspection
from tilefold.driver.lowering import Program

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from tilefold.driver.devices import Executable
    from tilefold.runtime.compiled.artifact import Artifact
    from tilefold.runtime.engine import LaunchConfig, RunResult
    from tilefold.runtime.options import SimOptions
    from tilefold.runtime.sim.launch import Stream
    from tilefold.runtime.sim.preparation import SimProgram
    from tilefold.tools.export.exporting import Exported


def _reachable() -> "list[NDArray[np.uint8]]":
    """The host memory that kernels may reach by addresses."""
    from tilefold.runtime.arrays.reachable import reachable

    return reachable().memory()


@dataclass(frozen=True, slots=True)
class Compilation:
    """How a kernel is compiled: for a target, by default that of the GPU at hand; with or without the lines of the
    source and its assertions, by default as the settings say; and with options of ptxas.
    """

    target: Target | None = None
    lines: bool | None = None
    assembler: tuple[str, ...] = ()
    assertions: bool | None = None


USUAL = Compilation()
"""How kernels are compiled by default."""


@dataclass(repr=False, eq=False)
class CompiledKernel(Inspection):
    """A built kernel. Its methods take the target to compile for, by default the target of its `compilation`, or that
    of its last launch, on a GPU or the simulator, or the least one that has the kernel's instructions.
    """

    traced: Traced
    compilation: Compilation = USUAL
    _launched: Callable[[], Target] | None = field(default=None, init=False)
    """The target of the last launch."""

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.traced.kernel

    def __repr__(self) -> str:
        return f"<kernel {self.name} that is built for blocks of {tuple(self.traced.bounds.threads)} threads>"

    @cached_property
    def program(self) -> Program:
        """The program, from stage `cute` on."""
        how = self.compilation
        return Program(
            self.traced.source,
            self.traced.module,
            make_context(),
            how.target,
            cached=True,
            lines=how.lines,
            assembler=how.assembler,
            assertions=how.assertions,
        )

    def _lowered(self) -> Program:
        return self.program

    def to_cute(self) -> str:
        """The kernel as the text of a `.cute` file, which compiles to the same PTX. A RuntimeWarning names each line of
        inline PTX that the simulator executes by a function of Python, `sim=`, which the file lacks.
        """
        _warn_of_functions(self.traced)
        return self.text

    @property
    def text(self) -> str:
        """The text that `to_cute` returns."""
        return print_program(self.traced.module, header=True)

    def export(self, folder: "str | Path", target: str | None = None, *, ptx: bool = False) -> "Exported":
        """Writes the kernel, as machine code or PTX, with a header and an example for programs in C (docs/runtime.md).

        Raises TilefoldError (E4002) where the folder cannot be written.
        """
        from pathlib import Path

        from tilefold.tools.export.exporting import export

        if ptx:
            (artifact,) = self.program.ptx_artifacts(self._target(target))
        else:
            artifact = self.program.machine_build(self._target(target)).artifact(self.name)
        return export(artifact, Path(folder), self.program.tensors(self.name))

    def loaded_on(self, arch: str) -> "Artifact":
        """The kernel in the form that a GPU of an architecture loads for a launch."""
        self._launched = partial(Target, arch)
        return self.artifact(arch if self.compilation.target is None else None)

    def artifact(self, target: str | None = None) -> "Artifact":
        """The kernel in a form that launches without the compiler can load: machine code, or PTX that the driver must
        assemble.
        """
        return self.program.artifact(self.symbol, self._target(target))

    def shared_bytes(self) -> int:
        """The bytes of shared memory of a block."""
        (entry,) = self.program.entries(self._target(None))
        return 0 if entry.shared_bytes is None else entry.shared_bytes.value.data

    @property
    def symbol(self) -> str:
        """The kernel's symbol in the program."""
        return f"{MODULE}::{self.name}"

    def simulate(
        self,
        config: "LaunchConfig",
        values: Mapping[str, object],
        stage: str,
        options: "SimOptions",
        stream: "Stream | None" = None,
    ) -> "RunResult":
        """Runs the kernel on the simulator at a stage. Raises SimulationError, at the user's line."""
        return self._simulated(stage, options, stream).launch(config, values)

    def _simulated(self, stage: str, options: "SimOptions", stream: "Stream | None" = None) -> "Executable[SimProgram]":
        """The kernel for the simulator at a stage."""
        from tilefold.driver.devices import simulated, simulator

        engine = replace(simulator(options, texts=self.traced.texts), memory=_reachable, stream=stream)
        self._launched = partial(self.program.simulated_target, stage)
        return simulated(self.program, self.symbol, stage, engine)

    def _target(self, target: str | None, stage: str = "instr") -> Target:
        if target is None and self._launched is not None and self.program.target is None:
            return self._launched()
        return super()._target(target, stage)


def _warn_of_functions(traced: Traced) -> None:
    """A RuntimeWarning at each line of inline PTX that the simulator can only execute by a function of Python: it
    refuses this line in the text of the kernel.
    """
    if not traced.texts:
        return
    from tilefold.compiler.ptx.inline_text import read_texts
    from tilefold.dialects.ptx import InlineOp
    from tilefold.runtime.sim.faults import site_of
    from tilefold.runtime.sim.rules.ptx_inline import executes

    for op in read_texts(traced.module, executes).walk():
        if isinstance(op, InlineOp) and op.refusal and op.text.data in traced.texts:
            site = site_of(op)
            message = (
                "the text of a kernel cannot contain Python functions such as sim=: the file runs on a GPU, but "
                "the simulator rejects this inline PTX (E3201)"
            )
            warnings.warn_explicit(message, RuntimeWarning, site.file or "<kernel>", site.line or 1)
