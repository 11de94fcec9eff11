# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments of host functions, `cute.runtime`: arrays with promises, descriptions of tensors, pointers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.scalars.dtypes import DTYPES, DType, Float32
from tilefold.builder.tensors import pointers
from tilefold.builder.tensors.address_space import AddressSpace
from tilefold.builder.tensors.coordinates import as_tuple
from tilefold.builder.tracing.state import is_building
from tilefold.layout.algebra.core import Layout, make_layout, make_ordered_layout
from tilefold.runtime.arrays.array import HOST, Array, array_of, canonical_strides
from tilefold.runtime.arrays.reachable import reachable
from tilefold.runtime.arrays.signature import Dynamic, Marked, misalignment
from tilefold.runtime.errors import LaunchError

from .argument_errors import checked
from .host.descriptions import FakeTensor, Pointer, SymInt
from .host.streams import FakeStream
from .specialise import element_of_name, name_of_elements
from .torch_compile import untraced

if TYPE_CHECKING:
    from .host.loading import LoadedModule


class RuntimeTensor:
    """An array as an argument: `from_dlpack` makes it. Its layout is part of the kernel's type, except for extents and
    strides marked as dynamic.
    """

    __tilefold_tensor__ = True
    """For `isinstance(x, cute.Tensor)`."""

    def __init__(self, array: object, align: int | None = None) -> None:
        self.array = array
        self._array = array_of("tensor", array)
        if self._array.device is HOST:
            reachable().add(array)
        self._rule: Dynamic | None = None
        self._counts_as: DType | None = None
        self.__tilefold_array__: Array | Marked = self._array
        if align is not None and (align < 1 or align & (align - 1)):
            raise _argument_error(f"assumed_align is {align}", "it is a power of two, in bytes")
        if align is not None and (problem := misalignment(self._array, align)):
            raise _argument_error(f"the tensor {problem}", "promise less")
        self._align = align

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self._array.shape

    @property
    def stride(self) -> tuple[int, ...]:
        """The strides in elements."""
        return self._array.strides

    @property
    def layout(self) -> Layout:
        """Shape and strides."""
        return self._array.layout

    @property
    def element_type(self) -> DType:
        """The type of the elements; you can set it to another type of the same size, such as Float8E4M3FN for bytes.
        Bytes can also be treated as floats of 6 bits, or as elements of 4 bits, two in each of their first half. In the
        kernel, elements of TFloat32 are those of Float32, which they are in memory.
        """
        return element_of_name(self._array.dtype) if self._counts_as is None else self._counts_as

    @element_type.setter
    def element_type(self, dtype: DType) -> None:
        own, wanted = self.element_type.bits, dtype.bits
        in_a_byte = own == 8 and (wanted in (1, 4) or (wanted == 6 and dtype.is_float))
        if wanted != own and not in_a_byte:
            raise _argument_error(
                f"elements of {self.element_type} cannot be treated as {dtype}", "choose one of their size"
            )
        self._array = replace(self._array, dtype=name_of_elements(dtype))
        self._counts_as = dtype if dtype.of_tensor is not dtype else None
        self._wrap()

    def _wrap(self) -> None:
        """Keeps the argument of calls, which would take long to make in each."""
        self.__tilefold_array__ = self._array if self._rule is None else Marked(self._array, self._rule)

    dtype = element_type

    @property
    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._array.address

    @property
    def iterator(self) -> "Pointer":
        """The address of the first element as an argument, aligned as the tensor is promised to be."""
        return _argument(self.element_type, self._array.address, self._align)

    @property
    def memspace(self) -> AddressSpace:
        """`AddressSpace.gmem`."""
        return AddressSpace.gmem

    @property
    def leading_dim(self) -> int | None:
        """The mode with stride 1; preferably one with more than one element."""
        return _leading_mode(self._array)

    @checked
    def mark_layout_dynamic(self, leading_dim: int | None = None) -> "RuntimeTensor":
        """Lets all extents differ from call to call, and all strides except that of `leading_dim`, which is 1; by
        default it is the mode with stride 1. Raises LaunchError (E3106) if its stride is not 1.
        """
        if leading_dim is not None:
            rank = len(self.shape)
            if not -rank <= leading_dim < rank:
                raise _argument_error(f"leading_dim={leading_dim} of a tensor of {rank} modes", "count from 0")
            if self.stride[leading_dim] != 1 and self.shape[leading_dim] != 1:
                step = self.stride[leading_dim]
                raise _argument_error(f"mode {leading_dim} has stride {step}, not 1", "name the mode whose stride is 1")
        array = self._array  # torch leaves a stride of 1 in modes of extent 1, which would be part of the type
        self._array = replace(array, strides=canonical_strides(array.shape, array.strides, array.itemsize))
        return self._marked(None, {})

    @checked
    def mark_compact_shape_dynamic(
        self, mode: int, stride_order: Sequence[int] | None = None, divisibility: int = 1
    ) -> "RuntimeTensor":
        """Lets the extent of a mode of a compact tensor, and the strides that follow from it, differ from call to call,
        as a multiple of `divisibility`. `stride_order` lists the modes from the slowest to the fastest, if the strides
        leave that open. Raises LaunchError (E3106) for a mode, an order or a divisor that does not fit the tensor.
        """
        rank = len(self.shape)
        if not -rank <= mode < rank:
            raise _argument_error(f"mode {mode} of a tensor of {rank} modes is marked as dynamic", "count from 0")
        if stride_order is not None:
            steps = [self.stride[m] for m in stride_order if self.shape[m] != 1]
            if sorted(stride_order) != list(range(rank)) or steps != sorted(steps, reverse=True):
                given = tuple(stride_order)
                raise _argument_error(
                    f"stride_order {given} does not match the strides {self.stride}", "slowest mode first"
                )
        if divisibility < 1:
            raise _argument_error(f"divisibility is {divisibility}", "it is at least 1")
        if self.shape[mode] % divisibility:
            problem = f"extent {self.shape[mode]} of mode {mode} is not a multiple of {divisibility}"
            raise _argument_error(problem, "promise less, or pad the tensor")
        return self._marked(mode % rank, {mode % rank: divisibility})

    def _marked(self, mode: int | None, divisors: Mapping[int, int]) -> "RuntimeTensor":
        before = self._rule
        modes: set[int] | None = set() if before is None or before.modes is None else set(before.modes)
        is_all = mode is None or (before is not None and before.modes is None)
        known = {} if before is None else {m: n for m, n in before.divisibility if m is not None}
        modes = None if is_all or mode is None else {*modes, mode}
        self._rule = Dynamic(
            modes=None if modes is None else sorted(modes), divisibility={**known, **divisors}, align=self._align
        )
        self._wrap()
        return self

    def __repr__(self) -> str:
        return f"Tensor<{self.element_type}, {self.layout}>"


def _leading_mode(array: Array) -> int | None:
    ones = [mode for mode, step in enumerate(array.strides) if step == 1]
    return next((mode for mode in ones if array.shape[mode] != 1), ones[0] if ones else None)


@untraced
@checked
def from_dlpack(
    tensor: object,
    assumed_align: int | None = None,
    *,
    use_32bit_stride: bool = False,
    enable_tvm_ffi: bool = False,
    force_tf32: bool = False,
) -> RuntimeTensor:
    """An array of torch, NumPy, CuPy or JAX as an argument, without copying it. `assumed_align` promises an alignment
    of its address in bytes, and `force_tf32` makes TFloat32 the `element_type` of an array of Float32, and leaves that
    of others. A fake torch tensor describes an array to compile for. The other options have no effect: strides have as
    many bits as they need, and calls accept plain arrays. Raises LaunchError (E3106) for an array that no kernel
    accepts.
    """
    made = RuntimeTensor(tensor, assumed_align)
    if force_tf32 and made.element_type is Float32:
        made.element_type = DTYPES["TFloat32"]
    return made


@checked
def sym_int(width: int = 32, divisibility: int = 1) -> SymInt:
    """An integer that each call decides. LaunchError (E3106) for another width than 32 or 64."""
    if width not in (32, 64) or divisibility < 1:
        raise _argument_error(f"sym_int({width}, {divisibility})", "the width is 32 or 64, the divisor at least 1")
    return SymInt(width, divisibility)


def sym_int32(divisibility: int = 1) -> SymInt:
    """An integer of 32 bits that each call decides."""
    return sym_int(32, divisibility)


def sym_int64(divisibility: int = 1) -> SymInt:
    """An integer of 64 bits that each call decides."""
    return sym_int(64, divisibility)


@checked
def make_fake_tensor(
    dtype: DType,
    shape: Sequence[object],
    stride: Sequence[object],
    *,
    memspace: object = None,
    assumed_align: int | None = None,
) -> FakeTensor:
    """A description of a tensor by its shape and strides, of which those that are one `SymInt` are the same number in
    each call. LaunchError (E3106) for different numbers of both.
    """
    symbols = _symbols(*as_tuple(shape), *as_tuple(stride))
    shape, stride = _integers(shape), _integers(stride)
    if len(shape) != len(stride):
        raise _argument_error(
            f"shape {shape} and stride {stride} have different ranks", "give a stride for each extent"
        )
    return FakeTensor(dtype, Layout(shape, stride), _align(dtype, assumed_align), symbols)


@checked
def make_fake_compact_tensor(
    dtype: DType,
    shape: Sequence[object],
    *,
    stride_order: Sequence[int] | None = None,
    memspace: object = None,
    assumed_align: int | None = None,
    **unused: object,
) -> FakeTensor:
    """A description of a compact tensor. `stride_order` has a number for each mode, 0 for the fastest; by default the
    first mode is the fastest. Raises LaunchError (E3106) for other orders.
    """
    extents = _integers(shape)
    if stride_order is not None and sorted(stride_order) != list(range(len(extents))):
        raise _argument_error(
            f"stride_order is {tuple(stride_order)}", f"give each of {len(extents)} modes a different number"
        )
    layout = make_layout(extents) if stride_order is None else make_ordered_layout(extents, tuple(stride_order))
    return FakeTensor(dtype, Layout(extents, layout.stride), _align(dtype, assumed_align), _symbols(*as_tuple(shape)))


def make_fake_stream(*, use_tvm_ffi_env_stream: bool = False) -> FakeStream:
    """A stream to compile for; each call is given one, unless it uses that of the environment: torch's current stream
    where tensors of torch are passed, and else the default one.
    """
    return FakeStream(use_tvm_ffi_env_stream)


def _integers(given: object) -> tuple[Any, ...]:
    return tuple(part.unknown if isinstance(part, SymInt) else part for part in as_tuple(given))


def _symbols(*given: object) -> Mapping[int, SymInt]:
    return {place: part for place, part in enumerate(given) if isinstance(part, SymInt)}


def _align(dtype: DType, align: int | None) -> int:
    if not isinstance(dtype, DType):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _argument_error(f"{dtype!r} is not an element type", "write cute.Float32, cute.Int32 and so on")
    return max(dtype.bits // 8, 1) if align is None else align


@checked
def load_module(path: "str | PathLike[str]", *, enable_tvm_ffi: bool = False) -> "LoadedModule":
    """The functions in an object file that `export_to_c` has written, or in a library of such files, as attributes by
    their names. On a machine without a GPU the simulator executes their kernels. On a GPU these are machine code: load
    files that you trust.

    A call takes the arguments that the function was compiled for, as those of `cute.compile` do. An array from
    `from_dlpack` with another layout is passed as C does, its address and open integers, with a RuntimeWarning.
    TilefoldError (E4001) for a file that cannot be read, or that has no such functions.
    """
    from .host.loading import LoadedModule

    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise TilefoldError(Code.CLI_READ, f"{path}: {error.strerror}") from None
    return LoadedModule(str(path), data)


def find_runtime_libraries(*, enable_tvm_ffi: bool = False) -> list[str]:
    """The libraries that exported functions are linked with beside the driver's: with `enable_tvm_ffi` that of the
    package `apache-tvm-ffi`, and else none. LaunchError (E3106) where the package is not installed.
    """
    if not enable_tvm_ffi:
        return []
    try:
        library: str = import_module("tvm_ffi.libinfo").find_libtvm_ffi()
    except ImportError:
        raise _argument_error("the package apache-tvm-ffi is not installed", "pip install apache-tvm-ffi") from None
    return [library]


def make_ptr(
    dtype: DType, value: Any, mem_space: object = None, assumed_align: int | None = None, *, swizzle_: Any = None
) -> Any:
    """An address as an argument: an integer, or an object whose `value` is one, as in ctypes. In a kernel, or a
    host function, a pointer of it: the integer may be a value, and `mem_space` is `cute.AddressSpace.gmem`, the
    default, or `smem`; addresses behind it are swizzled by `swizzle_`.

    `assumed_align` promises an alignment in bytes, by default that of an element. The simulator knows the memory of the
    arguments, and of arrays that `from_dlpack` was given and that still exist. TilefoldError (E5002) for another memory
    or an alignment that is not a power of two, LaunchError (E3106) for an argument that is not an address.
    """
    if is_building():
        made = pointers.make_ptr(dtype, value, mem_space, assumed_align)
        return made if swizzle_ is None else pointers.recast_ptr(made, swizzle_)
    if swizzle_ is not None:
        raise _argument_error("the pointer of an argument is swizzled", "swizzle it in the kernel: cute.recast_ptr")
    return _argument(dtype, value, assumed_align)


@checked
def _argument(dtype: DType, value: object, assumed_align: int | None) -> Pointer:
    address = getattr(value, "value", value)
    if not isinstance(address, int | None):
        raise _argument_error(f"an address is an integer, not {address!r}", "pass tensor.data_ptr()")
    return Pointer(dtype, address or 0, _align(dtype, assumed_align))


@checked
def nullptr(dtype: DType, mem_space: object = None, assumed_align: int | None = None) -> Pointer:
    """An address to compile for; only its type matters."""
    return _argument(dtype, 0, assumed_align)


def _argument_error(message: str, hint: str) -> LaunchError:
    return LaunchError(Code.RUN_ARGUMENT, message, hint)
