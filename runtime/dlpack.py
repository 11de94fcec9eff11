# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a DLPack capsule says (DLPack, Python Specification; the structure is that of dlpack.h, version 0.8)."""

import ctypes
from struct import Struct, unpack
from typing import Any

from .arrays import HOST, Array, ArrayError, row_major
from .elements import BY_DLPACK, ELEMENTS_HINT

_HOST_DEVICES = (1, 3)  # kDLCPU, kDLCUDAHost
_CUDA_DEVICES = (2, 13)  # kDLCUDA, kDLCUDAManaged
_CAPSULE_NAME = b"dltensor"

_TENSOR = Struct("@PiiiBBHPPQ")
"""DLTensor: data, kind and number of the device, modes, the type's code, bits and lanes, shape, strides, offset."""

_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def dlpack_array(array: Any) -> Array:
    """What an array's capsule says. The array must outlive its use, as it does during a launch.

    ArrayError where the array is neither in the host's memory nor in that of a CUDA device, or of a type that kernels
    do not have.
    """
    kind, device = array.__dlpack_device__()
    if kind not in _HOST_DEVICES and kind not in _CUDA_DEVICES:
        raise ArrayError(f"is on a device of another kind (DLPack's {int(kind)})", "move it to the GPU or to the host")
    capsule = array.__dlpack__()
    # The capsule is not renamed to "used_dltensor", so its own destructor releases it.
    found = ctypes.string_at(_pointer_of(capsule, _CAPSULE_NAME), _TENSOR.size)
    data, _, _, modes, code, bits, lanes, extents, steps, offset = _TENSOR.unpack(found)
    element = BY_DLPACK.get((code, bits))
    if element is None or lanes != 1:
        raise ArrayError(f"has elements of DLPack's type {code} of {bits} bits, which no kernel has", ELEMENTS_HINT)
    shape = _integers(extents, modes)
    strides = _integers(steps, modes) if steps else row_major(shape)
    return Array(data + offset, element.name, shape, strides, int(device) if kind in _CUDA_DEVICES else HOST)


def _integers(address: int, count: int) -> tuple[int, ...]:
    return unpack(f"@{count}q", ctypes.string_at(address, 8 * count)) if count else ()
