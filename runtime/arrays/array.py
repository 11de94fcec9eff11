# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays, as a launch is given them: address, element type, shape, strides, device. Nothing is copied.

Torch is read by its tensors' attributes, which is fastest; NumPy by `__array_interface__`; others by DLPack (Python
Specification; the structures are those of dlpack.h, version 1.0), or else by `__cuda_array_interface__` (Numba's
specification). No library is imported.
"""

import ctypes
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from operator import index
from struct import Struct, unpack
from typing import Any, SupportsIndex, cast

from ...base.element_types import (
    BY_DLPACK,
    BY_LIBRARY_NAME,
    BY_NAME_OF_PAIRS,
    BY_TYPESTR,
    ELEMENTS,
    ELEMENTS_HINT,
    ElementType,
)
from ...base.printable import shown
from ...layout.algebra.core import Layout
from ..errors import argument_error

HOST = None
"""The device of an array in the host's memory."""
NOWHERE = -1
"""The device of an array that is described only: kernels are built for it, but not launched on it."""
ALLOCATION = 256
"""The bytes to which CUDA aligns each allocation (CUDA C++ Programming Guide, Device Memory Accesses)."""
_UNIT = 16
"""The strides of a tensor map are multiples of this many bytes."""
MAX_SPAN = 1 << 48
"""The most elements from the first to the last of a tensor."""
_META_ADDRESS = 1 << 8
"""The address of torch's tensors without memory, as far as it matters: they are aligned as those with memory are."""

_HOST_DEVICES = (1, 3)  # kDLCPU, kDLCUDAHost
_CUDA_DEVICES = (2, 13)  # kDLCUDA, kDLCUDAManaged
_CAPSULE_NAME = b"dltensor"
_VERSIONED_NAME = b"dltensor_versioned"
_READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY

_VERSIONED = Struct("@IIPPQ")
"""The fields before the DLTensor of a DLManagedTensorVersioned: its version, two addresses, flags."""
_TENSOR = Struct("@PiiiBBHPPQ")
"""DLTensor: data, kind and number of the device, modes, the type's code, bits and lanes, shape, strides, offset."""

_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_has_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))


class ArrayError(Exception):
    """An array that no kernel can be given; the text goes on from "argument 'A' "."""

    def __init__(self, problem: str, hint: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Array:
    """An array: the `address` of its first element, its element type as MLIR names it (`ui8` of unsigned integers, `i1`
    of bools, a byte each), its shape, its strides in elements, and the CUDA device that holds it, None for the host,
    `NOWHERE` for none. One of the host need not be `writable`.

    `offset` is where it begins in its allocation on the host, in bytes, if that is known. A GPU aligns allocations to
    `ALLOCATION` bytes; those of the host count as aligned alike, wherever they happen to lie. Kernels may also reach
    `behind` elements of the host's memory after the last, which other tensors of the host function have.
    """

    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: int | None
    writable: bool = True
    offset: int | None = field(default=None, compare=False)
    behind: int = field(default=0, compare=False)

    @property
    def place(self) -> int:
        """The address as far as its alignment matters: from an aligned allocation on, if that is known."""
        return self.address if self.offset is None else self.offset

    @property
    def itemsize(self) -> int:
        """The bytes of an element; 1 where two share it."""
        return ELEMENTS[self.dtype].bytes

    @property
    def bytes(self) -> int:
        """The bytes from the first element to the last that kernels may reach."""
        return -(-(self.span + self.behind) * ELEMENTS[self.dtype].memory_bits // 8)

    @property
    def layout(self) -> Layout:
        """Shape and strides; an array without modes is one element."""
        return Layout(self.shape, self.strides) if self.shape else Layout(1, 0)

    @property
    def span(self) -> int:
        """The elements from the first to the last that a coordinate reaches, both included; 0 for an empty array."""
        if 0 in self.shape:
            return 0
        return 1 + sum((n - 1) * step for n, step in zip(self.shape, self.strides, strict=True))


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A compact array's strides, the last mode fastest, as in NumPy: CuTe's are 0 where the extent is 1."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def canonical_strides(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in elements that say the same of each element. Those of modes of extent 1, in which libraries leave any
    number, go beyond the others, by a multiple of 16 bytes as TMA copies need it; but if no longer mode is
    contiguous, the last mode of extent 1 is.
    """
    if 1 not in shape:
        return strides
    longer = [(n, step) for n, step in zip(shape, strides, strict=True) if n != 1]
    unit = max(_UNIT // itemsize, 1)
    beyond = -(-(1 + sum((n - 1) * step for n, step in longer)) // unit) * unit
    made = [step if n != 1 else beyond for n, step in zip(shape, strides, strict=True)]
    if all(step != 1 for _, step in longer):
        made[len(shape) - 1 - shape[::-1].index(1)] = 1
    return tuple(made)


def is_numpy_scalar(x: object) -> bool:
    """Whether an object is a NumPy scalar, not an array without modes, nor a tensor."""
    return getattr(x, "shape", None) == () and hasattr(x, "dtype") and not hasattr(x, "__dlpack__")


def is_torch(x: object) -> bool:
    """Whether an object is a torch tensor."""
    return any(cls.__module__ == "torch" and cls.__name__ == "Tensor" for cls in type(x).__mro__)


def is_array(x: object) -> bool:
    """Whether `array_of` can read an object, as far as its attributes tell."""
    kind = type(x)
    return (
        isinstance(x, Array)
        or is_torch(x)
        or any(
            hasattr(kind, name) or hasattr(x, name)
            for name in ("__dlpack__", "__cuda_array_interface__", "__array_interface__")
        )
    )


def array_of(name: str, x: object) -> Array:
    """The address, layout and device of an array; `name` is the argument's, for messages.

    LaunchError (E3106) for an object that is not an array, for an array without elements or memory, or with elements,
    strides or a device that kernels do not have, and for a read-only array of a GPU.
    """
    try:
        array = choose_reader(x)(x)
        check_geometry(array)
        if not array.address:
            raise ArrayError("has no memory", "it was freed, or serves tracing only, as torch's fake tensors do")
    except ArrayError as error:
        raise argument_error(name, error.problem, error.hint) from None
    except Exception as error:  # an error of a library, or of a malformed interface
        problem = f"cannot be read as an array: {type(error).__name__}: {error}".partition("\n")[0]
        raise argument_error(name, problem) from error
    return array


def check_geometry(array: Array) -> None:
    """ArrayError for an array whose extents and strides no tensor of a kernel has, or whose address no pointer has."""
    if len(array.shape) != len(array.strides):
        raise ArrayError(f"has {len(array.shape)} extents and {len(array.strides)} strides")
    if any(type(number) is not int for number in (*array.shape, *array.strides)):
        raise ArrayError(f"has extents {shown(array.shape)} and strides {shown(array.strides)}, which are not integers")
    if any(step < 0 for step in array.strides):
        raise ArrayError(f"has negative strides {shown(array.strides)}", "pass a copy of it")
    if 0 in array.shape:
        raise ArrayError(f"is empty: its shape is {array.shape}", "there is nothing to launch on")
    if any(extent < 0 for extent in array.shape):
        raise ArrayError(f"has negative extents: its shape is {shown(array.shape)}")
    if array.span > MAX_SPAN:
        raise ArrayError(f"spans {shown(array.span)} elements", "at most 2^48 are possible")
    if not 0 <= array.address < 1 << 64:
        raise ArrayError("has an address that does not fit in 64 bits")


def choose_reader(x: object) -> Callable[[Any], Array]:
    """The function that reads arrays of the class of this one, and raises ArrayError for one that kernels cannot take.

    ArrayError for other objects.
    """
    if isinstance(x, Array):
        return _itself
    if is_torch(x):
        return _read_torch
    if getattr(x, "__array_interface__", None) is not None:
        return _host
    if hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__"):
        return read_dlpack
    if getattr(x, "__cuda_array_interface__", None) is None:
        raise ArrayError(f"is not an array but a {type(x).__name__}", "pass an array of torch, CuPy, JAX or NumPy")
    return _cuda


def _itself(x: Array) -> Array:
    return x


def _host(x: Any) -> Array:
    array = _read_interface(x.__array_interface__, HOST, getattr(x, "dtype", ""))
    begin = _beginning(x)
    return array if begin is None else replace(array, offset=array.address - begin)


def _beginning(x: Any) -> int | None:
    """The address of the memory that an array of NumPy shows a part of; None if only its owner knows."""
    while hasattr(base := getattr(x, "base", x), "__array_interface__"):
        if base is x:
            return None
        x = base
    if base is None:
        return int(x.__array_interface__["data"][0])
    if is_torch(base):
        return int(base.untyped_storage().data_ptr())
    try:
        memory = sys.modules["numpy"].frombuffer(base, "u1")
    except Exception:  # memory of another library, or of a file that is closed
        return None
    return int(memory.__array_interface__["data"][0])


def _cuda(x: Any) -> Array:
    device = getattr(getattr(x, "device", None), "id", 0)
    return _read_interface(x.__cuda_array_interface__, int(device), getattr(x, "dtype", ""))


def _read_torch(x: Any) -> Array:
    name = str(x.dtype).removeprefix("torch.")
    if str(x.layout) != "torch.strided":
        raise ArrayError(f"is a {str(x.layout).removeprefix('torch.')} tensor", "pass x.to_dense()")
    if x.device.type == "meta" or hasattr(x, "fake_mode"):
        return Array(_META_ADDRESS, _known(name).signed_name, tuple(x.shape), tuple(x.stride()), NOWHERE)
    place = x.get_device()
    if place < 0 and x.device.type != "cpu":
        raise ArrayError(f"is on the device {x.device}", "move it to the GPU or to the host")
    if x.is_neg():
        raise ArrayError("is a view that torch negates when reading it", "pass x.resolve_neg()")
    shape, strides = tuple(x.shape), tuple(x.stride())
    element = BY_NAME_OF_PAIRS.get(name)
    if element is not None:
        shape, strides = _of_pairs(shape, strides)
    return Array(
        int(x.data_ptr()),
        (element or _known(name)).signed_name,
        shape,
        strides,
        HOST if place < 0 else place,
        offset=int(x.storage_offset()) * x.element_size() if place < 0 else None,
    )


def _of_pairs(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The extents and strides in elements of 4 bits of an array whose elements are pairs of them, along the mode of
    stride 1. ArrayError where there is no such mode.
    """
    ones = [mode for mode, step in enumerate(strides) if step == 1]
    if not ones:
        raise ArrayError("has pairs of 4-bit elements in no mode of stride 1", "pass x.contiguous()")
    fast = next((mode for mode in ones if shape[mode] != 1), ones[-1])
    doubled = tuple([n * 2 if mode == fast else n for mode, n in enumerate(shape)])
    return doubled, tuple([1 if mode == fast else 2 * step for mode, step in enumerate(strides)])


def _read_interface(interface: Mapping[str, Any], device: int | None, dtype: object) -> Array:
    """An array by `__array_interface__` or `__cuda_array_interface__`. `dtype` names types that it cannot."""
    address, read_only = interface["data"]
    if read_only and device is not HOST:
        raise ArrayError("is read-only", "pass a writable array")
    typestr = str(interface["typestr"])
    if typestr[0] == ">":
        raise ArrayError(f"has elements of type {typestr}, of the other byte order", "pass x.astype(...)")
    element = BY_TYPESTR.get(typestr[1:]) or _known(str(dtype) or typestr)
    shape, steps = interface["shape"], interface.get("strides")
    if {*map(type, shape), *map(type, steps or ())} - {int}:
        shape = tuple(map(_integer, shape))
        steps = steps and tuple(map(_integer, steps))
    size = element.bytes
    if steps is not None and any([step % size for step in steps]):
        raise ArrayError(f"has strides of {tuple(steps)} bytes, between its elements", "pass a copy of it")
    strides = row_major(shape) if steps is None else tuple([step // size for step in steps])
    strides = canonical_strides(shape, strides, size)
    return Array(int(address), element.signed_name, shape, strides, device, not read_only)


def _integer(number: object) -> int:
    """A number of an interface, which may be one of NumPy. ArrayError for anything but an integer."""
    try:
        return int(index(cast("SupportsIndex", number)))
    except TypeError:
        raise ArrayError(f"has an extent or a stride {shown(number)}, which is not an integer") from None


def _known(name: str) -> ElementType:
    element = BY_LIBRARY_NAME.get(name)
    if element is None:
        raise ArrayError(f"has elements of type {name}, which kernels do not support", ELEMENTS_HINT)
    return element


def read_dlpack(array: Any) -> Array:
    """The contents of an array's capsule. The array must outlive its use, as it does during a launch.

    Arrays on the host whose library does not say whether they are read-only count as read-only, as in NumPy, since
    those of JAX are. For arrays on a GPU this is not asked: a kernel has no other way to return results there.

    ArrayError if the array is neither in the host's memory nor in that of a CUDA device, or of a type that kernels
    do not have.
    """
    kind, device = array.__dlpack_device__()
    if kind not in _HOST_DEVICES and kind not in _CUDA_DEVICES:
        raise ArrayError(f"is on a device of another kind (DLPack's {int(kind)})", "move it to the GPU or to the host")
    is_host = kind in _HOST_DEVICES
    # The capsule is not renamed to one that is used, so its own destructor releases it.
    capsule = _versioned_capsule(array) if is_host else array.__dlpack__()
    flags, address = _contents(capsule)
    header = ctypes.string_at(address, _TENSOR.size)
    data, _, _, modes, code, bits, lanes, extents, steps, offset = _TENSOR.unpack(header)
    element = BY_DLPACK.get((code, bits))
    if element is None or lanes != 1:
        raise ArrayError(
            f"has elements of DLPack's type {code} of {bits} bits, which kernels do not support", ELEMENTS_HINT
        )
    shape = _integers(extents, modes)
    strides = canonical_strides(shape, _integers(steps, modes) if steps else row_major(shape), element.bytes)
    place = HOST if is_host else int(device)
    return Array(data + offset, element.signed_name, shape, strides, place, not (is_host and flags & _READ_ONLY))


def _versioned_capsule(array: Any) -> Any:
    """An array's capsule with flags, if its library supports them."""
    try:
        return array.__dlpack__(max_version=(1, 0))
    except TypeError:  # a library of before DLPack 1.0, which has no such argument
        return array.__dlpack__()


def _contents(capsule: object) -> tuple[int, int]:
    """The flags of a capsule, and the address of its DLTensor."""
    if not _has_name(capsule, _VERSIONED_NAME):
        return _READ_ONLY, _pointer_of(capsule, _CAPSULE_NAME)
    start = _pointer_of(capsule, _VERSIONED_NAME)
    *_, flags = _VERSIONED.unpack(ctypes.string_at(start, _VERSIONED.size))
    return flags, start + _VERSIONED.size


def _integers(address: int, count: int) -> tuple[int, ...]:
    return unpack(f"@{count}q", ctypes.string_at(address, 8 * count)) if count else ()
