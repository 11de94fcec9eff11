# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that `export_to_c` has written, read from object files and libraries: `cute.runtime.load_module`."""

import inspect
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import SSAValue

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.parameters import ParameterKind, Scalar
from tilefold.builder.scalars.dtypes import DTYPES
from tilefold.builder.trace import Traced
from tilefold.builder.tracing.source import user_place
from tilefold.compiler.frontend.source import Source
from tilefold.dialects.cute import LayoutAttr
from tilefold.dialects.cute.values import with_scalars
from tilefold.dialects.kernel import LaunchBounds
from tilefold.dialects.ptx import EntryOp
from tilefold.dialects.tile import StoreOp, TensorType, TileKernelOp
from tilefold.driver.lowering import load
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.integers import Unknown
from tilefold.layout.algebra.inttuple import leaves, transform_leaves
from tilefold.runtime.arrays.array import Array
from tilefold.runtime.arrays.signature import Marked
from tilefold.runtime.errors import LaunchError, argument_error
from tilefold.runtime.options import SimOptions, launch_attributes
from tilefold.tools.export.function_record import FunctionRecord, LaunchRecord, records_in

from ..compiled_kernel import CompiledKernel
from ..launch import LaunchRequest
from ..missing_name import UnknownNameError
from ..parameters import Signature
from ..specialise import array_type
from .arguments import HostArguments, misfit, open_integers
from .compiled import CompiledFunction, Variant
from .launching import HostLaunch
from .options import CompileOptions
from .streams import StreamSlot

if TYPE_CHECKING:
    from tilefold.driver.devices import Executable
    from tilefold.runtime.compiled.artifact import Artifact
    from tilefold.runtime.sim.launch import Stream
    from tilefold.runtime.sim.preparation import SimProgram


class LoadedModule:
    """The functions of an object file or a library, by their names."""

    def __init__(self, path: str, data: bytes) -> None:
        """Reads the functions in the bytes of a file. TilefoldError (E4001) where it has none, or has damaged ones."""
        self._path = path
        self._functions = {record.name: _function(path, record) for record in records_in(data, path)}
        if not self._functions:
            hint = "give a file that export_to_c has written, or a library of such files"
            raise TilefoldError(Code.CLI_READ, f"{path}: has no exported functions", hint)

    def __getattr__(self, name: str) -> CompiledFunction:
        if name.startswith("_") or name not in self._functions:
            message = f"{self._path} has no function '{name}'"
            raise UnknownNameError(Code.BUILD_NAME, message, f"it has {', '.join(self._functions)}")
        return self._functions[name]

    __getitem__ = __getattr__

    def __dir__(self) -> list[str]:
        return sorted(self._functions)


@dataclass(repr=False)
class LoadedFunction(CompiledFunction):
    """A function that is compiled for arguments of certain types, and refuses others."""

    variant: Variant = field(kw_only=True)

    def ready(self, symbols: Sequence[Sequence[tuple[str, int]]]) -> "LoadedFunction":
        """The function itself, which compares the integers at the places `symbols`."""
        self._take(self.variant.slots, symbols)
        self._variants[()] = [self.variant]
        return self

    def _bound(self, given: Any, strict: bool = True) -> HostArguments:
        return self._whole.bound(given, LoadedArguments(types=self._types, strict=True))

    def _traced(self, bound: HostArguments) -> Variant:
        wanted = {name: ssa.type for name, ssa in self.variant.slots.items()}
        passed = {name: ssa.type for name, ssa in bound.slots.items()}
        name = next((name for name in {**wanted, **passed} if wanted.get(name) != passed.get(name)), None)
        if name is not None:
            problem = f"is {passed.get(name, 'absent')}; the function is compiled for {wanted.get(name, 'none')}"
            raise argument_error(name, problem, "pass arguments such as it was compiled for")
        if not self.variant.fits(bound):
            message = "the function was compiled for other numbers, on which its launches depend"
            raise LaunchError(Code.RUN_ARGUMENT, message, "export one for each of these numbers")
        return self.variant


@dataclass
class LoadedArguments(HostArguments):
    """Arguments in the form in which C passes them: of a tensor the address, and the integers that its type leaves
    open.
    """

    def _other(self, name: str, given: object, array: Array, type: TensorType) -> Array:
        layout = type.layout.data
        assert isinstance(layout, Layout), "arguments have plain layouts"
        if not isinstance(given, Marked):
            raise misfit(name, type, array)
        marked = array_type(name, array, given.rule)
        if _form(marked) != _form(type) or marked.element_type != type.element_type:
            raise misfit(name, type, array)
        passed = with_scalars(layout, open_integers(marked, array))
        assert isinstance(passed, Layout), "it is plain, too"
        taken = replace(array, shape=tuple(leaves(passed.shape)), strides=tuple(leaves(passed.stride)))
        if taken.span > array.span:
            raise misfit(name, type, array)
        message = (
            f"argument '{name}' is {array.layout}; the function takes its open integers, as C passes them: {passed}"
        )
        place = user_place()
        file, line = ("tilefold", 1) if place is None else (place.file, place.line)
        warnings.warn_explicit(message, RuntimeWarning, file, line)
        return taken


def _form(type: TensorType) -> tuple[int, int]:
    """How many extents and strides a type leaves open."""
    layout = type.layout.data
    assert isinstance(layout, Layout), "arguments have plain layouts"
    extents, strides = (sum(isinstance(leaf, Unknown) for leaf in leaves(x)) for x in (layout.shape, layout.stride))
    return extents, strides


@dataclass(repr=False, eq=False)
class LoadedKernel(CompiledKernel):
    """A kernel that is compiled; the simulator executes its program. It takes integers as they are: the function has
    checked them.
    """

    compiled: "Artifact" = field(kw_only=True)

    def loaded_on(self, arch: str) -> "Artifact":
        """The kernel as it is, whatever the architecture."""
        return self._taking_any

    @cached_property
    def _taking_any(self) -> "Artifact":
        parameters = (
            p if p.layout is None else replace(p, layout=_without_divisors(p.layout)) for p in self.compiled.parameters
        )
        return replace(self.compiled, parameters=tuple(parameters))

    def _simulated(self, stage: str, options: SimOptions, stream: "Stream | None" = None) -> "Executable[SimProgram]":
        made = super()._simulated(stage, options, stream)
        module = made.code.module.clone()
        for op in module.walk():
            if isinstance(op, EntryOp) and op.arg_layouts is not None:
                named = {op.arg_names.data[place].data: layout for place, layout in op.layouts.items()}
                op.arg_layouts = DictionaryAttr(
                    {name: LayoutAttr(_without_divisors(layout)) for name, layout in named.items()}
                )
        return replace(made, code=replace(made.code, module=module))


def _without_divisors(layout: Layout) -> Layout:
    def widened(leaf: object) -> Any:
        return Unknown(leaf.width) if isinstance(leaf, Unknown) else leaf

    return Layout(transform_leaves(widened, layout.shape), transform_leaves(widened, layout.stride))


def _function(path: str, record: FunctionRecord) -> LoadedFunction:
    """The function of a record."""
    program = load(Source(f"{path}: {record.name}", record.host, record.host))
    (host,) = (op for op in program.module.walk() if isinstance(op, TileKernelOp))
    block = host.body.block
    slots = dict(zip((name.data for name in host.arg_names), block.args[:-1], strict=False))
    values = [op.value for op in block.ops if isinstance(op, StoreOp)]
    kernels = [
        _kernel(f"{path}: {record.name}", text, build.artifacts[0])
        for text, build in zip(record.texts, record.builds, strict=True)
    ]
    steps = tuple(_launch(launch, kernels[launch.kernel], slots, values) for launch in record.launches)
    guards = {values[place]: number for place, number in record.guards}
    signature = _signature(record, slots)
    made = LoadedFunction(
        signature.function,
        signature,
        {},
        CompileOptions(),
        variant=Variant(steps, guards, {}, slots),
    )
    return made.ready(record.symbols)


def _signature(record: FunctionRecord, slots: Mapping[str, object]) -> Signature:
    """The parameters of the function: numbers have their types. Where None was given, None may be passed; it is the
    default of the last parameters.
    """

    def function(*_: object, **__: object) -> None:
        """Stands for the function, which is not there."""

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    needed = [place for place, name in enumerate(record.parameters) if name not in record.optional]
    parameters = [
        inspect.Parameter(
            name,
            kind,
            annotation=DTYPES[record.dtypes[name]] if name in record.dtypes else inspect.Parameter.empty,
            default=None if place > max(needed, default=-1) else inspect.Parameter.empty,
        )
        for place, name in enumerate(record.parameters)
    ]
    function.__name__ = function.__qualname__ = record.name
    function.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    return Signature(function)


def _kernel(name: str, text: str, artifact: "Artifact") -> LoadedKernel:
    program = load(Source(name, text, text))
    (op,) = (op for op in program.module.walk() if isinstance(op, TileKernelOp))
    bounds = LaunchBounds(op.block)
    return LoadedKernel(Traced(program.module, op.sym_name.data, bounds, program.source), compiled=artifact)


def _narrow(value: SSAValue, kind: ParameterKind) -> SSAValue:
    """The number that a value holds in 64 bits, as a parameter takes it; see `HostProgram`."""
    if isinstance(value.owner, arith.ExtSIOp | arith.ExtUIOp):
        value = value.owner.input
    is_float = isinstance(kind, Scalar) and kind.element.kind == "float"
    return value.owner.input if is_float and isinstance(value.owner, arith.BitcastOp) else value


def _launch(record: LaunchRecord, kernel: LoadedKernel, slots: dict[str, Any], values: list[SSAValue]) -> HostLaunch:
    attributes = launch_attributes(record.cluster, record.use_pdl, cooperative=record.cooperative)
    stream = None if record.stream is None else StreamSlot(record.stream, None)
    x, y, z = (values[place] for place in record.grid)
    taken = {
        parameter.name: slots[given] if isinstance(given, str) else _narrow(values[given], parameter.kind)
        for parameter in kernel.compiled.parameters
        for given in (record.arguments[parameter.name],)
    }
    return HostLaunch(kernel, taken, (x, y, z), LaunchRequest("auto", None, stream, attributes), SimOptions())
