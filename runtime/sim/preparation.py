# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A launch before it runs, of one grid or of several that run together: kernels are found, the arguments bound to their
parameters, and the rules of their operations chosen.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Attribute, Operation

from ...base.errors import Code, LayoutError
from ...base.parameters import SCALARS, TENSOR_MAP, ParameterKind, Placed, Scalar
from ...dialects.cute.values import with_scalars
from ...dialects.kernel import KernelOp, passed_as
from ...dialects.ptx import CvtaTensorMapOp, EntryOp, IntToPtrOp, TensorMapReplaceOp
from ...dialects.tile import TensorType
from ...layout.algebra.core import ComposedLayout, Layout, size
from ..arrays.host_tensors import Multicast, Placing, Stretch
from ..engine import Argument, Launch, LaunchConfig, NumPyArray, TensorArgument, numpy_type, pack_argument
from ..errors import LaunchError, argument_error
from .faults import site_of
from .grids import Grids
from .launch import MAP_BASE, KernelFacts, LaunchState, OutOfStepError, PlacedMulticast, unknown_registers
from .memory.arena import Allocation
from .memory.provenance import Key, fragments_of, pieces
from .ordering.clocks import MAX_THREADS
from .ordering.schedule import Body
from .rules import orders_clusters, rule_of, runs_in_step
from .translate import Rule, RuleOf, Translator
from .values import TensorValue, Value, element_kind

MAX_TENSOR = 1 << 30
"""The most elements of one tensor argument."""


@dataclass(frozen=True, slots=True)
class SimProgram:
    """A kernel of a module: `kernel` is its symbol, with or without the gpu.module (`kernels::k` or `k`). In the module
    as it was `written`, fragments have layouts, by which messages name their elements. `registers` assembles the kernel
    and returns the registers of a thread, or None where no assembler does.
    """

    module: ModuleOp
    kernel: str
    written: ModuleOp | None = None
    registers: Callable[[], int | None] = unknown_registers

    @property
    def facts(self) -> KernelFacts:
        """Those for messages."""
        return KernelFacts(self._fragments, self._tiles, self.registers)

    def _fragments(self) -> Mapping[Key, TensorType]:
        return {} if self.written is None else fragments_of(SimProgram(self.written, self.kernel).find())

    def _tiles(self) -> Mapping[str, tuple[str, str]]:
        from .memory.ragged_guard import ragged_tiles

        return {} if self.written is None else ragged_tiles(SimProgram(self.written, self.kernel).find())

    def find(self) -> KernelOp:
        """The kernel's operation. LaunchError (E3107) unless the module has exactly one of the name."""
        *modules, name = self.kernel.removeprefix("@").replace("::@", "::").split("::")
        kernels = [op for op in self.module.walk() if isinstance(op, KernelOp)]
        matches = [op for op in kernels if op.sym_name.data == name and modules in ([], [_module_of(op)])]
        if len(matches) != 1:
            known = ", ".join(f"@{_module_of(op)}::@{op.sym_name.data}" for op in kernels) or "none"
            problem = "no kernel" if not matches else "more than one kernel"
            raise LaunchError(Code.RUN_KERNEL, f"{problem} {self.kernel} in the program", f"its kernels: {known}")
        return matches[0]


def _module_of(kernel: KernelOp) -> str:
    parent = kernel.parent_op()
    symbol = None if parent is None else parent.properties.get("sym_name")
    return getattr(symbol, "data", "")


@dataclass(frozen=True, slots=True)
class Binding:
    """A tensor argument and the offset of its storage in the arena of global memory."""

    offset: int
    argument: TensorArgument


def _place_shared(kernel: KernelOp, t: Translator) -> None:
    """Gives the kernel the shared memory that its entry declares."""
    if not isinstance(kernel, EntryOp) or kernel.shared_bytes is None:
        return
    shared = t.spaces.shared
    t.shared_start = t.shared(kernel.shared_bytes.value.data, 1024, "the block's shared memory")
    t.homes.update(pieces(kernel, t.shared_start - shared.base))
    shared.arena.parts.extend(dict.fromkeys(t.homes.values()))


def _bind_reached(
    kernels: Sequence[KernelOp], t: Translator, memory: Callable[[], Sequence[NDArray[np.uint8]]]
) -> list[Binding]:
    """Allocates the host's memory that `memory` returns, if a kernel makes pointers of numbers: arguments and symmetric
    memory in it, which are placed afterwards, are part of that.
    """
    kinds = IntToPtrOp | TensorMapReplaceOp | CvtaTensorMapOp
    if not any(isinstance(op, kinds) for kernel in kernels for op in kernel.walk()):
        return []
    from .memory.host_arrays import Reached

    space, parts = t.spaces.global_, memory()
    offsets = [space.arena.allocate("memory of the host", piece.nbytes, like=piece.ctypes.data) for piece in parts]
    t.launch.reached = Reached.of(parts, [space.base + offset for offset in offsets])
    return [Binding(offset, TensorArgument(piece)) for offset, piece in zip(offsets, parts, strict=True)]


def bind(
    kernel: KernelOp,
    args: Mapping[str, Argument],
    t: Translator,
    placing: Placing,
) -> list[Binding]:
    """Gives the kernel its shared memory, and each parameter its value, allocating global memory for tensors by
    `placing`.

    LaunchError (E3106) for an argument that is missing, unknown, or of another kind, type or size than the
    parameter.
    """
    t.spaces.shared.arena.begin_again(0)
    _place_shared(kernel, t)
    parameters = kernel.parameters()
    names = [parameter.name for parameter in parameters]
    for name in args:
        if name not in names:
            raise LaunchError(
                Code.RUN_ARGUMENT,
                f"the kernel has no argument '{name}'",
                f"its arguments: {', '.join(names) or 'none'}",
            )
    arena, base = t.spaces.global_.arena, t.spaces.global_.base
    bindings: list[Binding] = []
    for parameter in parameters:
        name, type = parameter.name, parameter.type
        if name not in args:
            raise argument_error(name, f"of type {type} is missing")
        given = args[name]
        kind = SCALARS["i64"] if isinstance(type, IndexType) else passed_as(type)
        if isinstance(type, TensorType) or (kind is not None and kind.is_tensor):
            if not isinstance(given, TensorArgument):
                raise argument_error(name, f"is a tensor, and {given!r} is not", "pass a TensorArgument")
            scalars = [] if parameter.layout is None else _scalars(name, parameter.layout, given)
            _check_tensor(name, type, scalars, given)
            stretch = placing.where[id(given.storage)]
            offset = place(given.storage, given, _named(stretch, placing.where, args), t, placing)
            bindings.append(Binding(offset, given))
            t.homes[parameter.arguments[0]] = arena.at(placing.placed[stretch])
            address = base + offset
            if isinstance(type, TensorType):
                value: Value = TensorValue(address, static_offset(type), tuple(scalars))
            else:
                value = _read(name, kind, Placed(address, given.layout), type)
            t.constant(parameter.arguments[0], value)
            for argument, scalar in zip(parameter.arguments[1:], scalars, strict=False):
                t.constant(argument, scalar)
        else:
            t.constant(parameter.arguments[0], _read(name, kind, given, type))
    if isinstance(kernel, EntryOp) and kernel.maps:
        _bind_maps(kernel, t)
    return bindings


def _named(stretch: Stretch, where: Mapping[int, Stretch], args: Mapping[str, Argument]) -> str:
    """The arguments of a stretch of memory in words."""
    storages: dict[int, str] = {}
    for name, value in args.items():
        if isinstance(value, TensorArgument) and where[id(value.storage)] == stretch:
            storages.setdefault(id(value.storage), name)
    return f"argument{'s' if len(storages) > 1 else ''} {' and '.join(storages.values())}"


def place(storage: NumPyArray, given: TensorArgument, name: str, t: Translator, placing: Placing) -> int:
    """The offset in the arena of the storage of a tensor, within the stretch of memory that it belongs to."""
    stretch = placing.where[id(storage)]
    at = storage.ctypes.data - stretch.start
    if stretch not in placing.placed:
        placing.placed[stretch] = _allocate(name, given, at, stretch.size, t)
    return placing.placed[stretch] + at


def _allocate(name: str, given: TensorArgument, at: int, size: int, t: Translator) -> int:
    """The offset in the arena of `size` bytes of memory, `at` bytes into which a tensor begins."""
    space = t.spaces.global_
    copy = None if t.launch.reached is None else t.launch.reached.copy_of(given.storage)
    if copy is None:
        return space.arena.allocate(name, size, like=given.offset - at)
    space.arena.parts.append(Allocation(name, copy - space.base - at, size))
    return copy - space.base - at


def _bind_maps(kernel: EntryOp, t: Translator) -> None:
    """Makes the kernel's tensor maps of its other arguments. LaunchError (E0322) for a tensor that has none."""
    from ..map_arguments import place_map, value_words

    arguments = kernel.body.blocks[0].args
    names = [name.data for name in kernel.arg_names]
    values = {name: t.initial[t.slot(argument)] for name, argument in zip(names, arguments, strict=True)}
    words = dict(zip(names, value_words(kernel.parameters()), strict=False))
    for index, recipe in kernel.maps.items():
        t.constant(arguments[index], MAP_BASE + TENSOR_MAP.size * len(t.launch.maps))
        t.launch.maps.append(place_map(recipe, values, words))


def _scalars(name: str, layout: Layout, given: TensorArgument) -> list[int]:
    """The values of the `?` of a parameter's layout."""
    if given.layout is None:
        raise argument_error(name, "needs the layout of the tensor", "pass a TensorArgument with its layout")
    from ...layout.algebra.scalars import scalars_of

    try:
        return scalars_of(layout, given.layout)
    except LayoutError as error:
        raise argument_error(name, f"does not fit: {error.message}", error.hint) from None


def static_offset(type: TensorType) -> int:
    """The inner offset with which a swizzled layout is written; 0 for a plain one."""
    layout = type.layout.data
    return layout.offset if isinstance(layout, ComposedLayout) and isinstance(layout.offset, int) else 0


def _check_tensor(name: str, type: Attribute, scalars: Sequence[int], given: TensorArgument) -> None:
    """LaunchError (E3106) for a tensor that does not fit its parameter."""
    storage = given.storage
    if isinstance(type, TensorType):
        kind = element_kind(type.element_type)
        fits = kind is not None and storage.dtype.itemsize * 8 == max(kind.bits, 8)
        in_bytes = kind is not None and (not kind.is_float or type.is_packed) and storage.dtype.kind == "u"
        if kind is None or not fits or not (storage.dtype == kind.dtype or in_bytes):
            raise argument_error(
                name, f"has elements of {type.element_type}, but the array has {storage.dtype}", "convert the array"
            )
        from ..arrays.storage import storage_size

        layout = with_scalars(type.layout.data, scalars)
        if size(layout) > MAX_TENSOR:
            raise argument_error(name, f"has {size(layout)} elements", f"the simulator allows {MAX_TENSOR}")
        need = -(-storage_size(layout) // type.per_byte)
        if storage.size < need:
            raise argument_error(name, f"spans {need} elements, the array has {storage.size}", "pass the whole tensor")
    if storage.size == 0:
        raise argument_error(name, "is an empty array", "a tensor has at least one element")


def _read(name: str, kind: ParameterKind | None, given: object, type: Attribute) -> Value:
    """The value that the kernel reads from the bytes that a launch passes."""
    if kind is None:
        raise argument_error(name, f"has type {type}, which no argument can have", "use tensors, integers and floats")
    value = kind.unpack(pack_argument(name, kind, given))
    return numpy_type(kind.element).type(value) if isinstance(kind, Scalar) and isinstance(value, float) else value


def rules_for(launch: LaunchState, kernel: KernelOp, args: Mapping[str, Argument], *, exact: bool) -> RuleOf:
    """The rules of a launch; with `exact` it gets the bit patterns of exact numbers. The numbers that it is given keep
    theirs. SimulationError (E3251) for NaN in its arguments, where it looks for that.
    """
    rules = rule_of
    if exact:
        from .exact.rules import exact_rule_of, table_for

        given = [value.storage if isinstance(value, TensorArgument) else np.asarray(value) for value in args.values()]
        launch.exact, rules = table_for(kernel, given), exact_rule_of
    if launch.numbers:
        from .number_faults import check_arguments, instrumented

        check_arguments(args, site_of(kernel), launch.forgiven)
        rules = instrumented(rules)

    def rule_for(kind: type[Operation]) -> Rule | None:
        rule = rules(kind)
        if rule is not None and launch.in_step and not runs_in_step(rule):
            raise OutOfStepError(always=True)
        if rule is not None and orders_clusters(rule):
            launch.shares = False
        return rule

    return rule_for


def check_config(kernel: KernelOp, config: LaunchConfig) -> None:
    """LaunchError (E3105) for a launch with another block than the kernel's."""
    if config.block != kernel.block:
        raise LaunchError(
            Code.RUN_LAUNCH,
            f"@{kernel.sym_name.data} is for blocks of {kernel.block} threads, not {config.block}",
            "launch it with the block that its `threads(...)` names",
        )


def numbered(grids: "Sequence[Grid]") -> Grids:
    """The grids with the numbers of their threads. LaunchError (E3105) for too many."""
    placed = Grids.of((grid.config, grid.device, grid.kernel.sym_name.data) for grid in grids)
    if placed.threads > MAX_THREADS:
        raise LaunchError(Code.RUN_LAUNCH, f"the simulator runs up to {MAX_THREADS} threads in one launch")
    return placed


def body_of(kernel: KernelOp, translator: Translator) -> Body:
    """The body of a kernel, of one block or of several with branches between them."""
    if len(kernel.body.blocks) == 1:
        return translator.block(kernel.body.block)
    from .branches import graph

    return graph(kernel.body, translator)


def bodies_of(kernels: Sequence[KernelOp], translators: Sequence[Translator]) -> list[Body]:
    """The bodies of kernels that run together, whose blocks have shared memory at the same addresses."""
    bodies: list[Body] = []
    bound = len(translators[0].spaces.shared.arena.allocations)
    for kernel, translator in zip(kernels, translators, strict=True):
        translator.spaces.shared.arena.begin_again(bound)
        bodies.append(body_of(kernel, translator))
    return bodies


@dataclass(frozen=True, slots=True)
class Grid:
    """A launch whose kernel is found, and whose sizes are those that the kernel asks for."""

    kernel: KernelOp
    config: LaunchConfig
    args: Mapping[str, Argument]
    facts: KernelFacts
    device: int = 0

    @classmethod
    def of(cls, launch: Launch[SimProgram]) -> "Grid":
        """LaunchError (E3105) for sizes that do not fit the kernel."""
        kernel = launch.code.find()
        check_config(kernel, launch.config)
        config = launch.config.of_kernel(kernel.cluster_size, kernel.non_portable is not None)
        return cls(kernel, config, launch.args, launch.code.facts, launch.device)


def bind_all(
    grids: Sequence[Grid],
    translators: Sequence[Translator],
    placing: Placing,
    multicasts: Sequence[Multicast],
    memory: Callable[[], Sequence[NDArray[np.uint8]]],
) -> list[Binding]:
    """Places the host's memory that kernels reach, then multicast memory, then the arguments; raises as `bind`."""
    bindings = _bind_reached([grid.kernel for grid in grids], translators[0], memory)
    bindings += _bind_multicasts(multicasts, translators[0], placing)
    for grid, translator in zip(grids, translators, strict=True):
        bindings += bind(grid.kernel, grid.args, translator, placing)
    return bindings


def _bind_multicasts(multicasts: Sequence[Multicast], t: Translator, placing: Placing) -> list[Binding]:
    """Gives multicast memory its addresses, and the memory of each device that it stands for."""
    bindings: list[Binding] = []

    def address_of(memory: NDArray[np.uint8], name: str) -> int:
        given = TensorArgument(memory)
        offset = place(memory, given, name, t, placing)
        bindings.append(Binding(offset, given))
        return t.spaces.global_.base + offset

    for multicast in multicasts:
        start = address_of(multicast.memory, "multicast memory")
        parts = tuple(address_of(part, f"symmetric memory of device {n}") for n, part in enumerate(multicast.parts))
        t.launch.multicasts.append(PlacedMulticast(start, multicast.memory.nbytes, parts))
    return bindings
