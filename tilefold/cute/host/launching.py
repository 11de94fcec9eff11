# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches within host functions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from xdsl.ir import SSAValue

from tilefold.base.element_types import ELEMENTS
from tilefold.base.errors import Code
from tilefold.builder.control.variables import tree_of
from tilefold.builder.primitives.arrays import Array
from tilefold.builder.scalars.dtypes import Boolean, DType, Float32, HostNumber, Int32, Int64
from tilefold.builder.scalars.values import Int, Value, convert
from tilefold.builder.tensors.coordinates import as_tuple
from tilefold.builder.tensors.tensors import Pointer, Tensor
from tilefold.builder.tracing.source import user_place
from tilefold.builder.tracing.state import host, suspended
from tilefold.dialects.cute.values import with_scalars
from tilefold.dialects.ptx import MAP_BYTES
from tilefold.dialects.tile import MakeTensorOp, TensorType, ViewOp
from tilefold.layout.algebra.core import cosize
from tilefold.layout.algebra.inttuple import product
from tilefold.runtime.arrays.array import HOST, NOWHERE
from tilefold.runtime.arrays.array import Array as ArrayRecord
from tilefold.runtime.arrays.reachable import allocation_of, reachable
from tilefold.runtime.arrays.signature import is_constexpr
from tilefold.runtime.engine import RunResult
from tilefold.runtime.errors import Dim3, LaunchError, argument_error
from tilefold.runtime.options import LaunchOptions, SimOptions, check_smem, dim3, launch_attributes

from ..compiled_kernel import Compilation, CompiledKernel
from ..launch import LaunchRequest
from ..parameters import Signature
from ..specialise import BoundArguments
from .arguments import HostArguments
from .streams import StreamSlot
from .tracing import HostTrace

if TYPE_CHECKING:
    from tilefold.runtime.sim.host_values import HostValues

    from .prepared import PreparedStep


@dataclass(frozen=True, slots=True)
class HostLaunch:
    """A launch: the kernel, the host values by its parameters, the grid, and the other options of the launch. Each
    block writes so many tensor maps (`maps`) to the workspace.
    """

    built: CompiledKernel
    values: Mapping[str, SSAValue]
    grid: tuple[int | SSAValue, ...]
    request: LaunchRequest
    options: SimOptions
    maps: int = 0

    def workspace_bytes(self, values: "HostValues") -> int:
        """The memory for the maps of all blocks."""
        return self.maps * MAP_BYTES * prod(self._grid(values)) if self.maps else 0

    def _grid(self, values: "HostValues") -> tuple[int, ...]:
        return tuple(n if isinstance(n, int) else int(values.number(n)) for n in self.grid)

    def run(
        self, bound: HostArguments, slots: Mapping[SSAValue, str], values: "HostValues"
    ) -> "tuple[RunResult | None, PreparedStep | None]":
        """Launches the kernel for arguments of the host, whose names are `slots`. The result is that of a launch
        that was waited for, else None; then the launch, if it is prepared.
        """
        given = BoundArguments()
        for name, ssa in self.values.items():
            argument = slots.get(ssa)
            if argument in bound.pointers:
                given.values[name] = given.arrays[name] = _reached_memory(argument, ssa, bound.arrays[argument], values)
            elif argument in bound.arrays:
                value = given.values[name] = bound.values[argument]
                given.arrays[name] = _with_more(bound.arrays[argument], value, ssa, values)
            else:
                given.values[name] = values.number(ssa)
        grid = self._grid(values)
        stream = self.request.stream
        request = self.request
        if isinstance(stream, StreamSlot):
            request = replace(request, stream=bound.streams[stream.name])
        from ..gpu_launch import run
        from .prepared import PreparedStep

        result, prepared = run(self.built, given, grid, request, self.options)
        return result, prepared and PreparedStep(prepared, given, self, grid)


def memory_of_pointers(trace: HostTrace) -> dict[str, ArrayRecord]:
    """The memory of the pointers among a function's arguments, by their names: that which the tensors reach that it has
    made of them so far. It is the host's where no GPU knows the address. Raises as a launch does.
    """
    bound = trace.bound
    arrays = {name: _in_its_place(bound.arrays[name]) for name in bound.pointers}
    return {name: _reached_memory(name, bound.slots[name], array, trace.values) for name, array in arrays.items()}


def _in_its_place(array: ArrayRecord) -> ArrayRecord:
    if array.device is None or array.device == NOWHERE:
        return array
    from tilefold.driver.devices import gpu_engine

    return array if gpu_engine(array.device).driver.knows(array.address) else replace(array, device=HOST)


def _reached_memory(name: str, pointer: SSAValue, array: ArrayRecord, values: "HostValues") -> ArrayRecord:
    """The memory from a pointer on, as far as the tensors that the host makes from it reach; if it makes none, the rest
    of the registered array that it points into. A GPU need not know it; without one, LaunchError (E3106) for other
    memory.
    """
    if array.device is not None:
        return array
    if bits := _reach(pointer, values):
        return replace(array, shape=(-(-bits // ELEMENTS[array.dtype].memory_bits),))
    if (size := reachable().size_from(array.address)) >= array.itemsize:
        return replace(array, shape=(size // array.itemsize,))
    problem = "is an address, and the simulator must know the size of the memory there"
    raise argument_error(name, problem, "make a tensor of it in the host function, or give the array to from_dlpack")


def _with_more(array: ArrayRecord, value: object, tensor: SSAValue, values: "HostValues") -> ArrayRecord:
    """An array of the host with the elements behind it that tensors reach which the host makes of its start, as far as
    they are in its allocation. A tensor of CuTe is a pointer and a layout, so the one made has no end but its own.
    """
    if array.device is not HOST:
        return array
    _, start, size = allocation_of(value)
    rest = start + size - array.address if size else reachable().size_from(array.address)
    width = ELEMENTS[array.dtype].memory_bits
    most = rest * 8 // width
    behind = min(-(-_reach(tensor, values) // width), most) - array.span
    return replace(array, behind=behind) if behind > 0 else array


def _reach(start: SSAValue, values: "HostValues") -> int:
    """The bits from the start of a tensor to the end of the last that the host makes from it; 0 if it makes none."""
    reach = 0
    for use in start.uses:
        op = use.operation
        if isinstance(op, MakeTensorOp) and isinstance(type := op.result.type, TensorType):
            layout = with_scalars(op.layout.data, [values.number(n) for n in op.scalars])
            reach = max(reach, cosize(layout) * type.element_bits, _reach(op.result, values))
        elif isinstance(op, ViewOp) and (further := _reach(op.result, values)):
            skipped = 0 if op.offset is None else values.number(op.offset)
            reach = max(reach, skipped * op.source.type.element_bits + further)
    return reach


class LaunchedKernel(Protocol):
    """A kernel that a host function launches: see `Kernel`."""

    function: Callable[..., object]
    signature: Signature

    @property
    def last(self) -> CompiledKernel: ...

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...

    def set_name_prefix(self, prefix: str) -> None:
        """Makes its names begin with `prefix`."""
        ...

    def built_for_host(
        self, arguments: Mapping[str, object], block: Dim3, min_blocks: int | None, smem: int | None, how: Compilation
    ) -> tuple[CompiledKernel, Mapping[str, SSAValue]]: ...


class HostKernelCall:
    """A call of a kernel within a host function."""

    def __init__(self, kernel: LaunchedKernel, args: Sequence[object], kwargs: Mapping[str, Any]) -> None:
        self.kernel = kernel
        if "_name_prefix" in kwargs:  # as public programs name a kernel in its call
            kwargs = dict(kwargs)
            kernel.set_name_prefix(kwargs.pop("_name_prefix"))
        self.given = kernel.signature.given(args, kwargs)
        self._trace.waiting[self] = user_place()
        self._built: CompiledKernel | None = None

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.kernel.function.__name__

    @property
    def _trace(self) -> HostTrace:
        trace = host()
        assert isinstance(trace, HostTrace), "a function of the host is executed"
        return trace

    def launch(
        self,
        grid: object = (),
        block: object = (),
        *,
        cluster: Any = None,
        smem: object = None,
        stream: object = None,
        device: str = "auto",
        stage: str | None = None,
        use_pdl: Any = False,
        min_blocks_per_mp: int | None = None,
        **more: Unpack[LaunchOptions],
    ) -> RunResult | None:
        """Launches the kernel; see `KernelCall.launch`. Where the function is compiled, each of its calls does.

        `min_blocks_per_mp` is the blocks that a multiprocessor is to hold at least, if the kernel does not fix it.
        """
        trace = self._trace
        trace.waiting.pop(self, None)
        trace.flush()
        given: int | None = _number(smem)
        check_smem(given)
        options = SimOptions.taken_from(more)
        if isinstance(use_pdl, Value):
            use_pdl = bool(_number(convert(use_pdl, Int32)))
        attributes = launch_attributes(None if cluster is None else _numbers(cluster), use_pdl, **more)
        request = LaunchRequest(device, stage, _number(stream), attributes, given)
        block = dim3("block", _numbers(block))
        plain = self._plain(trace) if min_blocks_per_mp is None else None
        if plain is not None and trace.eager:
            grid = _numbers(grid)
            if isinstance(stream, StreamSlot):
                request = replace(request, stream=stream.stream)
            with suspended():
                result = self.kernel(**plain).submit(grid, block, request, options)
            self._built = self.kernel.last
            return result
        step = self._traced(trace, grid, block, min_blocks_per_mp, request, options)
        self._built = step.built
        trace.steps.append(step)
        if not trace.eager:
            return None
        with suspended():
            slots = {ssa: name for name, ssa in trace.bound.slots.items()}
            return step.run(trace.bound, slots, trace.values)[0]

    def smem_usage(self) -> int:
        """The bytes of shared memory of a block. LaunchError (E3105) before the launch, which decides about them."""
        if self._built is None:
            message = f"the kernel '{self.name}' is not launched yet"
            raise LaunchError(Code.RUN_LAUNCH, message, "ask for its shared memory after the launch")
        return self._built.shared_bytes()

    def _plain(self, trace: HostTrace) -> dict[str, Any] | None:
        """The arguments, by parameter, of the function's caller that the kernel is given; None if it is given anything
        else of the host, for which it is built anew.
        """
        if any(op.name.startswith("tile.") for op in trace.block.ops):
            return None
        signature = self.kernel.signature
        if not signature.is_plain:
            return None
        names = {ssa: name for name, ssa in trace.bound.slots.items()}
        plain: dict[str, object] = {}
        for name, value in self.given.items():
            if isinstance(value, Tensor) and value.ssa in names:
                plain[name] = trace.bound.values[names[value.ssa]]
            elif isinstance(value, tuple | list | dict) or any(map(_is_of_host, tree_of(value).leaves)):
                return None
            else:
                plain[name] = value
        return plain

    def _traced(
        self,
        host: HostTrace,
        grid: object,
        block: Dim3,
        min_blocks: int | None,
        request: LaunchRequest,
        options: SimOptions,
    ) -> HostLaunch:
        kernel = self.kernel
        annotations = kernel.signature.annotations
        arguments = {name: _argument(host, value, annotations[name]) for name, value in self.given.items()}
        built, captured = kernel.built_for_host(arguments, block, min_blocks, request.smem, host.compilation)
        host.functions.append(kernel.function)
        sizes = as_tuple(grid)
        if not 1 <= len(sizes) <= 3:
            raise LaunchError(Code.RUN_LAUNCH, f"the grid is {grid!r}", "give one to three integers of at least 1")
        extents = tuple(map(_size, sizes))
        for value in (*captured.values(), *extents):
            if isinstance(value, SSAValue):
                host.check_known(value)
        return HostLaunch(built, captured, extents, request, options, host.take_maps())


def _is_of_host(leaf: object) -> bool:
    return isinstance(leaf, Value | Pointer | Tensor)


def _argument(host: HostTrace, value: object, annotation: object) -> Any:
    """The kernel's form of an argument: numbers are host values."""
    if is_constexpr(annotation):
        return value
    if isinstance(value, Value):
        return convert(value, annotation) if isinstance(annotation, DType) else value
    if annotation is Array and isinstance(value, Tensor):
        return Array.of(value)
    if isinstance(value, HostNumber):
        value, annotation = value.value, annotation if isinstance(annotation, DType) else value.dtype
    if isinstance(value, int | float):
        dtype = annotation if isinstance(annotation, DType) else None
        if dtype is None:
            is_small = isinstance(value, int) and -(1 << 31) <= value < 1 << 31
            dtype = Boolean if isinstance(value, bool) else Float32 if isinstance(value, float) else Int32
            dtype = Int64 if dtype is Int32 and not is_small else dtype
        return host.constant(value, dtype)
    return value


def _size(n: Any) -> int | SSAValue:
    """A size of a grid: a number, or a host value. For a mode with several extents, their product."""
    n = product(n)
    return n.ssa if isinstance(n, Int) else index(n)


def _numbers(sizes: object) -> Any:
    """Sizes on which the compiled function depends."""
    return tuple(map(_number, as_tuple(sizes)))


def _number(n: object) -> Any:
    return index(n) if isinstance(n, Value) else n
