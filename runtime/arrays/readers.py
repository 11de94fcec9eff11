# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of other libraries, as a launch sees them: address, element type, shape, strides, device. Nothing is copied.

Torch is read by its tensors' attributes, which is fastest; NumPy by `__array_interface__`; others by DLPack, or else by
`__cuda_array_interface__` (Numba's specification). No library is imported.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ...base.element_types import ElementType
from ..errors import argument_error
from .array import HOST, NOWHERE, Array, ArrayError, row_major
from .dlpack import read_dlpack
from .library_types import BY_LIBRARY_NAME, BY_TYPESTR, ELEMENTS_HINT

_META_ADDRESS = 1 << 8
"""The address of torch's tensors without memory, as far as it matters: they are aligned as those with memory are."""


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


def array_of(name: str, x: Any) -> Array:
    """The address, layout and device of an array; `name` is the argument's, for messages.

    LaunchError (E3106) for an object that is not an array, for an array without elements or memory, or with elements,
    strides or a device that kernels do not have, and for a read-only array of a GPU.
    """
    try:
        array = choose_reader(x)(x)
        if any(step < 0 for step in array.strides):
            raise ArrayError(f"has negative strides {array.strides}", "pass a copy of it")
        if 0 in array.shape:
            raise ArrayError(f"is empty: its shape is {array.shape}", "there is nothing to launch on")
        if not array.address:
            raise ArrayError("has no memory", "it was freed, or serves tracing only, as torch's fake tensors do")
    except ArrayError as error:
        raise argument_error(name, error.problem, error.hint) from None
    except Exception as error:  # an error of a library, or of a malformed interface
        problem = f"cannot be read as an array: {type(error).__name__}: {error}".partition("\n")[0]
        raise argument_error(name, problem) from error
    return array


def choose_reader(x: Any) -> Callable[[Any], Array]:
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
    return _read_interface(x.__array_interface__, HOST, getattr(x, "dtype", ""))


def _cuda(x: Any) -> Array:
    device = getattr(getattr(x, "device", None), "id", 0)
    return _read_interface(x.__cuda_array_interface__, int(device), getattr(x, "dtype", ""))


def _read_torch(x: Any) -> Array:
    name = str(x.dtype).removeprefix("torch.")
    if str(x.layout) != "torch.strided":
        raise ArrayError(f"is a {str(x.layout).removeprefix('torch.')} tensor", "pass x.to_dense()")
    if x.device.type == "meta" or hasattr(x, "fake_mode"):
        return Array(_META_ADDRESS, _known(name).signed_name, tuple(x.shape), tuple(x.stride()), NOWHERE)
    if not x.is_cuda and x.device.type != "cpu":
        raise ArrayError(f"is on the device {x.device}", "move it to the GPU or to the host")
    if x.is_neg():
        raise ArrayError("is a view that torch negates when reading it", "pass x.resolve_neg()")
    return Array(
        int(x.data_ptr()),
        _known(name).signed_name,
        tuple(x.shape),
        tuple(x.stride()),
        x.get_device() if x.is_cuda else HOST,
    )


def _read_interface(interface: Mapping[str, Any], device: int | None, dtype: object) -> Array:
    """An array by `__array_interface__` or `__cuda_array_interface__`. `dtype` names types that it cannot."""
    address, read_only = interface["data"]
    if read_only and device is not HOST:
        raise ArrayError("is read-only", "pass a writable array")
    typestr = str(interface["typestr"])
    if typestr[0] == ">":
        raise ArrayError(f"has elements of type {typestr}, of the other byte order", "pass x.astype(...)")
    element = BY_TYPESTR.get(typestr[1:]) or _known(str(dtype) or typestr)
    shape = tuple(map(int, interface["shape"]))
    steps: Any = interface.get("strides")
    size = element.bytes
    if steps is not None and any(int(step) % size for step in steps):
        raise ArrayError(f"has strides of {tuple(steps)} bytes, between its elements", "pass a copy of it")
    strides = row_major(shape) if steps is None else tuple(int(step) // size for step in steps)
    return Array(int(address), element.signed_name, shape, strides, device, not read_only)


def _known(name: str) -> ElementType:
    element = BY_LIBRARY_NAME.get(name)
    if element is None:
        raise ArrayError(f"has elements of type {name}, which kernels do not support", ELEMENTS_HINT)
    return element
