# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading a DLPack capsule (DLPack, Python Specification; the structures are those of dlpack.h, version 1.0)."""

import ctypes
from struct import Struct, unpack
from typing import Any

from .array import HOST, Array, ArrayError, row_major
from .library_types import BY_DLPACK, ELEMENTS_HINT

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


def read_dlpack(array: Any) -> Array:
    """The contents of an array's capsule. The array must outlive its use, as it does during a launch.

    Of the host's arrays it is known whether they are read-only; those whose library does not say so count as read-only,
    as for NumPy, since those of JAX are. On a GPU it is not asked, where a kernel has no other way to give results.

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
    strides = _integers(steps, modes) if steps else row_major(shape)
    place = HOST if is_host else int(device)
    return Array(data + offset, element.signed_name, shape, strides, place, not (is_host and flags & _READ_ONLY))


def _versioned_capsule(array: Any) -> Any:
    """An array's capsule with flags, where its library knows of them."""
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
