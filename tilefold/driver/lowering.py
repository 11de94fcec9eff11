# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program from text to machine code: read once, lowered on demand."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import DEFAULT_ARCH, Target, known_targets
from tilefold.compiler.frontend.diagnostics import Diagnostic, Place, ProgramError, Severity, place_of
from tilefold.compiler.frontend.program import parse_program
from tilefold.compiler.frontend.source import Source
from tilefold.compiler.pass_runner import parse_passes, run_pipeline
from tilefold.compiler.pipeline import PASSES, STAGE_NAMES, make_context, pipeline_to
from tilefold.dialects.gpu import ModuleOp as GpuModuleOp
from tilefold.dialects.gpu.launch import FuncOp
from tilefold.dialects.kernel import KernelOp, kernels_in
from tilefold.dialects.ptx import EntryOp
from tilefold.passes.check_stage import CheckStagePass, fulfils
from tilefold.passes.check_target import capable_targets
from tilefold.passes.errors import LoweringError
from tilefold.runtime.settings import keeps_assertions, writes_lines

if TYPE_CHECKING:
    from tilefold.compiler.machine.assemble import Cubin
    from tilefold.compiler.reports.remarks import Remark
    from tilefold.dialects.tile import TensorType
    from tilefold.driver.launches import Changes, Launch
    from tilefold.runtime.compiled.artifact import Artifact, Build
    from tilefold.runtime.compiled.store import Store

EXECUTABLE_STAGES = STAGE_NAMES
"""The stages whose programs are IR, which the simulator runs."""
PTX_STAGE = "ptx"
"""The stage after `instr`: the kernels are executed from their PTX."""
SIMULATED_STAGES = (*EXECUTABLE_STAGES, PTX_STAGE)
"""All stages that the simulator runs."""
SIMULATED = (DEFAULT_ARCH, *(name for name in known_targets() if Target(name).suffix == "a"))
"""The targets that a program is simulated for, one after the other, where it needs more than the one before has."""
TO_SIMULATOR = ("gpu-to-ptx",)
"""The passes that make of kernels of the `gpu` dialect such as the simulator runs, with their `cute` operations."""
TO_INDEX = (
    *TO_SIMULATOR, "inline-calls", "cute-fold-static", "cute-expand-ops", "cute-to-base", "gpu-to-ptx", "cse", "dce",
)  # fmt: skip
"""The passes that lead from there to stage `index`."""


def passes_to_instr(program: "Program", target: Target) -> list[ModulePass]:
    """The passes that bring a program from where it was written to stage `instr`."""
    return parse_passes(",".join(pipeline_to("instr", target.arch, program.stage)), PASSES)


def available_passes() -> Mapping[str, Callable[[], type[ModulePass]]]:
    """Every pass that a pipeline can name: ours, and those that come with xDSL."""
    from xdsl.transforms import get_all_passes

    return {**get_all_passes(), **PASSES}


_Lowered = tuple[ModuleOp, tuple[str, ...]]  # a module, and the passes that have run since the text was read
_Code = tuple[str, bool, bool]  # a target, and whether its code names source lines and keeps assertions


@dataclass
class Program:
    """A verified program, with the forms to which it has been lowered so far.

    `target` is None until one is needed: then the default, or that of the GPU at hand. The machine code of a
    `cached` one is kept on disk. `text` is the text that the module was read from, if it is complete. `lines`
    says whether compiled code names the lines of the source; None leaves that to the settings. `assembler` are options
    of ptxas, which assembles it unless they only choose a level of optimisation. `assertions` says whether compiled
    code checks the program's assertions; None leaves that to the settings.
    """

    source: Source
    module: ModuleOp
    context: Context
    target: Target | None = None
    cached: bool = False
    text: str | None = None
    lines: bool | None = None
    assembler: tuple[str, ...] = ()
    assertions: bool | None = None
    _stages: "dict[tuple[str, str], _Lowered]" = field(default_factory=lambda: {})
    _devices: "dict[tuple[str, str], Program]" = field(default_factory=lambda: {})
    _builds: "dict[_Code, Build]" = field(default_factory=lambda: {})
    _ptx: "dict[tuple[_Code, bool], str]" = field(default_factory=lambda: {})
    simulated_stage: ClassVar[str] = "instr"
    """The stage that the simulator runs by default."""

    @cached_property
    def cache(self) -> "Store | None":
        """The user's store of machine code; None if each process compiles anew."""
        from tilefold.runtime.compiled.store import default_store

        return default_store() if self.cached else None

    @cached_property
    def stage(self) -> str:
        """The stage at which the program was written: the last whose contract it fulfils. LoweringError for none."""
        stage = next((name for name in reversed(STAGE_NAMES) if fulfils(self.module, name)), None)
        if stage is None:
            CheckStagePass(STAGE_NAMES[0]).apply(self.context, self.module)  # raises, and says why
        return stage or STAGE_NAMES[0]

    def launches(self, changes: "Changes") -> "list[Launch]":
        """The launches, as the command line changes them. TilefoldError as `read_launches`."""
        from tilefold.driver.launches import read_launches

        return read_launches(self.module, self.source, changes)

    def has(self, stage: str) -> bool:
        """Whether `at` finds the program at a stage: it was not written at a later one."""
        if stage == PTX_STAGE:
            return True
        return STAGE_NAMES.index(stage) > STAGE_NAMES.index(self.stage) or fulfils(self.module, stage)

    def at(self, stage: str, target: Target | None = None, *, explain: bool = True) -> ModuleOp | None:
        """The program at a stage, which must not be changed; None if it was written at a later one. Without `explain`,
        errors of passes are as `run_pipeline` leaves them.

        Raises ProgramError if a pass refuses the program, TilefoldError (E4003) for an unknown stage, PtxError (E1009)
        if the PTX of stage `ptx` has an instruction that is not supported.
        """
        if stage not in SIMULATED_STAGES:
            known = ", ".join(SIMULATED_STAGES)
            raise TilefoldError(Code.CLI_VALUE, f"unknown stage '{stage}'", f"stages: {known}")
        arch = (target or self.target or Target(DEFAULT_ARCH)).arch
        if stage == PTX_STAGE:
            return self._read_back(Target(arch))
        index, written = STAGE_NAMES.index(stage), STAGE_NAMES.index(self.stage)
        if index <= written:
            return self.module if self.has(stage) else None
        if (stage, arch) not in self._stages:
            # go on from the nearest stage that is there already
            nearest = max(
                (at for at in range(written, index) if (STAGE_NAMES[at], arch) in self._stages), default=written
            )
            start, done = self._stages.get((STAGE_NAMES[nearest], arch), (self.module, ()))
            passes = pipeline_to(stage, arch, STAGE_NAMES[nearest])
            module = start.clone()
            run_pipeline(self.context, module, passes, source=self.source, done=done, explain=explain)
            self._stages[stage, arch] = module, (*done, *passes)
        return self._stages[stage, arch][0]

    def _read_back(self, target: Target) -> ModuleOp:
        """The program at stage `ptx`."""
        from tilefold.compiler.ptx.stage import read_back

        key = PTX_STAGE, target.arch
        if key not in self._stages:
            text = self.ptx(target, lines=True, keeps_undefined=True)
            module = read_back(self.reached("instr", target), text, f"{self.source.name}.ptx")
            self._stages[key] = module, ()
        return self._stages[key][0]

    def reached(self, stage: str, target: Target | None = None) -> ModuleOp:
        """The program at a stage. Raises TilefoldError if it was written at a later one."""
        module = self.at(stage, target)
        if module is None:
            raise TilefoldError(
                Code.CLI_VALUE,
                f"{self.source.name} is at stage '{self.stage}', which comes after '{stage}'",
                f"ask for one of: {', '.join(STAGE_NAMES[STAGE_NAMES.index(self.stage) :])}",
            )
        return module

    def simulated_target(self, stage: str, *, by_stages: bool = False) -> Target:
        """The target that the simulator runs a stage for: that of the program, else the first one that has all of it.
        With `by_stages` the stages on the way are kept too, which `remarks` needs.

        Raises ProgramError if none has, in the words for the first that has the operations as written, or lacks memory.
        """
        if self.target is not None:
            return self.target
        refused: tuple[Code, str] | None = None
        passed = STAGE_NAMES[STAGE_NAMES.index(self.stage) + 1 : STAGE_NAMES.index(stage)] if by_stages else ()
        checked_first = self.stage in (STAGE_NAMES[0], stage)
        for arch in capable_targets(self.module, SIMULATED) if checked_first else SIMULATED:
            try:
                self._lower_for(arch, (*passed, stage), explain=False)
            except Exception as error:
                known = error if isinstance(error, TilefoldError) else error.__cause__
                code = known.code if isinstance(known, TilefoldError) else None
                if code is None or code not in (Code.TARGET_TOO_OLD, Code.TARGET_SHARED_MEMORY):
                    self._lower_for(arch, (*passed, stage))
                    raise
                if refused is None or (refused[0], code) == (Code.TARGET_TOO_OLD, Code.TARGET_SHARED_MEMORY):
                    refused = code, arch
            else:
                return Target(arch)
        assert refused is not None, "there is a target"
        self._lower_for(refused[1], (*passed, stage))
        raise AssertionError("a program is rejected for the same target again")

    def _lower_for(self, arch: str, stages: Sequence[str], *, explain: bool = True) -> None:
        """The program at these stages for a target, which has all that it needs. TilefoldError where it has not."""
        for stage in stages:
            if self.at(stage, Target(arch), explain=explain) is self.module:  # no pass on the way has checked it
                check = f"check-target{{target={arch}}}"
                run_pipeline(self.context, self.module, [check], source=self.source, explain=explain)

    @cached_property
    def tensor_cores(self) -> Target | None:
        """The target whose tensor cores the simulator imitates: that of the program as it was written, if any."""
        try:
            return self.simulated_target(self.stage)
        except TilefoldError:
            return None

    def writes_lines(self) -> bool:
        """Whether compiled code names the lines of the source. TilefoldError (E4003) for a bad setting."""
        return writes_lines() if self.lines is None else self.lines

    def keeps_assertions(self) -> bool:
        """Whether compiled code checks the program's assertions. TilefoldError (E4003) for a bad setting."""
        return keeps_assertions() if self.assertions is None else self.assertions

    def llvm(self, target: Target, *, lines: bool | None = None) -> str:
        """The program as LLVM IR text, with the lines of the source if `lines` says so, by default as compiled code."""
        from tilefold.compiler.emit import emit_llvm

        lineinfo = self.writes_lines() if lines is None else lines
        module = self.reached("instr", target)
        return emit_llvm(module, target, lineinfo=lineinfo, assertions=self.keeps_assertions())

    def ptx(self, target: Target, *, lines: bool | None = None, keeps_undefined: bool = False) -> str:
        """The program as PTX, with `.loc` directives if `lines` says so, by default as compiled code."""
        from tilefold.compiler.machine.nvptx import compile_llvm

        key = self._code(target, lines), keeps_undefined
        if key not in self._ptx:
            self._ptx[key] = compile_llvm(self.llvm(target, lines=lines), target, keeps_undefined=keeps_undefined)
        return self._ptx[key]

    def _code(self, target: Target, lines: bool | None = None) -> _Code:
        return target.arch, self.writes_lines() if lines is None else lines, self.keeps_assertions()

    def build(self, target: Target) -> "Build":
        """The program as machine code, or as PTX that the driver must assemble, ready to be loaded; from the cache, if
        it is there.
        """
        from tilefold.driver.machine_code import build

        code = self._code(target)
        if code not in self._builds:
            self._builds[code] = build(self, target)
        return self._builds[code]

    def machine_build(self, target: Target) -> "Build":
        """The program as machine code, which takes ptxas where the driver would assemble it."""
        from tilefold.driver.machine_code import machine_build

        return machine_build(self, target, self.build(target))

    def cached_build(self, target: Target) -> "Build | None":
        """The program as machine code, if it is there; nothing is compiled."""
        from tilefold.driver.machine_code import cached_build

        return self._builds.get(self._code(target)) or cached_build(self, target)

    def store_build(self, target: Target, build: "Build") -> None:
        """Takes machine code that was made of this program elsewhere."""
        from tilefold.driver.machine_code import store_build

        self._builds[self._code(target)] = build
        store_build(self, target, build)

    def cubin(self, target: Target) -> "Cubin":
        """The program as machine code, with the assembler's figures of each kernel."""
        from tilefold.compiler.machine.assemble import cubin_of

        build = self.machine_build(target)
        return cubin_of(build.cubin, build.log)

    @cached_property
    def identity(self) -> str:
        """A text that differs where machine code may: the program with its places in the source."""
        from tilefold.compiler.frontend.fingerprint import fingerprint

        if self.text is not None:
            return f"{self.source.name}\n{self.text}"
        return fingerprint(self.module)

    def report(self, target: Target) -> str:
        """The costs of each kernel, as tables: instructions, registers, shared memory; the fragments in local memory;
        and the assembler's words about lost speed.
        """
        from tilefold.driver.machine_code import report

        return report(self, target)

    @property
    def kernels(self) -> "Mapping[str, KernelOp]":
        """The kernels of the program as it was written, by `module::kernel`, in the order of the text."""
        return {op.symbol: op for op in kernels_in(self.module, KernelOp)}

    def entries(self, target: Target) -> list[EntryOp]:
        """The kernels at stage `instr`."""
        return kernels_in(self.reached("instr", target), EntryOp)

    def artifact(self, kernel: str, target: Target) -> "Artifact":
        """One kernel, ready to be loaded on a GPU. `kernel` is its symbol, with or without its module's."""
        return self.build(target).artifact(kernel.rpartition("::")[2])

    def tensors(self, kernel: str) -> "Mapping[str, TensorType]":
        """The tensors that a kernel takes, by name, as it says them; none where it was written at a later stage."""
        from tilefold.dialects.tile import TensorType, TileKernelOp

        return {
            name.data: type
            for op in self.module.walk()
            if isinstance(op, TileKernelOp) and op.sym_name.data == kernel
            for name, type in zip(op.arg_names, op.function_type.inputs, strict=True)
            if isinstance(type, TensorType)
        }

    def ptx_artifacts(self, target: Target) -> "tuple[Artifact, ...]":
        """The kernels as PTX, which the driver assembles: no assembler is needed here."""
        from tilefold.runtime.compiled.artifact import make_artifact

        ptx = self.ptx(target)
        return tuple(make_artifact(entry, ptx, target) for entry in self.entries(target))

    def remarks(self, target: Target, *, compiled: bool = False) -> "tuple[Remark, ...]":
        """The decisions of the compiler on the way to stage `instr`, in the order of the source, and with `compiled`
        the fragments that its PTX has in local memory.

        Raises ProgramError if a pass refuses the program.
        """
        from tilefold.compiler.reports.remarks import collect_remarks, in_order
        from tilefold.driver.machine_code import remarks_of_assembler, remarks_of_fragments

        names = STAGE_NAMES[STAGE_NAMES.index(self.stage) :]
        remarks = collect_remarks([(name, self.reached(name, target)) for name in names], self.source)
        fragments = remarks_of_fragments(self, target) if compiled else ()
        return tuple(in_order((*remarks, *fragments, *remarks_of_assembler(self, target))))

    def device_program(self, passes: Sequence[str], block: Sequence[int] = ()) -> "Program":
        """The kernels of the `gpu` dialect as a program of their own: the remainder after `TO_SIMULATOR` or `TO_INDEX`.

        `block` is the size of their blocks, by default that which their launches and attributes tell. Raises
        ProgramError if a pass refuses the program.
        """
        option = "{block=" + ",".join(map(str, block)) + "}" if block else ""
        key = ",".join(passes), option
        if key not in self._devices:
            module = self.module.clone()
            chosen = [name + option if name == TO_SIMULATOR[0] else name for name in passes]
            run_pipeline(self.context, module, chosen, source=self.source)
            text = None if self.text is None else f"{','.join(chosen)}\n{self.text}"
            own = self.lines, self.assembler, self.assertions
            self._devices[key] = Program(self.source, module, self.context, self.target, self.cached, text, *own)
        return self._devices[key]

    @property
    def gpu_kernels(self) -> list[str]:
        """The kernels of the `gpu` dialect, as `module::kernel`."""
        return [
            f"{device.name_of()}::{op.name_of()}"
            for device in self.module.ops
            if isinstance(device, GpuModuleOp)
            for op in device.body.block.ops
            if isinstance(op, FuncOp) and op.kernel is not None
        ]

    @contextmanager
    def explaining(self) -> Generator[None, None, None]:
        """Within it, an error that names an operation of the program becomes one that shows its line."""
        try:
            yield
        except TilefoldError as error:
            message: str = getattr(error, "fault", error.message)
            site = getattr(error, "site", None)  # of a SimulationError, whose module needs NumPy
            if isinstance(error, LoweringError):
                place = place_of(error.operation.location, self.source)
            else:
                place = None
                if site is not None and site.file:
                    place = Place(site.file, site.line, site.column, text=self.source.line_of(site.file, site.line))
            if place is None:
                raise
            message, hint = self.source.spelled(message), self.source.spelled(error.hint)
            raise ProgramError([Diagnostic(Severity.ERROR, message, place, error.code, hint)]) from error


def load(source: Source, target: str | None = None, *, cached: bool = False) -> Program:
    """Reads and verifies a program; the machine code of a `cached` one is kept on disk.

    Raises ProgramError for a faulty one, TargetError for an unknown target.
    """
    chosen = None if target is None else Target(target)
    context = make_context()
    return Program(source, parse_program(source, context), context, chosen, cached, f"{source.text}\0{source.expanded}")
