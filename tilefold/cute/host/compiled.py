# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled host functions: for arguments of certain types, and without executing the function again."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

from xdsl.ir import Operation, SSAValue

from tilefold.base.errors import Code, TilefoldError
from tilefold.dialects.tile import TensorType
from tilefold.driver.output import write_files
from tilefold.runtime.arrays.signature import Dynamic
from tilefold.runtime.cuda.comparison import Rules
from tilefold.runtime.cuda.direct import Args, DirectLaunch
from tilefold.runtime.cuda.launcher import Launcher
from tilefold.runtime.errors import argument_error
from tilefold.runtime.settings import program_target

from ..compiled_kernel import CompiledKernel
from ..debugging_methods import shown
from ..jit import JitFunction
from ..parameters import OuterNames, Signature
from ..specialise import FieldConstants
from ..torch_compile import skip_frames, untraced
from .arguments import WORKSPACE, HostArguments, check_symbols
from .launching import HostLaunch
from .options import CompileOptions
from .prepared import PreparedCall, PreparedStep
from .tracing import ElementsError, HostTrace, NoNumberError, values_of

T = TypeVar("T")
_SHAPES = 8
"""The shapes for which calls are prepared one by one, before they are prepared for any."""


@dataclass(frozen=True)
class Variant:
    """The record of a function for certain arguments, which are `slots` by name: its launches and prints, and the
    numbers on which that depends.
    """

    steps: tuple[HostLaunch | Operation, ...]
    guards: Mapping[SSAValue, int | float | bool]
    constants: Mapping[SSAValue, int | float | bool]
    slots: Mapping[str, SSAValue]

    def fits(self, bound: HostArguments) -> bool:
        """Whether it holds for other arguments of the same types: for their numbers, too."""
        values = values_of(bound, self.slots, self.constants)
        return all(values.number(value) == number for value, number in self.guards.items())

    @property
    def has_maps(self) -> bool:
        """Whether a kernel of it writes tensor maps to a workspace."""
        return any(isinstance(step, HostLaunch) and step.maps for step in self.steps)

    def workspace_bytes(self, bound: HostArguments) -> int:
        """The memory for these maps."""
        values = values_of(bound, self.slots, self.constants)
        return sum(step.workspace_bytes(values) for step in self.steps if isinstance(step, HostLaunch))

    def run(self, bound: HostArguments) -> PreparedCall | None:
        """Does the same for arguments that fit. Returns the launches, if all that it does are launches that are
        prepared.
        """
        if self.has_maps:
            bound.check_workspace(self.workspace_bytes(bound))
        values = values_of(bound, self.slots, self.constants)
        names = {ssa: name for name, ssa in self.slots.items()}
        prepared: list[PreparedStep | None] = []
        for step in self.steps:
            if isinstance(step, HostLaunch):
                prepared.append(step.run(bound, names, values)[1])
            else:
                values.execute(step)
                prepared.append(None)
        ready = [step for step in prepared if step is not None]
        return PreparedCall(bound, self, ready) if len(ready) == len(prepared) else None

    @property
    def fixed(self) -> frozenset[SSAValue]:
        """The values on which grids, other values or the choice of this variant depend."""
        grids = [n for step in self.steps if isinstance(step, HostLaunch) for n in step.grid if isinstance(n, SSAValue)]
        return frozenset([*grids, *self.guards, *(ssa for ssa in self.slots.values() if ssa.uses)])


@dataclass
class CompiledFunction:
    """A compiled host function. A call takes the arguments that are not `cute.Constexpr`.

    For arguments of other types than it was compiled for (for TVM FFI it rejects them), or other numbers where it had
    asked for one, the function is compiled again; so it is where a global or outer variable that it, its kernels or
    their helpers read was assigned.
    """

    function: Callable[..., object]
    signature: Signature
    constants: Mapping[str, object]
    options: CompileOptions
    _count: int = -1
    """The arguments of a call that gives all of them by position, as soon as it is known."""
    _outer: OuterNames | None = None
    _types: dict[str, TensorType] = field(default_factory=lambda: {})
    _symbols: Sequence[Sequence[tuple[str, int]]] = ()
    """The places in several tensors that one `SymInt` describes."""
    _pointers: dict[str, object] = field(default_factory=lambda: {})
    _marked: dict[str, Dynamic] = field(default_factory=lambda: {})
    """The tensors that it is compiled for whose types a call may widen: see `HostArguments`."""
    _fields: Mapping[str, FieldConstants] = field(default_factory=dict[str, FieldConstants])
    """Its arguments that are NamedTuples, with the constants in their fields."""
    _forms: Mapping[str, object] | None = None
    """The arguments that it is compiled for, in the form in which it sees them."""
    _variants: dict[tuple[object, ...], list[Variant]] = field(default_factory=lambda: {})

    def __post_init__(self) -> None:
        skip_frames(type(self).__call__)

    def __repr__(self) -> str:
        return f"<compiled function {getattr(self.function, '__qualname__', self.function)}>"

    def to(self, device: object = None) -> "CompiledFunction":
        """The function itself: a call is prepared for the device that holds its arguments, whichever that is."""
        return self

    @untraced
    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Makes the launches of the function. Raises the errors of tracing it and of its launches."""
        try:
            if self._outer is not None and self._outer.have_changed():
                self._forget()
            if self._has_maps:
                if not args:
                    hint = "pass an array of as many bytes as QueryDeviceWorkspaceFunc says"
                    raise argument_error(WORKSPACE, "must be the last argument", hint)
                *given, memory = args
                self._run(self.signature.given(tuple(given), kwargs), memory)
                return
            if not self.signature.is_plain:
                self._run(self.signature.given(args, kwargs))
                return
            if kwargs or len(args) != self._count:
                args = self.signature.in_order(args, kwargs)
                if len(args) == self.signature.by_position:
                    self._count = len(args)
            self._launcher.launch(args, (), ())
        except TilefoldError as error:
            raise shown(error) from error.__cause__

    @cached_property
    def _launcher(self) -> Launcher:
        """The calls that are prepared, of a function whose parameters are plain."""
        signature = self.signature

        def resolve(args: Args, *_: object) -> tuple[None, PreparedCall | None]:
            return None, self._run(dict(zip(signature.names, args, strict=True)))

        written = Counter[int]()  # the launches for certain shapes, by their variants

        def write(rules: Rules, args: Args, block: object, call: PreparedCall) -> DirectLaunch | None:
            written[id(call.variant)] += 1
            if written[id(call.variant)] > _SHAPES:
                from .any_shapes import written_for_any

                made = written_for_any(call, rules, args, block, self._fields, self._symbols)
                if made is not None:
                    return made
                written[id(call.variant)] = -_SHAPES * _SHAPES  # it takes long, so it is not tried with each shape
            return call.written(rules, args, block, self._fields)

        return Launcher(Rules(signature.names, ranges=signature.ranges, exact=True), resolve, write)

    @property
    def _has_maps(self) -> bool:
        """Whether its calls pass memory for tensor maps after their arguments."""
        return any(variant.has_maps for variants in self._variants.values() for variant in variants)

    def get_aux_func(self, kind: "Callable[[CompiledFunction], T]", kernel: object = None) -> T:
        """A function that says something about a call, such as `QueryDeviceWorkspaceFunc`; of the `kernel` that has
        tensor maps in memory, there is one at most.
        """
        return kind(self)

    def workspace_bytes(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> int:
        """The memory that a call with arguments needs for tensor maps, in bytes."""
        bound, variant = self._variant(self.signature.given(args, kwargs))
        return (variant or self._traced(bound)).workspace_bytes(bound)

    def _variant(self, given: Mapping[str, object], memory: object = None) -> tuple[HostArguments, Variant | None]:
        """The arguments of a call, and the record that holds for them, if there is one."""
        if self._fields:
            given = {n: self._fields[n].put_into(x) if n in self._fields else x for n, x in given.items()}
        bound = self._bound(given, self.options.enable_tvm_ffi)
        self._types.update(bound.widened)
        check_symbols(self._symbols, bound.arrays)
        bound.give_workspace(memory)
        variants = self._variants.get(tuple(bound.key), ())
        return bound, next((variant for variant in variants if variant.fits(bound)), None)

    def _run(self, given: Mapping[str, object], memory: object = None) -> PreparedCall | None:
        """A call for which no other is prepared."""
        bound, variant = self._variant(given, memory)
        try:
            return (variant or self._traced(bound)).run(bound)
        except ElementsError:
            JitFunction(self.function)(**self.constants, **given)
            return None

    @property
    def kernels(self) -> list[CompiledKernel]:
        """The kernels that are launched, in the order of their first launches."""
        steps = [step for variants in self._variants.values() for variant in variants for step in variant.steps]
        return list(dict.fromkeys(step.built for step in steps if isinstance(step, HostLaunch)))

    def ptx(self, target: str | None = None) -> str:
        """The kernels as PTX."""
        return "\n".join(kernel.ptx(target) for kernel in self.kernels)

    @property
    def __ptx__(self) -> str | None:
        """The kernels as PTX, where the options keep it."""
        return self.ptx(self._arch) if self.options.keep_ptx else None

    @property
    def __cubin__(self) -> bytes | None:
        """The first kernel as machine code, where the options keep it."""
        return self.kernels[0].cubin(self._arch) if self.options.keep_cubin and self.kernels else None

    @property
    def _arch(self) -> str | None:
        """The target of the kept code: that of the options, of `CUTE_DSL_ARCH` or of the current GPU; None for the
        least that the kernels' instructions need.
        """
        from tilefold.runtime.cuda import is_available

        if self.options.gpu_arch:
            return self.options.gpu_arch
        if wished := program_target():
            return wished.arch
        if not is_available():
            return None
        from tilefold.driver.devices import gpu_engine

        return gpu_engine(0).driver.target.arch

    def _keep(self) -> None:
        """Writes the files that the options keep: `KERNEL.ptx`, `KERNEL.cubin`, `KERNEL.sass`. TilefoldError (E4002)
        where that fails, E2302 without nvdisasm.
        """
        options = self.options
        kept: dict[str, str | bytes] = {}
        for kernel in self.kernels if options.keep_ptx or options.keep_cubin or options.keep_sass else ():
            path = str(Path(options.dump_dir, kernel.name))
            if options.keep_ptx:
                kept[f"{path}.ptx"] = kernel.ptx(self._arch)
            if options.keep_cubin:
                kept[f"{path}.cubin"] = kernel.cubin(self._arch)
            if options.keep_sass:
                from tilefold.compiler.machine.nvdisasm import disassemble

                kept[f"{path}.sass"] = disassemble(kernel.cubin(self._arch), options=options.nvdisasm_options)
        write_files(kept)

    def prepare(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        """Compiles for arguments that may be descriptions. Where the function asks for numbers that these do not have,
        its first call compiles it; where it reads or writes elements, each call executes it as a kernel of one thread.
        """
        given = self.signature.given(args, kwargs)
        found = {name: FieldConstants.of(value) for name, value in given.items()}
        self._fields = {name: held for name, held in found.items() if held is not None}
        bound = self._bound(given)
        self._pointers, self._marked = bound.described, bound.marked
        self._take(bound.slots, [places for places in bound.symbols.values() if len(places) > 1])
        self._forms = {name: bound.arguments[name] for name in self.signature.names}
        with suppress(NoNumberError, ElementsError):
            self._traced(bound)
        if self.options.gpu_arch:
            for kernel in self.kernels:
                kernel.ir("instr")  # a target that lacks something of a kernel is refused now
        self._keep()

    def _take(self, slots: Mapping[str, SSAValue], symbols: Sequence[Sequence[tuple[str, int]]]) -> None:
        """The arguments that it is compiled for, and the places in them where integers are equal."""
        self._types = {name: ssa.type for name, ssa in slots.items() if isinstance(ssa.type, TensorType)}
        self._symbols = symbols

    def export_to_c(
        self,
        file_path: str | Path = "",
        file_name: str | None = None,
        function_prefix: str | None = None,
        *,
        object_file_path: str | Path | None = None,
        function_name: str | None = None,
    ) -> None:
        """Writes the function for programs in C (docs/runtime.md): FILE_NAME.o and FILE_NAME.h in the folder
        `file_path`, with names that begin with `function_prefix`, by default the file's. Without `file_name`,
        `file_path` is the object file. `function_name` is another word for the prefix, and `object_file_path` for the
        object file.

        Its kernels are machine code for the target of the options or the current GPU, and without one PTX. With the
        option `enable_tvm_ffi` the object file also has the function of TVM FFI, which takes a C compiler.
        TilefoldError (E0213) for a function that C cannot call, E4002 where the files cannot be written.
        """
        try:
            path = Path(object_file_path or (file_path if file_name is None else Path(file_path, f"{file_name}.o")))
            name = function_prefix or function_name or path.stem
            variant = next((variant for variants in self._variants.values() for variant in variants), None)
            if variant is None or self._forms is None:
                problem = f"the function '{name}' is not exported: it has not been compiled for its arguments"
                raise TilefoldError(
                    Code.BAD_ARGUMENT, problem, "let it decide by static extents, and leave elements to kernels"
                )
            if variant.has_maps:
                problem = f"the function '{name}' is not exported: its kernel writes tensor maps to a workspace"
                raise TilefoldError(Code.BAD_ARGUMENT, problem, "make the maps of the kernel's arguments")
            from .exporting import write_function

            write_function(name, path, variant, self._forms, self._symbols, self._arch, self.options.enable_tvm_ffi)
        except TilefoldError as error:
            raise shown(error) from error.__cause__

    @cached_property
    def _whole(self) -> Signature:
        """The signature with the parameters that are constants."""
        return Signature(self.function)

    def _bound(self, given: Mapping[str, object], strict: bool = False) -> HostArguments:
        every = {**self.constants, **given}
        made = HostArguments(types=self._types, strict=strict, given=frozenset(self.constants))
        made.described = dict(self._pointers)
        made.marked = dict(self._marked)
        return self._whole.bound({n: every[n] for n in self._whole.names}, made)

    def _traced(self, bound: HostArguments) -> Variant:
        trace = HostTrace(bound, eager=False, compilation=self.options.compilation)
        trace.run(self.function)
        steps = tuple(step for step in trace.steps if isinstance(step, HostLaunch | Operation))  # all of them
        made = Variant(steps, trace.guards, trace.constants, bound.slots)
        self._variants.setdefault(tuple(bound.key), []).append(made)
        read = [f for f in (self.function, *trace.functions) if isinstance(f, FunctionType)]
        self._outer = OuterNames(*read, in_place=False)
        return made

    def _forget(self) -> None:
        """Forgets code compiled with other values of outer names."""
        self._outer = None
        self._variants.clear()
        vars(self).pop("_launcher", None)


class TVMFFIJitCompiledFunction(CompiledFunction):
    """A function that is compiled with `EnableTVMFFI`: programs know it by the name of its class."""
